//! Processes that are started in a way that cannot work say so, with a status, and start nothing.

use harness_testkit::{Ended, PostgresServer};

use crate::rig::{Rig, tiny_harness};

const SCRIPT: &str = "[[turns]]\ntext = \"Hello.\"\n";
/// A server where nobody listens.
const NOWHERE: &str = "[temporal]\naddress = \"127.0.0.1:1\"\nnamespace = \"default\"\n";

/// Runs a command that is to be refused.
async fn refused(rig: &Rig, args: &[&str], env: &[(&str, &str)]) -> Ended {
    let config = rig.config().display().to_string();
    let program = tiny_harness([]).args(args).args(["--config", &config]);
    let program = env.iter().fold(program, |program, (name, value)| program.env(name, value));
    let ended = program.run().await;
    assert!(!ended.stderr.contains("serving "), "{ended:?}");
    ended
}

fn says(ended: &Ended, code: i32, texts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    for text in texts {
        assert!(ended.stderr.contains(text), "{text:?} is not in {ended:?}");
    }
}

#[tokio::test]
async fn a_worker_needs_a_temporal_elsewhere_and_a_store_that_is_shared() {
    let local = Rig::new(SCRIPT);
    let ended = refused(&local, &["worker"], &[]).await;
    says(&ended, 2, &["error: the local engine works inside `serve`", "needs [temporal]"]);
    let embedded = Rig::new(SCRIPT).tables("[temporal]\nmode = \"embedded\"\n");
    let ended = refused(&embedded, &["worker"], &[]).await;
    says(&ended, 2, &["error: with an embedded Temporal the worker lives in `serve`", "`mode = \"remote\"`"]);
    let remote = Rig::new(SCRIPT).tables(&format!("{NOWHERE}tls = false\n"));
    for command in ["worker", "serve"] {
        let ended = refused(&remote, &[command], &[]).await;
        says(&ended, 2, &["error: a store in SQLite belongs to one process", "`serve --with-worker`"]);
    }
    for rig in [local, embedded, remote] {
        assert!(!rig.store().exists(), "nothing was started");
    }
}

#[tokio::test]
async fn a_temporal_that_nobody_can_reach_is_a_failure() {
    let rig = Rig::new(SCRIPT).tables(&format!("{NOWHERE}tls = false\n"));
    let ended = refused(&rig, &["serve", "--with-worker"], &[]).await;
    says(&ended, 1, &["no Temporal server answers at 127.0.0.1:1", "(temporal.address)"]);
}

#[tokio::test]
async fn a_server_needs_the_key_of_its_shared_store_first() {
    let Some(database) = PostgresServer::start().await else { return };
    let rig = Rig::new(SCRIPT).postgres(database.port()).tables(&format!("{NOWHERE}tls = false\n"));
    let ended = refused(&rig, &["serve"], &[]).await;
    says(&ended, 2, &["TINY_HARNESS_PUSH_KEY is not set"]);
}

#[tokio::test]
async fn who_we_are_is_said_where_it_is_asked_and_nowhere_else() {
    let key = [("TEMPORAL_API_KEY", "key-0123456789abcdef")];
    let with_tls = Rig::new(SCRIPT).tables(NOWHERE);
    let clear = Rig::new(SCRIPT).tables(&format!("{NOWHERE}tls = false\n"));
    let embedded = Rig::new(SCRIPT).tables("[temporal]\nmode = \"embedded\"\n");
    for command in [&["serve", "--with-worker"][..], &["worker"]] {
        let ended = refused(&with_tls, command, &[]).await;
        says(&ended, 2, &["TEMPORAL_API_KEY is not set", "temporal.client_certificate", "`tls = false`"]);
        let ended = refused(&clear, command, &key).await;
        says(&ended, 2, &["the key would travel in the clear", "unset TEMPORAL_API_KEY"]);
        let ended = refused(&embedded, command, &key).await;
        says(&ended, 2, &["an embedded server takes no key", "unset TEMPORAL_API_KEY"]);
    }
    let ended = refused(&with_tls, &["serve", "--with-worker"], &key).await;
    says(&ended, 1, &["no Temporal server answers at 127.0.0.1:1"]);
    assert!(!ended.stderr.contains("key-0123456789abcdef"), "{ended:?}");
}
