//! The tables of the Temporal engine.

use std::path::PathBuf;

use harness_model::Secret;

use super::{
    checks::{host_and_port, if_set, not_blank, range},
    environment::Environment,
    reader::{Reader, Table},
    section::{optional, or, section},
    setting::Choice,
};

const API_KEY: &str = "TEMPORAL_API_KEY";
/// Keys that only a remote server has.
pub(super) const REMOTE_ONLY: [&str; 6] =
    ["address", "tls", "server_ca", "server_name", "client_certificate", "client_key"];

section! {
    /// The Temporal engine. Without this table the local engine runs.
    Temporal {
        /// `remote` is a cluster or Temporal Cloud; `embedded` is a development server that the process owns.
        mode: Mode = or(Mode::Remote);
        /// Host and port of a remote server; required for one.
        address: Option<String> = optional(), if_set(host_and_port);
        /// Namespace; required for a remote server, `default` on an embedded one.
        namespace: Option<String> = optional(), if_set(not_blank);
        /// Task queue that servers and workers of this agent share.
        task_queue: String = or("tiny-harness"), not_blank;
        /// Whether to use TLS with a remote server. With TLS the server wants to know who calls: set `TEMPORAL_API_KEY`, or
        /// `client_certificate` and `client_key`.
        tls: bool = or(true);
        /// PEM file of the authority that signed the certificate of a remote server; those of the system when not set.
        server_ca: Option<PathBuf> = optional();
        /// Name to check that certificate against; the one in `address` when not set.
        server_name: Option<String> = optional(), if_set(not_blank);
        /// PEM file of our own certificate, for mutual TLS.
        client_certificate: Option<PathBuf> = optional();
        /// PEM file of its key.
        client_key: Option<PathBuf> = optional();
        /// Whether to set the search attributes `A2AContextId`, `A2ATaskState` and `TinyHarnessAgent`; a remote namespace must
        /// have them.
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

/// The tables, as far as they are there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TemporalConfig {
    /// `[temporal]`.
    pub(crate) table: Temporal,
    /// `[temporal.embedded]`.
    pub(crate) embedded: TemporalEmbedded,
    /// From the environment.
    pub(crate) api_key: Option<Secret>,
}

/// Reads the tables; `None` when the local engine is to run.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
) -> Option<TemporalConfig> {
    let table = reader.table(root, "temporal");
    if !table.is_present() {
        return None;
    }
    let temporal: Temporal = reader.section(&table, &["embedded"]);
    let embedded_table = reader.table(&table, "embedded");
    let embedded: TemporalEmbedded = reader.section(&embedded_table, &[]);
    let api_key = environment.secret(API_KEY, reader);
    if cfg!(not(feature = "temporal")) {
        let message = "this build has no Temporal engine".to_owned();
        let remedy = "remove [temporal] to use the local engine, or build with the feature `temporal`";
        reader.refuse_table(&table, message, remedy.to_owned());
    }
    match temporal.mode {
        // What else is wrong depends on what was meant.
        _ if reader.has_problem_at(&table.key("mode")) => {}
        Mode::Remote => check_remote(reader, &table, &embedded_table, &temporal, environment),
        Mode::Embedded => check_embedded(reader, &table, environment),
    }
    Some(TemporalConfig { table: temporal, embedded, api_key })
}

fn check_remote<'a>(
    reader: &mut Reader<'a>,
    table: &Table<'a>,
    embedded: &Table<'a>,
    temporal: &Temporal,
    environment: Environment<'_>,
) {
    let required = [
        ("address", temporal.address.is_none(), "write for example `address = \"temporal.internal:7233\"`"),
        ("namespace", temporal.namespace.is_none(), "write for example `namespace = \"default\"`"),
    ];
    for (key, missing, remedy) in required {
        if missing && !reader.has_problem_at(&table.key(key)) {
            let message = format!("`{key}` is required when `mode` is `remote`");
            reader.refuse(table, key, message, format!("{remedy}, or choose `mode = \"embedded\"`"));
        }
    }
    if embedded.is_present() {
        let message = "[temporal.embedded] has no meaning when `mode` is `remote`".to_owned();
        reader.refuse_table(
            embedded,
            message,
            "remove the table, or choose `mode = \"embedded\"`".to_owned(),
        );
    }
    if temporal.client_certificate.is_some() != temporal.client_key.is_some() {
        let (key, other) = match &temporal.client_certificate {
            Some(_) => ("client_certificate", "client_key"),
            None => ("client_key", "client_certificate"),
        };
        let message = format!("`{key}` is of no use without `{other}`");
        reader.refuse(table, key, message, format!("set `{other}` as well, or remove `{key}`"));
    }
    let knows_who = environment.has(API_KEY) || temporal.client_certificate.is_some();
    if temporal.tls && !knows_who && !reader.has_problem_at(&table.key("client_key")) {
        reader.refuse_variable(
            API_KEY,
            format!("{API_KEY} is not set, and no certificate says who we are (temporal.client_certificate)"),
            "set one of them, or `tls = false` for a server that asks nobody".to_owned(),
        );
    }
    if !temporal.tls && environment.has(API_KEY) {
        let message = format!("{API_KEY} is set and `tls` is off: the key would travel in the clear");
        reader.refuse(table, "tls", message, format!("remove `tls = false`, or unset {API_KEY}"));
    }
}

fn check_embedded<'a>(reader: &mut Reader<'a>, table: &Table<'a>, environment: Environment<'_>) {
    for key in REMOTE_ONLY {
        if reader.set.contains(&table.key(key)) {
            let message = format!("`{key}` has no meaning when `mode` is `embedded`");
            reader.refuse(table, key, message, format!("remove `{key}`, or choose `mode = \"remote\"`"));
        }
    }
    if environment.has(API_KEY) {
        reader.refuse_variable(
            API_KEY,
            format!("{API_KEY} is set, and an embedded server takes no key"),
            format!("unset {API_KEY}, or choose `mode = \"remote\"` (temporal.mode)"),
        );
    }
}

impl Choice for Mode {
    const CHOICES: &'static [(Self, &'static str)] =
        &[(Self::Remote, "remote"), (Self::Embedded, "embedded")];
}
