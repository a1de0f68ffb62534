//! The invariants that a command can hold. Each rule is one file and one entry of [`check`].

mod documents;
mod edges;
mod error_pages;
mod glossary;
mod licences;
mod links;
mod machine_paths;
mod owners;
mod purity;
mod rust_files;
mod rust_text;
mod sizes;
mod tree;

use std::fmt;

pub(crate) use tree::{SourceFile, Tree};

use crate::metadata::Metadata;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// File, `file:line`, or crate.
    place: String,
    /// What is wrong and what to do about it.
    text: String,
}

impl Problem {
    fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }

    fn at(file: &SourceFile, line: usize, text: impl Into<String>) -> Self {
        Self::new(format!("{}:{line}", file.path), text)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Every problem that the rules find. `commands` are the names that `cargo xtask` knows.
pub(crate) fn check(tree: &Tree, metadata: &Metadata, commands: &[&str]) -> Vec<Problem> {
    [
        edges::check(metadata),
        owners::check(metadata),
        licences::check(tree, metadata),
        sizes::check(tree),
        rust_files::check(tree),
        purity::check(tree),
        documents::check(tree, metadata, commands),
        error_pages::check(tree),
        glossary::check(tree),
        links::check(tree),
        machine_paths::check(tree),
    ]
    .concat()
}
