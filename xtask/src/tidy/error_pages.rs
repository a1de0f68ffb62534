//! Every error code has a page, and every page a code.

use super::{Problem, Tree};

/// Where the codes are defined.
const CODES: &str = "crates/harness-model/src/error_code.rs";
/// Where the pages are.
const PAGES: &str = "docs/errors/";
/// Headings of a page.
const HEADINGS: &[&str] = &["## What you see", "## Cause", "## Fix"];

/// One line of the `define!` list.
struct Code<'a> {
    code: &'a str,
    meaning: &'a str,
}

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let codes = defined(tree.get(CODES).map_or("", |file| file.text.as_str()));
    if codes.is_empty() {
        return vec![Problem::new(CODES, "no error code found; has the form of the `define!` list changed?")];
    }
    let mut problems: Vec<Problem> = codes.iter().flat_map(|code| check_page(tree, code)).collect();
    for file in
        tree.with_extension("md").filter(|file| file.path.starts_with(PAGES) && file.name() != "README.md")
    {
        if !codes.iter().any(|code| file.name().trim_end_matches(".md") == code.code) {
            problems.push(Problem::new(&file.path, format!("no such code in {CODES}")));
        }
    }
    problems
}

fn check_page(tree: &Tree, code: &Code<'_>) -> Vec<Problem> {
    let path = format!("{PAGES}{}.md", code.code);
    let Some(page) = tree.get(&path) else {
        return vec![Problem::new(&path, format!("error code {} has no page", code.code))];
    };
    let mut lines = page.text.lines().filter(|line| !line.trim().is_empty());
    let mut problems = Vec::new();
    for expected in [format!("# {}", code.code), code.meaning.to_owned()] {
        if lines.next() != Some(&expected) {
            problems.push(Problem::new(
                &path,
                format!("the page begins with its code and its meaning: {expected:?}"),
            ));
        }
    }
    let missing = HEADINGS.iter().filter(|heading| !page.text.lines().any(|line| line == **heading));
    problems.extend(missing.map(|heading| Problem::new(&path, format!("no section {heading:?}"))));
    problems
}

/// The codes of lines such as `NAME = "code", "meaning";`.
fn defined(source: &str) -> Vec<Code<'_>> {
    let list = source.split_once("define! {").map_or("", |(_, rest)| rest);
    list.lines()
        .filter_map(|line| {
            let mut quoted = line.split('"').skip(1).step_by(2);
            Some(Code { code: quoted.next()?, meaning: quoted.next()? })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "define! {\n  A = \"a.one\", \"It is one.\";\n  B = \"b.two\", \"It is two.\";\n}\n";
    const PAGE: &str = "# a.one\n\nIt is one.\n\n## What you see\n\nx\n\n## Cause\n\nx\n\n## Fix\n\nx\n";

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::fixture(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn codes_and_pages_agree() {
        let two = PAGE.replace("a.one", "b.two").replace("It is one.", "It is two.");
        let codes = (CODES, SOURCE);
        let one = ("docs/errors/a.one.md", PAGE);
        assert!(
            texts(&[codes, one, ("docs/errors/b.two.md", &two), ("docs/errors/README.md", "x")]).is_empty()
        );
        assert_eq!(texts(&[codes, one]), ["docs/errors/b.two.md: error code b.two has no page"]);
        let stray = texts(&[codes, one, ("docs/errors/b.two.md", &two), ("docs/errors/c.md", "x")]);
        assert_eq!(stray, [format!("docs/errors/c.md: no such code in {CODES}")]);
    }

    #[test]
    fn a_page_repeats_the_meaning_and_has_its_sections() {
        let codes = (CODES, "define! {\n  A = \"a.one\", \"It is one.\";\n}\n");
        assert_eq!(
            texts(&[codes, ("docs/errors/a.one.md", &PAGE.replace("It is one.", "It was one."))]).len(),
            1
        );
        assert_eq!(texts(&[codes, ("docs/errors/a.one.md", &PAGE.replace("## Fix", "Fix"))]).len(), 1);
        assert_eq!(texts(&[(CODES, "fn nothing() {}")]).len(), 1);
    }
}
