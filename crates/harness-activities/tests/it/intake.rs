//! Messages: what they mean, and what is kept of them.

use harness_agent::{IntakeInput, IntakeResult, Verdict};
use harness_model::{
    AcceptanceCriterion, Content, HelpRequest, InboundMessage, ItemPart, Part, PartBody, ParticipantKind,
    ParticipantRole, StoredItem, codes, names,
};
use harness_ports::{FailureKind, RecordKind};
use serde_json::{Value, json};

use crate::fixture::{Fixture, extension, inbound, message, participant, task_id};

async fn received(fixture: &Fixture, messages: &[(&str, &str, Vec<Part>)]) -> IntakeInput {
    let mut inbox: Vec<InboundMessage> = Vec::new();
    for (id, sender, parts) in messages {
        let block = fixture.put_json(&message(id, parts.clone())).await;
        inbox.push(inbound(id, sender, block));
    }
    let mut participants = extension().participants;
    participants.push(participant("root", ParticipantKind::Human, ParticipantRole::Admin));
    IntakeInput {
        task_id: task_id(),
        context_id: "context-1".into(),
        participants,
        pending_help: None,
        messages: inbox,
    }
}

fn text(text: &str) -> Vec<Part> {
    vec![Part::text(text)]
}

fn envelope(payload: &Value) -> Part {
    Part::of(PartBody::Data(json!({"kind": "task", "payload": payload})))
        .with_media_type(names::EVENT_MEDIA_TYPE)
}

/// What the model reads of each message, or why it was refused.
async fn read(fixture: &Fixture, result: &IntakeResult) -> Vec<String> {
    let mut lines = Vec::new();
    for outcome in &result.outcomes {
        lines.push(match &outcome.verdict {
            Verdict::Refused(error) => format!("refused: {error}"),
            Verdict::Accepted(accepted) => match &accepted.item {
                None => format!("{:?}", accepted.command),
                Some(item) => match fixture.item(&item.body).await {
                    StoredItem::User { parts, .. } => match &parts[0] {
                        ItemPart::Text(text) => text.clone(),
                        other => format!("{other:?}"),
                    },
                    other => format!("{other:?}"),
                },
            },
        });
    }
    lines
}

#[tokio::test]
async fn each_message_gets_its_outcome_and_its_audit_row() {
    let fixture = Fixture::new();
    let input = received(
        &fixture,
        &[("m1", "ada", text("hello")), ("m2", "eve", text("hi")), ("m3", "ada", text("/help"))],
    )
    .await;
    let result = fixture.intake(&input).await.unwrap();
    assert_eq!(
        read(&fixture, &result).await,
        ["[ada] hello", "refused: [channel.not_a_member] not a participant", "Some(Help)"]
    );
    let Verdict::Accepted(first) = &result.outcomes[0].verdict else { panic!() };
    assert_eq!(fixture.bytes(first.text.as_ref().unwrap()).await, "hello");
    let records = fixture.store.records(RecordKind::InboxAudit, &task_id(), 10).await.unwrap();
    let rows: Vec<(bool, &Value, &Value)> = records
        .iter()
        .map(|r| (r.value["accepted"].as_bool().unwrap(), &r.value["participant_id"], &r.value["reason"]))
        .collect();
    let refused = json!("[channel.not_a_member] not a participant");
    assert_eq!(
        rows,
        [
            (true, &json!("ada"), &Value::Null),
            (false, &json!("eve"), &refused),
            (true, &json!("ada"), &Value::Null)
        ]
    );
}

#[tokio::test]
async fn running_it_again_changes_nothing() {
    let fixture = Fixture::new();
    let input = received(&fixture, &[("m1", "ada", text("hello")), ("m2", "eve", text("hi"))]).await;
    let first = fixture.intake(&input).await.unwrap();
    let audit = fixture.store.records(RecordKind::InboxAudit, &task_id(), 10).await.unwrap();
    assert_eq!(fixture.intake(&input).await.unwrap(), first);
    assert_eq!(fixture.store.records(RecordKind::InboxAudit, &task_id(), 10).await.unwrap(), audit);
}

#[tokio::test]
async fn the_first_reply_answers_the_question() {
    let fixture = Fixture::new();
    let mut input =
        received(&fixture, &[("m1", "ada", text("the red one")), ("m2", "ada", text("and hurry"))]).await;
    let question = Content::Block(fixture.put("Which one?").await);
    input.pending_help = Some(HelpRequest { participant_id: "ada".into(), question, options: Vec::new() });
    let result = fixture.intake(&input).await.unwrap();
    assert_eq!(
        read(&fixture, &result).await,
        ["Reply from ada to \"Which one?\": the red one", "[ada] and hurry"]
    );
    let answers: Vec<bool> = result
        .outcomes
        .iter()
        .map(|outcome| matches!(&outcome.verdict, Verdict::Accepted(accepted) if accepted.answers_help))
        .collect();
    assert_eq!(answers, [true, false]);
}

#[tokio::test]
async fn a_new_participant_may_speak_at_once() {
    let fixture = Fixture::new();
    let people = json!({"participants": [
        {"id": "bob", "kind": "human", "role": "watcher", "display_name": ""},
    ]});
    let input = received(
        &fixture,
        &[("m1", "root", vec![envelope(&people)]), ("m2", "bob", text("hi")), ("m3", "ada", text("bye"))],
    )
    .await;
    let result = fixture.intake(&input).await.unwrap();
    let lines = read(&fixture, &result).await;
    assert_eq!(lines[1..], ["[bob] hi", "refused: [channel.not_a_member] not a participant"]);
}

#[tokio::test]
async fn changes_that_are_too_large_to_record_are_refused() {
    let fixture = Fixture::new();
    let criteria = |n: usize| -> Value {
        let criterion = AcceptanceCriterion { text: "x".repeat(500), met: false };
        json!({"acceptance_criteria": vec![criterion; n]})
    };
    let sent: Vec<(String, Vec<Part>)> =
        (0..8).map(|n| (format!("m{n}"), vec![envelope(&criteria(30)), Part::text("please")])).collect();
    let sent: Vec<(&str, &str, Vec<Part>)> =
        sent.iter().map(|(id, parts)| (id.as_str(), "ada", parts.clone())).collect();
    let result = fixture.intake(&received(&fixture, &sent).await).await.unwrap();
    let refused = result.outcomes.iter().filter(|o| matches!(o.verdict, Verdict::Refused(_))).count();
    assert!((1..8).contains(&refused), "{refused}");
    let audit = fixture.store.records(RecordKind::InboxAudit, &task_id(), 10).await.unwrap();
    assert_eq!(audit.iter().filter(|row| row.value["accepted"] == false).count(), refused);
}

#[tokio::test]
async fn a_message_that_is_not_there_is_fatal() {
    let fixture = Fixture::new();
    let mut input = received(&fixture, &[]).await;
    input.messages.push(inbound("m1", "ada", harness_model::BlockRef::to(b"nothing")));
    let failed = fixture.intake(&input).await.unwrap_err();
    assert_eq!((failed.code, failed.kind), (codes::STATE_INVALID, FailureKind::Fatal));
}

#[tokio::test]
async fn nothing_that_is_refused_or_unknown_outgrows_the_history() {
    let fixture = Fixture::new();
    let keys: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("key-{n}"), Value::Null)).collect();
    let forbidden = vec![envelope(&Value::Object(keys))];
    let command = text(&format!("/{}", "x".repeat(900_000)));
    let input =
        received(&fixture, &[("m1", "ada", forbidden), ("m2", "ada", command), ("m3", "ada", text("hi"))])
            .await;
    let result = fixture.intake(&input).await.unwrap();
    let bytes = serde_json::to_vec(&result).unwrap().len();
    assert!(bytes < 4_000, "{bytes}");
    let read = read(&fixture, &result).await;
    assert!(
        read[0].starts_with("refused: [state.invalid] task envelope cannot change key-0, "),
        "{}",
        read[0]
    );
    assert!(read[1].starts_with("Some(Unknown(\"xxx"), "{}", read[1]);
    assert_eq!(read[2], "[ada] hi");

    let ids: Vec<String> = (0..64).map(|n| format!("{n:02}{}", "\"".repeat(254))).collect();
    let refused = || vec![envelope(&json!({"ü".repeat(600): 1}))];
    let many: Vec<(&str, &str, Vec<Part>)> = ids.iter().map(|id| (id.as_str(), "ada", refused())).collect();
    let result = fixture.intake(&received(&fixture, &many).await).await.unwrap();
    let bytes = serde_json::to_vec(&result).unwrap().len();
    assert!(bytes <= harness_model::limits::HISTORY_PAYLOAD_BYTES_MAX, "{bytes}");
}
