//! The reads. Each is one statement, so that it sees one state of the database.

mod census;
mod listing;
mod small;
mod task;
mod workflow;

pub(super) use census::{census, oldest_tasks};
pub(super) use listing::list_tasks;
pub(super) use small::{
    block, delivery, log_page, next_timers, records, records_page, timers, workflows_with_activities,
};
pub(super) use task::task;
pub(super) use workflow::workflow;

use harness_ports::StoreError;
use serde::de::DeserializeOwned;
use sqlx::{Decode, Postgres, Row, Type, postgres::PgRow};

use super::error;
use crate::error::corrupt;

/// A column of a row.
fn column<'r, T>(row: &'r PgRow, name: &str) -> Result<T, StoreError>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(name).map_err(|e| error::server("reading", e))
}

/// Decodes JSON; `what` names the row for whoever has to look at it.
fn decode<T: DeserializeOwned>(text: &str, what: impl FnOnce() -> String) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|e| corrupt(format!("{}: {e}", what())))
}

/// A number of rows as SQL takes it.
fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
