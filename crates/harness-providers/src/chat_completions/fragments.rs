//! Tool calls from the pieces that servers send, which do not agree on how pieces belong together.

use harness_model::RequestedCall;
use serde_json::{Map, Value, value::RawValue};

use super::wire::Fragment;
use crate::{
    bounded_json::{self, NODES_MAX},
    calls::{self, CallsError, Ending, WireCall},
    tool_names::ToolNames,
    wire::PieceError,
};

/// The calls of one answer as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    calls: Vec<PartialCall>,
    /// The call that the last piece belonged to.
    current: Option<usize>,
    /// Values in the provider's own fields.
    extra_nodes: usize,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
}

impl Fragments {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes a whole call of an answer that was not streamed.
    pub(super) fn push_whole(&mut self, fragment: Fragment) -> Result<(), PieceError> {
        let at = self.open(None)?;
        self.extend(at, fragment)
    }

    /// Takes a piece of a streamed call.
    pub(super) fn absorb(&mut self, fragment: Fragment) -> Result<(), PieceError> {
        let at = match self.owner_of(&fragment) {
            Some(at) => at,
            None => self.open(fragment.index.as_ref().and_then(Value::as_u64))?,
        };
        self.extend(at, fragment)
    }

    /// The finished calls with their registry names, and what else the provider said about each.
    pub(super) fn finish(
        mut self,
        names: &ToolNames,
        ending: Ending,
    ) -> (Vec<RequestedCall>, Vec<Map<String, Value>>) {
        if self.calls.iter().all(|call| call.index.is_some()) {
            self.calls.sort_by_key(|call| call.index);
        }
        let apart = |call: PartialCall| {
            (WireCall { id: call.id, name: call.name, arguments: call.arguments }, call.extra)
        };
        let (finished, extras) = self.calls.into_iter().map(apart).unzip();
        (calls::requested(finished, names, ending), extras)
    }

    /// The call that a piece continues; `None` when it begins a new one.
    fn owner_of(&self, fragment: &Fragment) -> Option<usize> {
        let id = fragment.id.as_deref().unwrap_or_default();
        let name = fragment.function.as_ref().and_then(|f| f.name.as_deref()).unwrap_or_default();
        let index = fragment.index.as_ref().and_then(Value::as_u64);
        if !id.is_empty()
            && let Some(at) = self.calls.iter().rposition(|call| {
                call.id == id && (index.is_none() || call.index.is_none() || call.index == index)
            })
        {
            return Some(at);
        }
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            None => self.current,
        }?;
        let call = &self.calls[at];
        let begins_another = if id.is_empty() {
            // Without ids: another name, or more after arguments that are already whole.
            !name.is_empty() && !call.name.is_empty() && (name != call.name || is_whole(&call.arguments))
        } else {
            // Some servers invent an id for each piece of one index; there only a piece that names its tool begins a
            // call. A call that had no id yet gets this one.
            !call.id.is_empty() && (index.is_none() || !name.is_empty())
        };
        (!begins_another).then_some(at)
    }

    fn open(&mut self, index: Option<u64>) -> Result<usize, CallsError> {
        calls::check_count(self.calls.len() + 1)?;
        self.calls.push(PartialCall { index, ..PartialCall::default() });
        Ok(self.calls.len() - 1)
    }

    fn extend(&mut self, at: usize, fragment: Fragment) -> Result<(), PieceError> {
        self.current = Some(at);
        self.extra_nodes += bounded_json::nodes_of(&fragment.extra);
        if self.extra_nodes > NODES_MAX {
            return Err(PieceError::TooMuch);
        }
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = fragment.id.unwrap_or_default();
        }
        merge(&mut call.extra, fragment.extra);
        let Some(function) = fragment.function else { return Ok(()) };
        if call.name.is_empty() {
            call.name = function.name.unwrap_or_default();
        }
        if let Some(raw) = function.arguments {
            add_arguments(&mut call.arguments, &raw);
        }
        Ok(calls::check_arguments(&call.arguments)?)
    }
}

/// Strings are pieces of the argument text; an object is the whole of it, digit for digit.
fn add_arguments(arguments: &mut String, raw: &RawValue) {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(piece) => arguments.push_str(&piece),
        Err(_) => raw.get().clone_into(arguments),
    }
}

fn is_whole(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<&RawValue>(arguments).is_ok()
}

/// Adds a piece of a provider's own fields: strings and lists grow, objects merge, everything else is replaced.
pub(super) fn merge(into: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (into.get_mut(&key), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (Some(Value::Object(fields)), Value::Object(more)) => merge(fields, more),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use harness_model::limits::CALLS_PER_TURN_MAX;

    use super::*;

    /// Feeds pieces, one JSON object a line, and shows the calls as `id name arguments`.
    fn assemble(pieces: &[&str]) -> Result<Vec<String>, PieceError> {
        let mut calls = Fragments::default();
        for piece in pieces {
            calls.absorb(serde_json::from_str(piece).unwrap())?;
        }
        let (calls, _) = calls.finish(&ToolNames::new(["a/b.c"]), Ending::Whole);
        Ok(calls.into_iter().map(|c| format!("{} {} {}", c.call_id, c.name, c.arguments)).collect())
    }

    #[track_caller]
    fn check(pieces: &[&str], expected: &[&str]) {
        assert_eq!(assemble(pieces).unwrap(), expected);
    }

    #[test]
    fn interleaved_pieces_go_by_index() {
        check(
            &[
                r#"{"index":1,"id":"y","function":{"name":"g","arguments":""}}"#,
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":1,"function":{"arguments":"{}"}}"#,
                r#"{"index":0,"function":{"arguments":":1}"}}"#,
            ],
            &[r#"x f {"a":1}"#, "y g {}"],
        );
    }

    #[test]
    fn a_missing_index_goes_by_id() {
        check(
            &[
                r#"{"id":"x","function":{"name":"f","arguments":"{"}}"#,
                r#"{"function":{"arguments":"}"}}"#,
                r#"{"id":"y","function":{"name":"f"}}"#,
                r#"{"id":"y","function":{"arguments":"{ }"}}"#,
            ],
            &["x f {}", "y f { }"],
        );
    }

    #[test]
    fn one_index_for_every_call_goes_by_id_or_by_wholeness() {
        check(
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"id":"y","function":{"name":"f","arguments":"{\"b\":2}"}}"#,
            ],
            &["x f {}", r#"y f {"b":2}"#],
        );
        check(
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":"{\"b\":2}"}}"#,
                r#"{"index":0,"id":"","function":{"name":"g","arguments":"{}"}}"#,
            ],
            &["call_0 f {}", r#"call_1 f {"b":2}"#, "call_2 g {}"],
        );
    }

    #[test]
    fn repeated_ids_and_names_make_one_call() {
        check(
            &[
                r#"{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":":1}"}}"#,
            ],
            &[r#"x f {"a":1}"#],
        );
        check(
            &[
                r#"{"index":0,"id":"x1","function":{"name":"f","arguments":"{\"a\""}}"#,
                r#"{"index":0,"id":"x2","function":{"name":null,"arguments":":1}"}}"#,
            ],
            &[r#"x1 f {"a":1}"#],
        );
    }

    #[test]
    fn arguments_keep_every_character() {
        check(
            &[
                r#"{"index":0,"id":"x","function":{"name":"f","arguments":{ "p": 1.10, "n": 12345678901234567890123 }}}"#,
            ],
            &[r#"x f { "p": 1.10, "n": 12345678901234567890123 }"#],
        );
        check(&[r#"{"id":"x","function":{"name":"f","arguments":"not { json"}}"#], &["x f not { json"]);
        check(&[r#"{"id":"x","function":{"name":"f"}}"#], &["x f {}"]);
        check(&[r#"{"id":"x","function":{"name":"f","arguments":null}}"#], &["x f {}"]);
    }

    #[test]
    fn huge_or_odd_indexes_cost_nothing() {
        check(
            &[
                r#"{"index":4000000000,"id":"x","function":{"name":"a_b_c","arguments":"{"}}"#,
                r#"{"index":4000000000,"function":{"arguments":"}"}}"#,
                r#"{"index":-1,"id":"y","function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":"zero","id":"z"}"#,
            ],
            &["x a/b.c {}", "y f {}", "z  {}"],
        );
    }

    #[test]
    fn calls_and_arguments_are_capped() {
        let pieces: Vec<String> = (0..=CALLS_PER_TURN_MAX).map(|n| format!(r#"{{"index":{n}}}"#)).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        assert!(matches!(assemble(&pieces), Err(PieceError::Calls(CallsError::TooMany))));
        let long = format!(r#"{{"index":0,"function":{{"arguments":"{}"}}}}"#, "x".repeat(200_000));
        let refused = assemble(&[&long, &long]);
        assert!(matches!(refused, Err(PieceError::Calls(CallsError::ArgumentsTooLarge))));
    }

    #[test]
    fn the_providers_own_fields_grow() {
        let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        let mut all = object(r#"{"r":"one ","d":[1],"o":{"s":"a"},"n":1}"#);
        merge(&mut all, object(r#"{"r":"two","d":[2],"o":{"t":"b"},"n":2,"gone":null}"#));
        assert_eq!(all, object(r#"{"r":"one two","d":[1,2],"o":{"s":"a","t":"b"},"n":2}"#));
    }
}
