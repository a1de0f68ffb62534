//! What is measured, one file each.

mod first_event;
mod foreign_tasks;
mod list_tasks;
mod memory;
mod one_tool;
mod one_turn;
mod start;
mod tasks_per_second;
mod temporal;
mod wake_up;

use futures::future::LocalBoxFuture;

use self::temporal::Kept;
use super::{figure::Figure, lab::Lab};
use crate::failure::Failure;

type Measured<'a> = LocalBoxFuture<'a, Result<Vec<Figure>, Failure>>;

/// One thing to measure.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) measure: for<'a> fn(&'a Lab) -> Measured<'a>,
}

/// Everything there is to measure, in the order of the table.
pub(super) const ROWS: [Row; 11] = [
    Row { name: "one-turn task", measure: |lab| Box::pin(one_turn::measure(lab)) },
    Row { name: "two-turn task with a tool", measure: |lab| Box::pin(one_tool::measure(lab)) },
    Row { name: "tasks per second", measure: |lab| Box::pin(tasks_per_second::measure(lab)) },
    Row { name: "first event of a stream", measure: |lab| Box::pin(first_event::measure(lab)) },
    Row { name: "wake-up of subscribers", measure: |lab| Box::pin(wake_up::measure(lab)) },
    Row { name: "resident memory", measure: |lab| Box::pin(memory::measure(lab)) },
    Row { name: "start to serving", measure: |lab| Box::pin(start::measure(lab)) },
    Row { name: "page of ListTasks", measure: |lab| Box::pin(list_tasks::measure(lab)) },
    Row { name: "Temporal in memory", measure: |lab| Box::pin(temporal::measure(lab, Kept::InMemory)) },
    Row { name: "Temporal on disk", measure: |lab| Box::pin(temporal::measure(lab, Kept::OnDisk)) },
    Row { name: "foreign tasks", measure: |lab| Box::pin(foreign_tasks::measure(lab)) },
];
