//! The schema and its versions. A version, once released, never changes; a change is a new file.

use std::path::Path;

use harness_ports::StoreError;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::{self, During};

/// Marks the file as a store of this project: `tiny` in ASCII.
const APPLICATION_ID: i64 = 0x7469_6e79;
/// The migration at index `n` leads from version `n` to `n + 1`.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_block_owners.sql"),
    include_str!("../migrations/0003_age_of_records.sql"),
];

/// Brings the schema to the version of this build.
/// Errors: `Corrupt` for a file of a newer build or of another program.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let what = "reading the schema version";
    let known = MIGRATIONS.len();
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).during(what)?;
    let application: i64 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).during(what)?;
    let (path, version) = (path.display(), usize::try_from(version).unwrap_or(usize::MAX));
    if version > known {
        return Err(error::corrupt(format!(
            "{path} has schema version {version} and this build knows versions up to {known}; run the newer \
             tiny-harness that wrote it, or choose another path"
        )));
    }
    if application != APPLICATION_ID && !(application == 0 && is_empty(connection).during(what)?) {
        return Err(error::corrupt(format!("{path} is a database of another program; choose another path")));
    }
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(version) {
        apply(connection, index + 1, sql).during("migrating the schema")?;
    }
    Ok(())
}

fn apply(connection: &mut Connection, version: usize, sql: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(version).unwrap_or(i64::MAX))?;
    transaction.commit()
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let objects: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    Ok(objects == 0)
}

/// The random value of this store; made on the first call ever.
pub(crate) fn install_id(connection: &Connection) -> Result<String, StoreError> {
    let what = "reading the install id";
    let found = connection
        .query_row("SELECT value FROM meta WHERE key = 'install_id'", (), |row| row.get(0))
        .optional()
        .during(what)?;
    if let Some(id) = found {
        return Ok(id);
    }
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|e| StoreError::Unavailable {
        what: "drawing the install id".to_owned(),
        source: Some(Box::new(e)),
    })?;
    let id = format!("{:032x}", u128::from_be_bytes(random));
    connection.execute("INSERT INTO meta (key, value) VALUES ('install_id', ?1)", [&id]).during(what)?;
    Ok(id)
}
