//! Identifiers. Each is its own type so that two of them can never be swapped by accident.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an identifier as it is; checks belong to the border where it arrives.
            pub fn new(value: impl Into<String>) -> Self {
                Self(value.into())
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(value: &str) -> Self {
                Self(value.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(value: String) -> Self {
                Self(value)
            }
        }
    };
}

id!(
    /// An A2A task. The workflow that runs the task has the same id.
    TaskId
);
id!(
    /// An A2A context: groups tasks that belong to one conversation or case.
    ContextId
);
id!(
    /// An A2A message, chosen by its sender; unique per sender.
    MessageId
);
id!(
    /// An A2A artifact, unique within its task.
    ArtifactId
);
id!(
    /// A human or agent that takes part in a task.
    ParticipantId
);
id!(
    /// An agent of the roster, or this harness itself.
    AgentId
);
id!(
    /// A durable workflow hosted by an engine.
    WorkflowId
);
id!(
    /// An activity, unique within its workflow. Retries of one activity are new activities with the same operation key.
    ActivityId
);
id!(
    /// A timer, unique within its workflow.
    TimerId
);
id!(
    /// A tool call, as the model numbered it; unique within one model answer.
    CallId
);

impl From<&TaskId> for WorkflowId {
    fn from(task: &TaskId) -> Self {
        Self::new(task.as_str())
    }
}

impl From<&WorkflowId> for TaskId {
    fn from(workflow: &WorkflowId) -> Self {
        Self::new(workflow.as_str())
    }
}
