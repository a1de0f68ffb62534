//! Event envelopes: structured parts of a message that create, change or inform a task.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AcceptanceCriterion, Lifecycle, Message, PartBody, Participant, TaskExtension, TaskRef, limits, names,
};

/// An event envelope as it arrived: a data part with `names::EVENT_MEDIA_TYPE`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// What it says.
    pub kind: EnvelopeKind,
    /// Its content, read according to the kind.
    pub payload: Value,
}

/// Kinds of envelopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvelopeKind {
    /// Creates a task with these properties, or changes an existing one.
    Task,
    /// Tells about the status of something; goes to the history as untrusted text.
    StatusUpdate,
    /// Tells about an artifact of something; goes to the history as untrusted text.
    ArtifactUpdate,
}

/// Why an envelope was refused. `Display` is what the sender reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not an envelope at all.
    #[error("invalid event envelope: {0}")]
    Malformed(String),
    /// The payload does not describe a task.
    #[error("invalid task extension: {0}")]
    Task(String),
    /// The payload would change what no message may change.
    #[error("task envelope cannot change {0}")]
    Forbidden(String),
}

/// What a `task` envelope on a new task says: the stored extension, and the brief fields that are not stored in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// The extension of the new task.
    pub extension: TaskExtension,
    /// Lifecycle asked for; only trusted delegators may set it.
    pub lifecycle: Option<Lifecycle>,
    /// Model asked for; only trusted delegators may set it.
    pub model: Option<String>,
    /// Reasoning effort asked for; only trusted delegators may set it.
    pub reasoning_effort: Option<String>,
    /// How many delegations lie above the task.
    pub depth: Option<u32>,
}

/// What a `task` envelope on an existing task may change. Each field replaces the whole old value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskPatch {
    /// New title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// New criteria.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_criteria: Option<Vec<AcceptanceCriterion>>,
    /// New participants; admins only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub participants: Option<Vec<Participant>>,
}

/// The first event envelope of a message, if it has one.
/// Errors: `Malformed` when a part claims to be an envelope and is not.
pub fn parse_envelope(message: &Message) -> Result<Option<Envelope>, EnvelopeError> {
    let part = message.parts.iter().find(|part| part.media_type.as_deref() == Some(names::EVENT_MEDIA_TYPE));
    match part.map(|part| &part.body) {
        None => Ok(None),
        Some(PartBody::Data(value)) => serde_json::from_value(value.clone())
            .map(Some)
            .map_err(|e| EnvelopeError::Malformed(e.to_string())),
        Some(PartBody::Text(_) | PartBody::Raw(_) | PartBody::Url(_)) => {
            Err(EnvelopeError::Malformed("the part must hold data".to_owned()))
        }
    }
}

impl Brief {
    /// Reads the payload of a `task` envelope on a new task.
    /// Errors: `Task` with what is wrong; nothing is created then.
    pub fn parse(payload: &Value) -> Result<Self, EnvelopeError> {
        let invalid = |text: String| EnvelopeError::Task(text);
        let Value::Object(map) = payload else {
            return Err(invalid("the payload must be an object".to_owned()));
        };
        let mut map = map.clone();
        let lifecycle = take(&mut map, "lifecycle")?;
        let model = take(&mut map, "model")?;
        let reasoning_effort = take(&mut map, "reasoning_effort")?;
        let depth = take(&mut map, "depth")?;
        let extension: TaskExtension =
            serde_json::from_value(Value::Object(map)).map_err(|e| invalid(e.to_string()))?;
        check_extension(&extension).map_err(invalid)?;
        Ok(Self { extension, lifecycle, model, reasoning_effort, depth })
    }

    /// Whether the brief asks for something that only trusted delegators may ask for.
    pub fn needs_trust(&self) -> bool {
        self.lifecycle.is_some() || self.model.is_some() || self.reasoning_effort.is_some()
    }

    /// Parent tasks the brief names.
    pub fn parents(&self) -> &[TaskRef] {
        &self.extension.parent_tasks
    }
}

impl TaskPatch {
    /// Reads the payload of a `task` envelope on an existing task.
    /// Errors: `Forbidden` naming the keys that no message may change, `Task` for values that are not valid.
    pub fn parse(payload: &Value) -> Result<Self, EnvelopeError> {
        let Value::Object(map) = payload else {
            return Err(EnvelopeError::Task("the payload must be an object".to_owned()));
        };
        let allowed = ["name", "description", "acceptance_criteria", "participants"];
        let mut forbidden: Vec<&str> =
            map.keys().map(String::as_str).filter(|key| !allowed.contains(key)).collect();
        if !forbidden.is_empty() {
            forbidden.sort_unstable();
            return Err(EnvelopeError::Forbidden(forbidden.join(", ")));
        }
        let patch: Self =
            serde_json::from_value(payload.clone()).map_err(|e| EnvelopeError::Task(e.to_string()))?;
        let mut probe = TaskExtension::default();
        patch.clone().apply(&mut probe);
        probe.name = patch.name.clone().unwrap_or_else(|| "kept".to_owned());
        check_extension(&probe).map_err(EnvelopeError::Task)?;
        Ok(patch)
    }

    /// Replaces the fields that are set.
    pub fn apply(self, extension: &mut TaskExtension) {
        if let Some(name) = self.name {
            extension.name = name;
        }
        if let Some(description) = self.description {
            extension.description = description;
        }
        if let Some(criteria) = self.acceptance_criteria {
            extension.acceptance_criteria = criteria;
        }
        if let Some(participants) = self.participants {
            extension.participants = participants;
        }
    }
}

fn take<T: serde::de::DeserializeOwned>(
    map: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<T>, EnvelopeError> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value).map(Some).map_err(|e| EnvelopeError::Task(format!("{key}: {e}")))
        }
    }
}

/// Limits and rules that the shape alone does not express.
fn check_extension(extension: &TaskExtension) -> Result<(), String> {
    let texts =
        [("name", &extension.name), ("goal", &extension.goal), ("description", &extension.description)];
    for (field, text) in texts {
        if text.chars().count() > limits::TASK_TEXT_CHARS_MAX {
            return Err(format!("{field} is longer than {} characters", limits::TASK_TEXT_CHARS_MAX));
        }
    }
    if extension.name.trim().is_empty() {
        return Err("name is blank".to_owned());
    }
    if extension.acceptance_criteria.len() > limits::CRITERIA_MAX {
        return Err(format!("more than {} acceptance criteria", limits::CRITERIA_MAX));
    }
    if extension.participants.len() > limits::PARTICIPANTS_MAX {
        return Err(format!("more than {} participants", limits::PARTICIPANTS_MAX));
    }
    for (index, participant) in extension.participants.iter().enumerate() {
        let id = participant.id.as_str();
        if id.is_empty() || id.len() > limits::ID_CHARS_MAX || !id.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("participant {index}: the id must be printable ASCII without spaces"));
        }
        if extension.participants[..index].iter().any(|p| p.id == participant.id) {
            return Err(format!("participant {id:?} is listed twice"));
        }
    }
    match &extension.plan {
        Some(plan) => plan.check().map_err(|e| e.to_string()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_brief_separates_stored_and_unstored_fields() {
        let brief = Brief::parse(&json!({
            "name": "n", "goal": "g", "lifecycle": "delegated", "model": "m", "depth": 2
        }))
        .unwrap();
        assert_eq!(brief.lifecycle, Some(Lifecycle::Delegated));
        assert_eq!((brief.depth, brief.needs_trust()), (Some(2), true));
        assert!(Brief::parse(&json!({"name": "n", "goal": "g", "extra": 1})).is_err());
        assert!(Brief::parse(&json!({"name": "n", "goal": "g", "lifecycle": "forever"})).is_err());
    }

    #[test]
    fn a_patch_names_what_it_may_not_change() {
        let error = TaskPatch::parse(&json!({"plan": {}, "goal": "x", "name": "n"})).unwrap_err();
        assert_eq!(error.to_string(), "task envelope cannot change goal, plan");
        let patch = TaskPatch::parse(&json!({"name": "n"})).unwrap();
        let mut extension = TaskExtension { goal: "g".to_owned(), ..TaskExtension::default() };
        patch.apply(&mut extension);
        assert_eq!((extension.name.as_str(), extension.goal.as_str()), ("n", "g"));
    }

    #[test]
    fn participants_are_checked() {
        let twice = json!({"name": "n", "goal": "g", "participants": [
            {"id": "a", "kind": "human", "role": "reporter"},
            {"id": "a", "kind": "human", "role": "admin"}]});
        assert!(Brief::parse(&twice).is_err());
    }
}
