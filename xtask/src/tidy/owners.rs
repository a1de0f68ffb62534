//! Who may use which foreign crate directly: a new dependency is a decision, written down here.

use super::Problem;
use crate::metadata::{Metadata, Package};

/// Everyday crates that any of ours may use, the pure ones excepted.
const EVERYDAY: &[&str] = &[
    "base64",
    "bytes",
    "futures",
    "getrandom",
    "http",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "tokio",
    "tokio-util",
    "tracing",
];

/// Crates that only tests and benchmarks use, and the kit that is made for them.
const TESTS_ONLY: &[&str] = &["criterion", "insta", "proptest", "tempfile"];

const TESTKIT: &str = "harness-testkit";

/// Crates without effects, and all that they may use.
const PURE: &[(&str, &[&str])] = &[
    ("harness-model", &["serde", "serde_json", "sha2", "thiserror"]),
    ("harness-agent", &["base64", "serde", "serde_json", "thiserror"]),
];

/// Everything else has owners. A crate that names a protocol, a file format or a driver has one.
const OWNERS: &[(&str, &[&str])] = &[
    ("a2a-lf", &["harness-a2a"]),
    ("axum", &["harness-a2a"]),
    ("chrono", &["harness-a2a"]),
    ("clap", &["tiny-harness"]),
    ("h2", &["harness-temporal-server"]),
    ("http-body-util", &["harness-a2a"]),
    ("httpdate", &["harness-providers"]),
    ("hyper", &["harness-a2a"]),
    ("hyper-util", &["harness-a2a"]),
    ("jsonschema", &["harness-activities", "harness-mcp"]),
    ("percent-encoding", &["harness-a2a"]),
    ("reqwest", &["harness-a2a", "harness-mcp", "harness-providers"]),
    // Signatures over requests and tokens; rustls chooses it too. The binary only signs tokens in its tests.
    ("ring", &["harness-a2a", "tiny-harness"]),
    ("rmcp", &["harness-mcp"]),
    ("rusqlite", &["harness-store"]),
    ("rustix", &["harness-mcp", "harness-temporal-server", "harness-testkit", "tiny-harness"]),
    // The binary chooses the provider of cryptography; adapters name it where they build a client.
    ("rustls", &["harness-a2a", "harness-mcp", "harness-providers", "tiny-harness"]),
    ("serde_yaml_ng", &["harness-plugins", "harness-providers"]),
    ("sqlx", &["harness-store"]),
    ("strsim", &["tiny-harness"]),
    ("temporalio-client", &["harness-engine-temporal"]),
    ("temporalio-common", &["harness-engine-temporal"]),
    ("temporalio-macros", &["harness-engine-temporal"]),
    ("temporalio-sdk", &["harness-engine-temporal"]),
    ("temporalio-workflow", &["harness-engine-temporal"]),
    ("toml", &["harness-providers", "tiny-harness", "xtask"]),
    ("tower", &["harness-a2a"]),
    ("tower-http", &["harness-a2a"]),
    ("tracing-subscriber", &["harness-telemetry"]),
    ("uuid", &["tiny-harness"]),
];

pub(super) fn check(metadata: &Metadata) -> Vec<Problem> {
    let ours: Vec<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let mut problems = Vec::new();
    for package in metadata.members() {
        let foreign =
            package.dependencies.iter().filter(|dependency| !ours.contains(&dependency.name.as_str()));
        for dependency in foreign.filter(|dependency| !dependency.is_dev) {
            problems.extend(refusal(package, &dependency.name).map(|text| Problem::new(&package.name, text)));
        }
    }
    problems
}

/// Why a crate of ours may not use a foreign one; `None` when it may.
fn refusal(package: &Package, foreign: &str) -> Option<String> {
    if let Some((_, allowed)) = PURE.iter().find(|(name, _)| *name == package.name) {
        return (!allowed.contains(&foreign)).then(|| format!("is pure and must not use {foreign}"));
    }
    if EVERYDAY.contains(&foreign) {
        return None;
    }
    if TESTS_ONLY.contains(&foreign) && package.name == TESTKIT {
        return None;
    }
    if TESTS_ONLY.contains(&foreign) {
        return Some(format!("{foreign} is for tests; move it to [dev-dependencies]"));
    }
    match OWNERS.iter().find(|(name, _)| *name == foreign) {
        Some((_, owners)) if owners.contains(&package.name.as_str()) => None,
        Some((_, owners)) => Some(format!("must not use {foreign}; it belongs to {}", owners.join(", "))),
        None => Some(format!(
            "uses {foreign}, which has no owner in xtask/src/tidy/owners.rs yet; decide and add it"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn texts(name: &str, dependency: &str, is_dev: bool) -> Vec<String> {
        let package = Package {
            name: name.to_owned(),
            is_member: true,
            dependencies: vec![Dependency { name: dependency.to_owned(), is_dev }],
            ..Package::default()
        };
        let problems = check(&Metadata { packages: vec![package], ..Metadata::default() });
        problems.into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn foreign_crates_stay_with_their_owners() {
        assert!(texts("harness-store", "rusqlite", false).is_empty());
        assert!(texts("harness-store", "serde", false).is_empty());
        assert_eq!(
            texts("harness-a2a", "rusqlite", false),
            ["must not use rusqlite; it belongs to harness-store"]
        );
        assert!(texts("harness-a2a", "rusqlite", true).is_empty());
        assert_eq!(texts("harness-agent", "tokio", false), ["is pure and must not use tokio"]);
        assert_eq!(texts("harness-a2a", "insta", false).len(), 1);
        assert!(texts("harness-testkit", "tempfile", false).is_empty());
        assert_eq!(texts("harness-a2a", "left-pad", false).len(), 1);
    }
}
