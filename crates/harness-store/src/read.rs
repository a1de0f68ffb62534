//! The reads, each a plain function over a connection.

mod census;
mod listing;
mod log;
mod small;
mod task;
mod workflow;

pub(crate) use census::{census, oldest_tasks};
pub(crate) use listing::list_tasks;
pub(crate) use log::log_page;
pub(crate) use small::{
    FoundBlock, block, block_of_any_size, delivery, next_timers, records, records_page, timers,
};
pub(crate) use task::{small_task, task};
pub(crate) use workflow::{workflow, workflow_exists, workflows_with_activities};

use rusqlite::Row;
use serde::de::DeserializeOwned;

use crate::readers::ReadError;

/// Decodes a JSON column; `what` names the row for whoever has to look at it.
fn decode<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
    what: impl FnOnce() -> String,
) -> Result<T, ReadError> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    serde_json::from_str(text).map_err(|e| ReadError::Corrupt(format!("{}: {e}", what())))
}
