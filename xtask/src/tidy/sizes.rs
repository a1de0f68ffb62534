//! Files and functions stay small. Exceptions are listed with a reason, and the list only shrinks.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Problem, Tree, rust_text};

/// Lines of a Rust file.
const FILE_LINES_MAX: usize = 500;
/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// Where exceptions are written down.
const EXCEPTIONS: &str = "xtask/tidy-exceptions.toml";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    #[serde(default)]
    file: Vec<FileException>,
    #[serde(default)]
    function: Vec<FunctionException>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileException {
    path: String,
    lines: usize,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FunctionException {
    path: String,
    name: String,
    lines: usize,
    reason: String,
}

/// What something is allowed, and why.
struct Allowance {
    lines: usize,
    reason: String,
}

/// Something that is too large.
struct Oversize {
    place: String,
    lines: usize,
    limit: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let text = tree.get(EXCEPTIONS).map_or("", |file| file.text.as_str());
    let exceptions: Exceptions = match toml::from_str(text) {
        Ok(exceptions) => exceptions,
        Err(error) => return vec![Problem::new(EXCEPTIONS, error.to_string())],
    };
    let mut allowed: BTreeMap<String, Allowance> = BTreeMap::new();
    for entry in exceptions.file {
        allowed.insert(entry.path, Allowance { lines: entry.lines, reason: entry.reason });
    }
    for entry in exceptions.function {
        let what = function_key(&entry.path, &entry.name);
        allowed.insert(what, Allowance { lines: entry.lines, reason: entry.reason });
    }
    let mut problems = Vec::new();
    for (what, found) in oversized(tree) {
        problems.extend(judge(&what, &found, allowed.remove(&what)));
    }
    let needless = "is not needed any more; remove it, the list only shrinks";
    problems.extend(
        allowed.keys().map(|what| Problem::new(EXCEPTIONS, format!("the exception for {what} {needless}"))),
    );
    problems
}

fn judge(what: &str, found: &Oversize, allowance: Option<Allowance>) -> Option<Problem> {
    let Oversize { place, lines, limit } = found;
    let Some(allowance) = allowance else {
        return Some(Problem::new(place, format!("{what} has {lines} lines, more than {limit}; split it")));
    };
    if allowance.reason.trim().is_empty() {
        return Some(Problem::new(EXCEPTIONS, format!("the exception for {what} gives no reason")));
    }
    match allowance.lines.cmp(lines) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => Some(Problem::new(
            place,
            format!("{what} grew from {} to {lines} lines; split it", allowance.lines),
        )),
        std::cmp::Ordering::Greater => Some(Problem::new(
            EXCEPTIONS,
            format!("{what} has {lines} lines now; lower its exception from {}", allowance.lines),
        )),
    }
}

/// What exceeds a limit, by the name an exception would use. Of two functions of one name the longer one counts.
fn oversized(tree: &Tree) -> BTreeMap<String, Oversize> {
    let mut found: BTreeMap<String, Oversize> = BTreeMap::new();
    for file in tree.with_extension("rs") {
        let lines = file.text.lines().count();
        if lines > FILE_LINES_MAX {
            found.insert(
                file.path.clone(),
                Oversize { place: file.path.clone(), lines, limit: FILE_LINES_MAX },
            );
        }
        for function in rust_text::functions(&rust_text::mask(&file.text)) {
            let what = function_key(&file.path, &function.name);
            let longest = found.get(&what).map_or(FUNCTION_LINES_MAX, |known| known.lines);
            if function.lines > longest {
                let place = format!("{}:{}", file.path, function.line);
                found.insert(what, Oversize { place, lines: function.lines, limit: FUNCTION_LINES_MAX });
            }
        }
    }
    found
}

fn function_key(path: &str, name: &str) -> String {
    format!("{path} fn {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_file(lines: usize) -> String {
        "// x\n".repeat(lines)
    }

    fn long_function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    fn texts(source: &str, exceptions: &str) -> Vec<String> {
        let tree = Tree::fixture(&[("a.rs", source), (EXCEPTIONS, exceptions)]);
        check(&tree).into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn sizes_at_the_limit_are_fine_and_one_more_is_not() {
        assert!(texts(&long_file(500), "").is_empty());
        assert_eq!(texts(&long_file(501), ""), ["a.rs has 501 lines, more than 500; split it"]);
        assert!(texts(&long_function(70), "").is_empty());
        assert_eq!(texts(&long_function(71), ""), ["a.rs fn f has 71 lines, more than 70; split it"]);
    }

    #[test]
    fn an_exception_fits_exactly_or_is_a_problem() {
        let file =
            |lines: usize| format!("[[file]]\npath = \"a.rs\"\nlines = {lines}\nreason = \"a table\"\n");
        assert!(texts(&long_file(501), &file(501)).is_empty());
        assert_eq!(texts(&long_file(502), &file(501)), ["a.rs grew from 501 to 502 lines; split it"]);
        assert_eq!(
            texts(&long_file(501), &file(600)),
            ["a.rs has 501 lines now; lower its exception from 600"]
        );
        let needless = "the exception for a.rs is not needed any more; remove it, the list only shrinks";
        assert_eq!(texts(&long_file(3), &file(501)), [needless]);
    }

    #[test]
    fn a_function_can_be_excepted_with_a_reason_only() {
        let function = |reason: &str| {
            format!("[[function]]\npath = \"a.rs\"\nname = \"f\"\nlines = 80\nreason = \"{reason}\"\n")
        };
        assert!(texts(&long_function(80), &function("one match, one arm per case")).is_empty());
        assert_eq!(
            texts(&long_function(80), &function(" ")),
            ["the exception for a.rs fn f gives no reason"]
        );
        assert_eq!(texts("", "[[file]]\nnonsense = 1\n").len(), 1);
    }
}
