//! The entry point of the task workflow: one event in, commands out.

use harness_model::{
    ActivityId, CANCEL_SIGNAL, CancelRequest, InboundMessage, MESSAGE_SIGNAL, TimerId, Timestamp, limits,
};
use harness_ports::{
    ActivityFailure, Admission, Command, EventKind, FailureKind, HistoryEvent, IllegalEvent, Signal, Workflow,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::state::{Phase, SNAPSHOT_FORMAT, TaskData};
use super::{
    TaskInput, activity_failed, cancel, intake_done, message_accepted, model_answered, started, tool_ended,
    turn,
};

/// A task workflow; `None` before its first event.
#[derive(Debug)]
pub(super) struct TaskWorkflow {
    pub(super) data: Option<TaskData>,
}

/// The state of a task while one event is applied, and what the event asks for.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) data: &'a mut TaskData,
    /// Time of the event.
    pub(super) now: Timestamp,
    pub(super) commands: Vec<Command>,
}

impl TaskWorkflow {
    pub(super) fn new() -> Self {
        Self { data: None }
    }

    pub(super) fn restore(snapshot: &[u8]) -> Result<Self, String> {
        let data: TaskData = serde_json::from_slice(snapshot).map_err(|e| e.to_string())?;
        if data.format != SNAPSHOT_FORMAT {
            return Err(format!("snapshot format {} is not {SNAPSHOT_FORMAT}", data.format));
        }
        Ok(Self { data: Some(data) })
    }

    fn illegal(&self, event: &EventKind) -> IllegalEvent {
        let state = self.data.as_ref().map_or("new", |data| data.phase.name());
        IllegalEvent { event: event_name(event), state: state.to_owned() }
    }
}

impl Workflow for TaskWorkflow {
    fn apply(&mut self, event: &HistoryEvent) -> Result<Vec<Command>, IllegalEvent> {
        if let EventKind::Started { input } = &event.kind {
            let input: Option<TaskInput> = read(input).filter(|_| self.data.is_none());
            let Some(input) = input else { return Err(self.illegal(&event.kind)) };
            let (data, commands) = started::apply(input, event.at);
            self.data = Some(data);
            return Ok(commands);
        }
        let illegal = self.illegal(&event.kind);
        let Some(data) = self.data.as_mut() else { return Err(illegal) };
        if data.is_ended() {
            return Ok(Vec::new());
        }
        let mut step = Step { data, now: event.at, commands: Vec::new() };
        step.dispatch(&event.kind).map(|()| step.commands).ok_or(illegal)
    }

    fn admits(&self, signal: &Signal) -> Admission {
        let Some(data) = &self.data else {
            return Admission::Refuse("the task has not started".to_owned());
        };
        if data.is_ended() {
            return Admission::Closed;
        }
        let readable = match signal.name.as_str() {
            MESSAGE_SIGNAL => read::<InboundMessage>(&signal.payload).is_some(),
            CANCEL_SIGNAL => read::<CancelRequest>(&signal.payload).is_some(),
            _ => false,
        };
        if !readable {
            return Admission::Refuse(format!("the task does not know the signal {:?}", signal.name));
        }
        if signal.name == MESSAGE_SIGNAL && data.mailbox.len() >= limits::INBOX_MESSAGES_MAX {
            return Admission::Refuse("too many messages wait for this task; send again later".to_owned());
        }
        Admission::Accept
    }

    fn snapshot(&self) -> Vec<u8> {
        // A value of plain structs, strings and numbers always serializes.
        self.data.as_ref().and_then(|data| serde_json::to_vec(data).ok()).unwrap_or_default()
    }
}

impl Step<'_> {
    /// Takes one event. `None` when no build of this workflow can have recorded it.
    fn dispatch(&mut self, event: &EventKind) -> Option<()> {
        match event {
            EventKind::Started { .. } => None,
            EventKind::Signaled(signal) => self.signal(signal),
            EventKind::ActivityCompleted { activity_id, result } => self.completed(activity_id, result),
            EventKind::ActivityFailed { activity_id, failure } => {
                self.failed(activity_id, failure);
                Some(())
            }
            EventKind::TimerFired { timer_id } => {
                self.timer(timer_id);
                Some(())
            }
        }
    }

    fn signal(&mut self, signal: &Signal) -> Option<()> {
        match signal.name.as_str() {
            MESSAGE_SIGNAL => message_accepted::apply(self, read(&signal.payload)?),
            CANCEL_SIGNAL => cancel::apply(self, &read::<CancelRequest>(&signal.payload)?),
            _ => return None,
        }
        Some(())
    }

    /// An activity that is no longer waited for was canceled: its result changes nothing.
    fn completed(&mut self, id: &ActivityId, result: &Value) -> Option<()> {
        match &self.data.phase {
            Phase::Intake { attempt, .. } if attempt.waits_for(id) => intake_done::apply(self, read(result)?),
            Phase::Modeling { attempt } if attempt.waits_for(id) => {
                model_answered::apply(self, read(result)?)
            }
            Phase::Tools(round) => {
                if let Some(index) = round.calls.iter().position(|slot| slot.waits_for_activity(id)) {
                    tool_ended::succeeded(self, index, read(result)?);
                }
            }
            Phase::Waiting | Phase::Intake { .. } | Phase::Modeling { .. } | Phase::Ended => {}
        }
        Some(())
    }

    fn failed(&mut self, id: &ActivityId, failure: &ActivityFailure) {
        match &self.data.phase {
            Phase::Intake { attempt, .. } | Phase::Modeling { attempt } if attempt.waits_for(id) => {
                activity_failed::apply(self, failure);
            }
            Phase::Tools(round) => {
                if let Some(index) = round.calls.iter().position(|slot| slot.waits_for_activity(id)) {
                    tool_ended::failed(self, index, failure);
                }
            }
            Phase::Waiting | Phase::Intake { .. } | Phase::Modeling { .. } | Phase::Ended => {}
        }
    }

    fn timer(&mut self, id: &TimerId) {
        match &self.data.phase {
            Phase::Intake { attempt, .. } if attempt.backs_off(id) => turn::retry_intake(self),
            Phase::Modeling { attempt } if attempt.backs_off(id) => turn::retry_model(self),
            Phase::Tools(round) => {
                if let Some(index) = round.calls.iter().position(|slot| slot.waits_for_timer(id)) {
                    tool_ended::retry(self, index);
                }
            }
            Phase::Waiting | Phase::Intake { .. } | Phase::Modeling { .. } | Phase::Ended => {}
        }
    }
}

/// Reads recorded data; `None` when it is not of the expected shape.
fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

fn event_name(event: &EventKind) -> String {
    match event {
        EventKind::Started { .. } => "started".to_owned(),
        EventKind::Signaled(signal) => format!("signaled {}", signal.name),
        EventKind::ActivityCompleted { activity_id, .. } => format!("activity_completed {activity_id}"),
        EventKind::ActivityFailed { activity_id, failure } => {
            let canceled = failure.kind == FailureKind::Canceled;
            format!("activity_{} {activity_id}", if canceled { "canceled" } else { "failed" })
        }
        EventKind::TimerFired { timer_id } => format!("timer_fired {timer_id}"),
    }
}
