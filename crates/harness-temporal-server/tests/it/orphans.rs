//! Owners that are killed: their server goes with them, and when it cannot, the next owner sees to it.

use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use harness_temporal_server::DevServer;
use harness_testkit::{Process, Program, temporal_binary};

use crate::processes::{is_alive, kill, on_file, server_at, until, watcher_of};

/// Set in a process of this very test that is to own a server on this file.
const DATABASE: &str = "OWNED_DATABASE";

/// Owns a server until it is killed, when this process was started for that.
#[expect(clippy::disallowed_methods, reason = "how one process of this test tells another what to do")]
async fn own_if_told() {
    let (Ok(database), Some(binary)) = (std::env::var(DATABASE), temporal_binary()) else { return };
    let database = PathBuf::from(database);
    // A server that writes to an owner who is gone dies of that. This one has nothing to say, so that it does not.
    let silent = database.with_file_name("silent");
    std::fs::write(&silent, format!("#!/bin/sh\nexec '{}' \"$@\" >/dev/null 2>&1\n", binary.display()))
        .unwrap();
    std::fs::set_permissions(&silent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = DevServer::start(on_file(silent, database)).await.unwrap();
    println!("owned server at {} ", server.address());
    std::future::pending::<()>().await;
}

/// Another process that owns a server, and where that is.
async fn owner(test: &str, database: &Path) -> (Process, SocketAddr) {
    let program = Program::new(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    let mut owner = program.env(DATABASE, database.to_str().unwrap()).start();
    let said = owner.stdout_contains(" \n").await;
    let (_, address) = said.trim_end().rsplit_once(' ').unwrap();
    (owner, address.parse().unwrap())
}

#[tokio::test]
async fn a_killed_owner_takes_its_server_along() {
    own_if_told().await;
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let (owner, address) = owner("orphans::a_killed_owner_takes_its_server_along", &database).await;
    let server = server_at(address);
    let watcher = watcher_of(server);
    assert!(owner.kill().await.was_killed());
    until("the server is gone", || !is_alive(server)).await;
    until("its watcher is gone", || !is_alive(watcher)).await;
    DevServer::start(on_file(binary, &database)).await.unwrap().stop().await;
}

#[tokio::test]
async fn a_restart_right_after_the_kill_succeeds() {
    own_if_told().await;
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let (owner, address) = owner("orphans::a_restart_right_after_the_kill_succeeds", &database).await;
    let server = server_at(address);
    assert!(owner.kill().await.was_killed());
    let next = DevServer::start(on_file(binary, &database)).await.unwrap();
    assert!(!is_alive(server));
    next.stop().await;
}

#[tokio::test]
async fn a_server_that_outlived_its_owner_is_killed_by_the_next_one() {
    own_if_told().await;
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let (owner, address) =
        owner("orphans::a_server_that_outlived_its_owner_is_killed_by_the_next_one", &database).await;
    let server = server_at(address);
    kill(watcher_of(server));
    assert!(owner.kill().await.was_killed());
    assert!(is_alive(server), "nobody is left to kill it");
    let next = DevServer::start(on_file(binary, &database)).await.unwrap();
    assert!(!is_alive(server));
    next.stop().await;
}

#[tokio::test]
async fn a_living_owner_in_another_process_keeps_its_server() {
    own_if_told().await;
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("temporal.sqlite3");
    let (owner, address) =
        owner("orphans::a_living_owner_in_another_process_keeps_its_server", &database).await;
    let server = server_at(address);
    let error = DevServer::start(on_file(&binary, &database)).await.unwrap_err();
    assert!(error.to_string().ends_with("is in use by another tiny-harness process"), "{error}");
    // Whoever holds the state and is not known to have lost its owner is left alone.
    for record in ["", "owner 1 1\n", "owner 1 1\nserver 1 1\nprogram /sbin/init\n", "\u{0}garbage"] {
        std::fs::write(folder.path().join("temporal.sqlite3.lock"), record).unwrap();
        let error = DevServer::start(on_file(&binary, &database)).await.unwrap_err();
        assert!(error.to_string().ends_with("is in use by another tiny-harness process"), "{error}");
    }
    assert!(is_alive(server));
    owner.kill().await;
}
