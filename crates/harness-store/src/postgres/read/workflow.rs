//! Workflows with what they need to go on.

use bytes::Bytes;
use harness_model::WorkflowId;
use harness_ports::{StoreError, StoredWorkflow};

use super::{column, decode};
use crate::{encode::to_u64, postgres::connect::Server};

/// A workflow.
pub(in crate::postgres) async fn workflow(
    server: &Server,
    workflow_id: &WorkflowId,
) -> Result<Option<StoredWorkflow>, StoreError> {
    let sql = "SELECT w.workflow_type, w.closed, s.seq AS included, s.state,
                   coalesce((SELECT max(seq) + 1 FROM journal WHERE workflow = w.id), 0) AS next_seq,
                   j.seqs, j.events,
                   ARRAY(SELECT task FROM activities WHERE workflow_id = w.workflow_id
                         ORDER BY activity_id) AS activities
               FROM workflows w LEFT JOIN snapshots s ON s.workflow = w.id, LATERAL (
                   SELECT coalesce(array_agg(seq ORDER BY seq), '{}') AS seqs,
                          coalesce(array_agg(event ORDER BY seq), '{}') AS events
                   FROM journal WHERE workflow = w.id AND seq >= coalesce(s.seq, 0)) AS j
               WHERE w.workflow_id = $1";
    let rows = server.rows("reading a workflow", || sqlx::query(sql).bind(workflow_id.as_str())).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let included: Option<i64> = column(row, "included")?;
    let state: Option<Vec<u8>> = column(row, "state")?;
    let (seqs, events): (Vec<i64>, Vec<String>) = (column(row, "seqs")?, column(row, "events")?);
    let mut tail = Vec::with_capacity(seqs.len());
    for (seq, event) in seqs.into_iter().map(to_u64).zip(events) {
        tail.push((seq, decode(&event, || format!("event {seq} of workflow {workflow_id}"))?));
    }
    let activities: Vec<String> = column(row, "activities")?;
    let activities =
        activities.into_iter().map(|task| decode(&task, || format!("an activity of workflow {workflow_id}")));
    Ok(Some(StoredWorkflow {
        workflow_type: column(row, "workflow_type")?,
        closed: column(row, "closed")?,
        snapshot: included.map(to_u64).zip(state.map(Bytes::from)),
        tail,
        next_seq: to_u64(column(row, "next_seq")?),
        activities: activities.collect::<Result<_, _>>()?,
    }))
}
