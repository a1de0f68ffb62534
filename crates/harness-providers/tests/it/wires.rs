//! What a server says on each wire, written once.

use harness_providers::Api;
use serde_json::{Value, json};

use crate::fake_server::Reply;

/// The wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Responses,
    Messages,
}

pub(crate) const ALL: &[Wire] = &[Wire::Chat, Wire::Responses, Wire::Messages];

/// Why an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// The server's usual reason.
    #[default]
    Usual,
    /// `stop`, whatever was said.
    Stop,
    /// The token limit.
    Limit,
    /// A filter or a refusal without words.
    Filter,
    /// A reason that nobody knows.
    Unknown,
}

/// An answer, whatever the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// Text in the pieces it is streamed in.
    pub(crate) text: Vec<&'static str>,
    /// Id, name and argument text in pieces.
    pub(crate) calls: Vec<(&'static str, &'static str, Vec<&'static str>)>,
    pub(crate) end: End,
    /// Input with everything, cached, output.
    pub(crate) usage: Option<(u64, u64, u64)>,
}

impl Said {
    pub(crate) fn text(text: &[&'static str]) -> Self {
        Self { text: text.to_vec(), ..Self::default() }
    }

    pub(crate) fn call(id: &'static str, name: &'static str, arguments: &[&'static str]) -> Self {
        Self { calls: vec![(id, name, arguments.to_vec())], ..Self::default() }
    }

    pub(crate) fn ending(self, end: End) -> Self {
        Self { end, ..self }
    }

    /// Streamed and whole.
    pub(crate) fn replies(&self, wire: Wire) -> [Reply; 2] {
        [self.streamed(wire), Reply::json(200, &self.whole(wire).to_string())]
    }

    pub(crate) fn streamed(&self, wire: Wire) -> Reply {
        wire.stream(&self.events(wire))
    }

    /// The events of a stream, up to the one that says why it ends.
    pub(crate) fn events(&self, wire: Wire) -> Vec<Value> {
        match wire {
            Wire::Chat => self.chat_events(),
            Wire::Responses => self.responses_events(),
            Wire::Messages => self.messages_events(),
        }
    }

    pub(crate) fn whole(&self, wire: Wire) -> Value {
        match wire {
            Wire::Chat => {
                let calls: Vec<Value> = self
                    .calls
                    .iter()
                    .map(|(id, name, arguments)| {
                        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.concat()}})
                    })
                    .collect();
                let mut message = json!({"role": "assistant", "content": self.text.concat()});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                json!({
                    "id": "c-1",
                    "object": "chat.completion",
                    "choices": [{"index": 0, "message": message, "finish_reason": self.chat_reason()}],
                    "usage": self.chat_usage(),
                })
            }
            Wire::Responses => self.response(),
            Wire::Messages => {
                let mut content = Vec::new();
                if !self.text.is_empty() {
                    content.push(json!({"type": "text", "text": self.text.concat()}));
                }
                content.extend(self.calls.iter().map(|(id, name, arguments)| {
                    let input: Value = serde_json::from_str(&arguments.concat()).unwrap_or_default();
                    json!({"type": "tool_use", "id": id, "name": name, "input": input})
                }));
                json!({
                    "id": "msg-1",
                    "type": "message",
                    "role": "assistant",
                    "content": content,
                    "stop_reason": self.messages_reason(),
                    "usage": self.messages_usage(),
                })
            }
        }
    }

    fn chat_events(&self) -> Vec<Value> {
        let piece = |delta: Value| json!({"id": "c-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        let mut events: Vec<Value> = self.text.iter().map(|text| piece(json!({"content": text}))).collect();
        for (at, (id, name, arguments)) in self.calls.iter().enumerate() {
            let begin = json!({"index": at, "id": id, "function": {"name": name, "arguments": ""}});
            events.push(piece(json!({"tool_calls": [begin]})));
            for text in arguments {
                events.push(piece(json!({"tool_calls": [{"index": at, "function": {"arguments": text}}]})));
            }
        }
        events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": self.chat_reason()}]}));
        events.extend(self.usage.map(|_| json!({"choices": [], "usage": self.chat_usage()})));
        events
    }

    fn responses_events(&self) -> Vec<Value> {
        let mut events =
            vec![json!({"type": "response.created", "response": {"id": "resp-1", "status": "in_progress"}})];
        let output = self.output();
        for text in &self.text {
            events.push(json!({"type": "response.output_text.delta", "item_id": "msg-1", "output_index": 0, "content_index": 0, "delta": text}));
        }
        if !self.text.is_empty() {
            events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": output[0]}));
        }
        let first = usize::from(!self.text.is_empty());
        for (at, (id, _, arguments)) in self.calls.iter().enumerate() {
            let at = first + at;
            let mut begun = output[at].clone();
            begun["arguments"] = "".into();
            events.push(json!({"type": "response.output_item.added", "output_index": at, "item": begun}));
            for text in arguments {
                events.push(json!({"type": "response.function_call_arguments.delta", "item_id": format!("fc-{id}"), "output_index": at, "delta": text}));
            }
            events.push(json!({"type": "response.output_item.done", "output_index": at, "item": output[at]}));
        }
        let response = self.response();
        let kind = format!("response.{}", response["status"].as_str().unwrap());
        events.push(json!({"type": kind, "response": response}));
        events
    }

    fn output(&self) -> Vec<Value> {
        let mut output = Vec::new();
        if !self.text.is_empty() {
            let part = json!({"type": "output_text", "text": self.text.concat(), "annotations": []});
            output.push(json!({"type": "message", "id": "msg-1", "role": "assistant", "status": "completed", "content": [part]}));
        }
        output.extend(self.calls.iter().map(|(id, name, arguments)| {
            json!({"type": "function_call", "id": format!("fc-{id}"), "call_id": id, "name": name, "arguments": arguments.concat(), "status": "completed"})
        }));
        output
    }

    fn response(&self) -> Value {
        let (status, details) = match self.end {
            End::Usual | End::Stop => ("completed", Value::Null),
            End::Limit => ("incomplete", json!({"reason": "max_output_tokens"})),
            End::Filter => ("incomplete", json!({"reason": "content_filter"})),
            End::Unknown => ("incomplete", json!({"reason": "paused"})),
        };
        let usage = self.usage.map(|(input, cached, output)| {
            json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": output})
        });
        json!({"id": "resp-1", "object": "response", "status": status, "incomplete_details": details, "error": null, "output": self.output(), "usage": usage})
    }

    fn messages_events(&self) -> Vec<Value> {
        let mut usage = self.messages_usage();
        let mut last = json!({"type": "message_delta", "delta": {"stop_reason": self.messages_reason(), "stop_sequence": null}});
        if let Some(output) =
            usage.as_object_mut().and_then(|usage| usage.insert("output_tokens".to_owned(), 0.into()))
        {
            last["usage"] = json!({"output_tokens": output});
        }
        let mut events = vec![
            json!({"type": "message_start", "message": {"id": "msg-1", "type": "message", "role": "assistant", "content": [], "stop_reason": null, "usage": usage}}),
            json!({"type": "ping"}),
        ];
        let first = usize::from(!self.text.is_empty());
        if first == 1 {
            events.push(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
        }
        for text in &self.text {
            events.push(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}));
        }
        for (at, (id, name, arguments)) in self.calls.iter().enumerate() {
            let at = first + at;
            events.push(json!({"type": "content_block_start", "index": at, "content_block": {"type": "tool_use", "id": id, "name": name, "input": {}}}));
            for text in arguments {
                events.push(json!({"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": text}}));
            }
            events.push(json!({"type": "content_block_stop", "index": at}));
        }
        events.push(last);
        events
    }

    fn chat_reason(&self) -> &'static str {
        match self.end {
            End::Usual if !self.calls.is_empty() => "tool_calls",
            End::Usual | End::Stop => "stop",
            End::Limit => "length",
            End::Filter => "content_filter",
            End::Unknown => "paused",
        }
    }

    fn messages_reason(&self) -> &'static str {
        match self.end {
            End::Usual if !self.calls.is_empty() => "tool_use",
            End::Usual | End::Stop => "end_turn",
            End::Limit => "max_tokens",
            End::Filter => "refusal",
            End::Unknown => "paused",
        }
    }

    fn chat_usage(&self) -> Value {
        self.usage.map_or(Value::Null, |(input, cached, output)| {
            json!({"prompt_tokens": input, "prompt_tokens_details": {"cached_tokens": cached}, "completion_tokens": output})
        })
    }

    fn messages_usage(&self) -> Value {
        self.usage.map_or(Value::Null, |(input, cached, output)| {
            json!({"input_tokens": input - cached, "cache_read_input_tokens": cached, "output_tokens": output})
        })
    }
}

impl Wire {
    pub(crate) fn api(self) -> Api {
        match self {
            Self::Chat => Api::ChatCompletions,
            Self::Responses => Api::Responses { encrypted_reasoning: true },
            Self::Messages => Api::Messages,
        }
    }

    /// A stream of these events with its usual end.
    pub(crate) fn stream(self, events: &[Value]) -> Reply {
        let mut text: String = events.iter().map(|event| self.event(event)).collect();
        text.push_str(self.end_of_stream());
        Reply::new(200, "text/event-stream", text)
    }

    /// A stream of these events and nothing else.
    pub(crate) fn cut_stream(self, events: &[Value]) -> Reply {
        let text: String = events.iter().map(|event| self.event(event)).collect();
        Reply::new(200, "text/event-stream", text)
    }

    /// One event as its server writes it.
    pub(crate) fn event(self, data: &Value) -> String {
        match (self, data["type"].as_str()) {
            (Self::Responses | Self::Messages, Some(kind)) => format!("event: {kind}\ndata: {data}\n\n"),
            _ => format!("data: {data}\n\n"),
        }
    }

    /// What follows the reason why an answer ends.
    pub(crate) fn end_of_stream(self) -> &'static str {
        match self {
            Self::Chat => "data: [DONE]\n\n",
            Self::Responses => "",
            Self::Messages => "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        }
    }
}
