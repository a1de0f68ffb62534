//! Folders of plugins, written for one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use harness_plugins::{LoadReport, McpTransport, Plugin, load_plugins};
use tempfile::TempDir;

pub(crate) const NAMESPACE: &str = "io.github.madarauchiha-314.tiny-harness";
const PLUGIN_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
const MCP_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";

/// A folder with plugins and a folder for their data.
pub(crate) struct Fixture {
    folder: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// Absolute path without symlinks.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(relative)
    }

    pub(crate) fn data_root(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn link(&self, relative: &str, target: impl AsRef<Path>) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    /// A plugin that is valid in every part.
    pub(crate) fn good(&self, name: &str) -> &Self {
        self.manifest(name, name)
            .write(&format!("{name}/mcp.json"), mcp(r#"{"notes":{"type":"stdio","command":"notes-server"}}"#))
            .skill(name, &format!("{name}-skill"), "")
            .write(
                &format!("{name}/{NAMESPACE}/prompts/{name}-rules.md"),
                "---\nextends: rules\n---\nBe kind.",
            )
    }

    pub(crate) fn manifest(&self, folder: &str, name: &str) -> &Self {
        let text = format!(r#"{{"$schema":"{PLUGIN_SCHEMA}","name":"{name}","version":"1.0.0"}}"#);
        self.write(&format!("{folder}/plugin.json"), text)
    }

    /// A skill whose front matter has these further lines.
    pub(crate) fn skill(&self, folder: &str, name: &str, further: &str) -> &Self {
        let text =
            format!("---\nname: {name}\ndescription: Use it well.\n{further}---\n\n# Steps\n\nDo it.\n");
        self.write(&format!("{folder}/skills/{name}/SKILL.md"), text)
    }

    pub(crate) fn load(&self, folders: &[&str]) -> LoadReport {
        let folders: Vec<PathBuf> = folders.iter().map(|folder| self.path(folder)).collect();
        load_plugins(&folders, &self.data_root())
    }
}

/// An `mcp.json` with these servers.
pub(crate) fn mcp(servers: &str) -> String {
    format!(r#"{{"$schema":"{MCP_SCHEMA}","mcpServers":{servers}}}"#)
}

/// Asserts that every path a plugin brings lies where it may.
pub(crate) fn assert_contained(plugin: &Plugin) {
    let data = plugin.data_folder.canonicalize().unwrap_or_else(|_| plugin.data_folder.clone());
    for server in &plugin.servers {
        if let McpTransport::Stdio { command, cwd, .. } = &server.transport {
            assert!(cwd.starts_with(&plugin.root) || cwd.starts_with(&data), "{cwd:?}");
            assert_eq!(cwd, &cwd.canonicalize().unwrap());
            if command.contains('/') {
                assert!(Path::new(command).canonicalize().unwrap().starts_with(&plugin.root), "{command}");
            }
        }
    }
    for skill in &plugin.skills {
        assert!(skill.folder.starts_with(&plugin.root), "{:?}", skill.folder);
        for resource in &skill.resources {
            assert!(
                skill.folder.join(resource).canonicalize().unwrap().starts_with(&plugin.root),
                "{resource}"
            );
        }
    }
}

/// One line for each part that was skipped, folders shortened.
pub(crate) fn skipped(fixture: &Fixture, report: &LoadReport) -> Vec<String> {
    let base = format!("{}/", fixture.path("").display().to_string().trim_end_matches('/'));
    report.skipped.iter().map(|skipped| skipped.to_string().replace(&base, "")).collect()
}
