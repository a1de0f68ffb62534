//! `list_skill_resources`: the files of a skill.

use harness_model::one_line;
use serde_json::{Map, Value};

use super::{Reply, load_skill::find};
use crate::{SkillLibrary, SkillResource};

pub(super) fn run(skills: &SkillLibrary, arguments: &Map<String, Value>) -> Reply {
    let skill = match find(skills, arguments) {
        Ok(skill) => skill,
        Err(error) => return Reply::error(&error),
    };
    if skill.resources.is_empty() {
        return Reply::text("(no resources)");
    }
    let line = |file: &SkillResource| format!("- {}/{}", file.kind.name(), one_line(&file.name));
    Reply::text(skill.resources.iter().map(line).collect::<Vec<_>>().join("\n"))
}
