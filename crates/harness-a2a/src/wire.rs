//! The protocol's own types, as clients of this crate see them. Source: A2A 1.0, JSON form.

pub use a2a::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill, Artifact, AuthenticationInfo,
    ListTasksRequest, ListTasksResponse, Message, Part, PartContent, Role, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskArtifactUpdateEvent,
    TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
