//! `list_skills`: the skills there are.

use harness_model::one_line;

use super::Reply;
use crate::SkillLibrary;

pub(super) fn run(skills: &SkillLibrary) -> Reply {
    let index = skills.index();
    if index.is_empty() {
        return Reply::text("(no skills)");
    }
    let line = |skill: &harness_agent::context::SkillLine| {
        format!("- {}: {}", one_line(&skill.name), one_line(&skill.description))
    };
    Reply::text(index.iter().map(line).collect::<Vec<_>>().join("\n"))
}
