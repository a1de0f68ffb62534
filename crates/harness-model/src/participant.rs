//! Who takes part in a task.

use serde::{Deserialize, Serialize};

use crate::ParticipantId;

/// A human or agent with a role on a task. Wire shape: task extension v1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Participant {
    /// Asserted identity; printable ASCII when it travels in a header.
    pub id: ParticipantId,
    /// Human or agent.
    pub kind: ParticipantKind,
    /// What the participant is on this task. Exactly this role counts; there is no hierarchy.
    pub role: ParticipantRole,
    /// Name for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
}

/// Human or agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParticipantKind {
    /// A person.
    Human,
    /// An agent, this harness included; its words are framed as untrusted.
    Agent,
}

/// Role of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParticipantRole {
    /// Does the work.
    Assignee,
    /// Asked for it.
    Reporter,
    /// Follows it.
    Watcher,
    /// May change roles and participants.
    Admin,
}

impl ParticipantKind {
    /// Lower-case name, as on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Agent => "agent",
        }
    }
}

impl ParticipantRole {
    /// Lower-case name, as on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assignee => "assignee",
            Self::Reporter => "reporter",
            Self::Watcher => "watcher",
            Self::Admin => "admin",
        }
    }
}
