//! Programs that are none, or not good enough. Nothing of them is left running.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

use harness_temporal_server::{BinarySource, DevServer, ServerOptions, StartFailure, State};
use harness_testkit::{TemporalServer, temporal_binary};

use crate::processes::{in_memory, is_alive, on_file, until};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A program of this name in place of the real one.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

#[tokio::test]
async fn a_program_that_fails_is_quoted_and_the_state_is_free_again() {
    let folder = Folder::new();
    let program = folder.program("temporal", "printf 'Error: \\033[1mout of luck' >&2; exit 3");
    let database = folder.path("temporal.sqlite3");
    let error = DevServer::start(on_file(&program, &database)).await.unwrap_err();
    let wanted =
        format!("{} ended with exit status: 3 before it was ready: Error: [1mout of luck", program.display());
    assert_eq!(error.to_string(), wanted);
    assert_eq!(error.code().as_str(), "temporal.start_failed");
    assert!(!database.exists(), "only a server makes a database");
    if let Some(binary) = temporal_binary() {
        DevServer::start(on_file(binary, &database)).await.unwrap().stop().await;
    }
}

#[tokio::test]
async fn a_start_that_fails_by_chance_is_tried_once_more() {
    let Some(binary) = temporal_binary() else { return };
    let folder = Folder::new();
    let tried = folder.path("tried");
    let script =
        format!("[ -e '{0}' ] && exec '{1}' \"$@\"; : > '{0}'; exit 2", tried.display(), binary.display());
    DevServer::start(in_memory(folder.program("temporal", &script))).await.unwrap().stop().await;
    assert!(tried.exists());
}

#[tokio::test]
async fn whoever_did_not_choose_the_program_is_told_that_they_can() {
    let folder = Folder::new();
    folder.program("temporal", "exit 1");
    let search_path =
        std::env::join_paths(["relative".into(), folder.path("not-there"), folder.path("")]).unwrap();
    let binary = BinarySource { search_path: Some(search_path), ..BinarySource::default() };
    let error = DevServer::start(ServerOptions::new(binary, State::InMemory)).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::Ended { .. }), "{error:?}");
    let hint = "it said nothing; set `[temporal.embedded] binary_path` to a Temporal CLI that works";
    assert!(error.to_string().ends_with(hint), "{error}");
}

#[tokio::test]
async fn a_program_that_never_answers_is_killed_with_all_that_it_started() {
    let folder = Folder::new();
    let pids = folder.path("pids");
    let script = format!("sleep 600 & echo $$ $! > {}; echo thinking; wait", pids.display());
    // The programs that it needs are found without an environment too.
    let mut options = in_memory(folder.program("temporal", &format!("PATH=/usr/bin:/bin\n{script}")));
    options.start_max = Duration::from_millis(1_500);
    let error = DevServer::start(options).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::NotReady { .. }), "{error:?}");
    assert!(error.to_string().ends_with("was not ready within 1 s: thinking"), "{error}");
    let pids = fs::read_to_string(pids).unwrap();
    for pid in pids.split_whitespace().map(|pid| pid.parse().unwrap()) {
        until("what it started is gone", || !is_alive(pid)).await;
    }
}

#[tokio::test]
async fn a_server_that_others_can_reach_is_refused() {
    let Some(binary) = temporal_binary() else { return };
    let folder = Folder::new();
    let script = r#"for a do shift; case "$a" in --ip=*) a=--ip=0.0.0.0;; esac; set -- "$@" "$a"; done"#;
    let program = folder.program("temporal", &format!("{script}\nexec '{}' \"$@\"", binary.display()));
    let error = DevServer::start(in_memory(program)).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::NotLoopback { .. }), "{error:?}");
    assert!(error.to_string().contains("where others can reach it"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_refused_although_somebody_answers_there() {
    let Some(server) = TemporalServer::start().await else { return };
    let mut options = in_memory(temporal_binary().unwrap());
    options.port = Some(server.address().port());
    let error = DevServer::start(options).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::PortTaken { .. }), "{error:?}");
    assert_eq!(error.hint(), None);
    let port = server.address().port();
    server.stop().await;
    let mut options = in_memory(temporal_binary().unwrap());
    options.port = Some(port);
    let server = DevServer::start(options).await.unwrap();
    assert_eq!(server.address().port(), port);
    server.stop().await;
}

#[tokio::test]
async fn what_is_no_program_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("text"), "not a program").unwrap();
    fs::create_dir(folder.path("folder")).unwrap();
    for name in ["text", "folder", "not-there"] {
        let error = DevServer::start(in_memory(folder.path(name))).await.unwrap_err();
        let wanted = format!("{} is not an executable file", folder.path(name).display());
        assert_eq!(error.to_string(), wanted);
    }
}
