//! Ids of calls on wires that are particular about them: other providers' ids may be too long, hold other characters, or
//! begin anew in every answer.

use std::collections::{HashMap, HashSet};

use harness_model::{BlockId, CallId};

/// Characters of an id that every wire takes.
const CHARS_MAX: usize = 64;
/// Characters of the digest that stands for an id that cannot be sent.
const DIGEST_CHARS: usize = 32;

/// Gives the calls of one conversation, in order, ids that fit. The same conversation gets the same ids, and a longer one
/// gets them for its beginning too.
#[derive(Debug, Default)]
pub(crate) struct WireCallIds {
    used: HashSet<String>,
    current: HashMap<CallId, String>,
}

impl WireCallIds {
    /// The id of a call.
    pub(crate) fn of_call(&mut self, id: &CallId) -> String {
        let plain = plain_form(id.as_str());
        let mut wire = plain.clone();
        let mut number = 2_u32;
        while !self.used.insert(wire.clone()) {
            let room = CHARS_MAX - 11;
            wire = format!("{}_{number}", &plain[..plain.len().min(room)]);
            number += 1;
        }
        self.current.insert(id.clone(), wire.clone());
        wire
    }

    /// The id by which the result of the newest call with this id refers to it.
    pub(crate) fn of_result(&self, id: &CallId) -> String {
        self.current.get(id).cloned().unwrap_or_else(|| plain_form(id.as_str()))
    }
}

fn plain_form(id: &str) -> String {
    let fits = (1..=CHARS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if fits {
        id.to_owned()
    } else {
        format!("call_{}", &BlockId::of(id.as_bytes()).as_str()[..DIGEST_CHARS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_and_stay_apart() {
        let mut ids = WireCallIds::default();
        let long = "x".repeat(64);
        for id in ["toolu_01", "call_0", "call_0", "call_0", "functions.f:0", &long, &long, "ü", ""] {
            let id = CallId::from(id);
            let wire = ids.of_call(&id);
            assert!((1..=64).contains(&wire.len()), "{wire}");
            assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{wire}");
            assert_eq!(ids.of_result(&id), wire);
        }
        assert_eq!(ids.used.len(), 9);
        assert_eq!(ids.of_result(&CallId::from("toolu_01")), "toolu_01");
        assert_eq!(ids.of_result(&CallId::from("call_0")), "call_0_3");
    }
}
