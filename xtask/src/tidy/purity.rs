//! Decisions are pure: the values and the agent's state machines await nothing and touch nothing.

use super::{Problem, Tree, rust_text};

/// Sources that hold no effect.
const PURE: &[&str] = &["crates/harness-model/src/", "crates/harness-agent/src/"];
/// Modules of std that reach the world.
const WORLD: &[&str] = &["env", "fs", "net", "process", "thread"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree.with_extension("rs").filter(|file| is_pure(&file.path)) {
        let whole = rust_text::mask(&file.text);
        let masked = whole.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&whole);
        for (at, word) in rust_text::words(masked) {
            let before = &masked[..at];
            let reaches_out = WORLD.contains(&word) && (before.ends_with("std::") || in_use_of_std(before));
            if matches!(word, "async" | "await" | "tokio") || reaches_out {
                let text = format!("`{word}` in a pure crate: decide here, let an activity act");
                problems.push(Problem::at(file, rust_text::line_of(masked, at), text));
            }
        }
    }
    problems
}

/// Tests of a pure crate may read the documents they compare with, and stand apart: at the end of a file, or in `tests`.
fn is_pure(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    !is_test && PURE.iter().any(|prefix| path.starts_with(prefix))
}

/// Whether the text ends inside of a `use std::{...` list.
fn in_use_of_std(before: &str) -> bool {
    let statement = before.rsplit(';').next().unwrap_or(before);
    statement.trim_start().starts_with("use std::{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<String> {
        check(&Tree::fixture(&[(path, text)])).into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn effects_are_found_in_pure_crates_only() {
        let path = "crates/harness-agent/src/a.rs";
        let text =
            "//! async fs\nuse std::{fmt, fs};\nasync fn a() { b().await }\nlet x = std::env::vars();\n";
        assert_eq!(
            lines(path, text),
            [format!("{path}:2"), format!("{path}:3"), format!("{path}:3"), format!("{path}:4")]
        );
        assert!(lines("crates/harness-store/src/a.rs", text).is_empty());
        assert!(lines("crates/harness-agent/src/a/tests/b.rs", text).is_empty());
        assert!(lines(path, "//! A.\n#[cfg(test)]\nmod tests { async fn a() {} }\n").is_empty());
        assert!(
            lines(path, "//! A.\nuse std::{fmt, time::Duration};\nfn process() { self.env() }\n").is_empty()
        );
    }
}
