//! Payloads as every Temporal tool reads them.

use std::collections::HashMap;

use serde::Serialize;
use temporalio_common::{data_converters::RawValue, protos::temporal::api::common::v1::Payload};

/// A value as JSON. What cannot be written as JSON becomes an empty payload, which every reader here takes as no news.
pub(crate) fn json<T: Serialize>(value: &T) -> RawValue {
    let data = serde_json::to_vec(value).unwrap_or_default();
    let metadata = HashMap::from([("encoding".to_owned(), b"json/plain".to_vec())]);
    RawValue::new(vec![Payload { metadata, data, ..Payload::default() }])
}
