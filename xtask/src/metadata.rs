//! What `cargo metadata` says about the workspace and its dependencies.

use serde::Deserialize;

use crate::{
    process::{self, CARGO},
    session::{Failure, Session},
};

/// The packages that are built on this machine, ours and foreign.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metadata {
    /// Every package.
    pub(crate) packages: Vec<Package>,
    /// Where cargo builds.
    pub(crate) target_directory: String,
}

/// One package.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression; `None` when the manifest has none.
    pub(crate) license: Option<String>,
    /// Whether it is one of ours.
    pub(crate) is_member: bool,
    /// What its manifest asks for.
    pub(crate) dependencies: Vec<Dependency>,
    /// Names of its bench targets.
    pub(crate) benches: Vec<String>,
}

/// One line of a `[dependencies]` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests, examples and benches use it.
    pub(crate) is_dev: bool,
}

impl Metadata {
    /// Asks cargo. Packages of other platforms are left out, so that nothing is fetched that is not built here.
    pub(crate) fn load(session: &Session) -> Result<Self, Failure> {
        let version = process::capture(session, "rustc", &["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
        Self::parse(&process::capture(session, CARGO, &arguments)?)
    }

    /// Reads cargo's JSON.
    pub(crate) fn parse(json: &str) -> Result<Self, Failure> {
        let raw: RawMetadata = serde_json::from_str(json)
            .map_err(|error| Failure::new(format!("cannot read what `cargo metadata` says: {error}")))?;
        let members = raw.workspace_members;
        let packages = raw.packages.into_iter().map(|package| package.into_package(&members)).collect();
        Ok(Self { packages, target_directory: raw.target_directory })
    }

    /// Our own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.is_member)
    }
}

#[derive(Deserialize)]
struct RawMetadata {
    packages: Vec<RawPackage>,
    workspace_members: Vec<String>,
    target_directory: String,
}

#[derive(Deserialize)]
struct RawPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    dependencies: Vec<RawDependency>,
    targets: Vec<RawTarget>,
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct RawTarget {
    name: String,
    kind: Vec<String>,
}

impl RawPackage {
    fn into_package(self, members: &[String]) -> Package {
        Package {
            is_member: members.contains(&self.id),
            name: self.name,
            version: self.version,
            license: self.license,
            dependencies: self
                .dependencies
                .into_iter()
                .map(|raw| Dependency { name: raw.name, is_dev: raw.kind.as_deref() == Some("dev") })
                .collect(),
            benches: self
                .targets
                .into_iter()
                .filter(|target| target.kind.iter().any(|kind| kind == "bench"))
                .map(|target| target.name)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cargo_prints() {
        let json = r#"{"target_directory": "t", "workspace_members": ["a-id"], "packages": [
            {"id": "a-id", "name": "a", "version": "1.0.0", "license": "Apache-2.0",
             "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}],
             "targets": [{"name": "speed", "kind": ["bench"]}, {"name": "a", "kind": ["lib"]}]},
            {"id": "b-id", "name": "b", "version": "2.0.0", "license": null, "dependencies": [], "targets": []}]}"#;
        let metadata = Metadata::parse(json).unwrap();
        let member = metadata.members().next().unwrap();
        assert_eq!((member.name.as_str(), member.benches.as_slice()), ("a", &["speed".to_owned()][..]));
        assert_eq!(member.dependencies.iter().map(|d| d.is_dev).collect::<Vec<_>>(), [false, true]);
        assert_eq!(metadata.members().count(), 1);
        assert!(Metadata::parse("{}").is_err());
    }
}
