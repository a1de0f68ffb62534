//! The glossary names types that exist.

use std::collections::BTreeSet;

use super::{Problem, SourceFile, Tree, rust_text};

/// A table whose third column holds the types of a term, in backticks.
const GLOSSARY: &str = "docs/glossary.md";

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let Some(glossary) = tree.get(GLOSSARY) else {
        return vec![Problem::new(GLOSSARY, "the glossary is missing")];
    };
    let types: BTreeSet<String> = tree
        .with_extension("rs")
        .filter(|file| file.path.starts_with("crates/"))
        .flat_map(defined_types)
        .collect();
    let mut problems = Vec::new();
    for (index, line) in glossary.text.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let Some(cell) = line.split('|').nth(3) else {
            problems.push(Problem::at(
                glossary,
                index + 1,
                "a row has the columns term, meaning, type, source",
            ));
            continue;
        };
        for name in cell.split('`').skip(1).step_by(2).filter(|name| !types.contains(*name)) {
            problems.push(Problem::at(glossary, index + 1, format!("no crate defines a type {name}")));
        }
    }
    problems
}

/// Types that a file defines. What a `lib.rs` exports counts too: some types are made by macros.
fn defined_types(file: &SourceFile) -> Vec<String> {
    let is_root = file.name() == "lib.rs";
    let masked = rust_text::mask(&file.text);
    let words: Vec<&str> = rust_text::words(&masked).map(|(_, word)| word).collect();
    words
        .windows(2)
        .filter(|pair| {
            let is_exported = is_root && pair[1].starts_with(|ch: char| ch.is_ascii_uppercase());
            is_exported || matches!(pair[0], "struct" | "enum" | "trait" | "type")
        })
        .map(|pair| pair[1].to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_glossary_exist() {
        let source = (
            "crates/a/src/lib.rs",
            "//! struct Ghost\npub use id::Made;\npub struct Turn;\npub trait Engine {}\n",
        );
        let table = "| Term | Means | Type | Source |\n|---|---|---|---|\n| turn | x | `Turn`, `Engine`, `Made` | ours |\n";
        assert!(check(&Tree::fixture(&[source, (GLOSSARY, table)])).is_empty());
        let ghost = table.replace("`Turn`", "`Ghost`");
        let problems = check(&Tree::fixture(&[source, (GLOSSARY, &ghost)]));
        assert_eq!(problems, [Problem::new("docs/glossary.md:3", "no crate defines a type Ghost")]);
        assert_eq!(check(&Tree::fixture(&[source])).len(), 1);
    }
}
