//! The extensions that the card lists, and what a request says about them.

use harness_model::{names, truncate_chars};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::{A2aError, ErrorKind};

/// The header by which a client names the extensions that it speaks, and the server those that it goes by.
pub(crate) const EXTENSIONS_HEADER: HeaderName = HeaderName::from_static("a2a-extensions");
/// Characters of a client's value that are repeated in an error.
const REPEATED_CHARS_MAX: usize = 200;

/// An extension of the protocol that the harness speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extension {
    /// Goal, participants, plan and related tasks of a task.
    #[default]
    Task,
    /// Messages, questions and answers between participants.
    Channel,
    /// User interfaces.
    A2ui,
}

impl Extension {
    /// All of them, in the order of the card.
    pub const ALL: [Self; 3] = [Self::Task, Self::Channel, Self::A2ui];

    /// Its name in the protocol.
    pub fn uri(self) -> &'static str {
        match self {
            Self::Task => names::TASK_EXTENSION,
            Self::Channel => names::CHANNEL_EXTENSION,
            Self::A2ui => names::A2UI_EXTENSION,
        }
    }

    /// The one with this name; names are compared as they are.
    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|extension| extension.uri() == uri)
    }
}

/// The extensions that a request and the card have in common, which are those that the answer goes by.
/// Errors: `UnsupportedOperation` for one that the card does not list, `ExtensionSupportRequired` when one is missing that
/// the card requires.
pub(crate) fn negotiate(headers: &HeaderMap, required: &[Extension]) -> Result<Vec<Extension>, A2aError> {
    let (mut spoken, mut unknown) = (Vec::new(), Vec::new());
    for value in headers.get_all(EXTENSIONS_HEADER) {
        let uris = value.to_str().unwrap_or("?").split(',').map(str::trim);
        for uri in uris.filter(|uri| !uri.is_empty()) {
            match Extension::of_uri(uri) {
                Some(extension) => spoken.push(extension),
                None => unknown.push(uri),
            }
        }
    }
    if !unknown.is_empty() {
        let list = truncate_chars(&unknown.join(", "), REPEATED_CHARS_MAX);
        return Err(A2aError::unsupported(format!("unsupported A2A extension(s): {list}")));
    }
    spoken.sort_unstable();
    spoken.dedup();
    let missing: Vec<&str> = required
        .iter()
        .filter(|extension| !spoken.contains(extension))
        .map(|extension| extension.uri())
        .collect();
    if missing.is_empty() {
        return Ok(spoken);
    }
    let text =
        format!("the agent requires these extensions; name them in A2A-Extensions: {}", missing.join(", "));
    Err(A2aError::new(ErrorKind::ExtensionSupportRequired, text))
}

/// The header of an answer that goes by these extensions; `None` when there are none.
pub(crate) fn announced(extensions: &[Extension]) -> Option<HeaderValue> {
    let uris: Vec<&str> = extensions.iter().map(|extension| extension.uri()).collect();
    (!uris.is_empty()).then(|| HeaderValue::from_str(&uris.join(", ")).ok()).flatten()
}
