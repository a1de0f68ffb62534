//! What a server is and how it is reached. Values only; the binary reads configuration and environment.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc, time::Duration};

use harness_model::{ErrorCode, Redactor};

/// One MCP server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What its tools are registered under, such as `order-support/orders`; a tool is `<prefix>.<tool>`.
    pub registry_prefix: String,
    /// How it is reached.
    pub transport: ServerTransport,
}

/// How a server is reached. `Debug` shows no value of an environment variable or header: they may be secrets.
#[derive(Clone)]
pub enum ServerTransport {
    /// A child process that speaks on its standard streams.
    Stdio {
        /// Program, looked up on the child's `PATH` unless it has a slash.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Variables of the child, on top of the few that pass through from [`McpOptions::ambient_env`].
        env: BTreeMap<String, String>,
        /// Working directory; the harness's own when absent.
        cwd: Option<PathBuf>,
    },
    /// A server reached over streamable HTTP.
    StreamableHttp {
        /// The endpoint.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Self::StreamableHttp { url, headers } => f
                .debug_struct("StreamableHttp")
                .field("url", url)
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish(),
        }
    }
}

/// How sessions are run.
#[derive(Clone)]
pub struct McpOptions {
    /// The environment of the harness. Of it a child sees only `HOME`, `PATH`, `USER`, `SHELL`, `TERM` and `LOGNAME`.
    pub ambient_env: BTreeMap<String, String>,
    /// Where the files with the servers' stderr go, two of at most 1 MiB per server. Without it stderr is discarded.
    pub stderr_dir: Option<PathBuf>,
    /// How long a server may take to start, greet and list its tools. Default 10 s.
    pub start_timeout: Duration,
    /// How long a server may take to leave when asked, before it is killed. Default 2 s.
    pub leave_timeout: Duration,
    /// How old a listing may be when a call relies on it; an idle server is listed again after that, so that a definition
    /// that changed in silence is noticed. Default 30 s.
    pub relist_after: Duration,
    /// Masks secrets in stderr files and in texts of servers that end up in errors.
    pub redactor: Arc<Redactor>,
}

impl Default for McpOptions {
    fn default() -> Self {
        Self {
            ambient_env: BTreeMap::new(),
            stderr_dir: None,
            start_timeout: Duration::from_secs(10),
            leave_timeout: Duration::from_secs(2),
            relist_after: Duration::from_secs(30),
            redactor: Arc::new(Redactor::default()),
        }
    }
}

impl fmt::Debug for McpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOptions")
            .field("stderr_dir", &self.stderr_dir)
            .field("start_timeout", &self.start_timeout)
            .field("leave_timeout", &self.leave_timeout)
            .field("relist_after", &self.relist_after)
            .finish_non_exhaustive()
    }
}

/// Something that does not work after start. Never fatal: the other servers and tools are there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{code}] {message}")]
pub struct StartProblem {
    /// Registry prefix of the server.
    pub server: String,
    /// The tool, when only one tool is affected.
    pub tool: Option<String>,
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, naming server and tool; bounded and without secrets.
    pub message: String,
}
