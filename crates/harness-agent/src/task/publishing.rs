//! What subscribers and readers are told: every change of status goes through here.

use harness_model::{
    ArtifactChange, InboundMessage, StatusChange, TaskEvent, TaskRecord, TaskState, ToolCallState,
    ToolCallSummary,
};
use harness_ports::{Command, HistoryAppend, Publish};

use super::{
    apply::Step,
    state::{CallProgress, Phase, TaskData},
};

/// Additions to the log and the history of a task.
#[derive(Debug, Default)]
pub(super) struct Publication {
    pub(super) events: Vec<TaskEvent>,
    pub(super) history: Vec<HistoryAppend>,
}

impl Publication {
    pub(super) fn event(event: TaskEvent) -> Self {
        Self { events: vec![event], history: Vec::new() }
    }

    pub(super) fn artifact(change: ArtifactChange) -> Self {
        Self::event(TaskEvent::ArtifactChanged(change))
    }

    /// Messages that were accepted.
    pub(super) fn messages<'a>(messages: impl Iterator<Item = &'a InboundMessage>) -> Self {
        let history = messages
            .map(|m| HistoryAppend::Message { message_id: m.message_id.clone(), block: m.block.clone() })
            .collect();
        Self { events: Vec::new(), history }
    }
}

impl Step<'_> {
    /// Publishes together with the record as it is now.
    pub(super) fn publish(&mut self, publication: Publication) {
        self.commands.push(Command::Publish(Box::new(Publish {
            task_id: self.data.task_id.clone(),
            key: String::new(),
            events: publication.events,
            record: Some(record(self.data)),
            history: publication.history,
        })));
    }

    /// Sets and publishes a status that ends a turn. Its words become part of the history unless they are `said` already.
    pub(super) fn end_of_turn(&mut self, status: StatusChange, said: bool) {
        let spoken = !said && (status.text.is_some() || status.help.is_some());
        self.say(status, spoken);
    }

    /// Sets and publishes a status; `spoken` words become part of the history whatever the state.
    pub(super) fn say(&mut self, status: StatusChange, spoken: bool) {
        self.data.status = status.clone();
        self.data.status_at = self.now;
        let mut publication = Publication::event(TaskEvent::StatusChanged(status));
        if spoken {
            publication.history.push(HistoryAppend::Status { event: 0 });
        }
        self.publish(publication);
    }

    /// WORKING, with the calls of the running round.
    pub(super) fn working(&mut self) {
        let mut status = StatusChange::to(TaskState::Working);
        status.tool_calls = summaries(self.data);
        self.say(status, false);
    }

    /// Publishes the end of the task and asks for nothing more; `said` words are in the history already.
    pub(super) fn end(&mut self, status: StatusChange, said: bool) {
        self.data.phase = Phase::Ended;
        self.data.pending_help = None;
        self.data.held = None;
        self.data.mailbox.clear();
        self.end_of_turn(status, said);
        self.commands.push(Command::Checkpoint);
        self.commands.push(Command::Close);
    }
}

fn record(data: &TaskData) -> TaskRecord {
    TaskRecord {
        task_id: data.task_id.clone(),
        context_id: data.context_id.clone(),
        lifecycle: data.lifecycle,
        status: data.status.clone(),
        status_at: data.status_at,
        created_at: data.created_at,
        extension: data.extension.clone(),
        usage: data.usage,
    }
}

/// The calls of the running round as people may see them.
pub(super) fn summaries(data: &TaskData) -> Vec<ToolCallSummary> {
    let Phase::Tools(round) = &data.phase else { return Vec::new() };
    let begun = round.calls.iter().filter(|slot| !matches!(slot.progress, CallProgress::Queued));
    begun
        .map(|slot| ToolCallSummary {
            call_id: slot.call.call_id.clone(),
            name: slot.call.name.clone(),
            summary: slot.call.summary.clone(),
            state: match &slot.progress {
                CallProgress::Queued | CallProgress::Running(_) => ToolCallState::Running,
                CallProgress::Done { state, .. } => *state,
            },
            duration_ms: slot.duration_ms,
        })
        .collect()
}
