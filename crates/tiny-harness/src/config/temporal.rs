//! The tables of the Temporal engine. They are read and checked; this build has no such engine.

use std::path::PathBuf;

use super::{
    checks::{host_and_port, if_set, not_blank, range},
    section::{optional, or, section},
    setting::Choice,
};

section! {
    /// The Temporal engine. Without this table the local engine runs. This build has no Temporal engine, so that the table
    /// is refused.
    Temporal {
        /// `remote` is a cluster or Temporal Cloud; `embedded` is a development server that the process owns.
        mode: Mode = or(Mode::Remote);
        /// Host and port of a remote server.
        address: Option<String> = optional(), if_set(host_and_port);
        /// Namespace; `default` on an embedded server.
        namespace: Option<String> = optional(), if_set(not_blank);
        /// Task queue.
        task_queue: String = or("tiny-harness"), not_blank;
        /// Whether to use TLS with a remote server.
        tls: bool = or(true);
        /// Whether to set search attributes; they must be registered on the namespace.
        search_attributes: bool = or(false);
    }
}

section! {
    /// The embedded development server.
    TemporalEmbedded {
        /// Whether its state survives a restart.
        persist: bool = or(true);
        /// Its database; `temporal.sqlite3` beside the store when not set.
        database_path: Option<PathBuf> = optional();
        /// The server's executable; looked up and fetched when not set.
        binary_path: Option<PathBuf> = optional();
        /// Where a fetched executable is kept; a cache folder of the user when not set.
        download_dir: Option<PathBuf> = optional();
        /// Port to listen on; a free one when not set.
        port: Option<u16> = optional(), if_set(range(1, u16::MAX));
    }
}

/// Where Temporal runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Elsewhere.
    #[default]
    Remote,
    /// In a process that this one owns.
    Embedded,
}

impl Choice for Mode {
    const CHOICES: &'static [(Self, &'static str)] =
        &[(Self::Remote, "remote"), (Self::Embedded, "embedded")];
}
