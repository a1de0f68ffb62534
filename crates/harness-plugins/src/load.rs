//! Loading of one folder after another.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use harness_model::{codes, names::PLUGIN_NAMESPACE_DIR};

use crate::{
    ComponentKind, LoadReport, McpServerSpec, Note, Prompt, Skill, Skipped, limits, manifest, mcp,
    package::Package, prompt, skill,
};

/// A plugin that was loaded, with those of its parts that are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    /// Name from the manifest; unique among the loaded ones.
    pub name: String,
    /// Version from the manifest, any text.
    pub version: Option<String>,
    /// Description from the manifest.
    pub description: Option<String>,
    /// Absolute path of its folder, symlinks followed.
    pub root: PathBuf,
    /// Where its servers keep files: `<data root>/<name>`. Exists when it has a server that is a process.
    pub data_folder: PathBuf,
    /// MCP servers, in the order of `mcp.json`.
    pub servers: Vec<McpServerSpec>,
    /// Skills, by name.
    pub skills: Vec<Skill>,
    /// Prompts: `systemprompt.md` first, then by file name.
    pub prompts: Vec<Prompt>,
}

/// Loads plugins from their folders, in order. Never fails as a whole: what cannot be loaded is in the report.
///
/// Folders for the data of plugins are made under `data_root` as far as servers need them; nothing else is written and
/// nothing is executed. Of two plugins with one name the first stays, and so it is with skills and prompts.
pub fn load_plugins(folders: &[PathBuf], data_root: &Path) -> LoadReport {
    let mut report = LoadReport::default();
    let mut taken = Taken::default();
    for folder in folders {
        load_plugin(folder, data_root, &mut taken, &mut report);
    }
    report
}

/// Names that are in use.
#[derive(Default)]
struct Taken {
    plugins: BTreeSet<String>,
    skills: BTreeSet<String>,
    prompts: BTreeSet<String>,
}

fn load_plugin(folder: &Path, data_root: &Path, taken: &mut Taken, report: &mut LoadReport) {
    let mut refuse = |id: String, code, reason: &str| {
        report.skipped.push(Skipped::new(ComponentKind::Plugin, id, code, reason));
    };
    let shown = folder.display().to_string();
    let package = match Package::open(folder) {
        Ok(package) => package,
        Err(error) => return refuse(shown, codes::PLUGIN_INVALID, &format!("the folder {error}")),
    };
    let manifest = match package.read_text("plugin.json", limits::MANIFEST_BYTES_MAX) {
        Ok(Some(text)) => manifest::parse(&text),
        Ok(None) => Err("does not exist".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(reason) => {
            let reason = format!("{}: {reason}", package.root().join("plugin.json").display());
            return refuse(shown, codes::PLUGIN_INVALID, &reason);
        }
    };
    let name = manifest.name;
    if !taken.plugins.insert(name.clone()) {
        let reason = format!("a plugin of this name is already loaded; {shown} is left out");
        return refuse(name, codes::ENTITY_CONFLICT, &reason);
    }
    report.notes.extend(manifest.notes.iter().map(|text| Note::new(&name, text)));
    let data_folder = data_root.join(&name);
    let servers = mcp::load(&package, &name, &data_folder, &mut report.skipped);
    let skills = skill::load(&package, &name, &mut taken.skills, &mut report.skipped, &mut report.notes);
    let prompts = prompt::load(&package, &name, &mut taken.prompts, &mut report.skipped);
    skip_unsupported(&package, &name, &mut report.skipped);
    report.plugins.push(Plugin {
        name,
        version: manifest.version,
        description: manifest.description,
        root: package.root().to_owned(),
        data_folder,
        servers,
        skills,
        prompts,
    });
}

/// Parts that this build cannot run are named, not passed over in silence.
fn skip_unsupported(package: &Package, plugin: &str, skipped: &mut Vec<Skipped>) {
    for (kind, entry) in [(ComponentKind::Hooks, "hooks.json"), (ComponentKind::Commands, "commands")] {
        if package.has(&format!("{PLUGIN_NAMESPACE_DIR}/{entry}")) {
            let reason = format!("this build does not run {} of plugins", kind.name());
            skipped.push(Skipped::new(kind, plugin, codes::PLUGIN_COMPONENT_SKIPPED, &reason));
        }
    }
}
