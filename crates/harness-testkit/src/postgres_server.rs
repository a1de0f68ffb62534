//! A real PostgreSQL server for one test. What it is and how it is installed: `tools/postgres/`.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

/// How long the server may take to accept connections, or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Looks at whether it is ready, this far apart.
const READY_INTERVAL: Duration = Duration::from_millis(10);
/// Ports that are tried: another process may take one between the choice and the start.
const PORTS_MAX: u32 = 5;
/// Who runs the server when the test runs as root, which PostgreSQL refuses to do: `nobody`.
const NOBODY: u32 = 65_534;
/// Settings for tests: nothing is flushed, little memory, loopback only, room for many small pools.
const SETTINGS: [&str; 8] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "max_connections=64",
    "autovacuum=off",
    "logging_collector=off",
];

/// A server with an empty database `postgres` and the role `postgres`, which needs no password; dropping it ends it.
///
/// Each has a cluster and a port of its own.
#[derive(Debug)]
pub struct PostgresServer {
    home: PathBuf,
    data: TempDir,
    port: u16,
    running: Option<Child>,
}

impl PostgresServer {
    /// Where it listens.
    pub const HOST: &str = "127.0.0.1";
    /// The role that may do everything, and the name of its database.
    pub const USER: &str = "postgres";

    /// Starts a server on a free port and waits until it accepts connections.
    ///
    /// `None`, and a line on stderr, when it is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start, or when it is not installed and `HARNESS_REQUIRE_TOOLS` is `1`.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn start() -> Option<Self> {
        let Some(home) = installation() else {
            report_absent();
            return None;
        };
        let data = tempfile::tempdir().expect("a folder for the cluster");
        copy_cluster(&home.join("data"), data.path()).expect("the empty cluster can be copied");
        let mut server = Self { home, data, port: 0, running: None };
        for _ in 0..PORTS_MAX {
            server.port = free_port();
            if server.try_start().await {
                return Some(server);
            }
        }
        panic!("the server does not start: {}", server.log());
    }

    /// The port on [`Self::HOST`]; stays the same when the server is stopped and started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs SQL as an operator would, and returns what it gives: columns apart by `|`, rows by line ends.
    ///
    /// # Panics
    /// When the server refuses it.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub fn query(&self, sql: &str) -> String {
        let mut psql = std::process::Command::new(self.home.join("bin/psql"));
        psql.env_clear().args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            Self::HOST,
            "-U",
            Self::USER,
        ]);
        let done = psql.args(["-p", &self.port.to_string(), "-c", sql]).output().expect("psql runs");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
    }

    /// Ends the server as an operator in a hurry does: connections break, what was committed is kept.
    ///
    /// # Panics
    /// When it does not end.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            signal(&child, Signal::INT);
            timeout(PATIENCE, child.wait())
                .await
                .expect("the server ends in time")
                .expect("it can be awaited");
        }
    }

    /// Starts the server again, on the same port and with what it holds.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_again(&mut self) {
        assert!(self.running.is_none(), "the server runs");
        assert!(self.try_start().await, "the server does not start again: {}", self.log());
    }

    /// Whether the server accepts connections now.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    async fn try_start(&mut self) -> bool {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log_path()).expect("a log file");
        let mut command = Command::new(self.home.join("bin/postgres"));
        command.arg("-D").arg(self.data.path()).arg("-p").arg(self.port.to_string());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.env_clear().env("TZ", "UTC").current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log).kill_on_drop(true);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = command.spawn().expect("the installed server runs");
        let ready = timeout(PATIENCE, self.ready(&mut child)).await.unwrap_or(false);
        if ready {
            self.running = Some(child);
        }
        ready
    }

    /// Waits for the server to say in its lock file that it is ready; false when it ends before.
    async fn ready(&self, child: &mut Child) -> bool {
        let pid = child.id().map(|id| id.to_string()).unwrap_or_default();
        loop {
            let file = fs::read_to_string(self.data.path().join("postmaster.pid")).unwrap_or_default();
            let mut lines = file.lines();
            // The file of a server that died may still be there.
            if lines.next() == Some(&pid) && lines.any(|line| line.trim() == "ready") {
                return true;
            }
            if !matches!(child.try_wait(), Ok(None)) {
                return false;
            }
            sleep(READY_INTERVAL).await;
        }
    }

    fn log_path(&self) -> PathBuf {
        self.data.path().join("server.log")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let Some(mut child) = self.running.take() else { return };
        // Killing it would leave a piece of shared memory behind each time; this signal ends it at once, and it cleans up.
        signal(&child, Signal::QUIT);
        while matches!(child.try_wait(), Ok(None)) {
            std::thread::yield_now();
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        // It may have ended by itself.
        kill_process(pid, signal).ok();
    }
}

/// Where the server is, when it is installed.
fn installation() -> Option<PathBuf> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/postgres");
    // The stamp is written when the installation is complete.
    tool.join("installed.txt").exists().then(|| fs::read_to_string(tool.join("home.txt")))?.ok().and_then(
        |home| {
            let home = PathBuf::from(home.trim());
            home.join("data/PG_VERSION").exists().then_some(home)
        },
    )
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((PostgresServer::HOST, 0));
    listener.and_then(|listener| listener.local_addr()).map_or(0, |address| address.port())
}

/// Copies the files, for whoever will run the server.
fn copy_cluster(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_cluster(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            hand_over(&target)?;
        }
    }
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(to, owner_only)?;
    hand_over(to)
}

fn hand_over(path: &Path) -> std::io::Result<()> {
    if is_root() { chown(path, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
}

fn is_root() -> bool {
    geteuid().is_root()
}

#[expect(clippy::disallowed_methods, reason = "test switch, read where the test runs")]
#[expect(clippy::print_stderr, reason = "a skipped test has to be seen")]
fn report_absent() {
    let required = std::env::var("HARNESS_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
    assert!(!required, "PostgreSQL is not installed: run `python3 tools/postgres/setup.py`");
    eprintln!("SKIPPED: PostgreSQL is not installed; `python3 tools/postgres/setup.py` installs it");
}
