//! Documents that say the same as the code: the list of crates, the commands, and one style guide.

use std::collections::BTreeSet;

use super::{Problem, SourceFile, Tree};
use crate::{metadata::Metadata, steps};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const STYLE: &str = "STYLE.md";

pub(super) fn check(tree: &Tree, metadata: &Metadata, commands: &[&str]) -> Vec<Problem> {
    [check_crate_list(tree, metadata), check_style(tree), check_commands(tree, commands)].concat()
}

/// The crates that ARCHITECTURE.md lists are those that cargo knows. A crate is listed by a line that begins with its
/// name in backticks: a row, an item, a heading or a paragraph.
fn check_crate_list(tree: &Tree, metadata: &Metadata) -> Vec<Problem> {
    let Some(file) = tree.get(ARCHITECTURE) else {
        steps::say("    ARCHITECTURE.md is not there yet: its list of crates is not checked");
        return Vec::new();
    };
    let listed: BTreeSet<&str> = file.text.lines().filter_map(listed_crate).collect();
    let known: BTreeSet<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let missing = known.difference(&listed).map(|name| format!("crate `{name}` is not listed"));
    let stale = listed.difference(&known).map(|name| format!("`{name}` is listed and is no crate"));
    missing.chain(stale).map(|text| Problem::new(ARCHITECTURE, text)).collect()
}

fn listed_crate(line: &str) -> Option<&str> {
    let name = line.trim_start_matches(['|', '-', '*', '#', ' ']).strip_prefix('`')?.split('`').next()?;
    let is_crate = name.strip_prefix("harness-").is_some_and(|rest| {
        rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    });
    (is_crate || matches!(name, "tiny-harness" | "xtask")).then_some(name)
}

fn check_style(tree: &Tree) -> Vec<Problem> {
    let is_style = |file: &&SourceFile| {
        let name = file.name().to_ascii_lowercase();
        name.ends_with(".md") && (name.contains("style") || name.starts_with("coding"))
    };
    let found: Vec<&str> = tree.files().filter(is_style).map(|file| file.path.as_str()).collect();
    let mut problems: Vec<Problem> = found
        .iter()
        .filter(|path| **path != STYLE)
        .map(|path| Problem::new(*path, "a second style guide; there is one, STYLE.md"))
        .collect();
    if !found.contains(&STYLE) {
        problems.push(Problem::new(STYLE, "the style guide is missing"));
    }
    problems
}

/// A document that shows `cargo xtask NAME` shows a command there is.
fn check_commands(tree: &Tree, commands: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.with_extension("md") {
        for (index, line) in file.text.lines().enumerate() {
            for (_, rest) in
                line.match_indices("cargo xtask ").map(|(at, shown)| (at, &line[at + shown.len()..]))
            {
                let name: String =
                    rest.chars().take_while(|ch| ch.is_ascii_lowercase() || *ch == '-').collect();
                if !name.is_empty() && !commands.contains(&name.as_str()) {
                    problems.push(Problem::at(file, index + 1, format!("there is no `cargo xtask {name}`")));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        let package = |name: &str| Package { name: name.to_owned(), is_member: true, ..Package::default() };
        let metadata =
            Metadata { packages: vec![package("harness-a2"), package("xtask")], ..Metadata::default() };
        check(&Tree::fixture(files), &metadata, &["tidy"]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_list_of_crates_is_complete_and_current() {
        let style = (STYLE, "x");
        let good = "| `harness-a2` | x |\nA `harness-z` inside of a sentence.\n### `xtask`\n";
        assert!(texts(&[style, (ARCHITECTURE, good)]).is_empty());
        let bad = texts(&[style, (ARCHITECTURE, "- `xtask`: x\n- `harness-gone`: x\n")]);
        let expected = [
            "ARCHITECTURE.md: crate `harness-a2` is not listed",
            "ARCHITECTURE.md: `harness-gone` is listed and is no crate",
        ];
        assert_eq!(bad, expected);
    }

    #[test]
    fn there_is_one_style_guide() {
        assert_eq!(texts(&[]), ["STYLE.md: the style guide is missing"]);
        let two = texts(&[(STYLE, "x"), ("docs/RUST_STYLE.md", "x")]);
        assert_eq!(two, ["docs/RUST_STYLE.md: a second style guide; there is one, STYLE.md"]);
    }

    #[test]
    fn shown_commands_exist() {
        assert!(texts(&[(STYLE, "Run `cargo xtask tidy`, or `cargo xtask` alone.")]).is_empty());
        assert_eq!(
            texts(&[(STYLE, "x\nRun `cargo xtask tidey`.")]),
            ["STYLE.md:2: there is no `cargo xtask tidey`"]
        );
    }
}
