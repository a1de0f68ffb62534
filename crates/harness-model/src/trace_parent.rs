//! Where in a trace something was asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of `00-`, a trace id, `-`, a span id, `-` and the flags.
const LENGTH: usize = 55;

/// A position in a trace, as the header `traceparent` names it: version 00 of W3C Trace Context.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceParent(String);

impl TraceParent {
    /// Reads a header; `None` when it names no position. What a later version says beyond the four fields is left out.
    pub fn parse(text: &str) -> Option<Self> {
        let known = text.get(..LENGTH)?;
        let rest = text.get(LENGTH..)?;
        let mut fields = known.split('-');
        let (version, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let well_formed = hex(version, 2) && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
        let later = version != "00" && version != "ff" && (rest.is_empty() || rest.starts_with('-'));
        let valid = well_formed && fields.next().is_none() && !is_zero(trace) && !is_zero(span);
        (valid && (later || (version == "00" && rest.is_empty())))
            .then(|| Self(format!("00-{trace}-{span}-{flags}")))
    }

    /// The header.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the trace: 32 hex digits.
    pub fn trace_id(&self) -> &str {
        self.0.get(3..35).unwrap_or_default()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TraceParent {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a position in a trace")
    }
}

impl From<TraceParent> for String {
    fn from(position: TraceParent) -> Self {
        position.0
    }
}

fn hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn positions_are_read() {
        let position = TraceParent::parse(GOOD).unwrap();
        assert_eq!(position.as_str(), GOOD);
        assert_eq!(position.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let later = TraceParent::parse(&format!("cc{}-what-comes", &GOOD[2..])).unwrap();
        assert_eq!(later, position);
        let json = serde_json::to_string(&position).unwrap();
        assert_eq!(serde_json::from_str::<TraceParent>(&json).unwrap(), position);
    }

    #[test]
    fn what_is_no_position_is_refused() {
        let bad = [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-more"),
            GOOD.to_uppercase(),
            format!("ff{}", &GOOD[2..]),
            GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            GOOD.replace('-', "_"),
            "ü".repeat(40),
        ];
        for text in bad {
            assert_eq!(TraceParent::parse(&text), None, "{text:?}");
        }
    }
}
