//! How the store on a server is opened.

use std::{fmt, path::PathBuf, time::Duration};

use harness_model::Secret;

use crate::options::{BLOCK_CACHE_BYTES, CommitHook};

/// How the connections to the server are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostgresTls {
    /// Not at all. For a server on the same machine.
    Disable,
    /// Encrypted; the server's certificate is not looked at.
    #[default]
    Require,
    /// Encrypted, and the server's certificate must be for its host, by an authority that is trusted.
    VerifyFull,
}

/// Who else may use the store at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostgresUse {
    /// Whoever opens it the same way, any number of them: for engines that share the work.
    #[default]
    Shared,
    /// Nobody who wants to be alone too: for an engine that takes all of the work for its own. A process that loses the
    /// store to another one, because the server did not hear of it for a while, gets `Locked` for what it writes.
    Alone,
}

/// How a store on a server is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// Host name or address; a path is the folder of a Unix socket.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Database; it must exist and be encoded in UTF-8.
    pub database: String,
    /// Role that owns the tables.
    pub user: String,
    /// Its password, when the server asks for one.
    pub password: Option<Secret>,
    /// Schema that holds the tables: at most 48 lower-case letters, digits and underscores, beginning with no digit.
    /// Made when it is missing. Processes that name the same schema share the store.
    pub schema: String,
    /// Who else may use it.
    pub usage: PostgresUse,
    /// Protection of the connections.
    pub tls: PostgresTls,
    /// Certificates in PEM of the authorities that [`PostgresTls::VerifyFull`] trusts; those of the system otherwise.
    pub tls_ca: Option<PathBuf>,
    /// Connections that read and write at once; at least 2. Up to three more of each process listen, tell and
    /// hold its lock.
    pub pool: u32,
    /// How long a read or a batch waits for a connection.
    pub acquire_timeout: Duration,
    /// Bytes of blocks kept in memory. Zero keeps none.
    pub block_cache_bytes: usize,
    /// As [`crate::StoreOptions::on_commit`]; while it is set batches are committed one after another.
    pub on_commit: Option<CommitHook>,
}

impl PostgresOptions {
    /// Connections when nothing else is asked for.
    pub const POOL: u32 = 8;
    /// Schema when nothing else is asked for.
    pub const SCHEMA: &str = "tiny_harness";
    const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
    const SCHEMA_BYTES_MAX: usize = 48;

    /// The options of a production store in this database.
    pub fn new(host: impl Into<String>, database: impl Into<String>, user: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port: 5432,
            database: database.into(),
            user: user.into(),
            password: None,
            schema: Self::SCHEMA.to_owned(),
            usage: PostgresUse::default(),
            tls: PostgresTls::default(),
            tls_ca: None,
            pool: Self::POOL,
            acquire_timeout: Self::ACQUIRE_TIMEOUT,
            block_cache_bytes: BLOCK_CACHE_BYTES,
            on_commit: None,
        }
    }

    /// Whether this may be the name of a schema here: it needs no quotes anywhere.
    pub fn is_schema_name(name: &str) -> bool {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.starts_with("pg_")
            && (1..=Self::SCHEMA_BYTES_MAX).contains(&name.len())
            && name.bytes().all(plain)
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("database", &self.database)
            .field("user", &self.user)
            .field("schema", &self.schema)
            .field("usage", &self.usage)
            .field("tls", &self.tls)
            .field("pool", &self.pool)
            .field("on_commit", &self.on_commit.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_schemas_need_no_quotes() {
        for good in ["tiny_harness", "a", "_x9", &"s".repeat(48)] {
            assert!(PostgresOptions::is_schema_name(good), "{good}");
        }
        for bad in ["", "9a", "A", "a b", "a\"; drop", "pg_x", "ä", "a-b", &"s".repeat(49)] {
            assert!(!PostgresOptions::is_schema_name(bad), "{bad}");
        }
    }

    #[test]
    fn nothing_shows_the_password() {
        let password = Some(Secret::new("hush-hush-42"));
        let options = PostgresOptions { password, ..PostgresOptions::new("h", "d", "u") };
        assert!(!format!("{options:?}").contains("hush"));
    }
}
