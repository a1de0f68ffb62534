//! `load_skill`: a skill enters the context.

use harness_agent::{LoadedSkill, ToolChange};
use harness_model::{CodedError, clean_field, codes};
use serde_json::{Map, Value};

use super::{Reply, argument};
use crate::{Skill, SkillLibrary, blocks::Keep};

pub(super) fn run(skills: &SkillLibrary, arguments: &Map<String, Value>, keep: &mut Keep) -> Reply {
    match find(skills, arguments) {
        Ok(skill) => {
            let loaded = LoadedSkill { name: skill.name.clone(), body: keep.bytes(skill.body.clone()) };
            // The body itself is not repeated here: a result is fenced as untrusted, and it would be read twice.
            let text =
                format!("loaded {0}; its instructions are in your context under <skill:{0}>", skill.name);
            Reply::text(text).with_change(ToolChange::SkillLoaded(loaded))
        }
        Err(error) => Reply::error(&error),
    }
}

/// The skill that the arguments name.
pub(super) fn find<'a>(
    skills: &'a SkillLibrary,
    arguments: &Map<String, Value>,
) -> Result<&'a Skill, CodedError> {
    let name = argument(arguments, "name");
    skills.find(name).ok_or_else(|| {
        let name = clean_field(name, Some(64)).text;
        CodedError::new(
            codes::SKILL_INVALID,
            format!("there is no skill {name:?}; list_skills tells which there are"),
        )
    })
}
