//! The PostgreSQL server that several processes keep their tasks on.

use std::{net::IpAddr, path::PathBuf};

use harness_model::Secret;
use harness_store::{PostgresOptions, PostgresTls};

use super::{
    checks::{not_blank, range},
    environment::Environment,
    operation::Store,
    problem::{Refusal, quoted},
    reader::{Reader, Table},
    section::{optional, or, required, section},
    setting::Choice,
};

/// The variable that holds the password.
const PASSWORD: &str = "TINY_HARNESS_POSTGRES_PASSWORD";

section! {
    /// A PostgreSQL server instead of the SQLite file. The password of the role comes from
    /// `TINY_HARNESS_POSTGRES_PASSWORD`. `TINY_HARNESS_PUSH_KEY` has to be set as well: whoever shares the store needs the
    /// same one. The data of plugins is in `plugin-data` in the folder where tiny-harness is started.
    PostgresTable {
        /// Host name or address; a path that begins with `/` is the folder of a Unix socket.
        host: String = or("127.0.0.1"), not_blank;
        /// Port.
        port: u16 = or(5_432_u16), range(1, u16::MAX);
        /// Database; it has to exist, encoded in UTF-8.
        database: String = required(), not_blank;
        /// Role. It owns the schema, or may make it.
        user: String = required(), not_blank;
        /// Schema that holds the tables, made when it is missing: lower-case letters, digits and underscores. Processes
        /// that name the same one share the store.
        schema: String = or(PostgresOptions::SCHEMA), schema_name;
        /// `require` encrypts, `verify-full` also checks that the certificate is the host's. Not set: `disable` on this
        /// machine, `require` elsewhere.
        tls: Option<Tls> = optional();
        /// Certificates, in PEM, of the authorities that `verify-full` trusts. Not set: those of the system.
        tls_ca: Option<PathBuf> = optional();
        /// Connections that read and write at once. From 2 to 200. A few more wake those who follow.
        pool: u32 = or(PostgresOptions::POOL), range(2, 200);
    }
}

/// Protection of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tls {
    /// None.
    Disable,
    /// Encryption.
    #[default]
    Require,
    /// Encryption with a server that proves who it is.
    VerifyFull,
}

impl Choice for Tls {
    const CHOICES: &'static [(Self, &'static str)] =
        &[(Self::Disable, "disable"), (Self::Require, "require"), (Self::VerifyFull, "verify-full")];
}

/// `[store.postgres]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Postgres {
    /// The table.
    pub(crate) table: PostgresTable,
    /// The password of the role.
    password: Option<Secret>,
}

impl Postgres {
    /// How the store is opened.
    pub(crate) fn options(&self) -> PostgresOptions {
        let table = &self.table;
        let tls = table.tls.unwrap_or(if is_here(&table.host) { Tls::Disable } else { Tls::Require });
        PostgresOptions {
            port: table.port,
            password: self.password.clone(),
            schema: table.schema.clone(),
            tls: match tls {
                Tls::Disable => PostgresTls::Disable,
                Tls::Require => PostgresTls::Require,
                Tls::VerifyFull => PostgresTls::VerifyFull,
            },
            tls_ca: table.tls_ca.clone(),
            pool: table.pool,
            ..PostgresOptions::new(&table.host, &table.database, &table.user)
        }
    }

    /// Where it is, for the operator.
    pub(crate) fn place(&self) -> String {
        let table = &self.table;
        format!("{}@{}:{}/{}, schema {}", table.user, table.host, table.port, table.database, table.schema)
    }
}

/// Reads `[store]` and `[store.postgres]`; `None` for the SQLite file.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
) -> (Store, Option<Postgres>) {
    let store = reader.table(root, "store");
    let table = reader.table(&store, "postgres");
    let read = reader.section(&store, &["postgres"]);
    // Also without the table: a secret of the environment is never shown.
    let password = environment.password(PASSWORD, reader);
    if !table.is_present() {
        return (read, None);
    }
    if store.has("sqlite_path") {
        let message = "`sqlite_path` and [store.postgres] exclude each other".to_owned();
        reader.refuse(&store, "sqlite_path", message, "remove one of the two".to_owned());
    }
    if !environment.has("TINY_HARNESS_PUSH_KEY") {
        reader.refuse_table(
            &table,
            "TINY_HARNESS_PUSH_KEY is not set, and whoever shares a store needs the same one".to_owned(),
            "make one with `openssl rand -base64 32` and set it for every process".to_owned(),
        );
    }
    (read, Some(Postgres { table: reader.section(&table, &[]), password }))
}

/// Whether a server of this host is on this machine. Decided by the text, never by a name server.
fn is_here(host: &str) -> bool {
    host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[expect(clippy::ptr_arg, reason = "a rule takes a reference to the type of its key")]
fn schema_name(name: &String) -> Result<(), Refusal> {
    if PostgresOptions::is_schema_name(name) {
        return Ok(());
    }
    Err(Refusal::with_remedy(
        format!(
            "must be lower-case letters, digits and underscores, and not begin with a digit or `pg_`, not {}",
            quoted(name)
        ),
        "choose a plain name of at most 48 characters, for example `tiny_harness`",
    ))
}
