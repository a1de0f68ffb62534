//! A server on a port of its own.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Once,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use harness_a2a::{A2aConfig, A2aService, router, serve};
use harness_model::{AgentId, Redactor, Secret};
use harness_ports::{IdSource, Store, TaskGroup};
use harness_testkit::MemoryStore;
use tokio::net::{TcpListener, TcpSocket};

use crate::fake_engine::{FakeEngine, TickingClock};

/// A condition that does not come true in this time never will.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    pub(crate) base: String,
    pub(crate) address: SocketAddr,
    pub(crate) http: reqwest::Client,
    pub(crate) engine: Arc<FakeEngine>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) group: TaskGroup,
    pub(crate) service: A2aService,
}

#[derive(Default)]
struct CountingIds(AtomicU64);

impl IdSource for CountingIds {
    fn fresh(&self) -> String {
        self.0.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

/// Makes a TLS provider known to the process; clients cannot be built without.
pub(crate) fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// A listener whose connections hold little that is not read, so that a client that stalls is felt at once.
pub(crate) fn listen() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(16 << 10).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(1_024).unwrap()
}

/// A server as configured, over this store; without a rate limit unless one is set. With a push key it sends push
/// notifications.
pub(crate) async fn start_over(store: Arc<dyn Store>, configure: impl FnOnce(&mut A2aConfig)) -> Server {
    install_tls();
    let listener = listen();
    let address = listener.local_addr().unwrap();
    let base = format!("http://{address}");
    let mut config = A2aConfig::new(base.clone(), AgentId::from("me"));
    config.rate_limit_per_minute = 0;
    configure(&mut config);
    let pushes = config.push_key.is_some();
    let group = TaskGroup::new();
    let engine = FakeEngine::new(Arc::clone(&store), group.clone());
    let mut service = A2aService::new(
        config,
        Arc::clone(&engine) as _,
        Arc::clone(&store),
        Arc::new(TickingClock::default()),
        Arc::new(CountingIds::default()),
        Arc::new(Redactor::new([Secret::new("hunter22")])),
    );
    if pushes {
        service = service.with_push(group.clone()).unwrap();
    }
    service.follow_keys(&group).await.unwrap();
    let extra = axum::Router::new().route("/ui/tasks", axum::routing::get(|| async { "the user interface" }));
    let serving = serve(listener, router(service.clone(), extra), group.stop_token().clone(), group.clone());
    group.spawn(serving);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    Server { base, address, http, engine, store, group, service }
}

/// A server of its own, as configured.
pub(crate) async fn start_with(configure: impl FnOnce(&mut A2aConfig)) -> Server {
    start_over(MemoryStore::new(), configure).await
}

pub(crate) async fn start() -> Server {
    start_with(|_| {}).await
}
