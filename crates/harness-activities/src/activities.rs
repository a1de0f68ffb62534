//! The host of the activities: names, inputs and results on one side, ports on the other.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use harness_agent::{INTAKE, INVOKE_MODEL, INVOKE_TOOL, context::SystemPrompt};
use harness_model::Redactor;
use harness_ports::{
    ActivityContext, ActivityFailure, ActivityHost, ActivityTask, Clock, ModelProvider, Store, ToolSource,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    ActivityObserver, ActivityRun, SkillLibrary, failure, intake, invoke_model, invoke_tool,
    observer::Observed, registry::ToolRegistry,
};

/// What the activities work with.
pub struct Deps {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The model.
    pub provider: Arc<dyn ModelProvider>,
    /// Tools besides the harness's own. The catalogue is read once, so that the prefix of every request stays the same.
    pub tools: Arc<dyn ToolSource>,
    /// The skills there are.
    pub skills: Arc<SkillLibrary>,
    /// The system prompt, extended already.
    pub prompt: SystemPrompt,
    /// The roster of agents, rendered and fenced.
    pub agents_roster: String,
    /// Masks secrets on every border.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How much the model may read and write.
    pub context: ContextSettings,
    /// Is told when an activity begins and ends.
    pub observer: Option<Arc<dyn ActivityObserver>>,
}

impl fmt::Debug for Deps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deps").field("context", &self.context).finish_non_exhaustive()
    }
}

/// How much the model may read and write in one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextSettings {
    /// Tokens of a context; the model's window is a limit of its own.
    pub turn_budget_tokens: u64,
    /// Share of the budget from which on a context counts as nearly full; it is logged from there, refused above the
    /// whole budget.
    pub compaction_fraction: f64,
    /// Tokens that one answer may have.
    pub max_output_tokens: u32,
}

/// Carries out the activities of tasks. Clones share everything.
#[derive(Clone, Debug)]
pub struct Activities {
    host: Arc<Host>,
}

/// What every activity can reach.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) deps: Deps,
    pub(crate) registry: ToolRegistry,
}

impl Activities {
    /// Activities over these ports.
    pub fn new(deps: Deps) -> Self {
        let registry = ToolRegistry::new(deps.tools.catalogue());
        Self { host: Arc::new(Host { deps, registry }) }
    }
}

impl ActivityHost for Activities {
    fn run(
        &self,
        task: ActivityTask,
        context: ActivityContext,
    ) -> BoxFuture<'static, Result<Value, ActivityFailure>> {
        let host = Arc::clone(&self.host);
        Box::pin(async move {
            let run = ActivityRun::of(&task, &context);
            let observed = Observed::begin(host.deps.observer.clone(), Arc::clone(&host.deps.clock), run);
            let result = host.dispatch(task, context).await;
            observed.end(&result);
            result
        })
    }
}

impl Host {
    async fn dispatch(
        self: &Arc<Self>,
        task: ActivityTask,
        context: ActivityContext,
    ) -> Result<Value, ActivityFailure> {
        match task.name.as_str() {
            INTAKE => {
                let work = Box::pin(intake::run(self, decode(&task)?));
                encode(context.cancel.run_until_cancelled(work).await)
            }
            INVOKE_MODEL => {
                let call = invoke_model::Call {
                    input: decode(&task)?,
                    chunk_key: format!("chunk:{}:{}", task.activity_id, context.run_id),
                };
                // Dropping the work drops the stream, which cancels the call at the provider.
                let work = Box::pin(invoke_model::run(self, call));
                encode(context.cancel.run_until_cancelled(work).await)
            }
            INVOKE_TOOL => {
                let work = Box::pin(invoke_tool::run(self, decode(&task)?, &context.cancel));
                encode(Some(work.await))
            }
            unknown => Err(failure::state_invalid(&format!("there is no activity {unknown:?}"))),
        }
    }
}

fn decode<T: DeserializeOwned>(task: &ActivityTask) -> Result<T, ActivityFailure> {
    T::deserialize(&task.input)
        .map_err(|error| failure::state_invalid(&format!("the input of {} is not valid: {error}", task.name)))
}

/// The recorded form of a result; `None` was stopped on request.
fn encode<T: Serialize>(result: Option<Result<T, ActivityFailure>>) -> Result<Value, ActivityFailure> {
    let value = result.ok_or_else(ActivityFailure::canceled)??;
    serde_json::to_value(value)
        .map_err(|error| failure::state_invalid(&format!("a result is not JSON: {error}")))
}
