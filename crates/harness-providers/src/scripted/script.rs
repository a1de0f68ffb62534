//! The turns of a script, and which of them answers a request.

use std::time::Duration;

use harness_model::{Finish, ItemPart, ModelOutput, Usage};
use harness_ports::{InputItem, ModelErrorKind, ModelRequest};
use serde_json::{Map, Value};

/// A whole script.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) model: String,
    pub(super) context_window_tokens: u64,
    pub(super) turns: Vec<Turn>,
}

/// One turn: what it answers, and how.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) when: When,
    /// What the model has to have been shown when this turn answers; anything else is an error.
    pub(super) expect: When,
    /// Text, in the pieces it streams in. An error may come after some.
    pub(super) chunks: Vec<Chunk>,
    /// What comes after the text.
    pub(super) end: End,
}

/// A piece of text and the wait before it.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) delay: Duration,
    pub(super) text: String,
}

/// How a turn ends.
#[derive(Debug)]
pub(super) struct End {
    /// The wait before it, for turns without text.
    pub(super) delay: Duration,
    pub(super) outcome: Outcome,
}

/// What a turn comes to.
#[derive(Debug)]
pub(super) enum Outcome {
    Answer { calls: Vec<ScriptedCall>, refusal: Option<String>, finish: Finish, usage: Usage },
    Error { kind: ModelErrorKind, message: String, status: Option<u16> },
}

/// A tool call to ask for.
#[derive(Debug)]
pub(super) struct ScriptedCall {
    pub(super) name: String,
    pub(super) call_id: Option<String>,
    pub(super) arguments: Arguments,
}

/// Arguments of a call.
#[derive(Debug)]
pub(super) enum Arguments {
    /// An object whose strings may hold placeholders.
    Object(Map<String, Value>),
    /// This very text, JSON or not.
    Verbatim(String),
}

/// Conditions; all that are given have to hold.
#[derive(Debug, Default)]
pub(super) struct When {
    pub(super) text_contains: Option<String>,
    pub(super) text_equals: Option<String>,
    pub(super) message_id_prefix: Option<String>,
    pub(super) turn: Option<u32>,
    pub(super) last_is: Option<Last>,
    pub(super) asked: Vec<String>,
    pub(super) tool_result: Vec<ResultMatch>,
    pub(super) last_tool_result: Vec<ResultMatch>,
    pub(super) shown_contains: Option<String>,
    pub(super) nowhere_contains: Option<String>,
    pub(super) instructions_contain: Option<String>,
}

/// What the conversation ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    User,
    ToolResult,
}

/// A tool result to look for.
#[derive(Debug)]
pub(super) struct ResultMatch {
    pub(super) name: String,
    pub(super) contains: Option<String>,
}

impl Script {
    /// The first turn that answers this request.
    pub(super) fn answering(&self, request: &ModelRequest) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.when.holds(request))
    }
}

impl When {
    fn holds(&self, request: &ModelRequest) -> bool {
        self.conditions(request).into_iter().all(|(_, holds)| holds)
    }

    /// Names of the conditions that do not hold.
    pub(super) fn unmet(&self, request: &ModelRequest) -> Vec<&'static str> {
        self.conditions(request).into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
    }

    /// Every condition by its name in a script; one that is not given holds.
    fn conditions(&self, request: &ModelRequest) -> [(&'static str, bool); 11] {
        let (meta, input) = (&request.meta, request.input.as_slice());
        let message_id = meta.message_id.as_ref().map_or("", |id| id.as_str());
        let is = |wanted: &Option<String>, test: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(test);
        let shown = |text: &str| input.iter().any(|item| item_contains(item, text));
        let nowhere = |text: &str| !shown(text) && !request.instructions.contains(text);
        [
            ("text_contains", is(&self.text_contains, &|text| meta.message_text.contains(text))),
            ("text_equals", is(&self.text_equals, &|text| meta.message_text.trim() == text.trim())),
            ("message_id_prefix", is(&self.message_id_prefix, &|prefix| message_id.starts_with(prefix))),
            ("turn", self.turn.is_none_or(|turn| turn == meta.turn)),
            ("last_is", self.last_is.is_none_or(|last| last_of(input) == Some(last))),
            ("asked", self.asked.iter().all(|name| was_asked(input, name))),
            ("tool_result", self.tool_result.iter().all(|wanted| wanted.is_in(input))),
            (
                "last_tool_result",
                self.last_tool_result.iter().all(|wanted| wanted.is_in(after_last_answer(input))),
            ),
            ("shown_contains", is(&self.shown_contains, &shown)),
            ("nowhere_contains", is(&self.nowhere_contains, &nowhere)),
            (
                "instructions_contain",
                is(&self.instructions_contain, &|text| request.instructions.contains(text)),
            ),
        ]
    }
}

impl ResultMatch {
    fn is_in(&self, items: &[InputItem]) -> bool {
        items.iter().any(|item| match item {
            InputItem::ToolResult { name, parts, .. } => {
                *name == self.name && self.contains.as_ref().is_none_or(|text| parts_contain(parts, text))
            }
            InputItem::User { .. } | InputItem::Model(_) => false,
        })
    }
}

fn last_of(input: &[InputItem]) -> Option<Last> {
    match input.last()? {
        InputItem::User { .. } => Some(Last::User),
        InputItem::ToolResult { .. } => Some(Last::ToolResult),
        InputItem::Model(_) => None,
    }
}

/// The items that came after the newest answer of the model.
fn after_last_answer(input: &[InputItem]) -> &[InputItem] {
    let answered = input.iter().rposition(|item| matches!(item, InputItem::Model(_)));
    &input[answered.map_or(0, |at| at + 1)..]
}

fn was_asked(input: &[InputItem], name: &str) -> bool {
    input.iter().any(|item| match item {
        InputItem::Model(output) => output.calls.iter().any(|call| call.name == name),
        InputItem::User { .. } | InputItem::ToolResult { .. } => false,
    })
}

fn item_contains(item: &InputItem, text: &str) -> bool {
    match item {
        InputItem::User { parts } | InputItem::ToolResult { parts, .. } => parts_contain(parts, text),
        InputItem::Model(ModelOutput { text: said, calls, .. }) => {
            said.contains(text) || calls.iter().any(|call| call.arguments.contains(text))
        }
    }
}

fn parts_contain(parts: &[ItemPart], text: &str) -> bool {
    parts.iter().any(|part| match part {
        ItemPart::Text(said) => said.contains(text),
        ItemPart::Data(value) => value.to_string().contains(text),
        ItemPart::Link { uri, .. } => uri.contains(text),
        ItemPart::Binary { .. } => false,
    })
}
