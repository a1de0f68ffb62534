//! [`McpTools`]: the tools of all servers behind the tool port.

use std::{collections::HashSet, path::PathBuf, sync::Arc, time::Duration};

use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use harness_model::{BlockId, Redactor, codes};
use harness_ports::{TaskGroup, ToolCall, ToolDefinition, ToolError, ToolErrorKind, ToolOutput, ToolSource};
use tokio::time::{Instant, sleep_until};

use crate::{
    catalogue::{Catalogue, RegisteredTool},
    config::{McpOptions, ServerConfig, ServerTransport, StartProblem},
    server,
    session::{Ending, Session},
};

/// What closing takes on top of the time a process has to leave: killing it and reading the rest of its output.
const CLOSE_MARGIN: Duration = Duration::from_secs(2);

/// Tools of MCP servers. See [`ToolSource`] for the contract of calls; limits are in `harness_model::limits`.
#[derive(Debug)]
pub struct McpTools {
    catalogue: Catalogue,
    stderr_files: Vec<PathBuf>,
    group: TaskGroup,
    close_timeout: Duration,
    redactor: Arc<Redactor>,
}

impl McpTools {
    /// Starts all servers at once and registers their tools. What does not work is reported and left out: a server that
    /// cannot be started or does not answer within `options.start_timeout`, one whose prefix is taken, a tool that
    /// cannot be registered. Sessions live until [`ToolSource::shutdown`] or until `group` stops; `group` waits for them.
    pub async fn start(
        servers: Vec<ServerConfig>,
        options: McpOptions,
        group: &TaskGroup,
    ) -> (Arc<Self>, Vec<StartProblem>) {
        let own_group = group.child();
        let close_timeout = options.leave_timeout.saturating_add(CLOSE_MARGIN);
        group.spawn({
            let own_group = own_group.clone();
            async move {
                own_group.stop_token().cancelled().await;
                own_group.shutdown(close_timeout).await;
            }
        });

        let (servers, mut problems) = distinct(servers);
        let options = Arc::new(options);
        let mut stderr_files = Vec::new();
        let starts = servers.into_iter().map(|config| {
            let stderr_file = stderr_file(&config, &options);
            stderr_files.extend(stderr_file.clone());
            let prefix = config.registry_prefix.clone();
            server::start(config, stderr_file, options.clone(), &own_group).map(|started| (prefix, started))
        });
        let started = join_all(starts).await;

        let mut catalogue = Catalogue::default();
        for (prefix, started) in started {
            match started {
                Ok(started) => {
                    problems.extend(catalogue.add(&prefix, &Arc::new(started.handle), &started.tools))
                }
                Err(why) => problems.push(server_problem(&prefix, &why)),
            }
        }
        let redactor = options.redactor.clone();
        (Arc::new(Self { catalogue, stderr_files, group: own_group, close_timeout, redactor }), problems)
    }
}

impl ToolSource for McpTools {
    fn catalogue(&self) -> Vec<ToolDefinition> {
        self.catalogue.definitions()
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = self.catalogue.get(&call.name);
        let redactor = self.redactor.clone();
        async move {
            let Some(tool) = tool else {
                return Err(ToolError::new(
                    ToolErrorKind::NotFound,
                    format!("there is no tool {:?}", call.name),
                ));
            };
            let deadline = Instant::now() + call.timeout;
            Call { tool: &tool, call: &call, deadline, redactor: &redactor }.run().await
        }
        .boxed()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        async {
            if !self.group.shutdown(self.close_timeout).await {
                tracing::warn!("MCP servers were not gone in time");
            }
        }
        .boxed()
    }

    fn diagnostics(&self) -> Vec<PathBuf> {
        self.stderr_files.clone()
    }
}

/// One call, of at most two attempts.
struct Call<'a> {
    tool: &'a RegisteredTool,
    call: &'a ToolCall,
    deadline: Instant,
    redactor: &'a Redactor,
}

impl Call<'_> {
    async fn run(&self) -> Result<ToolOutput, ToolError> {
        let first = self.attempt().await?;
        if !self.may_repeat(&first) {
            return self.conclude(first);
        }
        tracing::info!(tool = self.call.name, "MCP session was lost in a call; the call is made once more");
        let ending = self.attempt().await?;
        self.conclude(ending)
    }

    /// Whether one more attempt cannot do harm and may do good.
    fn may_repeat(&self, ending: &Ending) -> bool {
        match ending {
            Ending::Lost { sent: false } => true,
            Ending::Lost { sent: true } | Ending::Expired => self.tool.is_repeatable(),
            Ending::Answer(_)
            | Ending::Refused(_)
            | Ending::NotSent(_)
            | Ending::TimedOut { .. }
            | Ending::Canceled => false,
        }
    }

    /// One attempt, on the current session or a new one.
    async fn attempt(&self) -> Result<Ending, ToolError> {
        let session = tokio::select! {
            biased;
            () = self.call.cancel.cancelled() => return Ok(Ending::Canceled),
            () = sleep_until(self.deadline) => return Ok(Ending::TimedOut { sent: false }),
            session = self.tool.server.session() => {
                session.map_err(|why| self.error(ToolErrorKind::NotSent, &format!("its server {why}; the call was not sent")))?
            }
        };
        if !session.defines(&self.tool.tool, &self.tool.digest) {
            return Err(self.error(
                ToolErrorKind::DefinitionChanged,
                "its definition changed since it was registered, or it is gone; the call was not sent",
            ));
        }
        Ok(self.on(&session).await)
    }

    async fn on(&self, session: &Session) -> Ending {
        let _in_flight = session.enter();
        let ending = session.call(&self.tool.tool, self.call, self.deadline, self.redactor).await;
        match &ending {
            Ending::Answer(_) | Ending::Refused(_) => self.tool.server.note_answer(),
            // Several calls may find the same session gone.
            Ending::Expired if session.link.expire() => self.tool.server.note_expiry(),
            Ending::Expired
            | Ending::Lost { .. }
            | Ending::NotSent(_)
            | Ending::TimedOut { .. }
            | Ending::Canceled => {}
        }
        ending
    }

    fn conclude(&self, ending: Ending) -> Result<ToolOutput, ToolError> {
        let error = |kind, what: &str| Err(self.error(kind, what));
        match ending {
            Ending::Answer(output) => Ok(output),
            Ending::Refused(words) => error(
                ToolErrorKind::Refused,
                &format!("its server refused the call, which did not take effect: {words}"),
            ),
            Ending::Lost { sent: true } => error(
                ToolErrorKind::OutcomeUnknown,
                "its server went away before it answered; the call may or may not have taken effect",
            ),
            Ending::Lost { sent: false } => {
                error(ToolErrorKind::NotSent, "its server went away; the call was not sent")
            }
            Ending::Expired if self.tool.server.forgets_every_session() => error(
                ToolErrorKind::Unusable,
                "its server forgets every session at once; the call did not take effect",
            ),
            Ending::Expired => error(
                ToolErrorKind::NotSent,
                "its server does not know the session any more; the call did not take effect",
            ),
            Ending::NotSent(why) => {
                error(ToolErrorKind::NotSent, &format!("its server {why}; the call was not sent"))
            }
            Ending::TimedOut { sent: true } => error(
                ToolErrorKind::OutcomeUnknown,
                &format!(
                    "no answer within {} ms; the call may or may not have taken effect",
                    self.call.timeout.as_millis()
                ),
            ),
            Ending::TimedOut { sent: false } => error(
                ToolErrorKind::NotSent,
                &format!(
                    "its server was not ready within {} ms; the call was not sent",
                    self.call.timeout.as_millis()
                ),
            ),
            Ending::Canceled => error(ToolErrorKind::Canceled, "stopped on request"),
        }
    }

    fn error(&self, kind: ToolErrorKind, what: &str) -> ToolError {
        ToolError::new(kind, format!("tool {}: {what}", self.tool.definition.name))
    }
}

/// The servers whose prefix no earlier one has.
fn distinct(servers: Vec<ServerConfig>) -> (Vec<ServerConfig>, Vec<StartProblem>) {
    let mut seen = HashSet::new();
    let (first, again): (Vec<_>, Vec<_>) =
        servers.into_iter().partition(|server| seen.insert(server.registry_prefix.clone()));
    let problems = again
        .iter()
        .map(|server| server_problem(&server.registry_prefix, "is configured more than once"))
        .collect();
    (first, problems)
}

fn server_problem(prefix: &str, why: &str) -> StartProblem {
    StartProblem {
        server: prefix.to_owned(),
        tool: None,
        code: codes::TOOL_UNAVAILABLE,
        message: format!("MCP server {prefix} {why}; its tools are not available"),
    }
}

/// A file name that no other server gets: the prefix in plain characters and the beginning of its digest.
fn stderr_file(config: &ServerConfig, options: &McpOptions) -> Option<PathBuf> {
    let dir = options.stderr_dir.as_ref()?;
    if matches!(config.transport, ServerTransport::StreamableHttp { .. }) {
        return None;
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
    let name: String = config.registry_prefix.chars().map(plain).take(80).collect();
    let id = BlockId::of(config.registry_prefix.as_bytes());
    Some(dir.join(format!("{name}-{}.stderr.log", &id.as_str()[..8])))
}
