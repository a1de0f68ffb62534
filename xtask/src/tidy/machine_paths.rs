//! No path of one particular machine.

use super::{Problem, Tree};

/// Written in two halves so that this file keeps its own rule.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.files() {
        for (index, line) in file.text.lines().enumerate() {
            for path in MACHINE_PATHS.iter().filter(|path| names_path(line, path)) {
                let text = format!("{path} is a path of one machine; say it relative to the repository");
                problems.push(Problem::at(file, index + 1, text));
            }
        }
    }
    problems
}

/// Whether the line holds the path from the root: not as a part of a longer path or URL.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|ch| ch.is_alphanumeric() || matches!(ch, '.' | '_' | '-' | '}' | '~'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_are_found_in_any_file() {
        let bad = format!("fine\nsee {}main/x\n", MACHINE_PATHS[0]);
        let good = format!("https://example.org{}x and a{}b\n", MACHINE_PATHS[0], MACHINE_PATHS[1]);
        let problems = check(&Tree::fixture(&[("docs/a.md", &bad), ("b.rs", &good)]));
        assert_eq!(problems.iter().map(|p| p.place.as_str()).collect::<Vec<_>>(), ["docs/a.md:2"]);
    }
}
