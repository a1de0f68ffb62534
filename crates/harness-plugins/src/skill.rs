//! `skills/<name>/SKILL.md`. Source: Agent Skills.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use harness_model::codes;
use serde::Deserialize;

use crate::{ComponentKind, Note, Skipped, front_matter, limits, package::Package, report::quoted};

/// Folders of a skill whose files are its resources.
const RESOURCE_FOLDERS: [&str; 3] = ["assets", "references", "scripts"];

/// A skill: instructions that are shown to the model when it asks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Lower-case words joined by single hyphens, at most 64 characters; the name of its folder.
    pub name: String,
    /// When to use it: 1 to 1,024 characters.
    pub description: String,
    /// Licence, as the author wrote it.
    pub license: Option<String>,
    /// What it needs, at most 500 characters.
    pub compatibility: Option<String>,
    /// Free-form values of the author.
    pub metadata: BTreeMap<String, String>,
    /// Tools that the author expects it to use; informative.
    pub allowed_tools: Vec<String>,
    /// The instructions: Markdown without the front matter.
    pub body: String,
    /// Absolute path of its folder.
    pub folder: PathBuf,
    /// Files under `assets`, `references` and `scripts`, one level deep, relative to the folder, sorted.
    pub resources: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FrontMatter {
    name: String,
    description: String,
    license: Option<String>,
    compatibility: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    allowed_tools: Option<String>,
}

/// Reads the skills of a plugin. `taken` holds the names of other plugins' skills; what is loaded is added to it.
pub(crate) fn load(
    package: &Package,
    plugin: &str,
    taken: &mut BTreeSet<String>,
    skipped: &mut Vec<Skipped>,
    notes: &mut Vec<Note>,
) -> Vec<Skill> {
    let names = match package.list("skills") {
        Ok(names) => names.unwrap_or_default(),
        Err(error) => {
            let reason = format!("skills {error}");
            skipped.push(Skipped::new(ComponentKind::Skills, plugin, codes::SKILL_INVALID, &reason));
            return Vec::new();
        }
    };
    let mut skills = Vec::new();
    for folder in names {
        let path = format!("skills/{folder}");
        if !package.has(&format!("{path}/SKILL.md")) {
            continue;
        }
        let id = format!("{plugin}/{folder}");
        match read(package, plugin, &folder, notes) {
            Ok(skill) if taken.insert(skill.name.clone()) => skills.push(skill),
            Ok(skill) => skipped.push(Skipped::new(
                ComponentKind::Skill,
                id,
                codes::ENTITY_CONFLICT,
                &format!("another plugin already brings a skill named {}", skill.name),
            )),
            Err(reason) => {
                skipped.push(Skipped::new(ComponentKind::Skill, id, codes::SKILL_INVALID, &reason));
            }
        }
    }
    skills
}

fn read(package: &Package, plugin: &str, folder: &str, notes: &mut Vec<Note>) -> Result<Skill, String> {
    let file = format!("skills/{folder}/SKILL.md");
    let text = package
        .read_text(&file, limits::SKILL_BYTES_MAX)
        .map_err(|error| format!("{file} {error}"))?
        .ok_or_else(|| format!("{file} does not exist"))?;
    let (front, body): (FrontMatter, String) =
        front_matter::parse(&text).map_err(|reason| format!("{file}: {reason}"))?;
    check(&front, folder).map_err(|reason| format!("{file}: {reason}"))?;
    Ok(Skill {
        name: front.name,
        description: front.description.trim().to_owned(),
        license: front.license,
        compatibility: front.compatibility,
        metadata: front.metadata,
        allowed_tools: front
            .allowed_tools
            .iter()
            .flat_map(|t| t.split_whitespace())
            .map(str::to_owned)
            .collect(),
        body,
        folder: package
            .resolve(&format!("skills/{folder}"))
            .map_err(|error| format!("its folder {error}"))?,
        resources: resources(package, plugin, folder, notes),
    })
}

fn check(front: &FrontMatter, folder: &str) -> Result<(), String> {
    if !valid_name(&front.name) {
        return Err(format!(
            "name {} is not valid: 1 to 64 lower-case letters and digits in words joined by single hyphens",
            quoted(&front.name)
        ));
    }
    if front.name != folder {
        return Err(format!(
            "name {} must be the name of the folder, {}",
            quoted(&front.name),
            quoted(folder)
        ));
    }
    let description = front.description.trim().chars().count();
    if description == 0 || description > limits::SKILL_DESCRIPTION_CHARS_MAX {
        return Err(format!("description must have 1 to {} characters", limits::SKILL_DESCRIPTION_CHARS_MAX));
    }
    let compatibility = front.compatibility.as_deref().map_or(0, |text| text.chars().count());
    if compatibility > limits::SKILL_COMPATIBILITY_CHARS_MAX {
        return Err(format!(
            "compatibility must have at most {} characters",
            limits::SKILL_COMPATIBILITY_CHARS_MAX
        ));
    }
    Ok(())
}

fn valid_name(name: &str) -> bool {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= limits::NAME_CHARS_MAX && name.split('-').all(word)
}

fn resources(package: &Package, plugin: &str, folder: &str, notes: &mut Vec<Note>) -> Vec<String> {
    let mut found = Vec::new();
    for kind in RESOURCE_FOLDERS {
        let names = match package.list(&format!("skills/{folder}/{kind}")) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                notes.push(Note::new(
                    plugin,
                    &format!("skill {folder}: {kind} {error}; its files are left out"),
                ));
                continue;
            }
        };
        for name in names {
            match package.resolve(&format!("skills/{folder}/{kind}/{name}")) {
                Ok(path) if path.is_file() => found.push(format!("{kind}/{name}")),
                Ok(_) => {}
                Err(error) => {
                    notes.push(Note::new(
                        plugin,
                        &format!("skill {folder}: {kind}/{name} {error}; it is left out"),
                    ));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::valid_name;

    #[test]
    fn names_follow_the_specification() {
        for name in ["support-agent", "a", "9-lives", &"x".repeat(64)] {
            assert!(valid_name(name), "{name}");
        }
        for name in ["", "-a", "a-", "a--b", "A", "a_b", "a.b", "ü", "../a", &"x".repeat(65)] {
            assert!(!valid_name(name), "{name}");
        }
    }
}
