//! `load_skill_resource`: one text file of a skill.

use harness_model::{CodedError, clean_field, codes, limits};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt as _;

use super::{Reply, argument, load_skill::find};
use crate::{ResourceContent, SkillLibrary, SkillResource};

pub(super) async fn run(skills: &SkillLibrary, arguments: &Map<String, Value>) -> Reply {
    match load(skills, arguments).await {
        Ok(text) => Reply::text(text),
        Err(error) => Reply::error(&error),
    }
}

async fn load(skills: &SkillLibrary, arguments: &Map<String, Value>) -> Result<String, CodedError> {
    let skill = find(skills, arguments)?;
    let (kind, name) = (argument(arguments, "kind"), argument(arguments, "resource"));
    let resource = skill.resources.iter().find(|file| file.kind.name() == kind && file.name == name);
    let invalid = |what: &str| {
        let (skill, name) = (&skill.name, clean_field(name, Some(100)).text);
        let text = format!(
            "{kind}/{name} of skill {skill} {what}; list_skill_resources tells which files there are"
        );
        CodedError::new(codes::SKILL_INVALID, text)
    };
    let resource = resource.ok_or_else(|| invalid("does not exist"))?;
    // Why a file cannot be read is for the operator: the reason names paths.
    let bytes = read(resource).await.map_err(|error| {
        tracing::warn!(skill = %skill.name, resource = %name, %error, "a file of a skill cannot be read");
        invalid("cannot be read")
    })?;
    if bytes.len() > limits::TOOL_RESULT_BYTES_MAX {
        return Err(invalid("is too large"));
    }
    String::from_utf8(bytes).map_err(|_| invalid("is not text"))
}

/// The bytes, at most one more than are accepted.
async fn read(resource: &SkillResource) -> std::io::Result<Vec<u8>> {
    match &resource.content {
        ResourceContent::Bytes(bytes) => Ok(bytes.to_vec()),
        ResourceContent::File(path) => {
            let mut bytes = Vec::new();
            let file = tokio::fs::File::open(path).await?;
            file.take(limits::TOOL_RESULT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).await?;
            Ok(bytes)
        }
    }
}
