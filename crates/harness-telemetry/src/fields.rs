//! Fields of events and spans as JSON values.

use std::{error::Error, fmt};

use serde_json::Value;
use tracing::field::{Field, Visit};

/// Links of an error chain that are written.
const CHAIN_LINKS_MAX: usize = 16;

/// Names and values in the order in which they were recorded; a later value of a name replaces the earlier one.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    pub(crate) fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.set(name, value.clone());
        }
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn into_entries(self) -> Vec<(&'static str, Value)> {
        self.0
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), Value::from(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), Value::from(value));
    }

    /// The whole chain: what happened, then each cause.
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        for _ in 0..CHAIN_LINKS_MAX {
            let Some(error) = cause else { break };
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        self.set(field.name(), Value::from(text));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), Value::from(format!("{value:?}")));
    }
}
