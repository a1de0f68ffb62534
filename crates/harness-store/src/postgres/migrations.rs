//! The schema and its versions. A version, once released, never changes; a change is a new file.

use harness_ports::StoreError;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::{
    connect::{Server, step},
    error::server,
};
use crate::error;

/// The migration at index `n` leads from version `n` to `n + 1`.
const MIGRATIONS: &[&str] = &[include_str!("../../migrations/postgres/0001_initial.sql")];
/// Holds the versions, and marks the schema as a store of this project.
const VERSIONS: &str = "tiny_harness_schema";

/// What a migrated schema says of itself.
#[derive(Debug)]
pub(super) struct Schema {
    /// The random value of this store.
    pub(super) install_id: String,
    /// Its version.
    pub(super) version: usize,
}

/// Brings the schema to the version of this build. Processes that start at the same time do it one after another.
/// Errors: `Corrupt` for a schema of a newer build or of another program.
pub(super) async fn migrate(server: &Server, schema: &str) -> Result<Schema, StoreError> {
    let what = "connecting";
    let mut connection = server.connection().await.map_err(|e| self::server(what, e))?;
    check_encoding(&mut connection).await?;
    let what = "migrating the schema";
    let mut transaction = step(connection.begin()).await.map_err(|e| self::server(what, e))?;
    // Released with the transaction. The key is this project's, and one per schema.
    let lock = "SELECT pg_advisory_xact_lock(1953066617, hashtext($1))";
    let locked = step(sqlx::query(lock).bind(schema).execute(&mut *transaction)).await;
    locked.map_err(|e| self::server(what, e))?;
    let version = version(&mut transaction, schema).await?;
    if version > MIGRATIONS.len() {
        return Err(error::corrupt(format!(
            "the schema {schema} has version {version} and this build knows versions up to {}; run the newer \
             tiny-harness that wrote it, or choose another schema",
            MIGRATIONS.len()
        )));
    }
    for (index, sql) in MIGRATIONS.iter().enumerate().skip(version) {
        let applied = step(sqlx::raw_sql(*sql).execute(&mut *transaction)).await;
        applied.map_err(|e| self::server(what, e))?;
        let number = i32::try_from(index + 1).unwrap_or(i32::MAX);
        let note = "INSERT INTO tiny_harness_schema (version) VALUES ($1)";
        let noted = step(sqlx::query(note).bind(number).execute(&mut *transaction)).await;
        noted.map_err(|e| self::server(what, e))?;
    }
    let install_id = install_id(&mut transaction).await?;
    step(transaction.commit()).await.map_err(|e| self::server(what, e))?;
    Ok(Schema { install_id, version: MIGRATIONS.len() })
}

async fn check_encoding(connection: &mut PgConnection) -> Result<(), StoreError> {
    let encoding: String = step(sqlx::query_scalar("SHOW server_encoding").fetch_one(connection))
        .await
        .map_err(|e| server("reading the encoding", e))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(error::corrupt(format!("the database is encoded in {encoding}; make one with ENCODING 'UTF8'")))
}

/// The version of the schema, 0 for one that is new. Makes what is missing to hold it.
async fn version(connection: &mut PgConnection, schema: &str) -> Result<usize, StoreError> {
    let failed = |e| server("reading the schema version", e);
    let sql = "SELECT to_regnamespace($1) IS NOT NULL AS there,
                      to_regclass($1 || '.' || $2) IS NOT NULL AS ours,
                      EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace($1)) AS used";
    let row = step(sqlx::query(sql).bind(schema).bind(VERSIONS).fetch_one(&mut *connection)).await;
    let row = row.map_err(failed)?;
    let look = |column| row.try_get::<bool, _>(column).map_err(failed);
    let (there, ours, used) = (look("there")?, look("ours")?, look("used")?);
    if used && !ours {
        return Err(error::corrupt(format!(
            "the schema {schema} holds tables of another program; choose another schema"
        )));
    }
    if !there {
        // The name was checked: it needs no quotes.
        let sql = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        step(sqlx::raw_sql(sql).execute(&mut *connection)).await.map_err(failed)?;
    }
    if !ours {
        let sql = "CREATE TABLE tiny_harness_schema (
                       version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
        step(sqlx::raw_sql(sql).execute(&mut *connection)).await.map_err(failed)?;
    }
    let sql = "SELECT coalesce(max(version), 0) FROM tiny_harness_schema";
    let version: i32 = step(sqlx::query_scalar(sql).fetch_one(connection)).await.map_err(failed)?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// The random value of this store; made on the first call ever.
async fn install_id(connection: &mut PgConnection) -> Result<String, StoreError> {
    let failed = |e| server("reading the install id", e);
    let fresh = random_hex()?;
    let insert = "INSERT INTO meta (key, value) VALUES ('install_id', $1) ON CONFLICT DO NOTHING";
    step(sqlx::query(insert).bind(fresh).execute(&mut *connection)).await.map_err(failed)?;
    let read = "SELECT value FROM meta WHERE key = 'install_id'";
    step(sqlx::query_scalar(read).fetch_one(connection)).await.map_err(failed)
}

/// 32 random hex digits.
pub(super) fn random_hex() -> Result<String, StoreError> {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).map_err(|e| StoreError::Unavailable {
        what: "drawing a random value".to_owned(),
        source: Some(Box::new(e)),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}
