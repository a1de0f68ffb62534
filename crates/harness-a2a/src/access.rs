//! Who asks, and what they may see. Identity is asserted, unless a security scheme or a proof names who asks.

use harness_model::{Message, ParticipantId, TaskId, TaskSnapshot, limits, names};
use http::HeaderMap;
use serde_json::Value;
use tracing::warn;

use crate::{A2aConfig, A2aError, service::Call};

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

/// What stands behind the participant that a request asserts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Authority {
    /// Nothing but the assertion.
    #[default]
    Asserted,
    /// Credentials of this participant.
    Principal(ParticipantId),
    /// Proof that the request is this agent's own.
    Own,
}

impl Authority {
    /// Who acts, given who is asserted. Errors: somebody else than who signed in; this agent without proof.
    fn confirm(
        &self,
        config: &A2aConfig,
        asserted: Option<ParticipantId>,
    ) -> Result<Option<ParticipantId>, A2aError> {
        let own = ParticipantId::from(config.agent_id.as_str());
        let acting = match self {
            Self::Own => return Ok(asserted.or(Some(own))),
            Self::Principal(principal) => {
                if asserted.is_some_and(|id| id != *principal) {
                    let text = "the asserted participant is not the one that signed in";
                    return Err(A2aError::invalid_params(text));
                }
                Some(principal.clone())
            }
            Self::Asserted => asserted.or_else(|| config.anonymous.clone()),
        };
        // The harness takes part in every task of its own; without proof nobody may act as it.
        if acting.as_ref() == Some(&own) {
            return Err(A2aError::invalid_params("the asserted participant is this agent itself"));
        }
        Ok(acting)
    }
}

/// Who sends a message: its metadata, else the header, else who signed in, else the configured anonymous participant.
pub(crate) fn sender(config: &A2aConfig, message: &Message, call: &Call) -> Result<ParticipantId, A2aError> {
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
    // Metadata wins over the header, but no header may assert what it must not.
    call.authority.confirm(config, call.participant.clone())?;
    let asserted = message.asserted_participant().or_else(|| call.participant.clone());
    let acting = call.authority.confirm(config, asserted)?;
    acting.ok_or_else(|| A2aError::invalid_params("no participant asserted"))
}

/// Who reads: the header, else who signed in, else the configured anonymous participant.
pub(crate) fn reader(config: &A2aConfig, call: &Call) -> Result<Option<ParticipantId>, A2aError> {
    call.authority.confirm(config, call.participant.clone())
}

/// The task if the reader takes part in it; the same error, and the same line in the log, whether it is missing or
/// somebody else's.
pub(crate) fn visible(
    task_id: &TaskId,
    snapshot: Option<TaskSnapshot>,
    reader: Option<&ParticipantId>,
) -> Result<TaskSnapshot, A2aError> {
    let takes_part =
        |task: &TaskSnapshot| reader.is_some_and(|id| task.record.extension.participant(id).is_some());
    snapshot.filter(takes_part).ok_or_else(|| {
        warn!(%task_id, participant = ?reader, "no such task, or the caller takes no part in it");
        A2aError::task_not_found()
    })
}

/// Whether a text can be an identifier of a participant: printable ASCII without spaces, bounded.
pub(crate) fn is_id(text: &str) -> bool {
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
