//! A real model under a real server, for tests of the wire. What it is and how it is installed: `tools/local-model/`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::tools::report_absent;

/// How long the server may take to open its port; the model is loaded by then on an idle machine.
const START_MAX: Duration = Duration::from_secs(60);
/// Health questions before giving up, this far apart.
const HEALTH_TRIES_MAX: u32 = 300;
const HEALTH_INTERVAL: Duration = Duration::from_millis(200);

/// How the model behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalModelKind {
    /// Its own chat template: plain text, and JSON schemas are enforced. Does not take tools.
    PlainText,
    /// A template that makes it call the first tool it is shown, most times.
    ToolCalls,
}

/// A running local model; dropping it ends the process.
#[derive(Debug)]
pub struct LocalModel {
    /// Base URL of the OpenAI-shaped API, such as `http://127.0.0.1:40123/v1`.
    pub base_url: String,
    _server: Child,
}

impl LocalModel {
    /// Starts a server on a free port and waits until the model is loaded.
    ///
    /// `None`, and a line on stderr, when it is not installed.
    ///
    /// # Panics
    /// When it is installed and does not start, or when it is not installed and `HARNESS_REQUIRE_TOOLS` is `1`.
    #[expect(clippy::expect_used, reason = "a test that cannot go on panics")]
    pub async fn start(kind: LocalModelKind) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let Some(python) = installed_python(&root) else {
            report_absent("the local model", "tools/local-model/setup.py");
            return None;
        };
        let mut server = Command::new(python)
            .arg(root.join("tools/local-model/serve.py"))
            .args(template(kind, &root))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the installed interpreter runs");
        let origin = timeout(START_MAX, listening_origin(&mut server))
            .await
            .expect("the local model opens its port in time")
            .expect("the local model says where it listens");
        wait_until_healthy(&origin).await;
        Some(Self { base_url: format!("{origin}/v1"), _server: server })
    }
}

fn installed_python(root: &Path) -> Option<PathBuf> {
    let installation = root.join(".tools/local-model");
    // The stamp is written when the installation is complete.
    installation.join("installed.txt").exists().then(|| installation.join("bin/python"))
}

fn template(kind: LocalModelKind, root: &Path) -> Vec<PathBuf> {
    match kind {
        LocalModelKind::PlainText => Vec::new(),
        LocalModelKind::ToolCalls => {
            vec!["--template".into(), root.join("tools/local-model/tool-template.jinja")]
        }
    }
}

/// Reads `listening ORIGIN` from the server's output; `None` when it ended without saying so.
async fn listening_origin(server: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(server.stdout.take()?).lines();
    while let Some(line) = lines.next_line().await.ok()? {
        if let Some(origin) = line.strip_prefix("listening ") {
            return Some(origin.trim().to_owned());
        }
    }
    None
}

async fn wait_until_healthy(origin: &str) {
    let url = format!("{origin}/health");
    for _ in 0..HEALTH_TRIES_MAX {
        if is_healthy(&url).await {
            return;
        }
        sleep(HEALTH_INTERVAL).await;
    }
    panic!("the local model at {origin} is not ready after {HEALTH_TRIES_MAX} tries");
}

/// Whether `GET url` answers 200. Plain HTTP over a socket: a client with TLS would need a crypto provider first.
async fn is_healthy(url: &str) -> bool {
    let Some((authority, path)) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let Ok(mut socket) = TcpStream::connect(authority).await else { return false };
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n");
    let mut answer = Vec::new();
    let exchange = async {
        socket.write_all(request.as_bytes()).await?;
        (&mut socket).take(4_096).read_to_end(&mut answer).await
    };
    matches!(timeout(HEALTH_INTERVAL * 10, exchange).await, Ok(Ok(_))) && answer.starts_with(b"HTTP/1.1 200")
}
