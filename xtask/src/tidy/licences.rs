//! Every dependency has a licence of the list in `deny.toml`, the one place that names them.

use serde::Deserialize;

use super::{Problem, Tree};
use crate::metadata::Metadata;

const DENY: &str = "deny.toml";

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    clarify: Vec<Clarification>,
}

/// What somebody has read in the licence file of a crate whose manifest names no licence.
#[derive(Deserialize)]
struct Clarification {
    #[serde(rename = "crate")]
    name: String,
    expression: String,
}

pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Vec<Problem> {
    let text = tree.get(DENY).map_or("", |file| file.text.as_str());
    let Licenses { allow: allowed, clarify } = match toml::from_str::<Deny>(text) {
        Ok(deny) => deny.licenses,
        Err(error) => return vec![Problem::new(DENY, format!("cannot read the list of licences: {error}"))],
    };
    let foreign = metadata.packages.iter().filter(|package| !package.is_member);
    foreign
        .filter_map(|package| {
            let place = format!("{} {}", package.name, package.version);
            let clarified = clarify.iter().find(|known| known.name == package.name);
            match package.license.as_ref().or(clarified.map(|known| &known.expression)) {
                None => Some(Problem::new(place, "has no licence in its manifest")),
                Some(licence) if is_allowed(licence, &allowed) => None,
                Some(licence) => {
                    Some(Problem::new(place, format!("licence {licence:?} is not one of the list in {DENY}")))
                }
            }
        })
        .collect()
}

/// Whether an SPDX expression can be met with the allowed licences. What cannot be understood is not allowed.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // Old manifests write `MIT/Apache-2.0` for `MIT OR Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens: Vec<&str> = spaced.split_whitespace().rev().collect();
    either(&mut tokens, allowed) == Some(true) && tokens.is_empty()
}

fn either(tokens: &mut Vec<&str>, allowed: &[String]) -> Option<bool> {
    let mut met = both(tokens, allowed)?;
    while tokens.pop_if(|token| *token == "OR").is_some() {
        met |= both(tokens, allowed)?;
    }
    Some(met)
}

fn both(tokens: &mut Vec<&str>, allowed: &[String]) -> Option<bool> {
    let mut met = single(tokens, allowed)?;
    while tokens.pop_if(|token| *token == "AND").is_some() {
        met &= single(tokens, allowed)?;
    }
    Some(met)
}

fn single(tokens: &mut Vec<&str>, allowed: &[String]) -> Option<bool> {
    let first = tokens.pop()?;
    if first == "(" {
        let met = either(tokens, allowed)?;
        return (tokens.pop()? == ")").then_some(met);
    }
    let mut licence = first.to_owned();
    if tokens.pop_if(|token| *token == "WITH").is_some() {
        licence = format!("{licence} WITH {}", tokens.pop()?);
    }
    Some(allowed.contains(&licence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    #[test]
    fn expressions_are_met_or_not() {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        let met = ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR MIT", "MIT AND Apache-2.0", "(MIT OR X) AND Apache-2.0"];
        let more = ["Apache-2.0 WITH LLVM-exception OR X", "LGPL-2.1-or-later OR (MIT)"];
        for expression in met.iter().chain(&more) {
            assert!(is_allowed(expression, &allowed), "{expression}");
        }
        for expression in
            ["GPL-3.0", "MIT AND GPL-3.0", "MIT WITH X", "(MIT", "MIT)", "MIT OR", "", "MIT MIT"]
        {
            assert!(!is_allowed(expression, &allowed), "{expression}");
        }
    }

    #[test]
    fn foreign_crates_are_checked_against_the_list() {
        let tree = Tree::fixture(&[(DENY, "[licenses]\nallow = [\"MIT\"]\n")]);
        let package = |name: &str, license: Option<&str>, is_member| Package {
            name: name.to_owned(),
            license: license.map(str::to_owned),
            is_member,
            ..Package::default()
        };
        let packages = vec![
            package("good", Some("MIT"), false),
            package("bad", Some("SSPL-1.0"), false),
            package("silent", None, false),
            package("ours", Some("Apache-2.0"), true),
        ];
        let problems = check(&tree, &Metadata { packages, ..Metadata::default() });
        assert_eq!(problems.iter().map(|p| p.place.as_str()).collect::<Vec<_>>(), ["bad ", "silent "]);
        assert_eq!(check(&Tree::default(), &Metadata::default()).len(), 1);
    }
}
