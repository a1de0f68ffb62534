//! What a task remembers between events. Serialized as the workflow's snapshot.

use std::collections::VecDeque;

use harness_model::{
    ActivityId, AgentId, BlockRef, CallId, Content, ContextId, HelpRequest, InboundMessage, ItemBody,
    ItemRef, Lifecycle, MessageId, StatusChange, TaskExtension, TaskId, TaskMode, TaskState, TaskUsage,
    TimerId, Timestamp, ToolCallState,
};
use serde::{Deserialize, Serialize};

use crate::{ItemDraft, LoadedSkill, Measured, PlannedCall, TaskSettings};

/// Version of the snapshot's shape. A change that old snapshots cannot be read with gets a new number and a conversion.
pub(super) const SNAPSHOT_FORMAT: u32 = 1;

/// A task, as its workflow sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskData {
    pub(super) format: u32,
    pub(super) task_id: TaskId,
    pub(super) context_id: ContextId,
    pub(super) agent_id: AgentId,
    pub(super) lifecycle: Lifecycle,
    pub(super) mode: TaskMode,
    pub(super) model: Option<String>,
    pub(super) reasoning_effort: Option<String>,
    pub(super) depth: u32,
    pub(super) settings: TaskSettings,
    pub(super) created_at: Timestamp,
    pub(super) extension: TaskExtension,
    pub(super) status: StatusChange,
    pub(super) status_at: Timestamp,
    pub(super) phase: Phase,
    /// Messages that intake has not finished with, oldest first.
    pub(super) mailbox: VecDeque<InboundMessage>,
    /// The question that waits for its answer.
    pub(super) pending_help: Option<HelpRequest>,
    /// A participant said something for which the model was not asked yet.
    #[serde(default)]
    pub(super) unread: bool,
    /// Words for senders of refused messages and of commands, until the messages that wait are read as well: a status
    /// that ends a turn is the answer to all of them.
    #[serde(default)]
    pub(super) reply: Option<String>,
    /// Nobody was shown the question yet, so no message can be its answer.
    #[serde(default)]
    pub(super) help_unseen: bool,
    /// The end of a turn that waits until the messages from during the turn are read.
    #[serde(default)]
    pub(super) held: Option<HeldEnd>,
    /// The conversation the model was shown last.
    pub(super) manifest: Option<BlockRef>,
    /// Items since then.
    pub(super) fresh: Vec<ItemRef>,
    pub(super) next_item: u64,
    pub(super) skills: Vec<LoadedSkill>,
    pub(super) latest_message: Option<MessageId>,
    /// The newest words of the agent; what `/complete` ends with.
    pub(super) last_answer: Option<Content>,
    /// Turns so far.
    pub(super) turn: u32,
    /// Turns since the task last waited.
    pub(super) run_turns: u32,
    pub(super) measured: Option<Measured>,
    #[serde(default)]
    pub(super) usage: TaskUsage,
    /// Whether a tool that may change something was ever started.
    pub(super) acted: bool,
    /// Numbers activities, timers and publications.
    pub(super) next_operation: u64,
}

/// How a turn ends, unless a message that came meanwhile has something for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HeldEnd {
    /// The status that ends the turn.
    pub(super) status: StatusChange,
    /// Whether its words are in the history already.
    pub(super) said: bool,
}

/// Where a task stands. At any time at most one kind of work is in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub(super) enum Phase {
    /// Nothing is in flight; the next event comes from outside.
    Waiting,
    /// Messages are being read.
    Intake {
        /// How many of the mailbox's first messages.
        messages: usize,
        #[serde(flatten)]
        attempt: Attempt,
    },
    /// The model is being asked.
    Modeling {
        #[serde(flatten)]
        attempt: Attempt,
    },
    /// Tool calls of one answer are being carried out.
    Tools(ToolRound),
    /// The task has ended.
    Ended,
}

impl Phase {
    /// Name for logs, errors and the table of states.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Intake { .. } => "intake",
            Self::Modeling { .. } => "modeling",
            Self::Tools(_) => "tools",
            Self::Ended => "ended",
        }
    }
}

/// One operation that is tried until it succeeds, fails for good, or runs out of tries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Number of the current try, from 1.
    pub(super) number: u32,
    /// Its activity, or the timer before the next try.
    pub(super) pending: Pending,
}

/// What an attempt waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pending {
    /// The activity runs.
    Activity(ActivityId),
    /// The next try has to wait.
    Backoff(TimerId),
}

/// The calls of one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolRound {
    /// The calls, in the order of the model.
    pub(super) calls: Vec<CallSlot>,
    /// All at once, or one after another.
    pub(super) parallel: bool,
    /// A question that was asked in this round; the last one counts.
    pub(super) asked: Option<HelpRequest>,
    /// The task is to be refused after this round.
    pub(super) rejected: Option<Content>,
}

/// One call of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CallSlot {
    pub(super) call: PlannedCall,
    pub(super) progress: CallProgress,
    /// When its first try began.
    pub(super) started_at: Option<Timestamp>,
    /// How long it took, once it has ended. Unit: milliseconds.
    pub(super) duration_ms: Option<u64>,
    /// Whether a try ended without anybody knowing how; no later failure makes that known.
    #[serde(default)]
    pub(super) uncertain: bool,
}

/// Where one call stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallProgress {
    /// Not begun.
    Queued,
    /// In flight.
    Running(Attempt),
    /// Ended.
    Done {
        /// What the model will read.
        item: ItemDraft,
        /// What people see.
        state: ToolCallState,
    },
}

impl CallSlot {
    pub(super) fn is_done(&self) -> bool {
        match self.progress {
            CallProgress::Done { .. } => true,
            CallProgress::Queued | CallProgress::Running(_) => false,
        }
    }

    /// Whether the call would change something if it went through, and a try of it is under way or ended unknown.
    pub(super) fn may_have_acted(&self) -> bool {
        let changes = matches!(self.call.action, crate::CallAction::Tool { read_only: false, .. });
        let under_way = matches!(&self.progress, CallProgress::Running(attempt) if matches!(attempt.pending, Pending::Activity(_)));
        changes && (under_way || self.uncertain)
    }

    pub(super) fn waits_for_activity(&self, id: &ActivityId) -> bool {
        matches!(&self.progress, CallProgress::Running(Attempt { pending: Pending::Activity(a), .. }) if a == id)
    }

    pub(super) fn waits_for_timer(&self, id: &TimerId) -> bool {
        matches!(&self.progress, CallProgress::Running(Attempt { pending: Pending::Backoff(t), .. }) if t == id)
    }
}

impl TaskData {
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// A fresh number for an activity, a timer or a publication.
    pub(super) fn operation(&mut self) -> u64 {
        self.next_operation += 1;
        self.next_operation
    }

    /// Adds an item to the conversation.
    pub(super) fn remember(&mut self, item: ItemDraft) {
        let id = self.next_item;
        self.next_item += 1;
        self.fresh.push(ItemRef { id, body: item.body, chars: item.chars });
    }

    /// Whether the task was never worked on.
    pub(super) fn is_untouched(&self) -> bool {
        self.status.state == TaskState::Submitted
    }
}

/// Something said to the model in the harness's own words.
pub(super) fn own_words(text: String) -> ItemDraft {
    let parts = vec![harness_model::ItemPart::Text(text)];
    let item = harness_model::StoredItem::User { parts, source: None };
    ItemDraft { chars: item.chars(), body: ItemBody::Inline(Box::new(item)) }
}

/// A tool result in the harness's own words.
pub(super) fn own_result(call_id: &CallId, name: &str, is_error: bool, text: String) -> ItemDraft {
    let item = harness_model::StoredItem::ToolResult {
        call_id: call_id.clone(),
        name: name.to_owned(),
        is_error,
        parts: vec![harness_model::ItemPart::Text(text)],
    };
    let chars = item.chars();
    ItemDraft { body: ItemBody::Inline(Box::new(item)), chars }
}
