//! What the commands of an event add to a batch.

use harness_model::{ActivityId, TimerId};
use harness_ports::{ActivityTask, Command, Publish, Signal, Write};

use super::{Announced, By, Instance, Life};
use crate::{batch::Batch, outbox};

impl Instance {
    /// Collects the commands of the event at `seq`.
    pub(super) fn collect(&mut self, seq: u64, commands: Vec<Command>, batch: &mut Batch) {
        let mut closes = false;
        for (index, command) in commands.into_iter().enumerate() {
            match command {
                Command::ScheduleActivity(task) => self.announce(task, batch),
                Command::CancelActivity(activity_id) => self.cancel_activity(&activity_id, batch),
                Command::StartTimer { timer_id, after } => {
                    self.start_timer(timer_id, batch.at.plus(after), batch)
                }
                Command::CancelTimer(timer_id) => self.remove_timer(timer_id, batch),
                Command::SignalWorkflow { workflow_id, start, signal } => {
                    let origin = outbox::Origin { workflow_id: &self.workflow_id, seq, index };
                    let signal = Signal { trace: signal.trace.or_else(|| self.trace.clone()), ..signal };
                    let task = outbox::task(&origin, workflow_id, start, signal);
                    self.announce(task, batch);
                }
                Command::Publish(publish) => self.publish(seq, index, publish, batch),
                Command::Checkpoint => batch.checkpoint = true,
                Command::Close => closes = true,
            }
        }
        if closes {
            self.close(batch);
        }
    }

    fn announce(&mut self, mut task: ActivityTask, batch: &mut Batch) {
        task.trace.clone_from(&self.trace);
        self.announced.insert(task.activity_id.clone(), Announced::of(&task));
        let workflow_id = self.workflow_id.clone();
        batch.writes.push(Write::AnnounceActivity { workflow_id, task: task.clone() });
        batch.start.push(task);
    }

    fn cancel_activity(&mut self, activity_id: &ActivityId, batch: &mut Batch) {
        if self.announced.get(activity_id).is_some_and(|activity| activity.by == By::Workflow) {
            batch.start.retain(|task| task.activity_id != *activity_id);
            self.forget_activity(activity_id, batch);
        }
    }

    fn start_timer(&mut self, timer_id: TimerId, due_at: harness_model::Timestamp, batch: &mut Batch) {
        batch.first_due = Some(batch.first_due.map_or(due_at, |first| first.min(due_at)));
        batch.touched_timers.insert(timer_id.clone());
        batch.writes.push(Write::StartTimer { workflow_id: self.workflow_id.clone(), timer_id, due_at });
    }

    pub(super) fn remove_timer(&mut self, timer_id: TimerId, batch: &mut Batch) {
        batch.touched_timers.insert(timer_id.clone());
        batch.writes.push(Write::RemoveTimer { workflow_id: self.workflow_id.clone(), timer_id });
    }

    fn publish(&mut self, seq: u64, index: usize, mut publish: Box<Publish>, batch: &mut Batch) {
        if publish.key.is_empty() {
            publish.key = format!("wf:{}:{seq}:{index}", self.workflow_id);
        }
        batch.publishes |= publish.task_id == self.task_id && !publish.events.is_empty();
        batch.writes.push(Write::Publish(publish));
    }

    /// Ends the workflow. Its activities end with it; signals that are on their way to others still arrive, and timers
    /// are cleared away when they are due.
    fn close(&mut self, batch: &mut Batch) {
        let own = self.announced.iter().filter(|(_, activity)| activity.by == By::Workflow);
        let own: Vec<ActivityId> = own.map(|(activity_id, _)| activity_id.clone()).collect();
        for activity_id in own {
            self.cancel_activity(&activity_id, batch);
        }
        self.life = Life::Closed;
        batch.writes.push(Write::CloseWorkflow { workflow_id: self.workflow_id.clone() });
    }
}
