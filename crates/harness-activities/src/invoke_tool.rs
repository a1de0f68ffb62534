//! `invoke_tool.v1`: one tool call. The harness's own tools have a file each; every other name goes to the tool source.

mod kept;
mod list_skill_resources;
mod list_skills;
mod load_skill;
mod load_skill_resource;
mod preview;
mod read_result;
mod render;
mod unload_skill;

use std::{sync::Arc, time::Duration};

use harness_agent::{InvokeToolInput, ItemDraft, ToolChange, ToolResultFacts, intrinsics};
use harness_model::{CodedError, ErrorCode, ItemBody, StoredItem};
use harness_ports::{ActivityFailure, ToolCall, ToolOutput, ToolPart};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::{
    activities::Host,
    blocks::{self, Keep},
    failure,
};
use render::{Origin, Rendered};

/// How long a tool that was asked to stop may take to tell its server so.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Bytes of a result above which it is scrubbed on a thread of its own: scrubbing takes milliseconds per megabyte.
const LARGE_BYTES: usize = 262_144;

/// What a tool answered.
#[derive(Debug)]
struct Reply {
    output: ToolOutput,
    code: Option<ErrorCode>,
    change: Option<ToolChange>,
}

impl Reply {
    fn text(text: impl Into<String>) -> Self {
        Self::of(ToolOutput { is_error: false, parts: vec![ToolPart::Text(text.into())], truncated: false })
    }

    /// A result that says what is wrong; the model may mend it.
    fn error(error: &CodedError) -> Self {
        let parts = vec![ToolPart::Text(error.to_string())];
        let output = ToolOutput { is_error: true, parts, truncated: false };
        Self { output, code: Some(error.code.clone()), change: None }
    }

    fn of(output: ToolOutput) -> Self {
        Self { output, code: None, change: None }
    }

    fn with_change(mut self, change: ToolChange) -> Self {
        self.change = Some(change);
        self
    }
}

pub(crate) async fn run(
    host: &Arc<Host>,
    input: InvokeToolInput,
    cancel: &CancellationToken,
) -> Result<ToolResultFacts, ActivityFailure> {
    if cancel.is_cancelled() {
        return Err(ActivityFailure::canceled());
    }
    let store = &*host.deps.store;
    let arguments: Map<String, Value> = blocks::json(store, &input.arguments).await?;
    let mut keep = Keep::of(&input.task_id);
    let reply = match input.name.as_str() {
        intrinsics::LIST_SKILLS => list_skills::run(&host.deps.skills),
        intrinsics::LOAD_SKILL => load_skill::run(&host.deps.skills, &arguments, &mut keep),
        intrinsics::UNLOAD_SKILL => unload_skill::run(&host.deps.skills, &arguments),
        intrinsics::LIST_SKILL_RESOURCES => list_skill_resources::run(&host.deps.skills, &arguments),
        intrinsics::LOAD_SKILL_RESOURCE => load_skill_resource::run(&host.deps.skills, &arguments).await,
        intrinsics::READ_RESULT => read_result::run(store, &input.task_id, &arguments).await?,
        _ => Reply::of(call_source(host, &input, arguments, cancel).await?),
    };
    let is_error = reply.output.is_error;
    let rendered = rendered(host, &input, reply.output, keep).await?;
    let item =
        StoredItem::ToolResult { call_id: input.call_id, name: input.name, is_error, parts: rendered.parts };
    let mut keep = rendered.keep;
    let item = ItemDraft { chars: item.chars(), body: ItemBody::Block(keep.json(&item)?) };
    keep.commit(store, &*host.deps.clock).await?;
    Ok(ToolResultFacts { item, is_error, code: reply.code, change: reply.change })
}

/// Calls a tool of a server. A call that was asked to stop gets a moment to say how it ended.
async fn call_source(
    host: &Host,
    input: &InvokeToolInput,
    arguments: Map<String, Value>,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ActivityFailure> {
    let call = host.deps.tools.call(ToolCall {
        name: input.name.clone(),
        arguments,
        idempotency_key: input.idempotency_key.clone(),
        timeout: Duration::from_millis(input.timeout_ms),
        cancel: cancel.clone(),
    });
    let stop = async {
        cancel.cancelled().await;
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        biased;
        ended = call => ended.map_err(|error| failure::of_tool(&error, &host.deps.redactor)),
        () = stop => Err(ActivityFailure::canceled()),
    }
}

async fn rendered(
    host: &Arc<Host>,
    input: &InvokeToolInput,
    output: ToolOutput,
    keep: Keep,
) -> Result<Rendered, ActivityFailure> {
    let origin = Origin::of(input);
    if render::bytes(&output) <= LARGE_BYTES {
        return render::render(output, &origin, &host.deps.redactor, keep);
    }
    let redactor = Arc::clone(&host.deps.redactor);
    let work = tokio::task::spawn_blocking(move || render::render(output, &origin, &redactor, keep));
    work.await.map_err(|_| failure::state_invalid("a tool result could not be read"))?
}

fn argument<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments.get(key).and_then(Value::as_str).unwrap_or_default()
}
