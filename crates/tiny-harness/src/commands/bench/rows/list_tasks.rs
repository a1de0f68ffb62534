//! A page of a listing among many tasks.

use harness_model::{
    ContextId, Lifecycle, Participant, ParticipantKind, ParticipantRole, StatusChange, TaskEvent,
    TaskExtension, TaskId, TaskRecord, TaskState, Timestamp,
};
use harness_ports::{Publish, Store, StoreError, TaskFields, TaskQuery, Write, WriteBatch};
use harness_store::{SqliteStore, StoreOptions};
use serde_json::json;

use super::super::{
    client::{Client, expect, rpc},
    figure::{Bar, Figure, Times},
    lab::{Lab, ONE_TURN, Setup},
    load::{self, timed},
};
use crate::failure::Failure;

/// Tasks of a page.
const PAGE: usize = 50;
/// Tasks that are put into the store with one commit.
const SEEDED_AT_ONCE: usize = 1_000;
/// Participant whose tasks these are, as in the configuration of the server.
const OWNER: &str = "bench";

pub(super) async fn measure(lab: &Lab) -> Result<Vec<Figure>, Failure> {
    let setup = Setup { name: "list", script: ONE_TURN, lifecycle: "delegated", tools: false };
    let least =
        seed(lab, &setup).await.map_err(|e| Failure::general(format!("cannot fill the store: {e}")))??;

    let server = lab.serve(&setup).await?;
    let mut client = Client::connect(server.address).await?;
    let body = rpc("ListTasks", &json!({"pageSize": PAGE}));
    let page =
        async |_| timed(async { expect(client.post("/", &body).await?, "nextPageToken").map(drop) }).await;
    let times = load::one_by_one(&lab.effort, page).await?;
    let answer = client.post("/", &body).await?;
    server.stop().await?;
    let found = answer.matches("\"contextId\"").count();
    if found != PAGE {
        return Err(Failure::general(format!("a page of {PAGE} tasks has {found}")));
    }
    let what = format!("page of {PAGE} among {} tasks", lab.effort.listed);
    Ok(vec![
        times.figure(&what, 50, Bar::Under(20.0), &least),
        times.figure(&what, 99, Bar::Under(20.0), &least),
    ])
}

/// Fills the store of the server and times its own reading of the page, which is the floor.
async fn seed(lab: &Lab, setup: &Setup<'_>) -> Result<Result<Times, Failure>, StoreError> {
    let path = match lab.store(setup.name) {
        Ok(path) => path,
        Err(failure) => return Ok(Err(failure)),
    };
    let store = SqliteStore::open(StoreOptions::new(path))?;
    for first in (0..lab.effort.listed).step_by(SEEDED_AT_ONCE) {
        let writes = (first..lab.effort.listed.min(first + SEEDED_AT_ONCE)).map(put_task).collect();
        store.commit(WriteBatch::new(Timestamp::from_millis(0), writes)).await?;
    }
    let read = async |_| {
        timed(async {
            let page = store.tasks(query()).await;
            page.map(drop).map_err(|e| Failure::general(format!("cannot read the store: {e}")))
        })
        .await
    };
    let times = load::one_by_one(&lab.effort, read).await;
    store.close().await;
    Ok(times)
}

fn query() -> TaskQuery {
    TaskQuery {
        visible_to: Some(OWNER.into()),
        context_id: None,
        state: None,
        status_since: None,
        after: None,
        limit: PAGE,
        fields: TaskFields::BARE,
    }
}

fn put_task(n: usize) -> Write {
    let participant = |id: &str, role| Participant {
        id: id.into(),
        kind: ParticipantKind::Human,
        role,
        display_name: String::new(),
    };
    // Ids in no order, as real ones are.
    let task_id = TaskId::from(format!("{:016x}-{n:08}", (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let record = TaskRecord {
        usage: Default::default(),
        task_id: task_id.clone(),
        context_id: ContextId::from(format!("c{}", n / 4)),
        lifecycle: Lifecycle::Conversation,
        status: StatusChange::to(TaskState::ALL[n % TaskState::ALL.len()]),
        status_at: Timestamp::from_millis(i64::try_from(n / 3).unwrap_or(0)),
        created_at: Timestamp::from_millis(0),
        extension: TaskExtension {
            name: "complaint".to_owned(),
            goal: "an answer".to_owned(),
            participants: vec![
                participant(OWNER, ParticipantRole::Reporter),
                participant("tiny-harness", ParticipantRole::Assignee),
            ],
            ..TaskExtension::default()
        },
    };
    Write::Publish(Box::new(Publish {
        task_id,
        key: "0".to_owned(),
        events: vec![TaskEvent::TaskCreated],
        record: Some(record),
        history: Vec::new(),
    }))
}
