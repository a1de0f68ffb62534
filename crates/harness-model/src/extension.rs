//! The task extension v1: what A2A does not say about a task. Snake-case JSON, closed at the top level.

use serde::{Deserialize, Serialize};

use crate::{AgentId, Participant, ParticipantId, ParticipantRole, Plan, TaskId};

/// The payload under `names::TASK_KEY` in `Task.metadata`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskExtension {
    /// Short title.
    pub name: String,
    /// What must be achieved.
    pub goal: String,
    /// Free classification.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// Longer text; may be empty.
    #[serde(default)]
    pub description: String,
    /// When the task counts as done.
    #[serde(default)]
    pub acceptance_criteria: Vec<AcceptanceCriterion>,
    /// Who takes part.
    #[serde(default)]
    pub participants: Vec<Participant>,
    /// Tasks that this one works for.
    #[serde(default)]
    pub parent_tasks: Vec<TaskRef>,
    /// Tasks that work for this one.
    #[serde(default)]
    pub sub_tasks: Vec<TaskRef>,
    /// The plan, once there is one.
    #[serde(default)]
    pub plan: Option<Plan>,
}

impl TaskExtension {
    /// The participant with this id.
    pub fn participant(&self, id: &ParticipantId) -> Option<&Participant> {
        self.participants.iter().find(|p| p.id == *id)
    }

    /// Whether `id` holds exactly `role`.
    pub fn has_role(&self, id: &ParticipantId, role: ParticipantRole) -> bool {
        self.participant(id).is_some_and(|p| p.role == role)
    }
}

/// One condition of being done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptanceCriterion {
    /// The condition.
    pub text: String,
    /// Whether it is met.
    #[serde(default)]
    pub met: bool,
}

/// A task somewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// Its A2A id on the agent that holds it.
    pub task_id: TaskId,
    /// The agent that holds it; `None` means this harness.
    #[serde(default)]
    pub agent: Option<EntityRef>,
}

/// A named thing of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityRef {
    /// What kind of thing.
    pub kind: EntityKind,
    /// Its id within the kind.
    pub id: String,
    /// Its version, when one matters.
    #[serde(default)]
    pub version: Option<String>,
}

impl EntityRef {
    /// A reference to an agent of the roster.
    pub fn agent(id: &AgentId) -> Self {
        Self { kind: EntityKind::Agent, id: id.as_str().to_owned(), version: None }
    }
}

/// Kinds of registered things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the wire words say all there is to say")]
pub enum EntityKind {
    Prompt,
    Skill,
    Tool,
    Llm,
    SystemOne,
    Hook,
    Channel,
    Renderer,
    Surface,
    Store,
    Agent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_level_is_closed_and_references_are_open() {
        let refused = serde_json::from_str::<TaskExtension>(r#"{"name":"a","goal":"b","x":1}"#);
        assert!(refused.is_err());
        let reference = serde_json::from_str::<TaskRef>(r#"{"task_id":"t","agent":null,"state":"x"}"#);
        assert_eq!(reference.unwrap().task_id, TaskId::from("t"));
    }
}
