//! An engine whose tasks do what the first word of a message says. It keeps the contract of the port over a store.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use harness_model::{
    ArtifactChange, BlockRef, CANCEL_SIGNAL, CallId, CancelRequest, Content, ContentBody, ContentPart,
    HelpRequest, InboundMessage, Message, ParticipantId, StartTask, StatusChange, SubState, TaskEvent,
    TaskId, TaskRecord, TaskState, Timestamp, ToolCallState, ToolCallSummary, WorkflowId,
};
use harness_ports::{
    Block, Capabilities, Clock, Delivered, Delivery, Engine, EngineError, HistoryAppend, Publish, Store,
    StoreError, TaskFields, TaskGroup, Write, WriteBatch,
};
use tokio::sync::{Mutex as AsyncMutex, Notify};

/// 2024-02-29T12:34:56.789Z.
pub(crate) const BEGINNING: i64 = 1_709_210_096_789;

/// A clock that moves on by one second whenever somebody asks it.
#[derive(Debug)]
pub(crate) struct TickingClock(AtomicI64);

impl Default for TickingClock {
    fn default() -> Self {
        Self(AtomicI64::new(BEGINNING))
    }
}

impl Clock for TickingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1_000, Ordering::SeqCst))
    }
}

pub(crate) struct FakeEngine {
    state: Arc<State>,
    group: TaskGroup,
}

struct State {
    /// Which engine of this process it is.
    run: u64,
    store: Arc<dyn Store>,
    clock: TickingClock,
    /// Held while a delivery or a change is made: one at a time.
    turn: AsyncMutex<()>,
    /// Lets one `hold` go on.
    release: Notify,
    refusal: Mutex<Option<String>>,
    started: Mutex<Vec<StartTask>>,
}

impl FakeEngine {
    pub(crate) fn new(store: Arc<dyn Store>, group: TaskGroup) -> Arc<Self> {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let state = State {
            run: RUNS.fetch_add(1, Ordering::Relaxed),
            store,
            clock: TickingClock::default(),
            turn: AsyncMutex::default(),
            release: Notify::new(),
            refusal: Mutex::default(),
            started: Mutex::default(),
        };
        Arc::new(Self { state: Arc::new(state), group })
    }

    /// Lets a task go on that was told to `hold`.
    pub(crate) fn release(&self) {
        self.state.release.notify_one();
    }

    /// Refuses every delivery from now on.
    pub(crate) fn refuse(&self, reason: &str) {
        *self.state.refusal.lock().unwrap() = Some(reason.to_owned());
    }

    /// What tasks were started with, in order.
    pub(crate) fn started(&self) -> Vec<StartTask> {
        self.state.started.lock().unwrap().clone()
    }
}

impl Engine for FakeEngine {
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<Delivered, EngineError>> {
        Box::pin(async move {
            let (delivered, told) = self.state.accept(delivery).await?;
            if let Some((task_id, told)) = told {
                let state = Arc::clone(&self.state);
                self.group
                    .spawn(async move { state.react(task_id, told).await.expect("memory never fails") });
            }
            Ok(delivered)
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_publish: true, many_workers: false, unbegun_waits: false, losses_first: true }
    }
}

enum Told {
    Nothing,
    Message(String),
    Cancel(CancelRequest),
}

impl State {
    /// Names a publication apart from every other one, also of another engine over the same store.
    fn key(&self, task_id: &TaskId, now: Timestamp) -> String {
        format!("{task_id}/{}/{}", self.run, now.as_millis())
    }

    async fn accept(&self, delivery: Delivery) -> Result<(Delivered, Option<(TaskId, Told)>), StoreError> {
        let _turn = self.turn.lock().await;
        if let Some(reason) = self.refusal.lock().unwrap().clone() {
            return Ok((Delivered::Refused { reason }, None));
        }
        let id = delivery.workflow_id;
        let task_id = TaskId::from(&id);
        let known = self.store.workflow(&id).await?;
        let key = delivery.signal.as_ref().and_then(|signal| signal.dedupe_key.clone());
        if let (Some(_), Some(key)) = (&known, &key)
            && let Some(cursor) = self.store.delivery(&id, key).await?
        {
            return Ok((Delivered::Duplicate { cursor }, None));
        }
        let cursor = match &known {
            Some(workflow) if workflow.closed => return Ok((Delivered::Closed, None)),
            Some(_) if delivery.signal.is_none() => return Ok((Delivered::Duplicate { cursor: None }, None)),
            Some(_) => self.store.task(&task_id, TaskFields::BARE).await?.map(|task| task.last_seq),
            None => None,
        };
        let put = |block| Write::PutBlock { block, task_id: task_id.clone() };
        let mut writes: Vec<Write> = delivery.blocks.into_iter().map(put).collect();
        let mut history = Vec::new();
        let mut told = Told::Nothing;
        let signal = delivery.signal;
        if let Some(signal) = &signal {
            told = match signal.name.as_str() {
                CANCEL_SIGNAL => Told::Cancel(serde_json::from_value(signal.payload.clone()).unwrap()),
                _ => {
                    let message: InboundMessage = serde_json::from_value(signal.payload.clone()).unwrap();
                    history.push(HistoryAppend::Message {
                        message_id: message.message_id.clone(),
                        block: message.block.clone(),
                    });
                    Told::Message(first_text(&writes, &message.block))
                }
            };
        }
        let record = match (known, delivery.start) {
            (Some(_), _) => None,
            (None, None) => return Ok((Delivered::NotFound, None)),
            (None, Some(start)) => {
                writes.push(Write::CreateWorkflow {
                    workflow_id: id.clone(),
                    workflow_type: start.workflow_type,
                });
                let start: StartTask = serde_json::from_value(start.input).unwrap();
                self.started.lock().unwrap().push(start.clone());
                Some(start)
            }
        };
        if let Some(dedupe_key) = key {
            writes.push(Write::RecordDelivery { workflow_id: id, dedupe_key, cursor });
        }
        self.publish(writes, &task_id, record, history).await?;
        Ok((Delivered::Accepted { cursor }, Some((task_id, told))))
    }

    async fn publish(
        &self,
        mut writes: Vec<Write>,
        task_id: &TaskId,
        start: Option<StartTask>,
        history: Vec<HistoryAppend>,
    ) -> Result<(), StoreError> {
        let now = self.clock.now();
        let created = start.is_some();
        writes.push(Write::Publish(Box::new(Publish {
            task_id: task_id.clone(),
            key: self.key(task_id, now),
            events: created.then_some(TaskEvent::TaskCreated).into_iter().collect(),
            record: start.map(|start| TaskRecord {
                usage: Default::default(),
                task_id: start.task_id,
                context_id: start.context_id,
                lifecycle: start.lifecycle,
                status: StatusChange::to(TaskState::Submitted),
                status_at: now,
                created_at: now,
                extension: start.extension,
            }),
            history,
        })));
        self.store.commit(WriteBatch::new(now, writes)).await.map(drop)
    }

    async fn react(&self, task_id: TaskId, told: Told) -> Result<(), StoreError> {
        let text = match told {
            Told::Message(text) => text,
            Told::Nothing => {
                return self.status(&task_id, waiting("")).await;
            }
            Told::Cancel(request) => {
                let status = StatusChange::to(TaskState::Canceled).with_text(Content::Inline(request.reason));
                return self.status(&task_id, status).await;
            }
        };
        self.status(&task_id, StatusChange::to(TaskState::Working)).await?;
        match text.split_whitespace().next().unwrap_or_default() {
            "hold" => {
                self.release.notified().await;
                self.status(&task_id, waiting("released")).await
            }
            "ask" => self.status(&task_id, question()).await,
            "authorize" => self.status(&task_id, StatusChange::to(TaskState::AuthRequired)).await,
            "recite" => {
                self.release.notified().await;
                self.recite(&task_id, &text).await
            }
            "tools" => {
                self.status(&task_id, tool_calls()).await?;
                self.status(&task_id, waiting("tools were used")).await
            }
            "finish" => {
                self.artifact(&task_id, "the whole answer", false, true).await?;
                let status = StatusChange::to(TaskState::Completed);
                self.status(&task_id, status.with_text(Content::from("finished"))).await
            }
            _ => {
                self.artifact(&task_id, "Hello, ", false, false).await?;
                self.artifact(&task_id, "world.", true, true).await?;
                self.status(&task_id, waiting("Hello, world.")).await
            }
        }
    }

    /// An answer in so many chunks of so many bytes, each beginning with its number; then the end.
    async fn recite(&self, task_id: &TaskId, text: &str) -> Result<(), StoreError> {
        let numbers: Vec<usize> = text.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
        let [chunks, bytes] = numbers.as_slice() else { panic!("recite how much?") };
        for n in 0..*chunks {
            let chunk = format!("{n:.<bytes$}");
            self.artifact(task_id, &chunk, n > 0, n + 1 == *chunks).await?;
        }
        self.status(task_id, StatusChange::to(TaskState::Completed)).await
    }

    /// One status, its words in history. Nothing happens after the end of a task.
    async fn status(&self, task_id: &TaskId, status: StatusChange) -> Result<(), StoreError> {
        let _turn = self.turn.lock().await;
        let Some(task) = self.store.task(task_id, TaskFields::BARE).await? else { return Ok(()) };
        if task.record.status.state.is_terminal() {
            return Ok(());
        }
        let now = self.clock.now();
        let said = status.text.is_some() || status.help.is_some();
        let mut writes = vec![Write::Publish(Box::new(Publish {
            task_id: task_id.clone(),
            key: self.key(task_id, now),
            events: vec![TaskEvent::StatusChanged(status.clone())],
            record: Some(TaskRecord { status: status.clone(), status_at: now, ..task.record }),
            history: said.then_some(HistoryAppend::Status { event: 0 }).into_iter().collect(),
        }))];
        if status.state.is_terminal() {
            writes.push(Write::CloseWorkflow { workflow_id: WorkflowId::from(task_id) });
        }
        self.store.commit(WriteBatch::new(now, writes)).await.map(drop)
    }

    async fn artifact(
        &self,
        task_id: &TaskId,
        text: &str,
        append: bool,
        last_chunk: bool,
    ) -> Result<(), StoreError> {
        let block = Block::new(Bytes::copy_from_slice(text.as_bytes()));
        let now = self.clock.now();
        let change = ArtifactChange {
            artifact_id: "answer-1".into(),
            name: Some("answer".to_owned()),
            description: None,
            parts: vec![ContentPart {
                body: ContentBody::Text(Content::Block(block.reference.clone())),
                media_type: Some("text/plain".to_owned()),
                filename: None,
            }],
            append,
            last_chunk,
        };
        let publish = Publish {
            task_id: task_id.clone(),
            key: self.key(task_id, now),
            events: vec![TaskEvent::ArtifactChanged(change)],
            record: None,
            history: Vec::new(),
        };
        let writes =
            vec![Write::PutBlock { block, task_id: task_id.clone() }, Write::Publish(Box::new(publish))];
        self.store.commit(WriteBatch::new(now, writes)).await.map(drop)
    }
}

fn waiting(text: &str) -> StatusChange {
    let mut status = StatusChange::to(TaskState::InputRequired);
    status.sub_state = Some(SubState::AwaitingNextMessage);
    status.text = (!text.is_empty()).then(|| Content::from(text));
    status
}

fn question() -> StatusChange {
    let mut status = StatusChange::to(TaskState::InputRequired);
    status.help = Some(HelpRequest {
        participant_id: ParticipantId::from("ada"),
        question: Content::from("Which colour?"),
        options: vec!["red".to_owned(), "blue".to_owned()],
    });
    status
}

fn tool_calls() -> StatusChange {
    let call = |id: &str, state, duration_ms| ToolCallSummary {
        call_id: CallId::from(id),
        name: "shop/orders.look_up".to_owned(),
        summary: "order 7".to_owned(),
        state,
        duration_ms,
    };
    let mut status = StatusChange::to(TaskState::Working);
    status.tool_calls =
        vec![call("c1", ToolCallState::Succeeded, Some(12)), call("c2", ToolCallState::Running, None)];
    status
}

fn first_text(writes: &[Write], block: &BlockRef) -> String {
    let stored = writes.iter().find_map(|write| {
        let Write::PutBlock { block: stored, .. } = write else { return None };
        (stored.reference == *block).then(|| serde_json::from_slice::<Message>(&stored.bytes).unwrap())
    });
    stored.expect("the message comes with its block").text()
}
