//! What every Rust file keeps to: a header, expectations instead of permissions, and names that say something.

use super::{Problem, SourceFile, Tree, rust_text};

/// Names that promise nothing.
const EMPTY_NAMES: &[&str] =
    &["common", "core", "helper", "helpers", "manager", "misc", "mod", "util", "utils"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    tree.with_extension("rs").flat_map(check_file).collect()
}

fn check_file(file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !file.text.trim_start().starts_with("//!") {
        problems.push(Problem::at(file, 1, "begin the file with a `//!` line that says what it is"));
    }
    let stem = file.name().trim_end_matches(".rs");
    if EMPTY_NAMES.contains(&stem) {
        problems.push(Problem::at(
            file,
            1,
            format!("{stem:?} says nothing; name the file after what it holds"),
        ));
    }
    let masked = rust_text::mask(&file.text);
    for (at, word) in rust_text::words(&masked) {
        let advice = match word {
            "allow" => "use `#[expect(lint, reason = \"...\")]` instead of `#[allow]`",
            "ignore" => "no `#[ignore]`: assert what holds today, with a note",
            _ => continue,
        };
        if is_attribute(&masked[..at]) {
            problems.push(Problem::at(file, rust_text::line_of(&masked, at), advice));
        }
    }
    problems
}

/// Whether what stands before a word makes it the name of an attribute.
fn is_attribute(before: &str) -> bool {
    let before = before.trim_end();
    before.strip_suffix('[').is_some_and(|rest| rest.ends_with(['#', '!']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        check(&Tree::fixture(&[(path, text)])).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn a_file_says_what_it_is() {
        assert_eq!(places("a.rs", "fn a() {}\n"), ["a.rs:1"]);
        assert!(places("a.rs", "//! A.\nfn a() {}\n").is_empty());
    }

    #[test]
    fn permissions_are_found_outside_of_comments_and_strings() {
        assert_eq!(places("a.rs", "//! A.\n#[allow(dead_code)]\nfn a() {}\n"), ["a.rs:2"]);
        assert_eq!(places("a.rs", "//! A.\n\n#![allow(unused)]\n"), ["a.rs:3"]);
        assert_eq!(places("a.rs", "//! A.\n#[test]\n#[ignore]\nfn a() {}\n"), ["a.rs:3"]);
        assert!(
            places("a.rs", "//! #[allow(x)]\nconst A: &str = \"#[allow(x)]\"; fn allow() {}\n").is_empty()
        );
    }

    #[test]
    fn empty_names_are_refused() {
        assert_eq!(places("crates/a/src/utils.rs", "//! A.\n"), ["crates/a/src/utils.rs:1"]);
        assert_eq!(places("crates/a/src/b/mod.rs", "//! A.\n"), ["crates/a/src/b/mod.rs:1"]);
    }
}
