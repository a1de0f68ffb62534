//! A task in a store, a model and tools that do as the test says, and the activities over them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture};
use harness_activities::{Activities, ActivityObserver, ContextSettings, Deps, SkillLibrary};
use harness_agent::{
    INTAKE, INVOKE_MODEL, INVOKE_TOOL, IntakeInput, IntakeResult, InvokeModelInput, InvokeToolInput,
    ModelAnswer, ModelOutcome, ToolResultFacts, context::SystemPrompt,
};
use harness_model::{
    BlockRef, Content, ContentBody, ContextId, Finish, InboundMessage, ItemBody, ItemPart, Lifecycle,
    Message, ModelOutput, Part, Participant, ParticipantKind, ParticipantRole, Redactor, RequestedCall, Role,
    Secret, StatusChange, StoredItem, TaskEvent, TaskExtension, TaskId, TaskRecord, TaskState, Timestamp,
    Usage,
};
use harness_ports::{
    ActivityContext, ActivityFailure, ActivityHost, ActivityOptions, ActivityTask, Block, Clock,
    HistoryAppend, ModelError, ModelEvent, ModelInfo, ModelProvider, ModelRequest, ModelStream, OnCrash,
    Publish, Store, ToolCall, ToolDefinition, ToolError, ToolOutput, ToolSource, Write, WriteBatch,
};
use harness_testkit::MemoryStore;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) const SECRET: &str = "xyzzy-plugh-42";

/// What the model does next.
#[derive(Clone, Debug)]
pub(crate) enum Speak {
    Say(String),
    /// Virtual time: the tests run with a paused clock.
    Wait(u64),
    Done(ModelOutput),
    Fail(ModelError),
    Hang,
    /// Ends the stream in silence, against its contract.
    Stop,
}

pub(crate) fn say(text: &str) -> Speak {
    Speak::Say(text.to_owned())
}

pub(crate) fn answer(text: &str) -> ModelOutput {
    ModelOutput {
        text: text.to_owned(),
        calls: Vec::new(),
        refusal: None,
        finish: Finish::Stop,
        usage: Usage { input: Some(100), ..Usage::default() },
        model: "m-1".to_owned(),
        provider: "scripted".to_owned(),
        request_id: None,
        raw_items: Vec::new(),
    }
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> RequestedCall {
    RequestedCall { call_id: id.into(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    script: Mutex<VecDeque<Vec<Speak>>>,
    pub(crate) requests: Mutex<Vec<ModelRequest>>,
    /// Alive while a stream of this model is.
    pub(crate) streams: Arc<()>,
}

impl ModelProvider for Model {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            provider: "scripted".to_owned(),
            model: "m-1".to_owned(),
            context_window_tokens: 50_000,
            endpoint: "turns.toml".to_owned(),
            api: "scripted",
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let script = self.script.lock().unwrap().pop_front().expect("the model was not expected to be asked");
        let alive = Arc::clone(&self.streams);
        futures::stream::unfold((VecDeque::from(script), alive), |(mut script, alive)| async {
            loop {
                let event = match script.pop_front().expect("a script ends its stream") {
                    Speak::Say(text) => Ok(ModelEvent::TextDelta(text)),
                    Speak::Done(output) => Ok(ModelEvent::Done(Box::new(output))),
                    Speak::Fail(error) => Err(error),
                    Speak::Hang => std::future::pending().await,
                    Speak::Stop => return None,
                    Speak::Wait(ms) => {
                        tokio::time::sleep(Duration::from_millis(ms)).await;
                        continue;
                    }
                };
                return Some((event, (script, alive)));
            }
        })
        .boxed()
    }
}

type ToolAnswer = Box<dyn Fn(ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync>;

#[derive(Default)]
pub(crate) struct Tools {
    pub(crate) catalogue: Vec<ToolDefinition>,
    pub(crate) answer: Option<ToolAnswer>,
    pub(crate) calls: Mutex<Vec<ToolCall>>,
}

impl ToolSource for Tools {
    fn catalogue(&self) -> Vec<ToolDefinition> {
        self.catalogue.clone()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.calls.lock().unwrap().push(call.clone());
        self.answer.as_ref().expect("no tool was expected to be called")(call)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

pub(crate) fn tool(name: &str, input_schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "A tool.".to_owned(),
        input_schema,
        idempotent: true,
        read_only: true,
        deduplicates: false,
    }
}

#[derive(Debug)]
pub(crate) struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000)
    }
}

fn record(task_id: TaskId) -> TaskRecord {
    TaskRecord {
        usage: Default::default(),
        task_id,
        context_id: ContextId::from("context-1"),
        lifecycle: Lifecycle::Conversation,
        status: StatusChange::to(TaskState::Working),
        status_at: StoppedClock.now(),
        created_at: StoppedClock.now(),
        extension: extension(),
    }
}

fn publish_bare(record: TaskRecord) -> Write {
    Write::Publish(Box::new(Publish {
        task_id: record.task_id.clone(),
        key: "record".to_owned(),
        events: Vec::new(),
        record: Some(record),
        history: Vec::new(),
    }))
}

/// The activities and everything around them.
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) model: Arc<Model>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) skills: Arc<SkillLibrary>,
    pub(crate) observer: Option<Arc<dyn ActivityObserver>>,
    pub(crate) turn_budget_tokens: u64,
    pub(crate) cancel: CancellationToken,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let store = MemoryStore::new();
        // Activities of a task that does not exist keep nothing.
        let writes = ["task-2".into(), task_id()].map(|id| publish_bare(record(id)));
        let begun = store.commit(WriteBatch::new(StoppedClock.now(), writes.into())).now_or_never();
        begun.expect("memory does not wait").unwrap();
        Self {
            store,
            model: Arc::default(),
            tools: Arc::default(),
            skills: Arc::default(),
            observer: None,
            turn_budget_tokens: 100_000,
            cancel: CancellationToken::new(),
        }
    }

    pub(crate) fn with_tools(tools: Tools) -> Self {
        Self { tools: Arc::new(tools), ..Self::new() }
    }

    /// What the model does in its next call.
    pub(crate) fn script(&self, script: impl IntoIterator<Item = Speak>) {
        self.model.script.lock().unwrap().push_back(script.into_iter().collect());
    }

    pub(crate) fn activities(&self) -> Activities {
        Activities::new(Deps {
            store: Arc::clone(&self.store),
            provider: Arc::clone(&self.model) as Arc<dyn ModelProvider>,
            tools: Arc::clone(&self.tools) as Arc<dyn ToolSource>,
            skills: Arc::clone(&self.skills),
            prompt: SystemPrompt::builtin(),
            agents_roster: "(no agents)".to_owned(),
            redactor: Arc::new(Redactor::new([Secret::new(SECRET)])),
            clock: Arc::new(StoppedClock),
            context: ContextSettings {
                turn_budget_tokens: self.turn_budget_tokens,
                compaction_fraction: 0.75,
                max_output_tokens: 777,
            },
            observer: self.observer.clone(),
        })
    }

    /// Runs an activity under this run id.
    pub(crate) async fn run_raw(
        &self,
        name: &str,
        input: Value,
        run_id: &str,
    ) -> Result<Value, ActivityFailure> {
        let task = ActivityTask {
            activity_id: "activity-1".into(),
            name: name.to_owned(),
            input,
            options: ActivityOptions { start_to_close: Duration::from_secs(60), on_crash: OnCrash::Rerun },
            trace: None,
        };
        let context = ActivityContext {
            workflow_id: (&task_id()).into(),
            run_id: run_id.to_owned(),
            started_at: StoppedClock.now(),
            cancel: self.cancel.clone(),
        };
        self.activities().run(task, context).await
    }

    async fn run<T: DeserializeOwned>(
        &self,
        name: &str,
        input: &impl Serialize,
        run_id: &str,
    ) -> Result<T, ActivityFailure> {
        let result = self.run_raw(name, serde_json::to_value(input).unwrap(), run_id).await?;
        assert!(result.to_string().len() <= 65_536, "a result of {} bytes", result.to_string().len());
        Ok(serde_json::from_value(result).unwrap())
    }

    pub(crate) async fn intake(&self, input: &IntakeInput) -> Result<IntakeResult, ActivityFailure> {
        self.run(INTAKE, input, "run-1").await
    }

    pub(crate) async fn outcome(
        &self,
        input: &InvokeModelInput,
        run_id: &str,
    ) -> Result<ModelOutcome, ActivityFailure> {
        self.run(INVOKE_MODEL, input, run_id).await
    }

    pub(crate) async fn ask(&self, input: &InvokeModelInput, run_id: &str) -> ModelAnswer {
        match self.outcome(input, run_id).await.unwrap() {
            ModelOutcome::Answered(answer) => *answer,
            over @ ModelOutcome::OverBudget { .. } => panic!("{over:?}"),
        }
    }

    pub(crate) async fn call_tool(
        &self,
        input: &InvokeToolInput,
    ) -> Result<ToolResultFacts, ActivityFailure> {
        self.run(INVOKE_TOOL, input, "run-1").await
    }

    pub(crate) async fn put(&self, bytes: impl Into<bytes::Bytes>) -> BlockRef {
        let block = Block::new(bytes);
        let reference = block.reference.clone();
        self.commit(vec![Write::PutBlock { block, task_id: task_id() }]).await;
        reference
    }

    pub(crate) async fn put_json(&self, value: &impl Serialize) -> BlockRef {
        self.put(serde_json::to_vec(value).unwrap()).await
    }

    pub(crate) async fn commit(&self, writes: Vec<Write>) {
        self.store.commit(WriteBatch::new(StoppedClock.now(), writes)).await.unwrap();
    }

    pub(crate) async fn bytes(&self, block: &BlockRef) -> bytes::Bytes {
        self.store.block(&block.id).await.unwrap().expect("the block was kept")
    }

    pub(crate) async fn text(&self, content: &Content) -> String {
        match content {
            Content::Inline(text) => text.clone(),
            Content::Block(block) => String::from_utf8(self.bytes(block).await.into()).unwrap(),
        }
    }

    pub(crate) async fn item(&self, body: &ItemBody) -> StoredItem {
        match body {
            ItemBody::Inline(item) => (**item).clone(),
            ItemBody::Block(block) => serde_json::from_slice(&self.bytes(block).await).unwrap(),
        }
    }

    /// The parts of a tool result.
    pub(crate) async fn result_parts(&self, facts: &ToolResultFacts) -> Vec<ItemPart> {
        match self.item(&facts.item.body).await {
            StoredItem::ToolResult { parts, .. } => parts,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn result_text(&self, facts: &ToolResultFacts) -> String {
        match self.result_parts(facts).await.as_slice() {
            [ItemPart::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// A task that is being worked on, with one message of its reporter.
    pub(crate) async fn begin_task(&self, text: &str) {
        let block = self.put_json(&message("m-1", vec![Part::text(text)])).await;
        let status = StatusChange::to(TaskState::Working);
        self.commit(vec![Write::Publish(Box::new(Publish {
            task_id: task_id(),
            key: "begin".to_owned(),
            events: vec![TaskEvent::TaskCreated, TaskEvent::StatusChanged(status)],
            record: Some(record(task_id())),
            history: vec![HistoryAppend::Message { message_id: "m-1".into(), block }],
        }))])
        .await;
    }

    /// The chunks in the log, as `=text` for a start and `+text` for a continuation.
    pub(crate) async fn chunks(&self) -> Vec<String> {
        let mut chunks = Vec::new();
        for entry in self.store.log(&task_id(), None, 10_000).await.unwrap() {
            if let TaskEvent::ArtifactChanged(change) = entry.event {
                assert!(!change.last_chunk && change.parts.len() == 1);
                assert_eq!(change.name.as_deref(), Some(change.artifact_id.as_str()));
                let ContentBody::Text(text) = &change.parts[0].body else { panic!("{change:?}") };
                let sign = if change.append { "+" } else { "=" };
                chunks.push(format!("{sign}{}", self.text(text).await));
            }
        }
        chunks
    }
}

pub(crate) fn task_id() -> TaskId {
    TaskId::from("task-1")
}

pub(crate) fn participant(id: &str, kind: ParticipantKind, role: ParticipantRole) -> Participant {
    Participant { id: id.into(), kind, role, display_name: String::new() }
}

pub(crate) fn extension() -> TaskExtension {
    TaskExtension {
        name: "Blender".to_owned(),
        goal: "Settle it".to_owned(),
        participants: vec![participant("ada", ParticipantKind::Human, ParticipantRole::Reporter)],
        ..TaskExtension::default()
    }
}

pub(crate) fn message(id: &str, parts: Vec<Part>) -> Message {
    Message {
        message_id: id.into(),
        context_id: None,
        task_id: None,
        role: Role::User,
        parts,
        metadata: serde_json::Map::new(),
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

pub(crate) fn inbound(id: &str, sender: &str, block: BlockRef) -> InboundMessage {
    InboundMessage { message_id: id.into(), block, sender: sender.into(), interrupt: false }
}

pub(crate) fn model_input() -> InvokeModelInput {
    let words =
        StoredItem::User { parts: vec![ItemPart::Text("[ada] It is broken".to_owned())], source: None };
    InvokeModelInput {
        attempt: 1,
        task_id: task_id(),
        agent_id: "tiny-harness".into(),
        turn: 1,
        artifact_id: "answer-1".into(),
        extension: extension(),
        state: TaskState::Working,
        skills: Vec::new(),
        manifest: None,
        fresh: vec![harness_model::ItemRef {
            id: 1,
            chars: words.chars(),
            body: ItemBody::Inline(Box::new(words)),
        }],
        latest_message: Some("m-1".into()),
        model: None,
        reasoning_effort: None,
        measured: None,
    }
}

impl Fixture {
    pub(crate) async fn tool_input(&self, name: &str, arguments: Value) -> InvokeToolInput {
        InvokeToolInput {
            task_id: task_id(),
            turn: 3,
            call_id: "c1".into(),
            name: name.to_owned(),
            arguments: self.put(arguments.to_string()).await,
            idempotency_key: "task-1/3/0".to_owned(),
            timeout_ms: 5_000,
        }
    }
}

pub(crate) fn order_schema() -> Value {
    json!({"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"], "additionalProperties": false})
}
