//! Writes a plan: one statement per group of tables, each only when there is something for it.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::{
    connect::step,
    plan::{Plan, RecordRow, Refused},
};

/// How often blocks are put again that somebody else deletes at the same time.
const PUTS_MAX: u32 = 8;

/// Writes everything of a plan.
pub(super) async fn save(connection: &mut PgConnection, plan: &Plan<'_>, at: i64) -> Result<(), Refused> {
    if !plan.blocks.is_empty() {
        put_blocks(connection, plan).await?;
    }
    let idle = plan.journal.is_empty()
        && plan.snapshots.is_empty()
        && plan.deliveries.is_empty()
        && plan.closed.is_empty();
    if !idle {
        step(workflows(connection, plan)).await?;
    }
    if !plan.activities.is_empty() || !plan.timers.is_empty() {
        step(waits(connection, plan)).await?;
    }
    if !plan.tasks.is_empty() {
        step(publications(connection, plan, at)).await?;
        step(index(connection, plan)).await?;
    }
    if !plan.deleted_records.is_empty() {
        step(delete_records(connection, plan)).await?;
    }
    if !plan.records.is_empty() {
        step(records(connection, &plan.records, at)).await?;
    }
    Ok(())
}

/// Puts blocks and keeps them for their tasks. A block that goes with its last owner at this moment is put again.
async fn put_blocks(connection: &mut PgConnection, plan: &Plan<'_>) -> Result<(), Refused> {
    for _ in 0..PUTS_MAX {
        step(blocks(connection, plan)).await?;
        if step(owners(connection, plan)).await? {
            return Ok(());
        }
    }
    Err(Refused::Conflict("its blocks are being deleted".to_owned()))
}

/// In the order of their addresses, so that batches with the same blocks do not wait for one another in a circle.
async fn blocks(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<()> {
    let sql = "INSERT INTO blocks (address, bytes) SELECT * FROM unnest($1::bytea[], $2::bytea[])
               ON CONFLICT DO NOTHING";
    let (addresses, bytes): (Vec<&[u8]>, Vec<&[u8]>) =
        plan.blocks.iter().map(|(address, bytes)| (&address[..], &bytes[..])).unzip();
    sqlx::query(sql).bind(addresses).bind(bytes).execute(connection).await.map(drop)
}

/// Keeps the blocks for their tasks, if all of them are there. Until the commit nobody deletes them.
async fn owners(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<bool> {
    let sql = "WITH there AS (
                   SELECT id, address FROM blocks WHERE address = ANY($1) ORDER BY address FOR KEY SHARE),
               kept AS (
                   INSERT INTO block_owners (owner, block)
                   SELECT o.owner, there.id FROM unnest($2::bigint[], $3::bytea[]) AS o (owner, address)
                   JOIN there ON there.address = o.address ON CONFLICT DO NOTHING)
               SELECT count(*) FROM there";
    let addresses: Vec<&[u8]> = plan.blocks.keys().map(|address| &address[..]).collect();
    let (owners, kept): (Vec<i64>, Vec<&[u8]>) =
        plan.owners.iter().map(|(owner, address)| (*owner, &address[..])).unzip();
    let query = sqlx::query_scalar::<_, i64>(sql).bind(addresses).bind(owners).bind(kept);
    let there = query.fetch_one(connection).await?;
    Ok(usize::try_from(there) == Ok(plan.blocks.len()))
}

async fn workflows(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<()> {
    let sql = "WITH appended AS (
                   INSERT INTO journal (workflow, seq, event)
                   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])),
               accepted AS (
                   INSERT INTO deliveries (workflow, dedupe_key, cursor)
                   SELECT * FROM unnest($4::bigint[], $5::text[], $6::bigint[])),
               included AS (
                   INSERT INTO snapshots (workflow, seq, state)
                   SELECT * FROM unnest($7::bigint[], $8::bigint[], $9::bytea[])
                   ON CONFLICT (workflow) DO UPDATE SET seq = excluded.seq, state = excluded.state)
               UPDATE workflows SET closed = true WHERE id = ANY($10)";
    let of_journal = plan.journal.iter();
    let of_deliveries = plan.deliveries.iter();
    let of_snapshots = plan.snapshots.iter();
    sqlx::query(sql)
        .bind(of_journal.clone().map(|row| row.0).collect::<Vec<i64>>())
        .bind(of_journal.clone().map(|row| row.1).collect::<Vec<i64>>())
        .bind(of_journal.map(|row| row.2).collect::<Vec<&str>>())
        .bind(of_deliveries.clone().map(|row| row.0).collect::<Vec<i64>>())
        .bind(of_deliveries.clone().map(|row| row.1).collect::<Vec<&str>>())
        .bind(of_deliveries.map(|row| row.2).collect::<Vec<Option<i64>>>())
        .bind(of_snapshots.clone().map(|(row, _)| *row).collect::<Vec<i64>>())
        .bind(of_snapshots.clone().map(|(_, (seq, _))| *seq).collect::<Vec<i64>>())
        .bind(of_snapshots.map(|(_, (_, state))| &state[..]).collect::<Vec<&[u8]>>())
        .bind(plan.closed.iter().copied().collect::<Vec<i64>>())
        .execute(connection)
        .await
        .map(drop)
}

/// Activities and timers: what is removed and what is set, no key in both.
async fn waits(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<()> {
    let sql = "WITH ended AS (
                   DELETE FROM activities a USING unnest($1::text[], $2::text[]) AS g (workflow_id, activity_id)
                   WHERE a.workflow_id = g.workflow_id AND a.activity_id = g.activity_id),
               announced AS (
                   INSERT INTO activities (workflow_id, activity_id, task)
                   SELECT * FROM unnest($3::text[], $4::text[], $5::text[])
                   ON CONFLICT (workflow_id, activity_id) DO UPDATE SET task = excluded.task),
               stopped AS (
                   DELETE FROM timers t USING unnest($6::text[], $7::text[]) AS g (workflow_id, timer_id)
                   WHERE t.workflow_id = g.workflow_id AND t.timer_id = g.timer_id)
               INSERT INTO timers (workflow_id, timer_id, due_at)
               SELECT * FROM unnest($8::text[], $9::text[], $10::bigint[])
               ON CONFLICT (workflow_id, timer_id) DO UPDATE SET due_at = excluded.due_at";
    let (ended, announced) = apart(&plan.activities);
    let (stopped, started) = apart(&plan.timers);
    sqlx::query(sql)
        .bind(ended.iter().map(|key| key.0).collect::<Vec<&str>>())
        .bind(ended.iter().map(|key| key.1).collect::<Vec<&str>>())
        .bind(announced.iter().map(|(key, _)| key.0).collect::<Vec<&str>>())
        .bind(announced.iter().map(|(key, _)| key.1).collect::<Vec<&str>>())
        .bind(announced.iter().map(|(_, task)| *task).collect::<Vec<&str>>())
        .bind(stopped.iter().map(|key| key.0).collect::<Vec<&str>>())
        .bind(stopped.iter().map(|key| key.1).collect::<Vec<&str>>())
        .bind(started.iter().map(|(key, _)| key.0).collect::<Vec<&str>>())
        .bind(started.iter().map(|(key, _)| key.1).collect::<Vec<&str>>())
        .bind(started.iter().map(|(_, due_at)| *due_at).collect::<Vec<i64>>())
        .execute(connection)
        .await
        .map(drop)
}

/// Keys that are removed, and those that are set with their values.
fn apart<K: Copy, V: Copy>(changes: &BTreeMap<K, Option<V>>) -> (Vec<K>, Vec<(K, V)>) {
    let removed = changes.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| *key);
    let set = changes.iter().filter_map(|(key, value)| Some((*key, (*value)?)));
    (removed.collect(), set.collect())
}

async fn publications(connection: &mut PgConnection, plan: &Plan<'_>, at: i64) -> sqlx::Result<()> {
    let sql = "WITH logged AS (
                   INSERT INTO log (task, seq, kind, event, at)
                   SELECT *, $5::bigint FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])),
               said AS (
                   INSERT INTO history (task, position, message_id, address, bytes, status_seq)
                   SELECT * FROM unnest($6::bigint[], $7::bigint[], $8::text[], $9::bytea[], $10::bigint[],
                                        $11::bigint[])),
               known AS (
                   INSERT INTO publish_keys (task, key) SELECT * FROM unnest($12::bigint[], $13::text[]))
               UPDATE tasks t
               SET next_seq = c.next_seq, next_position = c.next_position, status_seq = c.status_seq,
                   state = coalesce(c.state, t.state), status_at = coalesce(c.status_at, t.status_at),
                   scopes = coalesce(c.scopes, t.scopes), record = coalesce(c.record, t.record)
               FROM unnest($14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[],
                           $19::bigint[], $20::text[], $21::text[])
                   AS c (id, next_seq, next_position, status_seq, state, status_at, scopes, record)
               WHERE t.id = c.id";
    let (of_log, of_history, of_keys) = (plan.log.iter(), plan.history.iter(), plan.keys.iter());
    let of_tasks = plan.tasks.values();
    let record = of_tasks.clone().map(|task| task.record);
    sqlx::query(sql)
        .bind(of_log.clone().map(|row| row.0).collect::<Vec<i64>>())
        .bind(of_log.clone().map(|row| row.1).collect::<Vec<i64>>())
        .bind(of_log.clone().map(|row| row.2).collect::<Vec<i64>>())
        .bind(of_log.map(|row| row.3).collect::<Vec<&str>>())
        .bind(at)
        .bind(of_history.clone().map(|row| row.task).collect::<Vec<i64>>())
        .bind(of_history.clone().map(|row| row.position).collect::<Vec<i64>>())
        .bind(of_history.clone().map(|row| row.message_id).collect::<Vec<Option<&str>>>())
        .bind(of_history.clone().map(|row| row.address).collect::<Vec<Option<&[u8]>>>())
        .bind(of_history.clone().map(|row| row.bytes).collect::<Vec<Option<i64>>>())
        .bind(of_history.map(|row| row.status_seq).collect::<Vec<Option<i64>>>())
        .bind(of_keys.clone().map(|row| row.0).collect::<Vec<i64>>())
        .bind(of_keys.map(|row| row.1).collect::<Vec<&str>>())
        .bind(of_tasks.clone().map(|task| task.row).collect::<Vec<i64>>())
        .bind(of_tasks.clone().map(|task| task.next_seq).collect::<Vec<i64>>())
        .bind(of_tasks.clone().map(|task| task.next_position).collect::<Vec<i64>>())
        .bind(of_tasks.map(|task| task.status_seq).collect::<Vec<i64>>())
        .bind(record.clone().map(|record| record.map(|r| r.state)).collect::<Vec<Option<i64>>>())
        .bind(record.clone().map(|record| record.map(|r| r.status_at)).collect::<Vec<Option<i64>>>())
        .bind(record.clone().map(|record| record.map(|r| r.scopes_json.as_str())).collect::<Vec<_>>())
        .bind(record.map(|record| record.map(|r| r.json.as_str())).collect::<Vec<Option<&str>>>())
        .execute(connection)
        .await
        .map(drop)
}

/// Moves tasks to where their records say they belong.
async fn index(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<()> {
    let mut left: (Vec<i64>, Vec<&str>) = (Vec::new(), Vec::new());
    let (mut rows, mut scopes, mut states) = (Vec::new(), Vec::new(), Vec::new());
    let (mut times, mut ids) = (Vec::new(), Vec::new());
    for (id, task) in &plan.tasks {
        for scope in &task.left {
            left.0.push(task.row);
            left.1.push(scope);
        }
        let Some(record) = task.record else { continue };
        for scope in &task.entered {
            rows.push(task.row);
            scopes.push(*scope);
            states.push(record.state);
            times.push(record.status_at);
            ids.push(*id);
        }
    }
    if left.0.is_empty() && rows.is_empty() {
        return Ok(());
    }
    let sql = "WITH left_behind AS (
                   DELETE FROM task_index i USING unnest($1::bigint[], $2::text[]) AS g (task, scope)
                   WHERE i.task = g.task AND i.scope = g.scope)
               INSERT INTO task_index (task, scope, state, status_at, task_id)
               SELECT * FROM unnest($3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
               ON CONFLICT (task, scope)
               DO UPDATE SET state = excluded.state, status_at = excluded.status_at";
    sqlx::query(sql)
        .bind(left.0)
        .bind(left.1)
        .bind(rows)
        .bind(scopes)
        .bind(states)
        .bind(times)
        .bind(ids)
        .execute(connection)
        .await
        .map(drop)
}

async fn delete_records(connection: &mut PgConnection, plan: &Plan<'_>) -> sqlx::Result<()> {
    let sql = "DELETE FROM records r USING unnest($1::text[], $2::text[]) AS g (kind, record_id)
               WHERE r.kind = g.kind AND r.record_id = g.record_id";
    let (kinds, ids): (Vec<&str>, Vec<&str>) = plan.deleted_records.iter().copied().unzip();
    sqlx::query(sql).bind(kinds).bind(ids).execute(connection).await.map(drop)
}

/// A record that is there keeps its place; new ones come in the order of the plan.
async fn records(connection: &mut PgConnection, rows: &[RecordRow<'_>], at: i64) -> sqlx::Result<()> {
    let sql = "INSERT INTO records (kind, record_id, task_id, value, written_at)
               SELECT kind, record_id, task_id, value, $5
               FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
                   WITH ORDINALITY AS r (kind, record_id, task_id, value, n) ORDER BY n
               ON CONFLICT (kind, record_id) DO UPDATE SET
                   task_id = excluded.task_id, value = excluded.value, written_at = excluded.written_at";
    sqlx::query(sql)
        .bind(rows.iter().map(|row| row.key.0).collect::<Vec<&str>>())
        .bind(rows.iter().map(|row| row.key.1).collect::<Vec<&str>>())
        .bind(rows.iter().map(|row| row.task_id).collect::<Vec<&str>>())
        .bind(rows.iter().map(|row| row.value).collect::<Vec<&str>>())
        .bind(at)
        .execute(connection)
        .await
        .map(drop)
}
