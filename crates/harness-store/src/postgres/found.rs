//! What the conditions of a batch need to know, read under the locks that keep it true until the batch is committed.
//!
//! Locks are taken in one order by everybody: workflows, then tasks, then records, each by id. So batches wait for one
//! another and never in a circle; what is left of circles the server breaks, and the batch is tried again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sqlx::{PgConnection, Row};

use super::{connect::step, plan::Refused};
use crate::encode::{EncodedBatch, Op};

/// Kind and id of a record.
pub(super) type RecordKey = (String, String);

/// Everything that was read.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Number of the transaction.
    pub(super) xid: String,
    pub(super) workflows: HashMap<String, FoundWorkflow>,
    /// Known keys of signals, each with the row of its workflow.
    pub(super) deliveries: HashSet<(i64, String)>,
    pub(super) tasks: HashMap<String, TaskRow>,
    /// Known keys of publications, each with the row of its task.
    pub(super) keys: HashSet<(i64, String)>,
    /// Task and value of each record that is to be replaced.
    pub(super) records: HashMap<RecordKey, (String, String)>,
}

/// A workflow.
#[derive(Debug)]
pub(super) struct FoundWorkflow {
    pub(super) row: i64,
    pub(super) closed: bool,
    pub(super) next_seq: i64,
    /// Whether it exists only once the batch has come to its creation.
    pub(super) awaited: bool,
}

/// The row of a task.
#[derive(Debug)]
pub(super) struct TaskRow {
    pub(super) row: i64,
    pub(super) next_seq: i64,
    pub(super) next_position: i64,
    pub(super) status_seq: i64,
    pub(super) indexed: Option<Indexed>,
}

/// What the index says about a task.
#[derive(Clone, Debug)]
pub(super) struct Indexed {
    pub(super) state: i64,
    pub(super) status_at: i64,
    /// The scopes, as `EncodedRecord::scopes_json`.
    pub(super) scopes: String,
}

/// What a batch is about; each list in the order of locks.
#[derive(Debug, Default)]
struct Subjects<'a> {
    workflows: BTreeSet<&'a str>,
    created: BTreeMap<&'a str, &'a str>,
    tasks: BTreeSet<&'a str>,
    /// Tasks that go; they are not made when they are missing.
    deleted: BTreeSet<&'a str>,
    deliveries: Vec<(&'a str, &'a str)>,
    keys: Vec<(&'a str, &'a str)>,
    records: BTreeSet<(&'a str, &'a str)>,
}

/// Locks and reads.
pub(super) async fn find(connection: &mut PgConnection, batch: &EncodedBatch) -> Result<Found, Refused> {
    let subjects = Subjects::of(batch);
    let mut found = Found::default();
    lock_workflows(connection, &subjects, &mut found).await?;
    create_workflows(connection, &subjects, &mut found).await?;
    if !subjects.tasks.is_empty() || !subjects.deleted.is_empty() {
        lock_tasks(connection, &subjects, &mut found).await?;
    }
    read_conditions(connection, &subjects, &mut found).await?;
    if !subjects.records.is_empty() {
        lock_records(connection, &subjects, &mut found).await?;
    }
    Ok(found)
}

impl<'a> Subjects<'a> {
    fn of(batch: &'a EncodedBatch) -> Self {
        let mut subjects = Self::default();
        for op in &batch.ops {
            subjects.add(op);
        }
        subjects
    }

    fn add(&mut self, op: &'a Op) {
        match op {
            Op::PutRecord { .. } | Op::DeleteRecord { .. } | Op::DeleteOldRecords { .. } => {}
            Op::PutBlock { task_id, .. } | Op::RequireTask { task_id } => {
                self.tasks.insert(task_id.as_str());
            }
            Op::DeleteTask { task_id, .. } => {
                self.workflows.insert(task_id.as_str());
                self.deleted.insert(task_id.as_str());
            }
            Op::CreateWorkflow { workflow_id, workflow_type } => {
                self.workflows.insert(workflow_id.as_str());
                self.created.insert(workflow_id.as_str(), workflow_type);
            }
            Op::AppendJournal { workflow_id, .. }
            | Op::SaveSnapshot { workflow_id, .. }
            | Op::AnnounceActivity { workflow_id, .. }
            | Op::RemoveActivity { workflow_id, .. }
            | Op::StartTimer { workflow_id, .. }
            | Op::RemoveTimer { workflow_id, .. }
            | Op::CloseWorkflow { workflow_id } => {
                self.workflows.insert(workflow_id.as_str());
            }
            Op::RecordDelivery { workflow_id, dedupe_key, .. } => {
                self.workflows.insert(workflow_id.as_str());
                self.deliveries.push((workflow_id.as_str(), dedupe_key));
            }
            Op::Publish(publish) => {
                self.tasks.insert(publish.task_id.as_str());
                self.keys.push((publish.task_id.as_str(), &publish.key));
            }
            Op::ReplaceRecord { kind, id, .. } => {
                self.records.insert((kind, id));
            }
        }
    }
}

/// Also learns the number of the transaction, for the case that nobody hears whether it was committed.
async fn lock_workflows(
    connection: &mut PgConnection,
    subjects: &Subjects<'_>,
    found: &mut Found,
) -> Result<(), Refused> {
    let sql = "SELECT pg_current_xact_id()::text AS xid, w.workflow_id, w.id, w.closed
               FROM (VALUES (1)) AS one LEFT JOIN LATERAL (
                   SELECT workflow_id, id, closed FROM workflows WHERE workflow_id = ANY($1)
                   ORDER BY workflow_id FOR UPDATE) AS w ON true";
    let ids: Vec<&str> = subjects.workflows.iter().copied().collect();
    for row in step(sqlx::query(sql).bind(ids).fetch_all(connection)).await? {
        found.xid = row.try_get("xid")?;
        if let Some(id) = row.try_get("workflow_id")? {
            let (row, closed) = (row.try_get("id")?, row.try_get("closed")?);
            found.workflows.insert(id, FoundWorkflow { row, closed, next_seq: 0, awaited: false });
        }
    }
    Ok(())
}

async fn create_workflows(
    connection: &mut PgConnection,
    subjects: &Subjects<'_>,
    found: &mut Found,
) -> Result<(), Refused> {
    let exists = |id: &str| Refused::Conflict(format!("workflow {id} exists"));
    if let Some(id) = subjects.created.keys().find(|id| found.workflows.contains_key(**id)) {
        return Err(exists(id));
    }
    if subjects.created.is_empty() {
        return Ok(());
    }
    // Waits for whoever makes the same one.
    let sql = "INSERT INTO workflows (workflow_id, workflow_type)
               SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING RETURNING workflow_id, id";
    let (ids, types): (Vec<&str>, Vec<&str>) = subjects.created.iter().map(|(id, kind)| (*id, *kind)).unzip();
    for row in step(sqlx::query(sql).bind(ids).bind(types).fetch_all(connection)).await? {
        let workflow = FoundWorkflow { row: row.try_get("id")?, closed: false, next_seq: 0, awaited: true };
        found.workflows.insert(row.try_get("workflow_id")?, workflow);
    }
    match subjects.created.keys().find(|id| !found.workflows.contains_key(**id)) {
        Some(id) => Err(exists(id)),
        None => Ok(()),
    }
}

async fn lock_tasks(
    connection: &mut PgConnection,
    subjects: &Subjects<'_>,
    found: &mut Found,
) -> Result<(), Refused> {
    lock_known_tasks(connection, subjects.tasks.union(&subjects.deleted).copied().collect(), found).await?;
    let missing = missing_tasks(subjects, found);
    if missing.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO tasks (task_id) SELECT * FROM unnest($1::text[])
               ON CONFLICT DO NOTHING RETURNING task_id, id";
    for row in step(sqlx::query(sql).bind(missing).fetch_all(&mut *connection)).await? {
        let task =
            TaskRow { row: row.try_get("id")?, next_seq: 0, next_position: 0, status_seq: 0, indexed: None };
        found.tasks.insert(row.try_get("task_id")?, task);
    }
    // What somebody else made in the meantime.
    let missing = missing_tasks(subjects, found);
    if missing.is_empty() { Ok(()) } else { lock_known_tasks(connection, missing, found).await }
}

fn missing_tasks<'a>(subjects: &Subjects<'a>, found: &Found) -> Vec<&'a str> {
    subjects.tasks.iter().copied().filter(|id| !found.tasks.contains_key(*id)).collect()
}

async fn lock_known_tasks(
    connection: &mut PgConnection,
    ids: Vec<&str>,
    found: &mut Found,
) -> Result<(), Refused> {
    let sql = "SELECT task_id, id, next_seq, next_position, status_seq, state, status_at, scopes
               FROM tasks WHERE task_id = ANY($1) ORDER BY task_id FOR UPDATE";
    for row in step(sqlx::query(sql).bind(ids).fetch_all(connection)).await? {
        let indexed = match row.try_get::<Option<i64>, _>("state")? {
            Some(state) => {
                Some(Indexed { state, status_at: row.try_get("status_at")?, scopes: row.try_get("scopes")? })
            }
            None => None,
        };
        let task = TaskRow {
            row: row.try_get("id")?,
            next_seq: row.try_get("next_seq")?,
            next_position: row.try_get("next_position")?,
            status_seq: row.try_get("status_seq")?,
            indexed,
        };
        found.tasks.insert(row.try_get("task_id")?, task);
    }
    Ok(())
}

/// A statement of its own: it must see what was committed while the locks were waited for.
async fn read_conditions(
    connection: &mut PgConnection,
    subjects: &Subjects<'_>,
    found: &mut Found,
) -> Result<(), Refused> {
    let rows_of_workflows: Vec<i64> = found.workflows.values().map(|workflow| workflow.row).collect();
    let of_workflow = |(id, key): &(&str, &str)| Some((found.workflows.get(*id)?.row, (*key).to_owned()));
    let deliveries: Vec<(i64, String)> = subjects.deliveries.iter().filter_map(of_workflow).collect();
    let of_task = |(id, key): &(&str, &str)| Some((found.tasks.get(*id)?.row, (*key).to_owned()));
    let keys: Vec<(i64, String)> = subjects.keys.iter().filter_map(of_task).collect();
    if rows_of_workflows.is_empty() && keys.is_empty() {
        return Ok(());
    }
    let sql = "SELECT
        ARRAY(SELECT coalesce((SELECT max(seq) + 1 FROM journal WHERE workflow = w.id), 0)
              FROM unnest($1::bigint[]) WITH ORDINALITY AS w (id, n) ORDER BY n) AS next_seqs,
        ARRAY(SELECT n FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS d (id, key, n)
              WHERE EXISTS (SELECT 1 FROM deliveries WHERE workflow = d.id AND dedupe_key = d.key)) AS delivered,
        ARRAY(SELECT n FROM unnest($4::bigint[], $5::text[]) WITH ORDINALITY AS p (id, key, n)
              WHERE EXISTS (SELECT 1 FROM publish_keys k WHERE k.task = p.id AND k.key = p.key)) AS published";
    let (delivery_rows, delivery_keys): (Vec<i64>, Vec<&str>) =
        deliveries.iter().map(|(row, key)| (*row, key.as_str())).unzip();
    let (key_rows, key_texts): (Vec<i64>, Vec<&str>) =
        keys.iter().map(|(row, key)| (*row, key.as_str())).unzip();
    let query = sqlx::query(sql)
        .bind(&rows_of_workflows)
        .bind(delivery_rows)
        .bind(delivery_keys)
        .bind(key_rows)
        .bind(key_texts);
    let row = step(query.fetch_one(connection)).await?;
    let next_seqs: Vec<i64> = row.try_get("next_seqs")?;
    let by_row: HashMap<i64, i64> = rows_of_workflows.into_iter().zip(next_seqs).collect();
    for workflow in found.workflows.values_mut() {
        workflow.next_seq = by_row.get(&workflow.row).copied().unwrap_or(0);
    }
    found.deliveries = pick(deliveries, row.try_get("delivered")?);
    found.keys = pick(keys, row.try_get("published")?);
    Ok(())
}

/// The entries at these places, counted from 1.
fn pick(entries: Vec<(i64, String)>, places: Vec<i64>) -> HashSet<(i64, String)> {
    let places: HashSet<i64> = places.into_iter().collect();
    entries.into_iter().zip(1..).filter(|(_, place)| places.contains(place)).map(|(entry, _)| entry).collect()
}

async fn lock_records(
    connection: &mut PgConnection,
    subjects: &Subjects<'_>,
    found: &mut Found,
) -> Result<(), Refused> {
    let sql = "SELECT kind, record_id, task_id, value FROM records
               WHERE (kind, record_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
               ORDER BY kind, record_id FOR UPDATE";
    let (kinds, ids): (Vec<&str>, Vec<&str>) = subjects.records.iter().copied().unzip();
    for row in step(sqlx::query(sql).bind(kinds).bind(ids).fetch_all(connection)).await? {
        let key = (row.try_get("kind")?, row.try_get("record_id")?);
        found.records.insert(key, (row.try_get("task_id")?, row.try_get("value")?));
    }
    Ok(())
}
