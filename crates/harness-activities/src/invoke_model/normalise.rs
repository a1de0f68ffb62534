//! The answer as it is kept: scrubbed, with usable call ids, bounded where the far side is not.

use harness_model::{Finish, ModelOutput, Redactor, clean_field, limits, parse_json_bounded, truncate_chars};

use super::call_ids;

/// Calls of one answer that are kept; the model has lost its way long before.
const CALLS_KEPT_MAX: usize = 2 * limits::CALLS_PER_TURN_MAX;
/// Characters of names that come from the provider.
const NAME_CHARS_MAX: usize = 200;

/// The answer with every secret masked. The provider's own items are repeated byte for byte only while they still tell
/// the same as the answer.
pub(super) fn normalised(mut output: ModelOutput, redactor: &Redactor) -> ModelOutput {
    let cut = output.calls.len() > CALLS_KEPT_MAX;
    output.calls.truncate(CALLS_KEPT_MAX);
    let renamed = call_ids::make_unique(&mut output.calls);
    if cut || renamed {
        output.raw_items.clear();
    }
    output.text = redactor.text(&output.text);
    output.refusal = output.refusal.as_deref().map(|refusal| redactor.text(refusal));
    output.raw_items.iter_mut().for_each(|item| redactor.value(item));
    for call in &mut output.calls {
        call.name = truncate_chars(&call.name, NAME_CHARS_MAX);
        if let Some(scrubbed) = scrubbed_arguments(&call.arguments, redactor) {
            call.arguments = scrubbed;
        }
    }
    for name in [&mut output.model, &mut output.provider] {
        *name = clean_field(name, Some(NAME_CHARS_MAX)).text;
    }
    output.request_id = output.request_id.map(|id| truncate_chars(&id, NAME_CHARS_MAX));
    if let Finish::Other(reason) = &output.finish {
        output.finish = Finish::Other(clean_field(reason, Some(NAME_CHARS_MAX)).text);
    }
    output
}

/// The argument text with its secrets masked; `None` when it has none and stays byte for byte.
fn scrubbed_arguments(arguments: &str, redactor: &Redactor) -> Option<String> {
    let parsed = parse_json_bounded(arguments.as_bytes(), limits::JSON_DEPTH_MAX);
    let Ok(value) = parsed else { return Some(redactor.text(arguments)) };
    // Value by value: masking the text could mask a number and leave no JSON behind.
    let mut scrubbed = value.clone();
    redactor.value(&mut scrubbed);
    (scrubbed != value).then(|| scrubbed.to_string())
}

#[cfg(test)]
mod tests {
    use harness_model::{RequestedCall, Secret, Usage};
    use serde_json::json;

    use super::*;

    fn output(calls: Vec<RequestedCall>) -> ModelOutput {
        ModelOutput {
            text: "hunter22".to_owned(),
            calls,
            refusal: None,
            finish: Finish::ToolCalls,
            usage: Usage::default(),
            model: "m".to_owned(),
            provider: "p".to_owned(),
            request_id: None,
            raw_items: vec![json!({"text": "hunter22", "n": 1})],
        }
    }

    fn call(id: &str, arguments: &str) -> RequestedCall {
        RequestedCall { call_id: id.into(), name: "t".to_owned(), arguments: arguments.to_owned() }
    }

    fn normal(calls: Vec<RequestedCall>) -> ModelOutput {
        normalised(output(calls), &Redactor::new([Secret::new("hunter22")]))
    }

    #[test]
    fn secrets_are_masked_everywhere() {
        let output = normal(vec![call("a", r#"{"k": "hunter22"}"#), call("b", "hunter22 {")]);
        assert_eq!(output.text, "[REDACTED]");
        assert_eq!(output.raw_items, [json!({"text": "[REDACTED]", "n": 1})]);
        assert_eq!(output.calls[0].arguments, r#"{"k":"[REDACTED]"}"#);
        assert_eq!(output.calls[1].arguments, "[REDACTED] {");
    }

    #[test]
    fn arguments_without_secrets_stay_byte_for_byte() {
        let text = r#"{ "token": 123456789012,  "next_token": "abcdefghijk" }"#;
        assert_eq!(normal(vec![call("a", text)]).calls[0].arguments, text);
    }

    #[test]
    fn raw_items_go_when_they_tell_something_else() {
        assert!(normal(vec![call("a", "{}"), call("a", "{}")]).raw_items.is_empty());
        let many = normal((0..500).map(|n| call(&format!("c{n}"), "{}")).collect());
        assert_eq!(many.calls.len(), CALLS_KEPT_MAX);
        assert!(many.raw_items.is_empty());
    }
}
