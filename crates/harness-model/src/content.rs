//! Content and where it lives: content is stored once, as content-addressed blocks; events and states hold references.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Address of a block: SHA-256 of its bytes, as 64 lower-case hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlockId(String);

impl BlockId {
    /// The address of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        let mut hex = String::with_capacity(64);
        for byte in digest {
            hex.push(char::from(HEX[usize::from(byte >> 4)]));
            hex.push(char::from(HEX[usize::from(byte & 15)]));
        }
        Self(hex)
    }

    /// Reads an address from text; `None` unless it is 64 lower-case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let valid =
            text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        valid.then(|| Self(text.to_owned()))
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.0.get(..8).unwrap_or(&self.0))
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A reference to a stored block.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockRef {
    /// Where the bytes are.
    pub id: BlockId,
    /// Length of the block in bytes.
    pub bytes: u64,
}

impl BlockRef {
    /// The reference to a block with these bytes.
    pub fn to(bytes: &[u8]) -> Self {
        Self { id: BlockId::of(bytes), bytes: bytes.len() as u64 }
    }
}

/// A text that is either short and the harness's own, or conversation content held in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The text itself: the harness's own words, at most `limits::INLINE_BYTES_MAX`.
    Inline(String),
    /// UTF-8 text in the store.
    Block(BlockRef),
}

impl Content {
    /// Length of the text in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Block(block) => block.bytes,
        }
    }

    /// The reference, when the text is in the store.
    pub fn block(&self) -> Option<&BlockRef> {
        match self {
            Self::Inline(_) => None,
            Self::Block(block) => Some(block),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Inline(text.to_owned())
    }
}

/// One part of an artifact, with its content by reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContentPart {
    /// The content.
    pub body: ContentBody,
    /// Media type, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// File name, when the part is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

impl ContentPart {
    /// A plain text part.
    pub fn text(content: Content) -> Self {
        Self { body: ContentBody::Text(content), media_type: None, filename: None }
    }
}

/// The content of a part; A2A's four kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentBody {
    /// Text.
    Text(Content),
    /// A JSON value, as JSON text.
    Data(Content),
    /// Bytes in the store.
    Raw(BlockRef),
    /// A URL that the harness never fetches by itself.
    Url(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sha256() {
        let id = BlockId::of(b"");
        assert_eq!(id.as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(BlockId::parse(id.as_str()), Some(id));
        assert_eq!(BlockId::parse("E3B0"), None);
    }
}
