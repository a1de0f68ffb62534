//! What kind of server is wanted.

use std::{
    ffi::OsString,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use crate::{BinarySource, LogTo};

/// The namespace that every server has.
const NAMESPACE_DEFAULT: &str = "default";
/// How long a server may take until it answers. It takes a quarter of a second on an idle machine.
const START_MAX_DEFAULT: Duration = Duration::from_secs(30);
/// How long a server may take to leave. An idle one takes between two and three seconds.
const STOP_GRACE_DEFAULT: Duration = Duration::from_secs(5);

/// Set for every server. By default a shard looks for due work 20 times a second at most, and a server like this has one
/// shard for everything: every step of a workflow then waits for its slot of 50 ms.
const DYNAMIC_CONFIG: [&str; 2] =
    ["history.transferProcessorMaxPollRPS=1000", "history.timerProcessorMaxPollRPS=1000"];
/// Set for every file. One write to disk per transaction in place of three or more, and just as safe: every commit is
/// still forced to disk before it counts.
const SQLITE_PRAGMAS: [&str; 2] = ["journal_mode=wal", "synchronous=full"];

/// Where a server keeps what it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In memory: everything is gone with the process.
    InMemory,
    /// In a SQLite file, which is made when it is not there. Workflows go on when a server starts on it again.
    /// The folder has to exist. `%`, `?` and `#` cannot be part of the path: the server reads it as a URL.
    File(PathBuf),
}

/// The type of a search attribute, as Temporal names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAttributeKind {
    /// Words that are searched for.
    Text,
    /// One exact value.
    Keyword,
    /// Several exact values.
    KeywordList,
    /// A whole number.
    Int,
    /// A number.
    Double,
    /// Yes or no.
    Bool,
    /// A moment.
    Datetime,
}

impl SearchAttributeKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "Text",
            Self::Keyword => "Keyword",
            Self::KeywordList => "KeywordList",
            Self::Int => "Int",
            Self::Double => "Double",
            Self::Bool => "Bool",
            Self::Datetime => "Datetime",
        }
    }
}

/// What kind of server is wanted.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where the program comes from.
    pub binary: BinarySource,
    /// Where its state is.
    pub state: State,
    /// Port on 127.0.0.1; a free one when not set.
    pub port: Option<u16>,
    /// The namespace that its user works in; made when it is not there.
    pub namespace: String,
    /// More namespaces to make.
    pub more_namespaces: Vec<String>,
    /// Search attributes to register.
    pub search_attributes: Vec<(String, SearchAttributeKind)>,
    /// `PRAGMA=VALUE` for its SQLite file, after the ones that are always set. Later ones win.
    pub sqlite_pragmas: Vec<String>,
    /// `KEY=JSON` of its dynamic configuration, after what is always set. Later ones win.
    pub dynamic_config: Vec<String>,
    /// Where its output goes.
    pub log: LogTo,
    /// How long it may take until it answers; 30 s by default.
    pub start_max: Duration,
    /// How long it may take to leave when it is asked to; then it is killed. 5 s by default. A server in memory has
    /// nothing to put in order and is killed at once.
    pub stop_grace: Duration,
}

impl ServerOptions {
    /// A server with this state, and defaults for everything else.
    pub fn new(binary: BinarySource, state: State) -> Self {
        Self {
            binary,
            state,
            port: None,
            namespace: NAMESPACE_DEFAULT.to_owned(),
            more_namespaces: Vec::new(),
            search_attributes: Vec::new(),
            sqlite_pragmas: Vec::new(),
            dynamic_config: Vec::new(),
            log: LogTo::Tracing,
            start_max: START_MAX_DEFAULT,
            stop_grace: STOP_GRACE_DEFAULT,
        }
    }

    /// The arguments of the program.
    pub(crate) fn arguments(&self, port: u16) -> Vec<OsString> {
        let mut arguments: Vec<OsString> =
            ["server", "start-dev", "--headless", "--ip=127.0.0.1", "--ui-ip=127.0.0.1", "--log-level=warn"]
                .map(OsString::from)
                .to_vec();
        arguments.push(format!("--port={port}").into());
        if let State::File(path) = &self.state {
            let mut file = OsString::from("--db-filename=");
            file.push(path);
            arguments.push(file);
            let pragmas = SQLITE_PRAGMAS.into_iter().chain(texts(&self.sqlite_pragmas));
            arguments.extend(repeated("--sqlite-pragma", pragmas));
        }
        let namespaces = std::iter::once(self.namespace.as_str()).chain(texts(&self.more_namespaces));
        arguments.extend(repeated("--namespace", namespaces.filter(|name| *name != NAMESPACE_DEFAULT)));
        let attributes: Vec<String> =
            self.search_attributes.iter().map(|(name, kind)| format!("{name}={}", kind.name())).collect();
        arguments.extend(repeated("--search-attribute", texts(&attributes)));
        let dynamic_config = DYNAMIC_CONFIG.into_iter().chain(texts(&self.dynamic_config));
        arguments.extend(repeated("--dynamic-config-value", dynamic_config));
        arguments
    }
}

fn texts(values: &[String]) -> impl Iterator<Item = &str> {
    values.iter().map(String::as_str)
}

fn repeated<'a>(flag: &str, values: impl Iterator<Item = &'a str>) -> impl Iterator<Item = OsString> {
    values.map(move |value| format!("{flag}={value}").into())
}

/// The address on loopback with this port.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
