//! The list of every table and key, for messages and for the documentation.

use super::{
    models::{Anthropic, Compatible, Model, OpenAi, Replay, Scripted},
    operation::{
        AgentsPolicy, Budget, Context, Heartbeat, Limits, O11y, Price, Retention, RetryPolicy, Store,
    },
    postgres::PostgresTable,
    section::{KeyDoc, Section},
    security::{Jwt, SecurityTable, Token},
    server::{Agent, Card, CardSkill, Server, Top},
    temporal::{Temporal, TemporalEmbedded},
};

/// A table, for the documentation.
pub(crate) struct TableDoc {
    /// Path: empty for the top of the file; `NAME` stands for a name of the user's choice, `[]` for a list.
    pub(crate) path: &'static str,
    /// What it is for.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the manual says it"))]
    pub(crate) about: String,
    /// Its keys.
    pub(crate) keys: Vec<KeyDoc>,
}

/// Every table, in the order of the documentation.
pub(crate) fn tables() -> Vec<TableDoc> {
    fn table<T: Section>(path: &'static str) -> TableDoc {
        TableDoc { path, about: T::about(), keys: T::keys() }
    }
    vec![
        table::<Top>(""),
        table::<Agent>("agents[]"),
        table::<Server>("server"),
        table::<SecurityTable>("security"),
        table::<Token>("security.tokens[]"),
        table::<Jwt>("security.jwt"),
        table::<Card>("card"),
        table::<CardSkill>("card.skills[]"),
        table::<Model>("model"),
        table::<Replay>("model.replay"),
        table::<Scripted>("model.scripted"),
        table::<OpenAi>("openai"),
        table::<Anthropic>("anthropic"),
        table::<Compatible>("providers.NAME"),
        table::<Store>("store"),
        table::<PostgresTable>("store.postgres"),
        table::<Context>("context"),
        table::<Limits>("limits"),
        table::<Budget>("budget"),
        table::<Price>("prices.NAME"),
        table::<RetryPolicy>("retries.default"),
        table::<RetryPolicy>("retries.per_activity.NAME"),
        table::<AgentsPolicy>("agents_policy"),
        table::<Heartbeat>("heartbeat"),
        table::<Retention>("retention"),
        table::<O11y>("o11y"),
        table::<Temporal>("temporal"),
        table::<TemporalEmbedded>("temporal.embedded"),
    ]
}

/// The tables that have a key or a nested table of this name; an empty path is the top of the file.
pub(super) fn homes_of(key: &str) -> Vec<&'static str> {
    if key == "agents" {
        return vec![""];
    }
    let has = |table: &TableDoc| table.keys.iter().any(|known| known.name == key);
    tables().iter().filter(|table| has(table)).map(|table| table.path).collect()
}
