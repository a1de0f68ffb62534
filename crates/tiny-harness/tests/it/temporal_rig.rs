//! Harnesses on Temporal: on an embedded server, and as several processes over one server and one database.

use std::{collections::BTreeSet, time::Duration};

use harness_ports::{EventKind, HistoryEvent};
use harness_testkit::{Ended, PostgresServer, Process, Program, TemporalServer, temporal_binary};
use serde_json::Value;
use tokio::time::Instant;

use crate::rig::{Rig, Server, begun, logged, tiny_harness};

const PUSH_KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

/// The tables that put a harness on an embedded Temporal; `None`, and a line that says so, when it is not installed.
pub(crate) fn embedded_tables() -> Option<String> {
    let binary = temporal_binary()?;
    Some(format!("[temporal]\nmode = \"embedded\"\n\n[temporal.embedded]\nbinary_path = {binary:?}\n"))
}

/// Says how long something took to go on.
#[expect(clippy::print_stdout, reason = "a number for whoever runs the test")]
pub(crate) fn recovered(what: &str, since: Instant) {
    println!("recovery: {what}: {} ms", since.elapsed().as_millis());
}

/// Executions of activities: the task's id and the activity's.
pub(crate) type Activities = BTreeSet<(String, String)>;

/// Activities that a log says were begun, those of models only.
pub(crate) fn model_calls(log: &str) -> Vec<(String, String)> {
    let calls = begun(log).into_iter().filter(|run| run["activity"] == "invoke_model.v1");
    calls.map(|run| named(&run)).collect()
}

fn named(run: &Value) -> (String, String) {
    let field = |name: &str| run[name].as_str().unwrap().to_owned();
    (field("task_id"), field("activity_id"))
}

/// No activity of this log is one of those.
pub(crate) fn begins_none_of(log: &str, recorded: &Activities) {
    for run in begun(log) {
        assert!(!recorded.contains(&named(&run)), "it was recorded and began again: {run}");
    }
}

/// No workflow task of this process went wrong.
pub(crate) fn is_sound(log: &str) {
    let failed = logged(log, "a Temporal workflow task failed; it is tried again");
    assert!(failed.is_empty(), "{failed:?}");
}

/// What one activity came to, out of a recorded event.
pub(crate) fn ended_activity(event: &str) -> Option<String> {
    let event: HistoryEvent = serde_json::from_str(event).unwrap();
    match event.kind {
        EventKind::ActivityCompleted { activity_id, .. } | EventKind::ActivityFailed { activity_id, .. } => {
            Some(activity_id.to_string())
        }
        EventKind::Started { .. } | EventKind::Signaled(_) | EventKind::TimerFired { .. } => None,
    }
}

/// One Temporal server, one database, one configuration; any number of servers and workers.
pub(crate) struct Estate {
    pub(crate) rig: Rig,
    database: PostgresServer,
    temporal: Option<TemporalServer>,
    port: u16,
}

impl Estate {
    /// `None`, and a line that says so, when one of the servers is not installed. `rig` gets the tables it needs.
    pub(crate) async fn over(rig: Rig) -> Option<Self> {
        let database = PostgresServer::start().await?;
        let temporal = TemporalServer::start_on(&rig.path("temporal.sqlite3"), None).await?;
        let (address, namespace) = (temporal.address(), temporal.namespace());
        let tables = format!("[temporal]\naddress = \"{address}\"\nnamespace = {namespace:?}\ntls = false\n");
        let rig = rig.postgres(database.port()).tables(&tables);
        rig.config();
        Some(Self { rig, database, port: address.port(), temporal: Some(temporal) })
    }

    fn program(&self, command: &str) -> Program {
        let config = self.rig.path("tiny-harness.toml").display().to_string();
        let program = tiny_harness([command, "--config", &config]).env("TINY_HARNESS_PUSH_KEY", PUSH_KEY);
        // The data of plugins is where the program is started.
        program.current_dir(&self.rig.path("."))
    }

    /// A server that does not work.
    pub(crate) async fn server(&self) -> Server {
        Server::launch(self.program("serve")).await
    }

    /// A worker that has connected.
    pub(crate) async fn worker(&self) -> Worker {
        let mut process = self.program("worker").start();
        process.stderr_contains("\nworker of ").await;
        Worker { process }
    }

    /// Ends the Temporal server; its file stays.
    pub(crate) async fn stop_temporal(&mut self) {
        self.temporal.take().unwrap().stop().await;
    }

    /// Starts it again on the same file and port.
    pub(crate) async fn start_temporal(&mut self) {
        let file = self.rig.path("temporal.sqlite3");
        self.temporal = TemporalServer::start_on(&file, Some(self.port)).await;
        assert!(self.temporal.is_some());
    }

    /// Activities whose end is recorded.
    pub(crate) fn recorded(&self) -> Activities {
        let rows = self.database.query(
            "SELECT w.workflow_id || '|' || j.event FROM tiny_harness.journal j JOIN tiny_harness.workflows w ON w.id = j.workflow \
             ORDER BY j.workflow, j.seq",
        );
        let ended = |row: &str| {
            let (task, event) = row.split_once('|').unwrap();
            Some((task.to_owned(), ended_activity(event)?))
        };
        rows.lines().filter_map(ended).collect()
    }
}

/// A process that works.
pub(crate) struct Worker {
    process: Process,
}

impl Worker {
    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        self.process.stderr()
    }

    pub(crate) async fn kill(self) -> Ended {
        let ended = self.process.kill().await;
        assert!(ended.was_killed(), "{ended:?}");
        ended
    }

    /// Stops it in order.
    pub(crate) async fn stop(self) {
        self.process.terminate();
        let ended = self.process.ended().await;
        assert_eq!(ended.code, Some(143), "{ended:?}");
        is_sound(&ended.stderr);
    }
}

/// A percentile of times, in whole milliseconds.
pub(crate) fn percentile(times: &mut [Duration], percent: usize) -> u128 {
    times.sort_unstable();
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times[rank - 1].as_millis()
}
