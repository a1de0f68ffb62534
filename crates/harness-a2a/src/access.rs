//! Who asks, and what they may see. Identity is asserted; a perimeter must authenticate.

use harness_model::{Message, ParticipantId, TaskSnapshot, limits, names};
use http::HeaderMap;
use serde_json::Value;
use tracing::warn;

use crate::{A2aConfig, A2aError};

/// The participant that the header of a request asserts; an empty value asserts nobody.
/// Errors: `InvalidParams` for values that no participant can have, so that garbage never counts as nobody.
pub(crate) fn asserted_by_header(headers: &HeaderMap) -> Result<Option<ParticipantId>, A2aError> {
    let mut values = headers.get_all(names::PARTICIPANT_HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or("\0");
    if values.next().is_some() || !is_id(text) && !text.is_empty() {
        return Err(A2aError::invalid_params(format!(
            "X-Participant-Id must be one value of at most {} printable ASCII characters without spaces",
            limits::ID_CHARS_MAX
        )));
    }
    Ok((!text.is_empty()).then(|| ParticipantId::from(text)))
}

/// Who sends a message: its metadata, else the header, else the configured anonymous participant.
pub(crate) fn sender(
    config: &A2aConfig,
    message: &Message,
    header: Option<&ParticipantId>,
) -> Result<ParticipantId, A2aError> {
    match message.metadata.get(names::PARTICIPANT_KEY) {
        None | Some(Value::Null) => {}
        Some(Value::String(id)) if id.is_empty() || is_id(id) => {}
        Some(_) => {
            return Err(A2aError::invalid_field(
                "message.metadata.participant_id",
                "participant_id must be a string of printable ASCII characters without spaces",
            ));
        }
    }
    let id = message
        .asserted_participant()
        .or_else(|| header.cloned())
        .or_else(|| config.anonymous.clone())
        .ok_or_else(|| A2aError::invalid_params("no participant asserted"))?;
    refuse_own_id(config, &id)?;
    Ok(id)
}

/// Who reads: the header, else the configured anonymous participant.
pub(crate) fn reader(
    config: &A2aConfig,
    header: Option<&ParticipantId>,
) -> Result<Option<ParticipantId>, A2aError> {
    if let Some(id) = header {
        refuse_own_id(config, id)?;
    }
    Ok(header.or(config.anonymous.as_ref()).cloned())
}

/// The harness takes part in every task of its own; without proof nobody may speak as it.
fn refuse_own_id(config: &A2aConfig, id: &ParticipantId) -> Result<(), A2aError> {
    if id.as_str() == config.agent_id.as_str() {
        return Err(A2aError::invalid_params("the asserted participant is this agent itself"));
    }
    Ok(())
}

/// The task if the reader takes part in it; the same error whether it is missing or somebody else's.
pub(crate) fn visible(
    snapshot: Option<TaskSnapshot>,
    reader: Option<&ParticipantId>,
) -> Result<TaskSnapshot, A2aError> {
    let snapshot = snapshot.ok_or_else(A2aError::task_not_found)?;
    let allowed = reader.is_some_and(|id| snapshot.record.extension.participant(id).is_some());
    if !allowed {
        warn!(task_id = %snapshot.record.task_id, participant = ?reader, "task hidden from a caller who takes no part in it");
        return Err(A2aError::task_not_found());
    }
    Ok(snapshot)
}

/// Whether a text can be an identifier of a participant: printable ASCII without spaces, bounded.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::ID_CHARS_MAX && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn header(values: &[&[u8]]) -> Result<Option<ParticipantId>, A2aError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(names::PARTICIPANT_HEADER, HeaderValue::from_bytes(value).unwrap());
        }
        asserted_by_header(&headers)
    }

    #[test]
    fn the_header_asserts_one_printable_id_or_nobody() {
        assert_eq!(header(&[]).unwrap(), None);
        assert_eq!(header(&[b""]).unwrap(), None);
        assert_eq!(header(&[b"ada"]).unwrap(), Some(ParticipantId::from("ada")));
        for wrong in [&[b"a b".as_slice()][..], &[b"\xff"], &[b"ada", b"bob"], &[&[b'x'; 257]]] {
            assert!(header(wrong).is_err(), "{wrong:?}");
        }
    }
}
