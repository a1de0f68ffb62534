//! State on disk: private, owned by one, and still there after a restart.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use harness_temporal_server::{DevServer, LogTo, StartFailure, State};
use harness_testkit::{TemporalServer, temporal_binary};

use crate::processes::{is_alive, on_file, server_at, until};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
        & 0o777
}

#[tokio::test]
async fn a_second_owner_is_refused_and_the_first_goes_on() {
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let first = DevServer::start(on_file(&binary, &database)).await.unwrap();
    let error = DevServer::start(on_file(&binary, &database)).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::InUse { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!("{} is in use by another tiny-harness process", database.display())
    );
    assert_eq!(error.code().as_str(), "store.locked");
    let pid = server_at(first.address());
    first.stop().await;
    assert!(!is_alive(pid));
    DevServer::start(on_file(&binary, &database)).await.unwrap().stop().await;
}

#[tokio::test]
async fn every_file_is_private_also_when_it_was_not() {
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let log = folder.path().join("tiny-harness.log");
    let files = ["temporal.sqlite3", "temporal.sqlite3-wal", "temporal.sqlite3-shm", "temporal.sqlite3.lock"];
    for start in 1..=2 {
        let mut options = on_file(&binary, &database);
        options.log = LogTo::File(log.clone());
        let server = DevServer::start(options).await;
        let server = server
            .unwrap_or_else(|error| panic!("{error}, start {start}: {}", fs::read_to_string(&log).unwrap()));
        for name in files {
            assert_eq!(mode(&folder.path().join(name)), 0o600, "{name}, start {start}");
        }
        assert_eq!(mode(&log), 0o600, "the log, start {start}");
        // What a killed server leaves behind lies there for anyone to open up.
        drop(server);
        for name in files {
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
}

#[tokio::test]
async fn running_workflows_go_on_after_a_restart_on_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("with a space.sqlite3");
    let start = || TemporalServer::start_with(|options| options.state = State::File(database.clone()));
    let Some(server) = start().await else { return };
    server.command(&["workflow", "start", "--type", "T", "--task-queue", "q", "--workflow-id", "w-1"]).await;
    server.stop().await;
    let server = start().await.unwrap();
    let workflow =
        server.command(&["workflow", "describe", "--workflow-id", "w-1", "--output", "json"]).await;
    assert!(workflow.contains("WORKFLOW_EXECUTION_STATUS_RUNNING"), "{workflow}");
    // And after a death without any order.
    let pid = server_at(server.address());
    drop(server);
    until("the server is gone", || !is_alive(pid)).await;
    let server = start().await.unwrap();
    let workflow =
        server.command(&["workflow", "describe", "--workflow-id", "w-1", "--output", "json"]).await;
    assert!(workflow.contains("WORKFLOW_EXECUTION_STATUS_RUNNING"), "{workflow}");
    server.stop().await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_kept() {
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("notes.txt");
    let notes = "do not lose these\n".repeat(500);
    fs::write(&database, &notes).unwrap();
    for _ in 0..2 {
        let error = DevServer::start(on_file(&binary, &database)).await.unwrap_err();
        assert!(matches!(error.failure, StartFailure::Ended { .. }), "{error:?}");
        assert!(error.to_string().contains("file is not a database"), "{error}");
        assert_eq!(error.hint(), None, "the program was chosen");
    }
    assert_eq!(fs::read_to_string(&database).unwrap(), notes);
}

#[tokio::test]
async fn paths_that_the_server_would_read_otherwise_are_refused() {
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    for name in ["a?b", "a#b", "a%41"] {
        let error = DevServer::start(on_file(&binary, folder.path().join(name))).await.unwrap_err();
        assert!(matches!(error.failure, StartFailure::StatePath { .. }), "{error:?}");
    }
    let error = DevServer::start(on_file(&binary, folder.path().join("not/there"))).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::State { .. }), "{error:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}
