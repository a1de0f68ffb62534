//! Limits in one place. Each is a number of what its name says; all are checked before work is done.

/// Bytes of an [`crate::Content::Inline`] text.
pub const INLINE_BYTES_MAX: usize = 2_048;
/// Bytes of any one payload in a workflow history.
pub const HISTORY_PAYLOAD_BYTES_MAX: usize = 65_536;
/// Steps of a plan.
pub const PLAN_STEPS_MAX: usize = 64;
/// Characters of a step's name, its description and its output.
pub const STEP_TEXT_CHARS_MAX: usize = 2_000;
/// Bytes of a plan with everything that its steps produced, as JSON.
pub const PLAN_BYTES_MAX: usize = 24_576;
/// Bytes of a task extension after a message changed it, as JSON.
pub const EXTENSION_BYTES_MAX: usize = 57_344;
/// Participants of a task.
pub const PARTICIPANTS_MAX: usize = 64;
/// Characters of a task's name made from the first line of a message.
pub const TASK_NAME_CHARS_MAX: usize = 60;
/// Characters of a task's name, goal or description as given in an envelope.
pub const TASK_TEXT_CHARS_MAX: usize = 8_000;
/// Acceptance criteria of a task.
pub const CRITERIA_MAX: usize = 64;
/// Characters of an identifier that arrives from outside.
pub const ID_CHARS_MAX: usize = 256;
/// Parts of one message.
pub const MESSAGE_PARTS_MAX: usize = 256;
/// Nesting depth of JSON from outside.
pub const JSON_DEPTH_MAX: usize = 64;
/// Messages waiting in the inbox of one task; further ones are refused.
pub const INBOX_MESSAGES_MAX: usize = 256;
/// Messages that are read at once.
pub const INTAKE_MESSAGES_MAX: usize = 64;
/// Tool calls of one model answer; further ones are refused.
pub const CALLS_PER_TURN_MAX: usize = 64;
/// Bytes of the arguments of one tool call.
pub const CALL_ARGUMENTS_BYTES_MAX: usize = 262_144;
/// Bytes of a tool result that the model sees whole; larger ones are kept and previewed.
pub const TOOL_RESULT_INLINE_BYTES_MAX: usize = 65_536;
/// Bytes of the preview of a larger tool result.
pub const TOOL_RESULT_PREVIEW_BYTES: usize = 8_192;
/// Bytes of one tool result as it arrives; more is cut off and said so.
pub const TOOL_RESULT_BYTES_MAX: usize = 33_554_432;
/// Bytes that one `read_result` call returns.
pub const READ_RESULT_BYTES_MAX: usize = 32_768;
/// Characters of a tool call's summary line.
pub const CALL_SUMMARY_CHARS_MAX: usize = 120;
/// Options of one question.
pub const OPTIONS_MAX: usize = 16;
/// Characters of a question that waits in a task's state.
pub const QUESTION_CHARS_MAX: usize = 2_000;
/// Bytes of a block that is cached in memory.
pub const CACHED_BLOCK_BYTES_MAX: usize = 262_144;
