//! `ask_participant`: asks somebody and waits for the reply.

use harness_model::{ParticipantId, limits};
use serde_json::{Map, Value, json};

use super::{IntrinsicRequest, Spill, StateTool, object, text_argument, text_list};

pub(super) const TOOL: StateTool = StateTool {
    name: "ask_participant",
    description: "Ask a participant of this task a question and wait for the reply. The task pauses after this turn. Ask \
                  only what you cannot find out with tools, and offer options when the answer is a choice.",
    schema,
    idempotent: false,
    parse,
};

fn schema() -> Value {
    object(
        json!({
            "participant_id": {"type": "string", "minLength": 1, "description": "Id of a participant of this task."},
            "question": {"type": "string", "minLength": 1, "description": "One clear question."},
            "options": {"type": "array", "items": {"type": "string"}, "maxItems": limits::OPTIONS_MAX,
                        "description": "Suggested answers; may be empty."},
        }),
        &["participant_id", "question"],
    )
}

fn parse(arguments: &Map<String, Value>, spill: &mut Spill) -> Result<IntrinsicRequest, String> {
    let question = text_argument(arguments, "question").trim();
    if question.is_empty() {
        return Err("the question is blank".to_owned());
    }
    if question.chars().count() > limits::QUESTION_CHARS_MAX {
        return Err(format!(
            "the question has more than {} characters; shorten it",
            limits::QUESTION_CHARS_MAX
        ));
    }
    let options = text_list(arguments, "options");
    if options.iter().any(|option| option.chars().count() > limits::TASK_NAME_CHARS_MAX * 4) {
        return Err("an option is longer than 240 characters; shorten it".to_owned());
    }
    Ok(IntrinsicRequest::AskParticipant {
        participant_id: ParticipantId::from(text_argument(arguments, "participant_id")),
        question: spill.text(question),
        options,
    })
}
