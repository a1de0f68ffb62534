//! Names that travel: extension URIs, metadata keys, media types and headers. Facts of the protocol family, not style.

/// Prefix of everything this project calls its own in free-form maps.
pub const NAMESPACE: &str = "io.github.madarauchiha-314.tiny-harness";
/// The task extension.
pub const TASK_EXTENSION: &str = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext/task/v1";
/// The channel extension.
pub const CHANNEL_EXTENSION: &str = "https://madarauchiha-314.github.io/tiny-harness/a2a/ext/channel/v1";
/// The A2UI extension.
pub const A2UI_EXTENSION: &str = "https://a2ui.org/a2a-extension/a2ui/v0.9.1";
/// A2UI's basic catalog.
pub const A2UI_BASIC_CATALOG: &str = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";
/// Metadata key of the task extension on a task.
pub const TASK_KEY: &str = "io.github.madarauchiha-314.tiny-harness/task";
/// Metadata key of the sub-state on a status update, its message and the task.
pub const SUB_STATE_KEY: &str = "io.github.madarauchiha-314.tiny-harness/sub-state";
/// Metadata key of what a task has used of its models.
pub const USAGE_KEY: &str = "io.github.madarauchiha-314.tiny-harness/usage";
/// `_meta` key of a tool call: equal across retries of one intended call, different for two calls.
pub const IDEMPOTENCY_KEY: &str = "io.github.madarauchiha-314.tiny-harness/idempotency-key";
/// `_meta` key of a tool definition: `true` when the tool acts once per idempotency key, so that a call may be repeated.
pub const DEDUPLICATES_KEY: &str = "io.github.madarauchiha-314.tiny-harness/deduplicates";
/// Media type of the task extension as a data part.
pub const TASK_MEDIA_TYPE: &str = "application/vnd.tiny-harness.task+json";
/// Media type of channel messages.
pub const CHANNEL_MEDIA_TYPE: &str = "application/vnd.tiny-harness.channel+json";
/// Media type of event envelopes.
pub const EVENT_MEDIA_TYPE: &str = "application/vnd.tiny-harness.event+json";
/// Media type of A2UI messages.
pub const A2UI_MEDIA_TYPE: &str = "application/a2ui+json";
/// Header that asserts the participant of a request.
pub const PARTICIPANT_HEADER: &str = "x-participant-id";
/// Metadata key that asserts the participant of a message.
pub const PARTICIPANT_KEY: &str = "participant_id";
/// Name on the card and agent id when none is configured.
pub const DEFAULT_AGENT: &str = "tiny-harness";
/// Directory of a plugin that holds this project's own components.
pub const PLUGIN_NAMESPACE_DIR: &str = NAMESPACE;
