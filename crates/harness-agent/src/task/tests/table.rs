//! Every phase meets every event. The table in `docs/task-states.md` is the expectation, cell by cell.

use harness_model::Lifecycle;
use harness_ports::{EventKind, FailureKind, Signal};
use serde_json::json;

use super::driver::{Driver, answer, ask, failure, message, start, tool, tool_result};
use crate::{IntakeOutcome, IntakeResult, TaskSettings};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/task-states.md");

const PHASES: [&str; 10] = [
    "new",
    "waiting (next message)",
    "waiting (reply)",
    "intake",
    "intake, backing off",
    "modeling",
    "modeling, backing off",
    "tools",
    "tools, backing off",
    "ended",
];

const EVENTS: [&str; 11] = [
    "started",
    "message",
    "message, interrupting",
    "cancel",
    "unknown signal",
    "activity completed",
    "activity failed, retryable",
    "activity failed, for good",
    "activity ended, outcome unknown",
    "timer fired",
    "end of an activity or timer that is not awaited",
];

/// A task in this phase.
fn task_in(phase: &str) -> Driver {
    let retryable = || failure(FailureKind::Retryable { after_ms: None });
    let mut task = match phase {
        "new" => Driver::unstarted(TaskSettings::default()),
        "waiting (next message)" => {
            let mut task = Driver::modeling(Lifecycle::Conversation);
            task.model(answer("hi", vec![]));
            task
        }
        "waiting (reply)" => {
            let mut task = Driver::modeling(Lifecycle::Conversation);
            task.model(answer("", vec![ask("q", "Sure?")]));
            task
        }
        "intake" | "intake, backing off" => {
            let mut task = Driver::new(start(Lifecycle::Conversation));
            task.say(&message("m1"));
            task
        }
        "modeling" | "modeling, backing off" => Driver::modeling(Lifecycle::Conversation),
        "tools" => {
            let mut task = Driver::modeling(Lifecycle::Conversation);
            task.model(answer("", vec![tool("a", false), tool("b", true)]));
            task
        }
        "tools, backing off" => {
            let mut task = Driver::modeling(Lifecycle::Conversation);
            task.model(answer("", vec![tool("a", true)]));
            task
        }
        "ended" => {
            let mut task = Driver::modeling(Lifecycle::Delegated);
            task.model(answer("done", vec![]));
            task
        }
        other => panic!("no phase {other}"),
    };
    if phase.ends_with("backing off") {
        let id = task.activities("").remove(0);
        task.fail(&id, retryable());
    }
    task.took();
    task
}

/// What the event does to a task in that phase: the next phase and the commands, or why it cannot happen.
fn cell(phase: &str, event: &str) -> String {
    let mut task = task_in(phase);
    if event == "started" {
        return if phase == "new" {
            started(&mut task)
        } else {
            impossible(&mut task, EventKind::Started { input: json!({}) })
        };
    }
    if phase == "new" {
        return impossible(&mut task, EventKind::TimerFired { timer_id: "x".into() });
    }
    let awaited = task.activities("").first().cloned();
    match event {
        "message" | "message, interrupting" | "cancel" if phase == "ended" => {
            return "refused: closed".to_owned();
        }
        "message" => task.say(&message("m9")),
        "message, interrupting" => {
            task.say(&harness_model::InboundMessage { interrupt: true, ..message("m9") });
        }
        "cancel" => task.cancel(),
        "unknown signal" => {
            let signal =
                Signal { name: "what.v1".to_owned(), payload: json!({}), dedupe_key: None, trace: None };
            return match task.workflow.admits(&signal) {
                harness_ports::Admission::Accept => "accepted".to_owned(),
                harness_ports::Admission::Closed => "refused: closed".to_owned(),
                harness_ports::Admission::Refuse(_) => "refused: unknown".to_owned(),
            };
        }
        "timer fired" if phase.ends_with("backing off") => task.fire(),
        "end of an activity or timer that is not awaited" => {
            task.event(EventKind::TimerFired { timer_id: "retry-999".into() });
            task.fail(&"invoke_model-999".into(), failure(FailureKind::Fatal));
            task.complete(&"invoke_tool-999".into(), json!({"any": "thing"}));
        }
        _ => match awaited {
            None => return "cannot happen".to_owned(),
            Some(id) => end(&mut task, &id, phase, event),
        },
    }
    let took = task.took();
    let took = if took.is_empty() { "nothing".to_owned() } else { took };
    format!("{}: {took}", task.phase())
}

fn started(task: &mut Driver) -> String {
    *task = Driver::new(start(Lifecycle::Conversation));
    format!("{}: {}", task.phase(), task.took())
}

fn impossible(task: &mut Driver, kind: EventKind) -> String {
    let event = harness_ports::HistoryEvent { at: harness_model::Timestamp::from_millis(0), kind };
    match task.workflow.apply(&event) {
        Err(_) => "illegal".to_owned(),
        Ok(commands) if commands.is_empty() => format!("{}: nothing", task.phase()),
        Ok(commands) => format!("{commands:?}"),
    }
}

fn end(task: &mut Driver, id: &harness_model::ActivityId, phase: &str, event: &str) {
    match event {
        "activity completed" => match phase {
            "intake" => {
                let outcomes =
                    vec![IntakeOutcome { message_id: "m1".into(), verdict: super::driver::accepted() }];
                task.complete(id, IntakeResult { outcomes });
            }
            "modeling" => task.complete(id, answer("hi", vec![])),
            _ => task.complete(id, tool_result("x")),
        },
        "activity failed, retryable" => task.fail(id, failure(FailureKind::Retryable { after_ms: None })),
        "activity failed, for good" => task.fail(id, failure(FailureKind::Fatal)),
        "activity ended, outcome unknown" => task.fail(id, failure(FailureKind::OutcomeUnknown)),
        "timer fired" => task.event(EventKind::TimerFired { timer_id: "retry-998".into() }),
        other => panic!("no event {other}"),
    }
}

#[test]
fn every_phase_decides_every_event_as_documented() {
    let mut table = String::new();
    for phase in PHASES {
        table.push_str(&format!("### {phase}\n\n| Event | What the task does |\n| --- | --- |\n"));
        for event in EVENTS {
            table.push_str(&format!("| {event} | {} |\n", cell(phase, event)));
        }
        table.push('\n');
    }
    let document = std::fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once("<!-- table -->\n").unwrap();
    let (documented, after) = rest.split_once("<!-- end of table -->").unwrap();
    if std::env::var_os("UPDATE").is_some() {
        let rewritten = format!("{before}<!-- table -->\n{table}<!-- end of table -->{after}");
        std::fs::write(DOCUMENT, rewritten).unwrap();
        return;
    }
    assert_eq!(documented, table, "run the test with UPDATE=1, then read every changed line of the document");
}
