//! Prompts: `systemprompt.md` and `prompts/*.md` in this project's namespace folder of a plugin.

use std::collections::BTreeSet;

use harness_model::{codes, names::PLUGIN_NAMESPACE_DIR};
use serde::Deserialize;

use crate::{ComponentKind, Skipped, front_matter, limits, package::Package, report::quoted};

/// Id of the prompt that every task begins with.
pub const SYSTEM_PROMPT_ID: &str = "system";

/// A prompt of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Id: from the front matter, else the file's name without `.md`; `system` for `systemprompt.md`.
    pub id: String,
    /// The plugin it comes from.
    pub plugin: String,
    /// What it is for.
    pub role: PromptRole,
}

/// What a prompt is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptRole {
    /// A prompt of its own; the one with the id [`SYSTEM_PROMPT_ID`] replaces the built-in one.
    Whole {
        /// Text before the first heading.
        preamble: String,
        /// The parts under `## ` headings, in order.
        sections: Vec<PromptSection>,
    },
    /// Text that is appended to a section of the system prompt.
    Extension {
        /// Name of the section, lower case.
        section: String,
        /// The text.
        text: String,
    },
}

/// One section of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptSection {
    /// The heading in lower case.
    pub name: String,
    /// The text below it, trimmed.
    pub text: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrontMatter {
    id: Option<String>,
    extends: Option<String>,
}

/// Reads the prompts of a plugin. `taken` holds the ids of other plugins' prompts; what is loaded is added to it.
pub(crate) fn load(
    package: &Package,
    plugin: &str,
    taken: &mut BTreeSet<String>,
    skipped: &mut Vec<Skipped>,
) -> Vec<Prompt> {
    let mut files = vec![("systemprompt.md".to_owned(), Some(SYSTEM_PROMPT_ID))];
    match package.list(&format!("{PLUGIN_NAMESPACE_DIR}/prompts")) {
        Ok(names) => {
            let names = names.unwrap_or_default().into_iter().filter(|name| name.ends_with(".md"));
            files.extend(names.map(|name| (format!("prompts/{name}"), None)));
        }
        Err(error) => {
            let reason = format!("prompts {error}");
            skipped.push(Skipped::new(ComponentKind::Prompts, plugin, codes::PROMPT_INVALID, &reason));
        }
    }
    let mut prompts = Vec::new();
    for (file, fixed_id) in files {
        let mut skip = |id: &str, code, reason: &str| {
            skipped.push(Skipped::new(ComponentKind::Prompt, format!("{plugin}/{id}"), code, reason));
        };
        match read(package, plugin, &file, fixed_id) {
            Ok(None) => {}
            Ok(Some(prompt)) if taken.insert(prompt.id.clone()) => prompts.push(prompt),
            Ok(Some(prompt)) => {
                skip(&prompt.id, codes::ENTITY_CONFLICT, "a prompt of this id is already loaded")
            }
            Err(reason) => skip(&file, codes::PROMPT_INVALID, &reason),
        }
    }
    prompts
}

fn read(
    package: &Package,
    plugin: &str,
    file: &str,
    fixed_id: Option<&str>,
) -> Result<Option<Prompt>, String> {
    let path = format!("{PLUGIN_NAMESPACE_DIR}/{file}");
    let text =
        package.read_text(&path, limits::PROMPT_BYTES_MAX).map_err(|error| format!("{file} {error}"))?;
    let Some(text) = text else { return Ok(None) };
    let (front, body): (FrontMatter, String) =
        front_matter::parse_optional(&text).map_err(|reason| format!("{file}: {reason}"))?;
    let stem = file.trim_start_matches("prompts/").trim_end_matches(".md");
    let id = fixed_id.map(str::to_owned).or(front.id).unwrap_or_else(|| stem.to_owned());
    if id.is_empty() || id.chars().count() > limits::NAME_CHARS_MAX || harness_model::one_line(&id) != id {
        return Err(format!("{file}: id must be 1 to {} printable characters", limits::NAME_CHARS_MAX));
    }
    if body.is_empty() {
        return Err(format!("{file}: has no text"));
    }
    let role = match front.extends {
        Some(_) if fixed_id.is_some() => {
            return Err(format!("{file}: replaces the whole prompt and cannot extend a section"));
        }
        Some(section) => PromptRole::Extension { section: section.trim().to_lowercase(), text: body },
        None => whole(&body).map_err(|reason| format!("{file}: {reason}"))?,
    };
    Ok(Some(Prompt { id, plugin: plugin.to_owned(), role }))
}

fn whole(body: &str) -> Result<PromptRole, String> {
    let mut preamble = String::new();
    let mut sections: Vec<PromptSection> = Vec::new();
    for line in body.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.trim().to_lowercase();
            if sections.iter().any(|section| section.name == name) {
                return Err(format!("section {} is there twice", quoted(&name)));
            }
            if sections.len() == limits::PROMPT_SECTIONS_MAX {
                return Err(format!("has more than {} sections", limits::PROMPT_SECTIONS_MAX));
            }
            sections.push(PromptSection { name, text: String::new() });
            continue;
        }
        let text = sections.last_mut().map_or(&mut preamble, |section| &mut section.text);
        text.push_str(line);
        text.push('\n');
    }
    for section in &mut sections {
        section.text = section.text.trim().to_owned();
    }
    Ok(PromptRole::Whole { preamble: preamble.trim().to_owned(), sections })
}
