//! States and lifecycles of an A2A task.

use serde::{Deserialize, Serialize};

/// State of an A2A task. Source: A2A 1.0 `TaskState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskState {
    /// Accepted, not yet worked on.
    Submitted,
    /// The agent is working.
    Working,
    /// The agent waits for a message; see [`SubState`].
    InputRequired,
    /// The agent waits for a credential.
    AuthRequired,
    /// Ended well.
    Completed,
    /// Ended with an error.
    Failed,
    /// Ended because a participant asked for it.
    Canceled,
    /// Refused before any effect.
    Rejected,
}

impl TaskState {
    /// Every state, in the order of the specification.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// Whether nothing can change any more.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Whether a blocking send and a stream end here: terminal, or waiting for somebody.
    pub fn ends_turn(self) -> bool {
        match self {
            Self::Completed
            | Self::Failed
            | Self::Canceled
            | Self::Rejected
            | Self::InputRequired
            | Self::AuthRequired => true,
            Self::Submitted | Self::Working => false,
        }
    }

    /// The short name, as people see it: `INPUT_REQUIRED`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submitted => "SUBMITTED",
            Self::Working => "WORKING",
            Self::InputRequired => "INPUT_REQUIRED",
            Self::AuthRequired => "AUTH_REQUIRED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
            Self::Rejected => "REJECTED",
        }
    }

    /// Reads a short name, or the wire name with its `TASK_STATE_` prefix.
    pub fn parse(name: &str) -> Option<Self> {
        let short = name.strip_prefix("TASK_STATE_").unwrap_or(name);
        Self::ALL.into_iter().find(|state| state.name() == short)
    }
}

/// Why a task is INPUT_REQUIRED without a question.
/// On the wire: metadata key `names::SUB_STATE_KEY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubState {
    /// A conversation that has answered and waits for whatever comes next. Its absence means a real question.
    AwaitingNextMessage,
}

impl SubState {
    /// The wire value.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwaitingNextMessage => "awaiting-next-message",
        }
    }
}

/// What the end of a turn means for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Parks as INPUT_REQUIRED after each answer; ends by `/complete`, cancel or failure.
    #[default]
    Conversation,
    /// Completes with its answer.
    Delegated,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::parse(state.name()), Some(state));
            assert_eq!(TaskState::parse(&format!("TASK_STATE_{}", state.name())), Some(state));
            assert!(!state.is_terminal() || state.ends_turn());
        }
        assert_eq!(TaskState::parse("working"), None);
    }
}
