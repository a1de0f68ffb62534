//! Ids of calls: results find their calls by them, so two calls of one answer never share one.

use std::collections::HashSet;

use harness_model::{CallId, RequestedCall};

/// Characters of an id that is kept as it came.
const ID_CHARS_MAX: usize = 64;

/// Gives calls without a usable id of their own one. The same calls always get the same ids.
/// Returns whether any id was changed.
pub(super) fn make_unique(calls: &mut [RequestedCall]) -> bool {
    let mut taken: HashSet<CallId> = HashSet::new();
    let mut changed = false;
    for (index, call) in calls.iter_mut().enumerate() {
        let wanted =
            if usable(&call.call_id) { call.call_id.clone() } else { CallId::new(format!("call_{index}")) };
        let mut id = wanted.clone();
        let mut number = 2;
        while taken.contains(&id) {
            id = CallId::new(format!("{wanted}_{number}"));
            number += 1;
        }
        changed |= id != call.call_id;
        taken.insert(id.clone());
        call.call_id = id;
    }
    changed
}

fn usable(id: &CallId) -> bool {
    let text = id.as_str();
    !text.is_empty() && text.len() <= ID_CHARS_MAX && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(given: &[&str]) -> (Vec<String>, bool) {
        let call = |id: &&str| RequestedCall {
            call_id: CallId::from(*id),
            name: String::new(),
            arguments: String::new(),
        };
        let mut calls: Vec<RequestedCall> = given.iter().map(call).collect();
        let changed = make_unique(&mut calls);
        (calls.iter().map(|call| call.call_id.to_string()).collect(), changed)
    }

    #[test]
    fn good_ids_stay() {
        assert_eq!(ids(&["call_a1", "toolu_01"]), (vec!["call_a1".to_owned(), "toolu_01".to_owned()], false));
    }

    #[test]
    fn repeated_missing_and_odd_ids_are_replaced() {
        let long = "x".repeat(65);
        let (given, changed) = ids(&["a", "a", "a_2", "", "b\nc", &long, "call_3"]);
        assert!(changed);
        assert_eq!(given, ["a", "a_2", "a_2_2", "call_3", "call_4", "call_5", "call_3_2"]);
    }
}
