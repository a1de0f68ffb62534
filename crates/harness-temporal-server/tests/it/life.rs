//! A server's life: it starts, it is asked, it ends, in whatever way.

use harness_temporal_server::{DevServer, SearchAttributeKind};
use harness_testkit::{TemporalServer, temporal_binary};

use crate::processes::{
    answers, in_memory, is_alive, kill, listening, server_at, servers_at, until, watcher_of,
};

#[tokio::test]
async fn a_server_listens_on_loopback_only_until_it_is_stopped() {
    let Some(server) = TemporalServer::start().await else { return };
    let address = server.address();
    assert!(server.command(&["operator", "cluster", "health"]).await.contains("SERVING"));
    let listening = listening(server_at(address));
    assert!(listening.len() > 1, "its inner services listen too: {listening:?}");
    for at in &listening {
        assert!(at.starts_with("0100007F:"), "{at} is 127.0.0.1");
    }
    let pid = server_at(address);
    server.stop().await;
    assert!(!is_alive(pid) && !answers(address).await, "it is gone");
    until("its watcher is gone", || servers_at(address).is_empty()).await;
}

#[tokio::test]
async fn namespaces_and_search_attributes_are_there_from_the_start() {
    let server = TemporalServer::start_with(|options| {
        options.namespace = "agents".to_owned();
        options.more_namespaces = vec!["others".to_owned()];
        options.search_attributes = vec![
            ("A2AContextId".to_owned(), SearchAttributeKind::Keyword),
            ("Turns".to_owned(), SearchAttributeKind::Int),
        ];
    });
    let Some(server) = server.await else { return };
    let namespaces = server.command(&["operator", "namespace", "list"]).await;
    for name in ["agents", "others", "default"] {
        assert!(
            namespaces.contains(&format!("NamespaceInfo.Name                    {name}")),
            "{namespaces}"
        );
    }
    let attributes = server.command(&["operator", "search-attribute", "list"]).await;
    let attribute = |name: &str| attributes.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(attribute("A2AContextId").contains("Keyword"), "{attributes}");
    assert!(attribute("Turns").contains("Int"), "{attributes}");
    server.stop().await;
}

#[tokio::test]
async fn a_dropped_server_is_killed_with_its_watcher() {
    let Some(binary) = temporal_binary() else { return };
    let server = DevServer::start(in_memory(binary)).await.unwrap();
    let pid = server_at(server.address());
    let watcher = watcher_of(pid);
    drop(server);
    until("the server is gone", || !is_alive(pid)).await;
    until("its watcher is gone", || !is_alive(watcher)).await;
}

#[test]
fn a_server_does_not_outlive_the_runtime_that_it_ran_on() {
    let Some(binary) = temporal_binary() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(DevServer::start(in_memory(binary))).unwrap();
    let pid = server_at(server.address());
    let watcher = watcher_of(pid);
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(until("the server is gone", || !is_alive(pid)));
    other.block_on(until("its watcher is gone", || !is_alive(watcher)));
    drop(server);
}

#[tokio::test]
async fn a_server_that_ends_by_itself_is_reported_with_its_last_words() {
    let Some(binary) = temporal_binary() else { return };
    let server = DevServer::start(in_memory(binary)).await.unwrap();
    let died = server.died();
    let pid = server_at(server.address());
    let watcher = watcher_of(pid);
    kill(pid);
    let died = died.await;
    assert_eq!(died.status, "signal: 9 (SIGKILL)");
    assert!(died.to_string().starts_with("embedded Temporal ended by itself with signal: 9"), "{died}");
    until("its watcher has gone home", || !is_alive(watcher)).await;
    assert_eq!(server.died().await, died, "whoever asks later hears the same");
    server.stop().await;
}

#[tokio::test]
async fn whoever_waits_for_its_death_hears_nothing_of_a_stop() {
    let Some(binary) = temporal_binary() else { return };
    let server = DevServer::start(in_memory(binary)).await.unwrap();
    let mut died = std::pin::pin!(server.died());
    tokio::select! {
        biased;
        died = &mut died => panic!("{died}"),
        () = server.stop() => {}
    }
    assert!(futures::poll!(died).is_pending());
}
