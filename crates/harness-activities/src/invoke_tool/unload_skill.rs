//! `unload_skill`: a skill leaves the context.

use harness_agent::ToolChange;
use serde_json::{Map, Value};

use super::{Reply, load_skill::find};
use crate::SkillLibrary;

/// Unloading what is not loaded changes nothing; which skills are loaded is known to the task alone.
pub(super) fn run(skills: &SkillLibrary, arguments: &Map<String, Value>) -> Reply {
    match find(skills, arguments) {
        Ok(skill) => Reply::text(format!("unloaded {}", skill.name))
            .with_change(ToolChange::SkillUnloaded { name: skill.name.clone() }),
        Err(error) => Reply::error(&error),
    }
}
