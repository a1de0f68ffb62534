//! The skills there are. Filled at start from plugins; shown to the model a piece at a time.

use std::{collections::BTreeMap, path::PathBuf};

use bytes::Bytes;
use harness_agent::context::SkillLine;

/// The skills there are, by name.
#[derive(Clone, Debug, Default)]
pub struct SkillLibrary {
    skills: BTreeMap<String, Skill>,
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name, unique in the library.
    pub name: String,
    /// What it is for; one line.
    pub description: String,
    /// The instructions, without front matter.
    pub body: String,
    /// The files that belong to it.
    pub resources: Vec<SkillResource>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillResource {
    /// The folder it is in.
    pub kind: ResourceKind,
    /// Its file name.
    pub name: String,
    /// Its content.
    pub content: ResourceContent,
}

/// Folders of a skill. Source: Agent Skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// Programs.
    Scripts,
    /// Documents to read.
    References,
    /// Templates and other material.
    Assets,
}

/// Where the content of a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceContent {
    /// Here.
    Bytes(Bytes),
    /// In a file that was found to lie inside of its plugin. Read when it is asked for.
    File(PathBuf),
}

impl ResourceKind {
    /// Name of the folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scripts => "scripts",
            Self::References => "references",
            Self::Assets => "assets",
        }
    }
}

impl SkillLibrary {
    /// A library of these skills; of two with one name the first counts.
    pub fn new(skills: impl IntoIterator<Item = Skill>) -> Self {
        let mut library = Self::default();
        for skill in skills {
            library.skills.entry(skill.name.clone()).or_insert(skill);
        }
        library
    }

    /// The skill of this name.
    pub fn find(&self, name: &str) -> Option<&Skill> {
        self.skills.get(name)
    }

    /// Names and descriptions, sorted by name.
    pub fn index(&self) -> Vec<SkillLine> {
        let lines = self.skills.values();
        lines.map(|s| SkillLine { name: s.name.clone(), description: s.description.clone() }).collect()
    }
}
