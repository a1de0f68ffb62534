//! A real Temporal server for tests. What it is and how it is installed: `tools/temporal/`.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use harness_temporal_server::{BinarySource, DevServer, ServerOptions, State};
use tokio::{process::Command, time::timeout};

use crate::tools::report_absent;

/// How long the command line may take for anything.
const COMMAND_MAX: Duration = Duration::from_secs(60);

/// The pinned Temporal CLI; `None`, and a line on stderr, when it is not installed.
///
/// # Panics
/// When it is not installed and `HARNESS_REQUIRE_TOOLS` is `1`.
pub fn temporal_binary() -> Option<PathBuf> {
    let installation = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/temporal");
    // The stamp is written when the installation is complete.
    if installation.join("temporal.pin").exists() {
        return Some(installation.join("temporal"));
    }
    report_absent("the Temporal CLI", "tools/temporal/setup.py");
    None
}

/// A running Temporal development server; dropping it, or the end of the test's process, kills it.
///
/// One takes about 0.3 s to start and 150 MB. Tests that share one keep apart with task queues and ids of their own.
#[derive(Debug)]
pub struct TemporalServer {
    server: DevServer,
    binary: PathBuf,
}

impl TemporalServer {
    /// Starts a server in memory on a free port, and waits until it answers.
    ///
    /// `None`, and a line on stderr, when it is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start, or when it is not installed and `HARNESS_REQUIRE_TOOLS` is `1`.
    pub async fn start() -> Option<Self> {
        Self::start_with(|_| {}).await
    }

    /// The same with other options, such as a state on disk or more search attributes.
    ///
    /// # Panics
    /// As [`TemporalServer::start`].
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn start_with(configure: impl FnOnce(&mut ServerOptions)) -> Option<Self> {
        let binary = temporal_binary()?;
        let source = BinarySource { binary_path: Some(binary.clone()), ..BinarySource::default() };
        let mut options = ServerOptions::new(source, State::InMemory);
        configure(&mut options);
        let server = DevServer::start(options).await.expect("the Temporal server starts");
        Some(Self { server, binary })
    }

    /// Starts a server whose state is this file, and which another may be started on after its end; on a free port, or on
    /// this one. `None` as for [`TemporalServer::start`].
    ///
    /// # Panics
    /// As [`TemporalServer::start`].
    pub async fn start_on(file: &Path, port: Option<u16>) -> Option<Self> {
        let configure = |options: &mut ServerOptions| {
            options.state = State::File(file.to_path_buf());
            options.port = port;
        };
        Self::start_with(configure).await
    }

    /// Where it listens, without TLS.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The namespace to work in.
    pub fn namespace(&self) -> &str {
        self.server.namespace()
    }

    /// The server itself.
    pub fn server(&self) -> &DevServer {
        &self.server
    }

    /// Runs `temporal` with these arguments against this server, and returns what it printed.
    ///
    /// # Panics
    /// When it fails or takes too long.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn command(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.binary)
            .args(arguments)
            .args(["--address", &self.address().to_string(), "--namespace", self.namespace()])
            .args(["--disable-config-file", "--disable-config-env"])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output =
            timeout(COMMAND_MAX, output).await.expect("`temporal` ends in time").expect("`temporal` runs");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "`temporal {}`: {}", arguments.join(" "), said(&output.stderr));
        said(&output.stdout)
    }

    /// Stops it and waits until it is gone.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}
