//! Which of our crates may know which. Adapters never know one another; nobody knows the binary.

use super::Problem;
use crate::metadata::Metadata;

/// Our crates and what each may depend on. Tests may depend on more.
const EDGES: &[(&str, &[&str])] = &[
    ("harness-model", &[]),
    ("harness-ports", &["harness-model"]),
    ("harness-agent", &["harness-model", "harness-ports"]),
    ("harness-activities", &["harness-agent", "harness-model", "harness-ports"]),
    ("harness-journal", &["harness-model", "harness-ports"]),
    ("harness-engine-local", &["harness-journal", "harness-model", "harness-ports"]),
    ("harness-engine-temporal", &["harness-journal", "harness-model", "harness-ports"]),
    ("harness-store", &["harness-model", "harness-ports"]),
    ("harness-a2a", &["harness-model", "harness-ports"]),
    ("harness-providers", &["harness-model", "harness-ports"]),
    ("harness-mcp", &["harness-model", "harness-ports"]),
    ("harness-plugins", &["harness-model", "harness-ports"]),
    ("harness-telemetry", &["harness-model", "harness-ports"]),
    ("harness-temporal-server", &["harness-model", "harness-ports"]),
    ("harness-testkit", &["harness-model", "harness-ports", "harness-temporal-server"]),
    (
        "tiny-harness",
        &[
            "harness-a2a",
            "harness-activities",
            "harness-agent",
            "harness-engine-local",
            "harness-engine-temporal",
            "harness-mcp",
            "harness-model",
            "harness-plugins",
            "harness-ports",
            "harness-providers",
            "harness-store",
            "harness-telemetry",
            "harness-temporal-server",
        ],
    ),
    ("xtask", &[]),
];

pub(super) fn check(metadata: &Metadata) -> Vec<Problem> {
    let ours: Vec<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let mut problems = Vec::new();
    for package in metadata.members() {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == package.name) else {
            let text = "is not in the table of xtask/src/tidy/edges.rs; say there what it may depend on";
            problems.push(Problem::new(&package.name, text));
            continue;
        };
        for dependency in
            package.dependencies.iter().filter(|dependency| ours.contains(&dependency.name.as_str()))
        {
            if !dependency.is_dev && !allowed.contains(&dependency.name.as_str()) {
                let text =
                    format!("must not depend on {}; meet through a port of harness-ports", dependency.name);
                problems.push(Problem::new(&package.name, text));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Package};

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependency =
            |(name, is_dev): &(&str, bool)| Dependency { name: (*name).to_owned(), is_dev: *is_dev };
        Package {
            name: name.to_owned(),
            is_member: true,
            dependencies: dependencies.iter().map(dependency).collect(),
            ..Package::default()
        }
    }

    fn places(packages: Vec<Package>) -> Vec<String> {
        check(&Metadata { packages, ..Metadata::default() })
            .into_iter()
            .map(|problem| problem.place)
            .collect()
    }

    #[test]
    fn adapters_do_not_know_one_another_and_engines_know_no_agent() {
        let store = package("harness-store", &[("harness-model", false), ("serde", false)]);
        let agent = package("harness-agent", &[]);
        let model = package("harness-model", &[]);
        let good = vec![
            store.clone(),
            agent.clone(),
            model.clone(),
            package("harness-engine-local", &[("harness-store", true)]),
        ];
        assert!(places(good).is_empty());
        let a2a = package("harness-a2a", &[("harness-store", false)]);
        let engine = package("harness-engine-local", &[("harness-agent", false)]);
        assert_eq!(places(vec![store, agent, model, a2a, engine]), ["harness-a2a", "harness-engine-local"]);
    }

    #[test]
    fn a_new_crate_has_to_be_placed() {
        assert_eq!(places(vec![package("harness-new", &[])]), ["harness-new"]);
    }
}
