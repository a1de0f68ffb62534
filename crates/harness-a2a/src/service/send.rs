//! SendMessage and SendStreamingMessage.

use std::sync::Arc;

use a2a::{SendMessageRequest, SendMessageResponse};
use futures::StreamExt;
use harness_model::{
    ContextId, InboundMessage, MESSAGE_SIGNAL, ParticipantId, TASK_WORKFLOW, TaskEvent, TaskId, TaskSnapshot,
    WorkflowId, names, parse_envelope,
};
use harness_ports::{Delivered, Delivery, Signal, StartWorkflow, TaskFields};

use super::{
    A2aService, Call, Events, Inner,
    feed::Feed,
    inbound::{Inbound, check_id},
    new_task::{derived_ids, says_something, start_task},
    read::{HISTORY_DEFAULT, history_fields},
};
use crate::{A2aError, access, render::Artifacts};

/// A message that is durable, or was already.
pub(super) struct Receipt {
    pub(super) task_id: TaskId,
    /// Log entries after this one are consequences of the message; `None`: all of them.
    pub(super) cursor: Option<u64>,
    /// The task as it was before the message, when it existed.
    pub(super) before: Option<Box<TaskSnapshot>>,
}

impl A2aService {
    /// Delivers a message and answers with the task: once the turn has ended, or at once if the request says so.
    pub(crate) async fn send(
        &self,
        call: &Call,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse, A2aError> {
        let configuration = request.configuration.as_ref();
        let at_once = configuration.and_then(|c| c.return_immediately).unwrap_or(false);
        let fields = send_fields(&request)?;
        let receipt = self.inner.deliver_message(call, request, TaskFields::BARE).await?;
        if !at_once {
            self.inner.turn_end(&receipt, call).await?;
        }
        let snapshot = self.inner.existing(&receipt.task_id, fields, call).await?;
        let task = self.inner.renderer.task(&snapshot, Artifacts::WhenAny).await?;
        Ok(SendMessageResponse::Task(task))
    }

    /// Delivers a message and streams what comes of it, up to the end of the turn.
    pub(crate) async fn send_streaming(
        &self,
        call: &Call,
        request: SendMessageRequest,
    ) -> Result<Events, A2aError> {
        let fields = send_fields(&request)?;
        let receipt = self.inner.deliver_message(call, request, fields).await?;
        Ok(Feed::of_turn(&self.inner, receipt, call.stop.clone()).into_events())
    }
}

fn send_fields(request: &SendMessageRequest) -> Result<TaskFields, A2aError> {
    let asked = request.configuration.as_ref().and_then(|c| c.history_length);
    Ok(TaskFields { history: history_fields(asked, HISTORY_DEFAULT)?, artifacts: true })
}

impl Inner {
    /// Delivers a message; `fields` says how much of a task that exists the receipt shows.
    async fn deliver_message(
        self: &Arc<Self>,
        call: &Call,
        request: SendMessageRequest,
        fields: TaskFields,
    ) -> Result<Receipt, A2aError> {
        let push = self.wanted_push(request.configuration.and_then(|c| c.task_push_notification_config))?;
        let inbound = Inbound::accept(request.message, &self.redactor)?;
        let message_id = inbound.message.message_id.clone();
        let (receipt, sender) = match inbound.message.task_id.clone() {
            Some(task_id) => self.deliver_to(call, task_id, inbound, fields).await?,
            None => self.deliver_first(call, inbound).await?,
        };
        if let Some(push) = push {
            let Receipt { task_id, cursor, .. } = &receipt;
            self.keep_wanted_push(push, task_id, sender, message_id, *cursor).await?;
        }
        Ok(receipt)
    }

    /// A message without a task id creates the task that its sender and its id name.
    async fn deliver_first(
        &self,
        call: &Call,
        mut inbound: Inbound,
    ) -> Result<(Receipt, ParticipantId), A2aError> {
        let sender = access::sender(&self.config, &inbound.message, call)?;
        let (task_id, own_context) = derived_ids(self.store.install_id(), &sender, &inbound.message);
        let context_id = inbound.message.context_id.clone().unwrap_or(own_context);
        let message = &mut inbound.message;
        let start = start_task(&self.config, task_id.clone(), context_id.clone(), &sender, message)?;
        let start = StartWorkflow {
            workflow_type: TASK_WORKFLOW.to_owned(),
            input: serde_json::to_value(&start).map_err(A2aError::internal)?,
        };
        let delivery = if says_something(&inbound.message) {
            traced(message_delivery(inbound, &task_id, context_id, sender.clone(), Some(start))?, call)
        } else {
            let workflow_id = WorkflowId::from(&task_id);
            Delivery { workflow_id, start: Some(start), signal: None, blocks: Vec::new() }
        };
        match self.deliver(delivery).await {
            // A repeated first message gets its answer even when the task has ended since.
            Ok(_) | Err(Undelivered::KnownAlready(_)) => {
                Ok((Receipt { task_id, cursor: None, before: None }, sender))
            }
            Err(Undelivered::Error(error)) => Err(error),
        }
    }

    /// A message to a task that exists, if its sender may see it and it has not ended.
    async fn deliver_to(
        &self,
        call: &Call,
        task_id: TaskId,
        inbound: Inbound,
        fields: TaskFields,
    ) -> Result<(Receipt, ParticipantId), A2aError> {
        let reader = access::reader(&self.config, call)?;
        let snapshot = self.seen_by(reader.as_ref(), &task_id, fields).await?;
        let context_id = snapshot.record.context_id.clone();
        if inbound.message.context_id.as_ref().is_some_and(|asked| *asked != context_id) {
            let text = "the task belongs to another context";
            return Err(A2aError::invalid_field("message.contextId", text));
        }
        let sender = access::sender(&self.config, &inbound.message, call)?;
        parse_envelope(&inbound.message).map_err(|e| A2aError::invalid_params(e.to_string()))?;
        let delivery = traced(message_delivery(inbound, &task_id, context_id, sender.clone(), None)?, call);
        match self.deliver(delivery).await {
            Ok(cursor) | Err(Undelivered::KnownAlready(cursor)) => {
                Ok((Receipt { task_id, cursor, before: Some(Box::new(snapshot)) }, sender))
            }
            Err(Undelivered::Error(error)) => Err(error),
        }
    }

    /// Hands a delivery to the engine; the cursor of the receipt.
    async fn deliver(&self, delivery: Delivery) -> Result<Option<u64>, Undelivered> {
        let workflow_id = delivery.workflow_id.clone();
        let dedupe_key = delivery.signal.as_ref().and_then(|signal| signal.dedupe_key.clone());
        let starts = delivery.start.is_some();
        match self.engine.deliver(delivery).await.map_err(A2aError::from)? {
            Delivered::Accepted { cursor } | Delivered::Duplicate { cursor } => Ok(cursor),
            Delivered::NotFound => Err(A2aError::task_not_found().into()),
            Delivered::Refused { reason } => Err(A2aError::unsupported(reason).into()),
            Delivered::Closed => match dedupe_key {
                None if starts => Err(Undelivered::KnownAlready(None)),
                None => Err(task_has_ended().into()),
                Some(key) => match self.store.delivery(&workflow_id, &key).await.map_err(A2aError::from)? {
                    Some(cursor) => Err(Undelivered::KnownAlready(cursor)),
                    None => Err(task_has_ended().into()),
                },
            },
        }
    }

    /// Waits for the end of the turn that a message began. The caller bounds the wait by keeping the request open.
    async fn turn_end(&self, receipt: &Receipt, call: &Call) -> Result<(), A2aError> {
        let mut log = self.store.follow(&receipt.task_id, receipt.cursor);
        loop {
            let next = tokio::select! {
                biased;
                () = call.stop.cancelled() => return Err(A2aError::stopping()),
                next = log.next() => next,
            };
            let entry = next.ok_or_else(A2aError::task_not_found)??;
            match &entry.event {
                TaskEvent::StatusChanged(status) if status.state.ends_turn() => return Ok(()),
                TaskEvent::StatusChanged(_) | TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => {}
            }
        }
    }

    /// A task that was just delivered to. An engine may publish a new task a little after it accepted the delivery.
    pub(super) async fn existing(
        &self,
        task_id: &TaskId,
        fields: TaskFields,
        call: &Call,
    ) -> Result<TaskSnapshot, A2aError> {
        if let Some(snapshot) = self.store.task(task_id, fields).await? {
            return Ok(snapshot);
        }
        let mut log = self.store.follow(task_id, None);
        tokio::select! {
            biased;
            () = call.stop.cancelled() => return Err(A2aError::stopping()),
            first = log.next() => drop(first.transpose()?),
        }
        self.store
            .task(task_id, fields)
            .await?
            .ok_or_else(|| A2aError::internal("a logged task has no record"))
    }
}

/// Why a delivery has no fresh receipt.
enum Undelivered {
    /// The workflow took this very message earlier, and has ended since. The cursor is that of the first time.
    KnownAlready(Option<u64>),
    Error(A2aError),
}

impl From<A2aError> for Undelivered {
    fn from(error: A2aError) -> Self {
        Self::Error(error)
    }
}

fn task_has_ended() -> A2aError {
    A2aError::unsupported("the task has ended and takes no further messages")
}

/// The delivery with the caller's place in a trace.
fn traced(mut delivery: Delivery, call: &Call) -> Delivery {
    if let Some(signal) = &mut delivery.signal {
        signal.trace.clone_from(&call.trace);
    }
    delivery
}

fn message_delivery(
    mut inbound: Inbound,
    task_id: &TaskId,
    context_id: ContextId,
    sender: ParticipantId,
    start: Option<StartWorkflow>,
) -> Result<Delivery, A2aError> {
    check_id("message.contextId", context_id.as_str())?;
    let message = &mut inbound.message;
    message.task_id = Some(task_id.clone());
    message.context_id = Some(context_id);
    message.metadata.insert(names::PARTICIPANT_KEY.to_owned(), sender.as_str().into());
    let (message_id, interrupt) = (message.message_id.clone(), message.asks_interrupt());
    let (block, blocks) = inbound.into_blocks()?;
    let told = InboundMessage { message_id, block: block.reference, sender, interrupt };
    let signal = Signal {
        name: MESSAGE_SIGNAL.to_owned(),
        payload: serde_json::to_value(&told).map_err(A2aError::internal)?,
        dedupe_key: Some(told.dedupe_key()),
        trace: None,
    };
    Ok(Delivery { workflow_id: WorkflowId::from(task_id), start, signal: Some(signal), blocks })
}
