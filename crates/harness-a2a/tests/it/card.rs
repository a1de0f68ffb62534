//! The agent card and the routes beside the bindings.

use harness_a2a::{CardConfig, CardSkill};
use serde_json::{Value, json};

use crate::server::{start, start_with};

const CARD: &str = "/.well-known/agent-card.json";

#[tokio::test]
async fn the_default_card_is_the_pinned_one() {
    let server = start_with(|config| config.base_url = "https://agent.example///".to_owned()).await;
    let response = server.http.get(format!("{}{CARD}", server.base)).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    let card: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    crate::wire::golden("card", &card);
}

#[tokio::test]
async fn a_configured_card_says_so() {
    let skill =
        CardSkill { id: "s".into(), name: "S".into(), examples: vec!["try".into()], ..CardSkill::default() };
    let configured = CardConfig {
        name: "Ledger".into(),
        description: "Knows orders.".into(),
        version: "2".into(),
        skills: vec![skill],
        required_extensions: Vec::new(),
    };
    let server = start_with(|config| config.card = configured).await;
    let text = server.http.get(format!("{}{CARD}", server.base)).send().await.unwrap().text().await.unwrap();
    let card: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&card["name"], &card["version"]), (&json!("Ledger"), &json!("2")));
    let skills = json!([{"description": "", "examples": ["try"], "id": "s", "name": "S", "tags": []}]);
    assert_eq!(card["skills"], skills);
}

#[tokio::test]
async fn a_known_card_is_not_sent_again() {
    let server = start().await;
    let get = || server.http.get(format!("{}{CARD}", server.base));
    let first = get().send().await.unwrap();
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(first.headers()["cache-control"], "public, max-age=300");
    for (known, status) in [
        (etag.clone(), 304),
        (format!("\"other\", W/{etag}"), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
    ] {
        let response = get().header("if-none-match", &known).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{known}");
        assert_eq!(response.headers()["etag"], etag.as_str());
    }
}

#[tokio::test]
async fn a_card_that_has_not_changed_since_is_not_sent_again() {
    let server = start().await;
    let get = || server.http.get(format!("{}{CARD}", server.base));
    let made = "Thu, 29 Feb 2024 12:34:56 GMT";
    for (since, tag, status) in [
        (made, None, 304),
        ("Fri, 01 Mar 2024 00:00:00 GMT", None, 304),
        ("Thu, 29 Feb 2024 12:34:55 GMT", None, 200),
        ("yesterday", None, 200),
        (made, Some("\"other\""), 200),
        ("Thu, 29 Feb 2024 12:34:55 GMT", Some("*"), 304),
    ] {
        let request = get().header("if-modified-since", since);
        let request = match tag {
            Some(tag) => request.header("if-none-match", tag),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{since} {tag:?}");
        assert_eq!(response.headers()["last-modified"], made);
    }
}

#[tokio::test]
async fn own_routes_come_before_those_of_the_binding() {
    let server = start().await;
    for (path, body) in [("/healthz", "ok\n"), ("/ui/tasks", "the user interface")] {
        let response = server.http.get(format!("{}{path}", server.base)).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, body));
    }
}
