//! The checks that an A2A server is measured by, and the tests that make them. What a check asks of every operation, and
//! what no other module has, is here.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

use crate::{
    api::{BOTH, Binding, message, outline, reply},
    client_options::key,
    server::{start, start_with},
};

/// Where a check is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Both,
    /// The other binding has nothing of the kind.
    JsonRpc,
    Rest,
    /// The card is the same for both.
    Card,
}

impl On {
    /// Whether a test is made there, by what it says.
    fn is_in(self, test: &str) -> bool {
        let has = |words: &[&str]| words.iter().any(|word| test.contains(word));
        let rpc = has(&["JsonRpc", "\"rpc\"", "post(&server"]);
        let rest = has(&["Rest", "\"rest\"", "/message:send"]);
        match self {
            Self::Both => has(&["BOTH"]) || rpc && rest,
            Self::JsonRpc => rpc,
            Self::Rest => rest,
            Self::Card => has(&["CARD", "agent-card"]),
        }
    }
}

/// Number, where, what is checked, and the tests that check it; one of them at least is made where the check is.
const CHECKS: &[(u8, On, &str, &[&str])] = &[
    (
        1,
        On::Card,
        "the card has no fields of 0.3, interfaces are whole",
        &["the_default_card_is_the_pinned_one"],
    ),
    (2, On::Card, "the card has an entity tag", &["a_known_card_is_not_sent_again"]),
    (3, On::Both, "no version", &["a_version_is_required_in_header_or_query"]),
    (4, On::Both, "unknown versions", &["a_version_is_required_in_header_or_query"]),
    (5, On::Both, "patch versions", &["a_version_is_required_in_header_or_query"]),
    (6, On::Both, "the version in the query", &["a_version_is_required_in_header_or_query"]),
    (
        7,
        On::Both,
        "what is not JSON",
        &["bodies_that_cannot_be_read_are_refused", "what_is_no_request_is_refused_under_the_right_id"],
    ),
    (8, On::JsonRpc, "what is no request", &["what_is_no_request_is_refused_under_the_right_id"]),
    (9, On::JsonRpc, "names of 0.3", &["what_is_no_request_is_refused_under_the_right_id"]),
    (
        10,
        On::Both,
        "parameters of wrong types",
        &["parameters_of_wrong_types_are_refused", "what_is_no_request_is_refused_under_the_right_id"],
    ),
    (11, On::JsonRpc, "ids are echoed", &["ids_are_echoed_as_they_came"]),
    (12, On::Both, "errors carry ErrorInfo", &["errors_of_both_bindings", "every_error_says_which_it_is"]),
    (13, On::Both, "the extended card without parameters", &["what_the_agent_does_not_offer_is_refused"]),
    (
        14,
        On::Both,
        "messages without what they need",
        &["messages_that_are_not_valid_are_refused_and_nothing_is_created"],
    ),
    (
        15,
        On::Both,
        "unknown fields, lower-case roles",
        &["names_of_the_proto_file_and_unknown_fields_are_accepted"],
    ),
    (16, On::Both, "the form of a result", &["a_result_has_the_form_of_version_1", "tasks_as_they_are_read"]),
    (
        17,
        On::Both,
        "a send blocks",
        &["a_send_answers_with_the_task_at_the_end_of_its_turn", "a_send_ends_where_the_task_waits"],
    ),
    (18, On::Both, "a follow-up blocks", &["a_follow_up_waits_for_its_own_turn"]),
    (19, On::Both, "a send that does not wait", &["return_immediately_does_not_wait"]),
    (20, On::Both, "unknown tasks", &["tasks_and_contexts_must_fit"]),
    (21, On::Both, "ended tasks", &["a_send_answers_with_the_task_at_the_end_of_its_turn"]),
    (22, On::Both, "contexts", &["tasks_and_contexts_must_fit"]),
    (23, On::Both, "media types", &["media_types_are_those_of_the_card"]),
    (24, On::Both, "lengths of history", &["history_is_as_long_as_asked_for"]),
    (25, On::Both, "unknown ids", &["a_task_of_others_is_a_task_that_does_not_exist"]),
    (26, On::Both, "an empty listing", &["an_empty_listing_has_all_four_fields"]),
    (27, On::Both, "order of a listing", &["listings_are_filtered_ordered_and_bare"]),
    (28, On::Both, "artifacts in a listing", &["listings_are_filtered_ordered_and_bare"]),
    (29, On::Both, "parameters of a listing", &["parameters_of_a_listing_are_checked"]),
    (30, On::Both, "pages", &["pages_are_stable_when_tasks_are_added"]),
    (31, On::Both, "times are inclusive", &["listings_are_filtered_ordered_and_bare"]),
    (32, On::Both, "a cancel of an ended task", &["a_cancel_ends_the_task_once"]),
    (33, On::Both, "first and last event", &["a_new_task_is_told_from_its_creation_to_the_end_of_its_turn"]),
    (
        34,
        On::Both,
        "answers that are a message",
        &[
            "the_server_answers_every_message_with_a_task",
            "a_message_as_an_answer_is_taken",
            "a_message_is_all_of_its_stream_whatever_the_peer_does_then",
        ],
    ),
    (35, On::Both, "errors before a stream", &["errors_before_a_stream_are_plain_json"]),
    (36, On::Both, "frames of both bindings", &["streams_of_a_turn"]),
    (37, On::Both, "subscriptions to ended tasks", &["a_replay_passes_over_old_ends_of_turns"]),
    (
        38,
        On::Both,
        "subscriptions to waiting tasks",
        &["a_subscription_shows_an_idle_task_and_stays_for_its_next_turn"],
    ),
    (39, On::Rest, "subscriptions by POST and GET", &["subscribe_is_found_by_get_and_by_post"]),
    (
        40,
        On::Both,
        "streams in parallel",
        &[
            "a_subscription_shows_an_idle_task_and_stays_for_its_next_turn",
            "a_thousand_subscribers_hear_the_same_and_a_stalled_one_holds_up_nobody",
        ],
    ),
    (
        41,
        On::Both,
        "configurations of unknown tasks, ids",
        &[
            "others_see_neither_the_task_nor_the_configurations",
            "ids_are_made_up_when_none_is_given_and_the_same_id_replaces",
        ],
    ),
    (42, On::Both, "one event in each call", &["a_receiver_that_comes_with_a_message_hears_all_of_it"]),
    (43, On::Both, "authentication", &["a_receiver_that_comes_with_a_message_hears_all_of_it"]),
    (
        44,
        On::Both,
        "configurations that come with a message",
        &["a_receiver_that_comes_with_a_message_hears_all_of_it"],
    ),
    (45, On::Both, "removal", &["a_removed_receiver_hears_nothing_more"]),
    (
        46,
        On::Rest,
        "errors of the HTTP+JSON binding",
        &["unknown_paths_and_broken_bodies_answer_in_the_form_of_the_binding"],
    ),
    (47, On::Both, "tenants", &["every_tenant_names_the_same_agent", "every_operation_takes_a_tenant"]),
    (48, On::Both, "capabilities that are not there", &["what_the_agent_does_not_offer_is_refused"]),
    (
        49,
        On::Both,
        "required extensions",
        &[
            "a_required_extension_has_to_be_named_on_every_operation",
            "the_client_names_what_it_knows_of_the_card",
        ],
    ),
    (
        50,
        On::Both,
        "tasks of others",
        &[
            "a_task_of_others_is_a_task_that_does_not_exist",
            "others_see_neither_the_task_nor_the_configurations",
        ],
    ),
    (51, On::Both, "missing credentials", &["every_operation_asks_for_credentials"]),
];

#[test]
fn every_check_names_tests_that_exist() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let files = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let sources: String = files.collect();
    let mut numbers = BTreeSet::new();
    for (number, on, about, tests) in CHECKS {
        assert!(numbers.insert(number), "{number} is there once");
        let body = |test: &&str| {
            let rest = sources.split_once(&format!("async fn {test}()")).map(|(_, rest)| rest);
            let rest = rest.unwrap_or_else(|| panic!("{number}, {about}: there is no test {test}"));
            rest.split("\n}\n").next().unwrap_or_default().to_owned()
        };
        let bodies: Vec<String> = tests.iter().map(body).collect();
        assert!(
            bodies.iter().any(|body| on.is_in(body)),
            "{number}, {about}: no test on {on:?} of {tests:?}"
        );
    }
    assert!(numbers.into_iter().copied().eq(1..=51), "every check is there");
}

#[tokio::test]
async fn a_result_has_the_form_of_version_1() {
    let server = start().await;
    for binding in BOTH {
        let params = json!({"message": message(&format!("{binding:?}"), "hello")});
        let result = server.caller(binding, "ada").ok("SendMessage", params).await;
        assert_eq!(result.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"]);
        let task = &result["task"];
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        assert_eq!(task["history"][0]["role"], "ROLE_USER");
        let time = task["status"]["timestamp"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.contains('T'), "{time}");
        assert!(!result.to_string().contains("\"kind\":\"task\""), "kinds are of version 0.3");
    }
}

#[tokio::test]
async fn a_send_ends_where_the_task_waits() {
    let server = start().await;
    for (text, state) in [
        ("ask", "TASK_STATE_INPUT_REQUIRED"),
        ("authorize", "TASK_STATE_AUTH_REQUIRED"),
        ("finish", "TASK_STATE_COMPLETED"),
    ] {
        for binding in BOTH {
            let ada = server.caller(binding, "ada");
            let sent = ada.send(message(&format!("{binding:?}-{text}"), text)).await;
            assert_eq!(sent["status"]["state"], state);
            let params = json!({"message": message(&format!("{binding:?}-{text}-stream"), text)});
            let frames = ada.stream("SendStreamingMessage", params).await;
            let last = outline(&frames).pop().unwrap();
            assert!(last.ends_with(state.trim_start_matches("TASK_STATE_")), "{last}");
        }
    }
}

#[tokio::test]
async fn every_error_says_which_it_is() {
    // How an error is written is checked wherever a call is refused; here every operation is refused once.
    let server = start().await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let missing = json!({"id": "missing"});
        let late = json!({"message": reply("m", "hello", &missing)});
        for (operation, params, reason) in [
            ("SendMessage", late.clone(), "TASK_NOT_FOUND"),
            ("SendStreamingMessage", late, "TASK_NOT_FOUND"),
            ("GetTask", missing.clone(), "TASK_NOT_FOUND"),
            ("CancelTask", missing.clone(), "TASK_NOT_FOUND"),
            ("SubscribeToTask", missing, "TASK_NOT_FOUND"),
            ("ListTasks", json!({"pageSize": 0}), "INVALID_PARAMS"),
            ("GetExtendedAgentCard", Value::Null, "UNSUPPORTED_OPERATION"),
        ] {
            assert_eq!(ada.refused(operation, params).await.reason, reason, "{binding:?} {operation}");
        }
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused() {
    let server = start().await;
    for binding in BOTH {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        for (body, reason) in [
            ("{", "PARSE_ERROR"),
            ("{\"message\":\"\\ud800\"}", "PARSE_ERROR"),
            ("\u{feff}{}", "PARSE_ERROR"),
            (deep.as_str(), "INVALID_REQUEST"),
        ] {
            let params = json!({"message": message("m", "hello")});
            let request = server.caller(binding, "ada").request("SendMessage", params);
            let response = request.body(body.to_owned()).send().await.unwrap();
            let status = response.status().as_u16();
            let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert!(answer.to_string().contains(reason), "{binding:?} {body:.40} {answer}");
            match binding {
                Binding::JsonRpc => assert_eq!((status, &answer["id"]), (200, &Value::Null)),
                Binding::Rest => assert_eq!((status, &answer["error"]["code"]), (400, &json!(400))),
            }
        }
    }
    assert!(server.engine.started().is_empty());
}

#[tokio::test]
async fn parameters_of_wrong_types_are_refused() {
    let server = start_with(|config| config.push_key = Some(key())).await;
    for binding in BOTH {
        let ada = server.caller(binding, "ada");
        let task = ada.send(message(&format!("{binding:?}"), "hello")).await;
        let message = |field: &str, value: Value| {
            let mut message = message("wrong", "hello");
            message[field] = value;
            json!({"message": message})
        };
        let sent = |field: &str, value: Value| ("SendMessage", message(field, value));
        let config = |field: &str, value: Value| {
            let mut config = json!({"taskId": task["id"], "url": "https://example.com/"});
            config[field] = value;
            ("CreateTaskPushNotificationConfig", config)
        };
        for (operation, params) in [
            ("SendMessage", json!({"message": 5})),
            ("SendMessage", json!({"message": message("m", json!("x"))["message"], "configuration": []})),
            sent("messageId", json!(7)),
            sent("role", json!("user")),
            sent("role", json!(1)),
            sent("parts", json!({"text": "hello"})),
            sent("parts", json!([{"text": 5}])),
            sent("parts", json!(["hello"])),
            sent("metadata", json!("x")),
            sent("contextId", json!({})),
            sent("extensions", json!("x")),
            sent("referenceTaskIds", json!([1])),
            sent("parts", json!([["hello"]])),
            ("SendStreamingMessage", json!({"message": []})),
            // The fields of a message in their order are no message.
            ("SendMessage", json!({"message": ["m", null, null, "ROLE_USER", [{"text": "hello"}]]})),
            ("GetTask", json!({"id": task["id"], "historyLength": "all"})),
            ("ListTasks", json!({"pageSize": "many"})),
            ("ListTasks", json!({"includeArtifacts": "perhaps"})),
            ("ListTasks", json!({"status": "WORKING"})),
            ("ListTasks", json!({"statusTimestampAfter": "yesterday"})),
            config("url", json!(5)),
            config("token", json!(["t"])),
            config("authentication", json!("Bearer")),
            config("authentication", json!(["Bearer", "x"])),
        ] {
            let refusal = ada.refused(operation, params.clone()).await;
            assert_eq!(refusal.reason, "INVALID_PARAMS", "{binding:?} {operation} {params}");
        }
    }
    assert_eq!(server.engine.started().len(), 2, "the two that were right");
}

#[tokio::test]
async fn every_operation_takes_a_tenant() {
    let mut server = start().await;
    let root = server.base.clone();
    for binding in BOTH {
        server.base = if binding == Binding::Rest { format!("{root}/acme") } else { root.clone() };
        let ada = server.caller(binding, "ada");
        let with = |mut params: Value| {
            params["tenant"] = json!("acme");
            params
        };
        let id = |n: u8| format!("{binding:?}-{n}");
        let sent = ada.ok("SendMessage", with(json!({"message": message(&id(1), "hello")}))).await;
        let task = json!({"id": sent["task"]["id"]});
        let streamed =
            ada.stream("SendStreamingMessage", with(json!({"message": message(&id(2), "finish")}))).await;
        assert_eq!(outline(&streamed).last().unwrap(), "3 statusUpdate COMPLETED");
        assert_eq!(ada.ok("GetTask", with(task.clone())).await["id"], task["id"]);
        let listed = ada.ok("ListTasks", with(json!({"status": "TASK_STATE_INPUT_REQUIRED"}))).await;
        assert_eq!(listed["tasks"][0]["id"], task["id"]);
        let mut stream = ada.open("SubscribeToTask", with(task.clone()), None).await;
        assert_eq!(stream.next().await.unwrap().1["task"]["id"], task["id"]);
        let canceled = ada.ok("CancelTask", with(task)).await;
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
        assert_eq!(
            ada.refused("GetExtendedAgentCard", with(json!({}))).await.reason,
            "UNSUPPORTED_OPERATION"
        );
    }
}
