//! A task as lines for a terminal: folds A2A events into what a person wants to read. How they look is the painter's.

use std::collections::BTreeMap;

use harness_a2a::wire::{Artifact, Message, Part, PartContent, StreamResponse, Task, TaskState, TaskStatus};
use harness_model::{clean_terminal, names, one_line, truncate_chars};
use serde_json::Value;

/// Characters of one detail on a line.
const DETAIL_CHARS_MAX: usize = 120;

/// One thing to show.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// The task changed its state.
    State(String),
    /// The agent says something; whole text.
    Agent(String),
    /// More of the answer that is being written.
    AnswerDelta(String),
    /// The answer that was being written is complete.
    AnswerEnd,
    /// A tool call ended or began.
    Tool { name: String, summary: String, state: String, duration_ms: Option<u64> },
    /// The plan is there, or a step of it changed.
    Plan { done: usize, steps: Vec<(String, String)> },
    /// Somebody is asked something.
    Asked { question: String, options: Vec<String> },
    /// An artifact was published.
    Artifact { name: String, parts: Vec<String> },
}

impl Line {
    /// A published artifact, whole.
    pub(crate) fn artifact(artifact: &Artifact) -> Self {
        let name = artifact.name.as_deref().unwrap_or(&artifact.artifact_id);
        Self::Artifact { name: clean(name), parts: artifact.parts.iter().map(describe).collect() }
    }
}

/// What is known of a task so far.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    pub(crate) task_id: Option<String>,
    pub(crate) context_id: Option<String>,
    state: Option<TaskState>,
    /// Ended and running calls of the turn, by call id: the state shown last.
    calls: BTreeMap<String, String>,
    /// The answer being written, by artifact id.
    answers: BTreeMap<String, String>,
    last_answer: String,
    writing: bool,
    /// The open question, when the task waits for an answer to one.
    pub(crate) asked: Option<Question>,
}

/// A question to the person at the terminal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) options: Vec<String>,
}

impl Transcript {
    /// Takes an event and says what is new about it.
    pub(crate) fn fold(&mut self, event: &StreamResponse) -> Vec<Line> {
        let mut lines = Vec::new();
        match event {
            StreamResponse::Task(task) => self.task(task, &mut lines),
            StreamResponse::Message(message) => {
                // It may belong to a task or a conversation, which the next message then goes on with.
                self.task_id = message.task_id.clone().or(self.task_id.take());
                self.context_id = message.context_id.clone().or(self.context_id.take());
                lines.push(Line::Agent(texts(message).join("\n")));
            }
            StreamResponse::StatusUpdate(update) => {
                self.ids(&update.task_id, &update.context_id);
                self.status(&update.status, &mut lines);
            }
            StreamResponse::ArtifactUpdate(update) => {
                self.ids(&update.task_id, &update.context_id);
                let (append, last) = (update.append == Some(true), update.last_chunk == Some(true));
                self.artifact(&update.artifact, append, last, &mut lines);
            }
        }
        lines
    }

    /// Name of the state now.
    pub(crate) fn state_name(&self) -> String {
        self.state.as_ref().map(state_name).unwrap_or_default()
    }

    /// Whether the task waits for somebody.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.state, Some(TaskState::InputRequired | TaskState::AuthRequired))
    }

    /// Whether the task has ended without doing what was asked for.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.state, Some(TaskState::Failed | TaskState::Rejected))
    }

    /// Whether nothing more will happen to the task.
    pub(crate) fn is_over(&self) -> bool {
        self.state.as_ref().is_some_and(TaskState::is_terminal)
    }

    fn ids(&mut self, task: &str, context: &str) {
        self.task_id = Some(task.to_owned());
        // Agents that know no contexts leave it out.
        self.context_id = Some(context.to_owned()).filter(|id| !id.is_empty());
    }

    fn task(&mut self, task: &Task, lines: &mut Vec<Line>) {
        self.ids(&task.id, &task.context_id);
        self.status(&task.status, lines);
    }

    fn status(&mut self, status: &TaskStatus, lines: &mut Vec<Line>) {
        let message = status.message.as_ref();
        if let Some(message) = message {
            self.tools(message, lines);
        }
        let changed = self.state.as_ref() != Some(&status.state);
        let question = message.filter(|m| is_question(m)).map(question);
        if changed {
            self.finish_answer(lines);
            lines.push(Line::State(state_name(&status.state)));
        }
        self.state = Some(status.state.clone());
        self.asked = question.clone();
        match (question, message) {
            (Some(question), _) => {
                lines.push(Line::Asked { question: question.text, options: question.options });
            }
            (None, Some(message)) => {
                let text = texts(message).join("\n");
                // The words that end a turn are those that were just written.
                if !text.is_empty() && text != self.last_answer {
                    lines.push(Line::Agent(text));
                }
            }
            (None, None) => {}
        }
        if status.state != TaskState::Working {
            self.calls.clear();
        }
    }

    fn tools(&mut self, message: &Message, lines: &mut Vec<Line>) {
        for call in message.parts.iter().filter_map(tool_calls).flatten() {
            let field = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (id, state) = (field("call_id"), field("state"));
            if self.calls.get(&id) == Some(&state) || state == "running" {
                self.calls.entry(id).or_insert(state);
                continue;
            }
            self.calls.insert(id, state.clone());
            self.finish_answer(lines);
            lines.push(Line::Tool {
                name: clean(&field("name")),
                summary: clean(&field("summary")),
                state,
                duration_ms: call.get("duration_ms").and_then(Value::as_u64),
            });
        }
    }

    fn artifact(&mut self, artifact: &Artifact, append: bool, last: bool, lines: &mut Vec<Line>) {
        let id = artifact.artifact_id.to_string();
        if !is_answer(artifact) {
            lines.push(Line::artifact(artifact));
            return;
        }
        let delta: String = artifact.parts.iter().filter_map(Part::as_text).collect();
        let written = self.answers.entry(id).or_default();
        if !append && !written.is_empty() {
            written.clear();
            lines.push(Line::AnswerEnd);
        }
        written.push_str(&delta);
        self.last_answer.clone_from(written);
        self.writing = true;
        if !delta.is_empty() {
            lines.push(Line::AnswerDelta(clean_terminal(&delta)));
        }
        if last {
            self.finish_answer(lines);
        }
    }

    fn finish_answer(&mut self, lines: &mut Vec<Line>) {
        if std::mem::take(&mut self.writing) {
            lines.push(Line::AnswerEnd);
        }
    }

    /// The plan of a task, from its extension.
    pub(crate) fn plan(task: &Task) -> Option<Line> {
        let extension = task.metadata.as_ref()?.get(names::TASK_KEY)?;
        let steps = extension.get("plan")?.get("steps")?.as_array()?;
        let field =
            |step: &Value, key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let steps: Vec<(String, String)> =
            steps.iter().map(|step| (field(step, "state"), clean(&field(step, "name")))).collect();
        let done = steps.iter().filter(|(state, _)| state == "done").count();
        Some(Line::Plan { done, steps })
    }
}

fn is_question(message: &Message) -> bool {
    message.parts.iter().any(|part| part.media_type.as_deref() == Some(names::CHANNEL_MEDIA_TYPE))
}

fn question(message: &Message) -> Question {
    let text = texts(message).join("\n");
    let (text, options) = match text.split_once("\nOptions: ") {
        Some((question, options)) => (question.to_owned(), options.split(", ").map(str::to_owned).collect()),
        None => (text, Vec::new()),
    };
    Question { text, options }
}

fn texts(message: &Message) -> Vec<String> {
    message.parts.iter().filter_map(Part::as_text).map(clean_terminal).collect()
}

fn tool_calls(part: &Part) -> Option<&Vec<Value>> {
    match &part.content {
        PartContent::Data(value) if part.media_type.as_deref() == Some(names::TASK_MEDIA_TYPE) => {
            value.get("tool_calls")?.as_array()
        }
        PartContent::Data(_) | PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
    }
}

fn describe(part: &Part) -> String {
    let media_type = part.media_type.as_deref().unwrap_or("unknown type");
    match &part.content {
        PartContent::Text(text) => clean_terminal(text),
        PartContent::Data(value) => clean(&value.to_string()),
        PartContent::Raw(bytes) => clean(&format!("[{} bytes of {media_type}]", bytes.len())),
        PartContent::Url(url) => clean(&format!("[link: {url}]")),
    }
}

fn clean(text: &str) -> String {
    truncate_chars(&one_line(text), DETAIL_CHARS_MAX)
}

/// Whether the artifact is the text of a turn, which is among the messages too.
pub(crate) fn is_answer(artifact: &Artifact) -> bool {
    artifact.artifact_id.starts_with("answer-")
}

/// The short name of a wire state.
pub(crate) fn state_name(state: &TaskState) -> String {
    let wire = serde_json::to_value(state).ok();
    let name = wire.as_ref().and_then(Value::as_str).unwrap_or_default();
    name.trim_start_matches("TASK_STATE_").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::painter::Painter;

    fn event(value: Value) -> StreamResponse {
        serde_json::from_value(value).unwrap()
    }

    fn status(state: &str, parts: Value) -> StreamResponse {
        event(json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {
            "state": format!("TASK_STATE_{state}"),
            "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts},
        }}}))
    }

    fn chunk(text: &str, append: bool, last: bool) -> StreamResponse {
        event(json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append, "lastChunk": last,
            "artifact": {"artifactId": "answer-1", "parts": [{"text": text}]}}}))
    }

    fn shown(events: &[StreamResponse]) -> String {
        let (mut transcript, mut painter) = (Transcript::default(), Painter::new("support", None));
        let lines: Vec<Line> = events.iter().flat_map(|event| transcript.fold(event)).collect();
        lines.iter().map(|line| painter.paint(line)).collect()
    }

    #[test]
    fn a_turn_reads_like_a_conversation() {
        let call = |state: &str| {
            json!([{"mediaType": names::TASK_MEDIA_TYPE, "data": {"tool_calls": [
                {"call_id": "1", "name": "orders.get_order", "summary": "order_id: 48213", "state": state, "duration_ms": 12}]}}])
        };
        let ask = json!([
            {"text": "Refund or replacement?\nOptions: refund, replacement"},
            {"mediaType": names::CHANNEL_MEDIA_TYPE, "data": {"kind": "help_request"}},
        ]);
        insta::assert_snapshot!(shown(&[
            event(json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}})),
            status("WORKING", call("running")),
            status("WORKING", call("succeeded")),
            chunk("I looked\nit up", false, false),
            chunk(" for you.", true, true),
            status("INPUT_REQUIRED", ask),
            status("COMPLETED", json!([{"text": "Done."}])),
        ]), @r"
                         ── SUBMITTED
                         ── WORKING
                    tool · orders.get_order(order_id: 48213)  ✓  12 ms
                 support › I looked
                           it up for you.
                         ── INPUT_REQUIRED
                 support ? Refund or replacement?
                             - refund
                             - replacement
                         ── COMPLETED
                 support › Done.
        ");
    }

    #[test]
    fn nothing_from_outside_moves_the_cursor() {
        let text = shown(&[status("COMPLETED", json!([{"text": "\u{1b}[2Jgone\rover"}]))]);
        assert!(!text.contains('\u{1b}') && !text.contains('\r'), "{text:?}");
    }
}
