//! Servers that stop, connections that break, schemas that are not ours, roles that may not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use harness_model::{Secret, codes};
use harness_ports::{Store, StoreError, TaskGroup};
use harness_store::{CommitPhase, PostgresOptions, PostgresStore, PostgresTls};
use harness_testkit::PostgresServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{ServerHome, options};
use crate::home::entry;

/// Ends every connection of the stores, as an operator can.
const TERMINATE: &str =
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'tiny-harness'";
const SCHEMA: &str = "tiny_harness";

async fn refused(options: PostgresOptions) -> StoreError {
    PostgresStore::open(options).await.unwrap_err()
}

/// The text for peers says what happened, and nothing of where and how.
fn is_discreet(error: &StoreError, server: &PostgresServer) {
    let text = error.to_string();
    let secrets = [PostgresServer::HOST, "SELECT", "INSERT", "hush-hush-42", &server.port().to_string()];
    assert!(secrets.iter().all(|secret| !text.contains(secret)), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_and_comes_back_is_used_again() {
    let Some(mut home) = ServerHome::start().await else { return };
    let short = PostgresOptions { acquire_timeout: Duration::from_millis(500), ..home.options() };
    let store = PostgresStore::open(short).await.unwrap();
    store.commit(entry("t", "0")).await.unwrap();
    let mut stream = store.follow(&"t".into(), None);
    assert_eq!(stream.next().await.unwrap().unwrap().seq, 0);
    assert!(futures::poll!(stream.next()).is_pending());
    home.server.stop().await;
    for _ in 0..2 {
        let error = store.commit(entry("t", "lost")).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        is_discreet(&error, &home.server);
        let error = store.log(&"t".into(), None, 9).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    }
    home.server.start_again().await;
    let committed = store.commit(entry("t", "1")).await.expect("the store goes on by itself");
    assert_eq!(committed.entries[0].1.seq, 1, "nothing of what failed was kept");
    assert_eq!(stream.next().await.unwrap().unwrap().seq, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_survive_the_loss_of_every_connection() {
    let Some(home) = ServerHome::start().await else { return };
    let (writer, reader) = (home.open_store().await, home.open_store().await);
    let mut stream = reader.follow(&"t".into(), None);
    for n in 0..6_u64 {
        assert_ne!(home.server.query(TERMINATE), "0");
        writer.commit(entry("t", &n.to_string())).await.expect("a broken connection is replaced");
        let seq = tokio::time::timeout(Duration::from_secs(30), stream.next()).await;
        assert_eq!(seq.expect("the follower is woken all the same").unwrap().unwrap().seq, n);
    }
}

/// The connection breaks right before the commit: nothing was kept, and the batch is tried again, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_before_a_commit_costs_nothing() {
    let Some(home) = ServerHome::start().await else { return };
    let home = Arc::new(home);
    let (operator, first) = (Arc::clone(&home), AtomicBool::new(true));
    let on_commit = move |phase, _| {
        if phase == CommitPhase::Before && first.swap(false, Ordering::Relaxed) {
            assert_ne!(operator.server.query(TERMINATE), "0");
        }
    };
    let options = PostgresOptions { on_commit: Some(Arc::new(on_commit)), ..home.options() };
    let store = PostgresStore::open(options).await.unwrap();
    let committed = store.commit(entry("t", "k")).await.unwrap();
    assert_eq!(committed.entries.len(), 1);
    assert_eq!(store.log(&"t".into(), None, 9).await.unwrap().len(), 1);
}

/// The connection breaks after the commit and before anybody heard of it: the server is asked, and it is no error.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_nobody_heard_of_is_found_out() {
    let Some(home) = ServerHome::start().await else { return };
    let wire = Wire::to(home.server.port()).await;
    let options = PostgresOptions { port: wire.port, ..options(&home.server) };
    let store = PostgresStore::open(options).await.unwrap();
    store.commit(entry("t", "0")).await.unwrap();
    for n in 1..4_u64 {
        wire.cut_at_next_commit.store(true, Ordering::SeqCst);
        let committed = store.commit(entry("t", &n.to_string())).await.expect("it was committed");
        assert_eq!(committed.entries[0].1.seq, n);
        assert!(!wire.cut_at_next_commit.load(Ordering::SeqCst), "the connection was cut");
    }
    assert_eq!(store.log(&"t".into(), None, 9).await.unwrap().len(), 4);
    store.close().await;
    wire.group.shutdown(Duration::from_secs(5)).await;
}

/// A wire to the server that can be cut.
struct Wire {
    port: u16,
    cut_at_next_commit: Arc<AtomicBool>,
    group: TaskGroup,
}

impl Wire {
    async fn to(server: u16) -> Self {
        let listener = TcpListener::bind((PostgresServer::HOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (group, cut) = (TaskGroup::new(), Arc::new(AtomicBool::new(false)));
        let (members, armed) = (group.clone(), Arc::clone(&cut));
        group.spawn(async move {
            let stop = members.stop_token().clone();
            while let Some(Ok((client, _))) = stop.run_until_cancelled(listener.accept()).await {
                let (stop, armed) = (stop.clone(), Arc::clone(&armed));
                members.spawn(async move {
                    stop.run_until_cancelled(carry(client, server, &armed)).await;
                });
            }
        });
        Self { port, cut_at_next_commit: cut, group }
    }
}

/// Carries bytes both ways, until an end closes or an answer to a commit is withheld.
async fn carry(client: TcpStream, server: u16, armed: &AtomicBool) {
    let server = TcpStream::connect((PostgresServer::HOST, server)).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = async {
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            let answer = &buffer[..read];
            let commit = answer.windows(7).any(|window| window == b"COMMIT\0");
            if commit && armed.swap(false, Ordering::SeqCst) {
                return;
            }
            if to_client.write_all(answer).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = answers => {}
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_every_follower_and_every_connection() {
    let Some(home) = ServerHome::start().await else { return };
    let store = home.open_store().await;
    store.commit(entry("t", "0")).await.unwrap();
    let mut waiting = store.follow(&"t".into(), Some(0));
    assert!(futures::poll!(waiting.next()).is_pending());
    let begun = store.commit(entry("t", "1"));
    futures::pin_mut!(begun);
    assert!(futures::poll!(&mut begun).is_pending());
    store.close().await;
    begun.await.expect("what was begun is committed");
    let mut late = store.follow(&"t".into(), Some(1));
    assert_eq!(waiting.next().await.unwrap().unwrap().seq, 1, "it was told of what was committed");
    for stream in [&mut waiting, &mut late] {
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(stream.next().await.is_none());
    }
    store.commit(entry("t", "2")).await.expect_err("a closed store writes nothing");
    store.log(&"t".into(), None, 9).await.expect_err("a closed store reads nothing");
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tiny-harness'";
    // The server takes a moment to see that they are gone.
    while home.server.query(sessions) != "0" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_cannot_be_used_are_refused_with_a_remedy() {
    let Some(home) = ServerHome::start().await else { return };
    home.open_store().await.close().await;
    home.server.query("INSERT INTO tiny_harness.tiny_harness_schema (version) VALUES (999)");
    let error = refused(home.options()).await;
    assert_eq!(error.code(), codes::STORE_UNREADABLE);
    let text = error.to_string();
    assert!(text.contains("version 999") && text.contains("choose another schema"), "{text}");
    home.server.query("CREATE SCHEMA theirs; CREATE TABLE theirs.a (b int)");
    let error = refused(PostgresOptions { schema: "theirs".to_owned(), ..home.options() }).await;
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(home.server.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'theirs'"), "1");
    let error = refused(PostgresOptions { schema: "a; DROP".to_owned(), ..home.options() }).await;
    assert!(error.to_string().contains("name of its schema"), "{error}");
    home.server.query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let error = refused(PostgresOptions { database: "latin".to_owned(), ..home.options() }).await;
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_and_roles_that_do_not_let_us_in_are_named_without_secrets() {
    let Some(home) = ServerHome::start().await else { return };
    let usual = || PostgresOptions {
        acquire_timeout: Duration::from_millis(300),
        password: Some(Secret::new("hush-hush-42")),
        ..home.options()
    };
    let cases = [
        (PostgresOptions { port: 1, ..usual() }, "no connection"),
        (PostgresOptions { user: "nobody".to_owned(), ..usual() }, "does not let this role in"),
        (PostgresOptions { database: "nowhere".to_owned(), ..usual() }, "database does not exist"),
        (PostgresOptions { tls: PostgresTls::Require, ..usual() }, "cannot be protected"),
        (PostgresOptions { tls: PostgresTls::VerifyFull, ..usual() }, "cannot be protected"),
    ];
    for (options, expected) in cases {
        let error = refused(options).await;
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!format!("{error:?}").contains("hush"), "{error:?}");
        is_discreet(&error, &home.server);
    }
    home.server.query("CREATE ROLE guest LOGIN");
    let guest = PostgresOptions { user: "guest".to_owned(), ..usual() };
    let error = refused(guest.clone()).await;
    assert!(error.to_string().contains("lacks a privilege"), "{error}");
    // A schema that was made for the role is enough.
    home.server.query(&format!("CREATE SCHEMA {SCHEMA} AUTHORIZATION guest"));
    PostgresStore::open(guest).await.unwrap().commit(entry("t", "k")).await.unwrap();
}
