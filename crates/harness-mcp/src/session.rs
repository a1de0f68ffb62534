//! One session with one server: listing, calls, and when it is over.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use harness_model::{Redactor, clean_field, names};
use harness_ports::{ToolCall, ToolOutput};
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, ErrorCode,
        ErrorData, Implementation, ListToolsRequest, PaginatedRequestParams, RequestMetaObject, ServerResult,
        Tool,
    },
    service::{PeerRequestOptions, RequestHandle},
};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use crate::{
    definition::Digest,
    http::{HttpFault, fault_of},
    result::{dropped_output, output_of, output_of_unknown},
    stdio::is_unreadable,
    watched::{Progress, Watch},
};

/// Pages of a tool list.
const PAGES_MAX: usize = 64;
/// Tools of one server.
const TOOLS_MAX: usize = 1_024;
/// How long telling a server that a call was given up may take.
const NOTICE_TIMEOUT: Duration = Duration::from_millis(200);
/// Characters of a server's own words in an error.
const SERVER_WORDS_MAX: usize = 400;

/// What calls are written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// A pipe: writing ends as soon as the server reads.
    Pipe,
    /// HTTP: sending ends when the response begins.
    Http,
}

/// The open connection, shared by its owner and the calls.
#[derive(Debug)]
pub(crate) struct Link {
    peer: Peer<RoleClient>,
    wire: Wire,
    watch: Watch,
    /// Cancelled when no further call should use it; calls in flight go on.
    retired: CancellationToken,
    in_flight: TaskTracker,
    answered: AtomicBool,
    expired: AtomicBool,
}

impl Link {
    pub(crate) fn new(peer: Peer<RoleClient>, wire: Wire, watch: Watch) -> Self {
        Self {
            peer,
            wire,
            watch,
            retired: CancellationToken::new(),
            in_flight: TaskTracker::new(),
            answered: AtomicBool::new(false),
            expired: AtomicBool::new(false),
        }
    }

    /// Whether a call may use it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.watch.over.is_cancelled() && !self.retired.is_cancelled()
    }

    /// Waits until no call may use it any more.
    pub(crate) async fn ended(&self) {
        tokio::select! {
            () = self.watch.over.cancelled() => {}
            () = self.retired.cancelled() => {}
        }
    }

    /// Lets the calls in flight end, for a bounded time and not beyond `stop`.
    pub(crate) async fn settled(&self, within: Duration, stop: &CancellationToken) {
        self.in_flight.close();
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.watch.over.cancelled() => {}
            () = self.in_flight.wait() => {}
            () = tokio::time::sleep(within) => {}
        }
    }

    /// No further call uses it.
    pub(crate) fn retire(&self) {
        self.retired.cancel();
    }

    /// The server does not know it any more, so that no further call uses it. Whether this call was the first to learn.
    pub(crate) fn expire(&self) -> bool {
        self.retire();
        !self.expired.swap(true, Ordering::AcqRel)
    }

    /// Ends it at once, with every call in flight.
    pub(crate) fn end(&self) {
        self.watch.over.cancel();
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether it answered a call.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    /// Whether the server said that its tools changed, since this was last asked.
    pub(crate) fn take_tools_changed(&self) -> bool {
        self.watch.tools_changed.swap(false, Ordering::AcqRel)
    }

    /// Asks for another listing before the next call.
    pub(crate) fn mark_tools_changed(&self) {
        self.watch.tools_changed.store(true, Ordering::Release);
    }

    /// Lists the tools, bounded. Errors: what is wrong, in words for people.
    pub(crate) async fn list_tools(&self) -> Result<Vec<Tool>, String> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let request = ListToolsRequest {
                params: Some(PaginatedRequestParams::default().with_cursor(cursor)),
                ..ListToolsRequest::default()
            };
            let answer = self.peer.send_request(ClientRequest::ListToolsRequest(request)).await;
            let Ok(ServerResult::ListToolsResult(page)) = answer else {
                return Err("does not list its tools".to_owned());
            };
            tools.extend(page.tools);
            if tools.len() > TOOLS_MAX {
                return Err(format!("lists more than {TOOLS_MAX} tools"));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(format!("lists its tools on more than {PAGES_MAX} pages"))
    }
}

/// A link and the definitions that were listed on it. Replaced as a whole when the server is listed again.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) link: Arc<Link>,
    digests: HashMap<String, Digest>,
    pub(crate) listed_at: Instant,
}

/// How one attempt at a call ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The server answered.
    Answer(ToolOutput),
    /// The server refused the call: its words.
    Refused(String),
    /// The connection was lost before an answer came.
    Lost { sent: bool },
    /// The server does not know the session any more, and did not run the call.
    Expired,
    /// The server turned the call away before running it, for this reason.
    NotSent(&'static str),
    /// Out of time.
    TimedOut { sent: bool },
    /// Stopped on request.
    Canceled,
}

type Answer = Result<ServerResult, ServiceError>;

impl Session {
    pub(crate) fn new(link: Arc<Link>, tools: &[Tool], listed_at: Instant) -> Self {
        let digests = tools.iter().map(|tool| (tool.name.to_string(), Digest::of(tool))).collect();
        Self { link, digests, listed_at }
    }

    /// Whether the tool is still defined as it was registered.
    pub(crate) fn defines(&self, tool: &str, registered: &Digest) -> bool {
        self.digests.get(tool) == Some(registered)
    }

    /// Marks the session as used by a call, until the token is dropped.
    pub(crate) fn enter(&self) -> TaskTrackerToken {
        self.link.in_flight.token()
    }

    /// Calls a tool once.
    pub(crate) async fn call(
        &self,
        tool: &str,
        call: &ToolCall,
        deadline: Instant,
        redactor: &Redactor,
    ) -> Ending {
        let progress = Progress::default();
        let sending = self.link.peer.send_request_with_option(request(tool, call, &progress), options(call));
        let mut handle = tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Ending::Canceled,
            () = sleep_until(deadline) => return Ending::TimedOut { sent: false },
            handle = sending => match handle {
                Ok(handle) => handle,
                Err(_) => return Ending::Lost { sent: false },
            },
        };
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer.ok(),
            () = call.cancel.cancelled() => {
                give_up(handle, "the caller stopped the call").await;
                return Ending::Canceled;
            }
            () = sleep_until(deadline) => {
                give_up(handle, "out of time").await;
                if self.link.wire == Wire::Pipe && progress.is_stuck() {
                    // The server does not even read: nothing else will get through either.
                    self.link.end();
                }
                return Ending::TimedOut { sent: progress.is_handed() };
            }
            () = self.link.watch.over.cancelled() => handle.rx.try_recv().ok(),
        };
        match answer {
            Some(answer) => self.ending_of(answer, &progress, redactor),
            None => Ending::Lost { sent: progress.is_handed() },
        }
    }

    fn ending_of(&self, answer: Answer, progress: &Progress, redactor: &Redactor) -> Ending {
        let lost = Ending::Lost { sent: progress.is_handed() };
        match answer {
            Ok(result) => {
                self.link.answered.store(true, Ordering::Release);
                answer_of(result).map_or(lost, Ending::Answer)
            }
            Err(ServiceError::McpError(error)) if is_unreadable(&error) => lost,
            Err(ServiceError::McpError(error)) => {
                self.link.answered.store(true, Ordering::Release);
                refusal_or_failure(error, redactor)
            }
            Err(ServiceError::TransportSend(error)) => match fault_of(&error) {
                // A frame that was not written whole is not understood.
                None => Ending::Lost { sent: false },
                Some(HttpFault::Expired) => Ending::Expired,
                Some(HttpFault::NotSent) => Ending::NotSent("cannot be reached, or turns requests away"),
                Some(HttpFault::Unauthorized) => Ending::NotSent("asks for authorization"),
                Some(HttpFault::TooLarge) => Ending::Answer(dropped_output()),
                Some(HttpFault::Unknown) => lost,
            },
            Err(_) => lost,
        }
    }
}

/// The answer in a result; `None` when it is the result of something else than a call.
fn answer_of(result: ServerResult) -> Option<ToolOutput> {
    if let ServerResult::CallToolResult(result) = result {
        return Some(output_of(result));
    }
    if let ServerResult::CustomResult(result) = &result {
        return output_of_unknown(&result.0);
    }
    matches!(result, ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_)).then(|| ToolOutput {
        is_error: false,
        parts: Vec::new(),
        truncated: false,
    })
}

/// An error that says the call was not run is a refusal; any other is the tool's own failure, for the model to read.
fn refusal_or_failure(error: ErrorData, redactor: &Redactor) -> Ending {
    let words = clean_field(&redactor.text(&error.message), Some(SERVER_WORDS_MAX)).text;
    let refusals = [
        ErrorCode::INVALID_PARAMS,
        ErrorCode::INVALID_REQUEST,
        ErrorCode::METHOD_NOT_FOUND,
        ErrorCode::PARSE_ERROR,
        ErrorCode::RESOURCE_NOT_FOUND,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
        ErrorCode::HEADER_MISMATCH,
    ];
    if refusals.contains(&error.code) {
        return Ending::Refused(words);
    }
    let text = format!("The tool failed with MCP error {}: {words}", error.code.0);
    Ending::Answer(ToolOutput {
        is_error: true,
        parts: vec![harness_ports::ToolPart::Text(text)],
        truncated: false,
    })
}

fn request(tool: &str, call: &ToolCall, progress: &Progress) -> ClientRequest {
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(call.arguments.clone());
    let mut request = CallToolRequest::new(params);
    request.extensions.insert(progress.clone());
    ClientRequest::CallToolRequest(request)
}

fn options(call: &ToolCall) -> PeerRequestOptions {
    let mut meta = RequestMetaObject::new();
    meta.insert(names::IDEMPOTENCY_KEY.to_owned(), call.idempotency_key.clone().into());
    PeerRequestOptions::no_options().with_meta(meta)
}

/// Tells the server that nobody waits for the answer any more.
async fn give_up(handle: RequestHandle<RoleClient>, reason: &str) {
    // A server that does not take the notice in time is no worse off than one that ignores it.
    drop(timeout(NOTICE_TIMEOUT, handle.cancel(Some(reason.to_owned()))).await);
}

/// The harness as an MCP client: it offers servers nothing.
#[derive(Debug)]
pub(crate) struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let version = env!("CARGO_PKG_VERSION");
        ClientConfig::new(ClientCapabilities::default(), Implementation::new(names::DEFAULT_AGENT, version))
    }
}
