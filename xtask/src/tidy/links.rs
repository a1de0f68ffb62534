//! Links and paths in documents lead somewhere.

use super::{Problem, SourceFile, Tree};

/// Directories by which a path in backticks is known as one.
const ROOTS: &[&str] = &["crates/", "docs/", "tools/", "xtask/"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    tree.with_extension("md").flat_map(|file| check_file(tree, file)).collect()
}

fn check_file(tree: &Tree, file: &SourceFile) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next()) {
            let elsewhere = target.is_empty() || target.contains(':');
            if !elsewhere && !exists(tree, &resolve(&file.path, target)) {
                problems.push(Problem::at(file, index + 1, format!("the link to {target:?} leads nowhere")));
            }
        }
        for path in line.split('`').skip(1).step_by(2).filter(|quoted| is_path(quoted)) {
            if !exists(tree, path.trim_end_matches('/')) {
                problems.push(Problem::at(file, index + 1, format!("there is no {path}")));
            }
        }
    }
    problems
}

/// Whether a text in backticks is a path from the root, not a pattern of one.
fn is_path(quoted: &str) -> bool {
    let is_plain = !quoted.contains(['<', '*', ' ', '{']);
    is_plain && ROOTS.iter().any(|root| quoted.starts_with(root))
}

/// The path that a link means, from the root.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

fn exists(tree: &Tree, path: &str) -> bool {
    let directory = format!("{path}/");
    tree.files().any(|file| file.path == path || file.path.starts_with(&directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let page = "[a](../README.md#top) [b](adr/) [c](https://example.org/x) [d](#here)\n[e](gone.md)\n";
        let page = &format!("{page}`docs/adr/`, `docs/<code>.md`, `docs/gone/`\n");
        let tree = Tree::fixture(&[("README.md", "x"), ("docs/a.md", page), ("docs/adr/0001-x.md", "x")]);
        let link = Problem::new("docs/a.md:2", "the link to \"gone.md\" leads nowhere");
        assert_eq!(check(&tree), [link, Problem::new("docs/a.md:3", "there is no docs/gone/")]);
    }
}
