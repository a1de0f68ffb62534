//! What operators do and see with servers and workers on one Temporal and one PostgreSQL.

use std::{
    fs,
    path::{Path, PathBuf},
};

use harness_testkit::{PostgresServer, Process, Program, TemporalServer};
use serde_json::{Value, json};

use crate::{
    api::{chunk, http, message, state, words},
    rig::{Rig, Server, tiny_harness, until},
};

const SCRIPT: &str = r#"
[[turns]]
when = { text_equals = "think long" }
chunks = ["Let me see. ", { text = "And so on.", delay_ms = 600000 }]

[[turns]]
text = "You said: {{message_text}}"
"#;
const PUSH_KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// An agent whose processes share everything.
struct Site {
    temporal: TemporalServer,
    _postgres: PostgresServer,
    rig: Rig,
    config: PathBuf,
}

impl Site {
    async fn new() -> Option<Self> {
        let (temporal, postgres) = (TemporalServer::start().await?, PostgresServer::start().await?);
        let rig = Rig::new(SCRIPT).conversations().tables(&format!(
            "[heartbeat]\ninterval = \"PT1S\"\n[temporal]\naddress = \"{}\"\nnamespace = {:?}\ntls = false\n\
             search_attributes = true\n",
            temporal.address(),
            temporal.namespace(),
        ));
        let config = rig.config();
        let text = fs::read_to_string(&config).unwrap();
        let sqlite = format!("[store]\nsqlite_path = {:?}\n", rig.store());
        let server = format!(
            "[store.postgres]\nport = {}\ndatabase = \"postgres\"\nuser = {:?}\n",
            postgres.port(),
            PostgresServer::USER
        );
        assert!(text.contains(&sqlite), "{text}");
        fs::write(&config, text.replace(&sqlite, &server)).unwrap();
        Some(Self { temporal, _postgres: postgres, rig, config })
    }

    fn program<const N: usize>(&self, args: [&str; N]) -> Program {
        program(args, &self.config)
    }

    async fn worker(&self) -> Process {
        let mut worker = self.program(["worker"]).start();
        worker.stderr_contains("worker of ").await;
        worker
    }

    async fn server(&self) -> Server {
        let mut process = self.program(["serve"]).start();
        let said = process.stderr_contains("\nserving ").await;
        let line = said.lines().find(|line| line.starts_with("serving ")).unwrap();
        let url = line.rsplit_once(" at ").unwrap().1.to_owned();
        Server { process, url }
    }

    /// The Temporal workflows of an id, and their states.
    async fn runs(&self, id: &str) -> String {
        let query = format!("WorkflowId = '{id}'");
        self.temporal.command(&["workflow", "list", "--query", &query, "--output", "json"]).await
    }
}

fn program<const N: usize>(args: [&str; N], config: &Path) -> Program {
    tiny_harness(args).args(["--config".as_ref(), config.as_os_str()]).env("TINY_HARNESS_PUSH_KEY", PUSH_KEY)
}

async fn monitor(server: &Server) -> Value {
    http().get(format!("{}/_monitor", server.url)).send().await.unwrap().json().await.unwrap()
}

async fn readiness(server: &Server) -> (u16, String) {
    let answer = http().get(format!("{}/readyz", server.url)).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn workers_tick_by_turns_and_servers_never() {
    let Some(site) = Site::new().await else { return };
    let alone = site.program(["doctor"]).run().await;
    assert_eq!(alone.code, Some(0), "{alone:?}");
    for said in ["processes share the store", "nobody works on queue", "no workflow task fails"] {
        assert!(alone.stdout.contains(said), "{said}: {alone:?}");
    }
    let server = site.server().await;
    // What the server lists comes a little later than what it knows.
    let has_schedule =
        async || site.temporal.command(&["schedule", "list"]).await.contains("tiny-harness-heartbeat");
    assert!(!has_schedule().await, "a server has no heartbeat");
    assert_eq!(monitor(&server).await, json!({"tasks": []}), "and does not tick");

    let workers = [site.worker().await, site.worker().await];
    until("workers have a schedule together", has_schedule).await;
    until("somebody ticks", async || {
        let picture = monitor(&server).await;
        picture["engine"]["kind"] == "temporal" && picture["engine"]["pending_wakes"] == 0
    })
    .await;
    assert_eq!(monitor(&server).await["engine"]["workflow_task_failures"], 0);
    let task = server.ada().send(message("m-1", "hello")).await;
    assert_eq!((state(&task), words(&task)), ("INPUT_REQUIRED", "You said: hello"));
    let mut together = site.program(["doctor"]).run().await;
    until("doctor sees both workers", async || {
        together = site.program(["doctor"]).run().await;
        together.stdout.contains("workers: 2 (")
    })
    .await;
    assert_eq!(together.code, Some(0), "{together:?}");
    assert!(!together.stdout.contains("search attributes"), "workers have registered them: {together:?}");

    // A workflow that no build of ours knows. Counters are those of the worker that ticks, so one is left.
    let [worker, other] = workers;
    other.terminate();
    assert_eq!(other.ended().await.code, Some(143));
    let foreign = ["workflow", "start", "--task-queue", "tiny-harness", "--type", "OfAnotherBuild"];
    site.temporal.command(&[&foreign[..], &["--workflow-id", "foreign"]].concat()).await;
    until("the failing workflow is in the picture", async || {
        monitor(&server).await["engine"]["workflow_task_failures"]
            .as_u64()
            .is_some_and(|failures| failures > 0)
    })
    .await;
    let mut troubled = site.program(["doctor"]).run().await;
    until("doctor names it", async || {
        troubled = site.program(["doctor"]).run().await;
        troubled.code == Some(1)
    })
    .await;
    assert!(
        troubled.stdout.contains("workflow tasks fail again and again, of 1 workflows: foreign"),
        "{troubled:?}"
    );
    assert!(
        !crate::rig::logged(&worker.stderr(), "a Temporal workflow task failed; it is tried again")
            .is_empty()
    );
    assert!(crate::rig::logged(&server.process.stderr(), "ticked").is_empty());

    let deleted = site.program(["schedules", "delete"]).run().await;
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    until("the schedule is gone", async || !has_schedule().await).await;
    let again = site.program(["schedules", "delete"]).run().await;
    assert_eq!((again.code, again.stderr.as_str()), (Some(1), "error: there is no heartbeat schedule\n"));
}

#[tokio::test]
async fn a_task_is_purged_while_servers_and_workers_run() {
    let Some(site) = Site::new().await else { return };
    let (server, _worker) = (site.server().await, site.worker().await);
    let ada = server.ada();
    let other = ada.send(message("m-1", "hello")).await;
    let task = ada.send_off(message("m-2", "think long")).await;
    let id = task["id"].as_str().unwrap();
    let mut watching = ada.subscribe(id, Some(0)).await;
    until("the model speaks", async || {
        watching.next().await.is_some_and(|(_, event)| chunk(&event).is_some())
    })
    .await;
    assert!(site.runs(id).await.contains("EXECUTION_STATUS_RUNNING"));

    let purged = site.program(["tasks", "purge", id]).run().await;
    assert_eq!((purged.code, purged.stderr.as_str()), (Some(0), ""), "{purged:?}");
    assert!(purged.stdout.contains("workflows "), "{purged:?}");
    assert!(watching.rest().await.iter().all(|(_, event)| chunk(event).is_none()), "the stream ends");
    assert_eq!(ada.refused("GetTask", json!({"id": id})).await.reason, "TASK_NOT_FOUND");
    until("its workflow has ended", async || {
        let runs = site.runs(id).await;
        runs.contains("EXECUTION_STATUS_TERMINATED") && !runs.contains("EXECUTION_STATUS_RUNNING")
    })
    .await;
    let nothing = site.program(["tasks", "purge", id]).run().await;
    assert_eq!((nothing.code, nothing.stdout), (Some(0), format!("there is nothing of task {id}\n")));
    assert_eq!(ada.task(other["id"].as_str().unwrap()).await, other, "the other task is as it was");

    // The id is free, and nothing of the old task is in its way.
    assert_eq!(ada.send_off(message("m-2", "think long")).await["id"], task["id"]);
    let mut watching = ada.subscribe(id, Some(0)).await;
    until("the model speaks again", async || {
        watching.next().await.is_some_and(|(_, event)| chunk(&event).is_some())
    })
    .await;
    drop(site.rig);
}

#[tokio::test]
async fn a_server_is_not_ready_while_temporal_is_away() {
    let Some(site) = Site::new().await else { return };
    let server = site.server().await;
    assert_eq!(readiness(&server).await, (200, "ok\n".to_owned()));
    let Site { temporal, config, _postgres, .. } = site;
    temporal.stop().await;
    until("it says so", async || {
        readiness(&server).await == (503, "the engine's server does not answer\n".to_owned())
    })
    .await;
    let taken = server.ada().send_off(message("m-1", "hello")).await;
    assert_eq!(state(&taken), "SUBMITTED", "a message is taken all the same");
    let doctor = program(["doctor"], &config).run().await;
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(
        doctor.stdout.contains("FAIL  temporal: ") && doctor.stdout.contains("(temporal.address)"),
        "{doctor:?}"
    );
}
