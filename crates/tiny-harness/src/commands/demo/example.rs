//! The example of `examples/order-support`, carried inside the program and written out for a run.

use std::{
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::io_failure;
use crate::{cli::DemoArgs, failure::Failure};

/// The configuration of a run, below its state folder.
pub(super) const CONFIG_FILE: &str = "tiny-harness.toml";
/// The folder that paths of the example start with.
const EXAMPLE: &str = "examples/order-support";

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../../../../examples/order-support/", $path)))),*]
    };
}

/// The example's files.
const FILES: [(&str, &str); 7] = files![
    "tiny-harness.toml",
    "model.toml",
    "plugin/plugin.json",
    "plugin/mcp.json",
    "plugin/skills/support-agent/SKILL.md",
    "plugin/skills/support-agent/references/tone.md",
    "plugin/io.github.madarauchiha-314.tiny-harness/prompts/rules.md",
];

/// Which model plays the agent.
pub(super) enum Model {
    /// The script of the example.
    Scripted,
    /// A real one.
    OpenAi { name: String, base_url: Option<String> },
    /// What one of them said before.
    Replay { folder: PathBuf },
}

impl Model {
    pub(super) fn of(args: &DemoArgs) -> Result<Self, Failure> {
        if let Some(folder) = &args.replay {
            let folder = std::path::absolute(folder).map_err(|e| io_failure("resolve", folder, &e))?;
            return Ok(Self::Replay { folder });
        }
        let Some(model) = &args.model else {
            return match &args.base_url {
                None => Ok(Self::Scripted),
                Some(_) => {
                    Err(Failure::usage("--base-url needs --model, for example --model openai:qwen3:8b"))
                }
            };
        };
        match model.split_once(':') {
            Some(("openai", name)) if !name.trim().is_empty() => {
                Ok(Self::OpenAi { name: name.to_owned(), base_url: args.base_url.clone() })
            }
            Some(_) | None => {
                Err(Failure::usage("--model takes openai:NAME, for example openai:gpt-6.1-sol"))
            }
        }
    }
}

/// Writes the example below the state folder and returns its configuration file.
pub(super) fn write(state: &Path, model: &Model, record: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = state.join("example");
    // The first file is the configuration, which is written with the paths of this run instead.
    for (path, content) in &FILES[1..] {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            private_folder(parent)?;
        }
        std::fs::write(&file, content).map_err(|e| io_failure("write", &file, &e))?;
    }
    let file = state.join(CONFIG_FILE);
    let mut text = configuration(state, &folder, model);
    if let Some(record) = record {
        let record = std::path::absolute(record).map_err(|e| io_failure("resolve", record, &e))?;
        text = recording(&text, &record);
    }
    std::fs::write(&file, text).map_err(|e| io_failure("write", &file, &e))?;
    Ok(file)
}

/// A folder that only its owner may enter.
pub(super) fn private_folder(path: &Path) -> Result<(), Failure> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| io_failure("create", path, &e))
}

/// The example's configuration with paths of this run, and with another model when one is asked for.
fn configuration(state: &Path, folder: &Path, model: &Model) -> String {
    let text = FILES[0]
        .1
        .replace("Start it from the root of the repository:", "Start it with:")
        .replace(&format!("{EXAMPLE}/{CONFIG_FILE}"), &inside_quotes(&state.join(CONFIG_FILE)))
        .replace(EXAMPLE, &inside_quotes(folder))
        .replace(".tiny-harness/order-support", &inside_quotes(state));
    match model {
        Model::Scripted => text,
        Model::OpenAi { name, base_url } => {
            let mut text = text.replace("provider = \"scripted\"", "provider = \"openai\"");
            text.push_str(&format!("\n[openai]\napi = \"chat_completions\"\nmodel = {}\n", quoted(name)));
            if let Some(url) = base_url {
                text.push_str(&format!("base_url = {}\n", quoted(url)));
            }
            text
        }
        Model::Replay { folder } => {
            let mut text = text.replace("provider = \"scripted\"", "provider = \"replay\"");
            text.push_str(&format!("\n[model.replay]\npath = \"{}\"\n", inside_quotes(folder)));
            text
        }
    }
}

/// The configuration with a folder for recordings.
pub(super) fn recording(configuration: &str, folder: &Path) -> String {
    configuration.replace("\n[model]\n", &format!("\n[model]\nrecord = \"{}\"\n", inside_quotes(folder)))
}

/// A path for a TOML string that is there already.
fn inside_quotes(path: &Path) -> String {
    let quoted = quoted(&path.display().to_string());
    quoted[1..quoted.len() - 1].to_owned()
}

/// A TOML string; JSON's escapes are among TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_example_is_carried() {
        fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, root, found);
                } else {
                    found.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/order-support");
        let mut found = Vec::new();
        walk(&root, &root, &mut found);
        found.retain(|path| path != "README.md");
        found.sort();
        let mut carried: Vec<String> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        carried.sort();
        assert_eq!(found, carried);
    }

    #[test]
    fn recordings_go_where_they_should() {
        let (state, folder) = (Path::new("/s"), Path::new("/s/example"));
        let text = recording(&configuration(state, folder, &Model::Scripted), Path::new("/tape"));
        assert!(text.contains("[model]\nrecord = \"/tape\"\nprovider = \"scripted\""), "{text}");
        let replay = configuration(state, folder, &Model::Replay { folder: PathBuf::from("/tape") });
        assert!(replay.contains("provider = \"replay\"") && replay.contains("path = \"/tape\""));
    }

    #[test]
    fn another_model_changes_one_line_and_adds_its_table() {
        let model =
            Model::OpenAi { name: "m\"x".to_owned(), base_url: Some("http://127.0.0.1:1/v1".to_owned()) };
        let text = configuration(Path::new("/s"), Path::new("/s/example"), &model);
        assert!(text.contains("provider = \"openai\"") && text.contains("model = \"m\\\"x\""));
        assert!(text.contains("plugins = [\"/s/example/plugin\"]"));
        assert!(text.contains("sqlite_path = \"/s/state.sqlite3\""));
        assert!(text.contains("serve --config /s/tiny-harness.toml"), "{text}");
    }
}
