//! What is accepted, what it means, and that showing it loses nothing.

use std::{net::SocketAddr, time::Duration};

use harness_a2a::JwksSource;
use harness_model::{Lifecycle, Secret};
use harness_store::PostgresTls;
use harness_telemetry::LogLevel;

use super::{Case, file, no_file};
use crate::config::{ProviderKind, server::Updates};

const LOCAL_MODEL: &str =
    "[providers.local]\nbase_url = \"http://127.0.0.1:11434/v1\"\nmodel = \"qwen3:8b\"\n";

fn endpoint(case: &Case) -> crate::config::Endpoint {
    match case.accepted().models.default_provider().expect("a default provider").kind.clone() {
        ProviderKind::Http(endpoint) => endpoint,
        ProviderKind::Scripted { path } => panic!("scripted: {}", path.display()),
        ProviderKind::Replay { path } => panic!("replay: {}", path.display()),
        ProviderKind::Unconfigured => panic!("unconfigured"),
    }
}

#[test]
fn nothing_at_all_serves_and_says_what_is_missing() {
    let config = no_file().accepted();
    assert_eq!(config.models.default_provider().unwrap().kind, ProviderKind::Unconfigured);
    assert_eq!(config.server.anonymous.as_deref(), Some("local-user"));
    assert!(config.server.bind.is_loopback());
    assert!(config.notes[0].starts_with("no model is configured"), "{:?}", config.notes);
}

#[test]
fn no_file_with_a_key_is_a_local_server() {
    let case = no_file().env("OPENAI_API_KEY", "sk-abcdefghij");
    let config = case.accepted();
    assert_eq!(config.server.bind.to_string(), "127.0.0.1:8080");
    assert_eq!(config.server.anonymous.as_deref(), Some("local-user"));
    assert_eq!(config.store.sqlite_path, case.folder.path().join("tiny-harness.sqlite3"));
    assert_eq!(config.plugin_data_root(), case.folder.path().join("plugin-data"));
    assert_eq!(config.base_url(SocketAddr::from(([127, 0, 0, 1], 4711))), "http://127.0.0.1:4711");
    assert!(config.notes.is_empty());
    let endpoint = endpoint(&case);
    assert_eq!(endpoint.base_url, "https://api.openai.com/v1");
    assert_eq!((endpoint.model.as_str(), endpoint.context_window_tokens), ("gpt-6.1-sol", 1_050_000));
    assert_eq!(endpoint.api_key.expect("a key").reveal(), "sk-abcdefghij");
}

#[test]
fn a_file_does_not_make_requests_anonymous() {
    assert_eq!(file(LOCAL_MODEL).accepted().server.anonymous, None);
}

#[test]
fn the_example_of_the_manual() {
    let config = file(&format!(
        r#"plugins = ["plugins/acme-support", "/opt/shared/plugins/crm"]
agents = [
  {{ id = "billing", url = "https://billing.example.com", updates = "follow", follow_interval = "PT10S" }},
  {{ id = "ledger", url = "http://127.0.0.1:8091" }},
]

[server]
base_url = "http://localhost:8090"
lifecycle = "delegated"
delegators = ["front-desk"]

[card]
name = "Order ledger"
description = "Answers questions about the status of an order. Give it the order number."

[[card.skills]]
id = "order-status"
name = "Order status"
description = "Looks up an order by its number and reports its status and dates."
examples = ["What is the status of order 48213?"]

[retries.default]
maximum_attempts = 3
[retries.per_activity.invoke_llm]
initial_interval = 0.25

[o11y]
log_level = "debug"
{LOCAL_MODEL}"#
    ))
    .accepted();
    assert!(config.plugins()[0].is_absolute() && config.plugins()[0].ends_with("plugins/acme-support"));
    assert_eq!(config.plugins()[1].to_str(), Some("/opt/shared/plugins/crm"));
    assert_eq!(
        (config.agents[0].updates, config.agents[0].follow_interval),
        (Updates::Follow, Duration::from_secs(10))
    );
    assert_eq!(
        (config.agents[1].updates, config.agents[1].follow_interval),
        (Updates::Auto, Duration::from_secs(5))
    );
    assert_eq!(config.server.lifecycle, Lifecycle::Delegated);
    assert_eq!(config.base_url(SocketAddr::from(([127, 0, 0, 1], 1))), "http://localhost:8090");
    assert_eq!((config.card.name.as_str(), config.card.version.as_str()), ("Order ledger", "0.1.0"));
    assert_eq!(config.card_skills[0].examples.len(), 1);
    assert_eq!(config.retries.default.maximum_attempts, 3);
    // A policy of one activity does not take anything from the default policy.
    let own = &config.retries.per_activity["invoke_model"];
    assert_eq!((own.initial_interval, own.maximum_attempts), (Duration::from_millis(250), 5));
    assert_eq!(config.o11y.log_level, LogLevel::Debug);
    assert_eq!(config.notes, ["agents is set and has no effect in this build"]);
}

#[test]
fn the_default_provider() {
    let both = format!("{LOCAL_MODEL}[openai]\nbase_url = \"http://127.0.0.1/v1\"\n");
    for (case, expected) in [
        (file(LOCAL_MODEL), "local"),
        // A key in the environment does not outvote the file.
        (file(LOCAL_MODEL).env("OPENAI_API_KEY", "k"), "local"),
        (file(&both), "openai"),
        (file(&format!("[model]\nprovider = \"local\"\n{both}")), "local"),
        (
            file(&format!("[model]\nprovider = \"openai\"\n{LOCAL_MODEL}")).env("OPENAI_API_KEY", "k"),
            "openai",
        ),
        (file("[server]\n").env("OPENAI_API_KEY", "k"), "openai"),
        (file(&format!("[anthropic]\nmodel = \"m\"\n[model]\nprovider = \"local\"\n{LOCAL_MODEL}")), "local"),
    ] {
        assert_eq!(case.accepted().models.default, expected);
    }
}

#[test]
fn a_scripted_model() {
    let case = file("[model.scripted]\npath = \"turns.toml\"\n");
    std::fs::write(case.folder.path().join("turns.toml"), "").unwrap();
    let models = case.accepted().models;
    assert_eq!(models.default, "scripted");
    let path = case.folder.path().join("turns.toml");
    assert_eq!(models.default_provider().unwrap().kind, ProviderKind::Scripted { path });
    assert!(models.selectable().is_empty());
}

#[test]
fn providers_without_their_key_are_left_out_unless_they_are_the_default() {
    let config = file(&format!("[model]\nprovider = \"local\"\n[openai]\n{LOCAL_MODEL}")).accepted();
    let names: Vec<&str> = config.models.providers.iter().map(|provider| provider.name.as_str()).collect();
    assert_eq!(names, ["local"]);
    assert_eq!(
        config.notes,
        [
            "provider openai is left out: provider `openai` needs a key and OPENAI_API_KEY is not set; set OPENAI_API_KEY, \
          or set base_url to a server that needs none"
        ]
    );
}

#[test]
fn keys_of_named_providers() {
    let named = "[providers.my-box]\nbase_url = \"https://box/v1\"\nmodel = \"m\"\n";
    assert!(endpoint(&file(named)).api_key.is_none());
    assert_eq!(endpoint(&file(named).env("MY_BOX_API_KEY", "k1")).api_key.expect("set").reveal(), "k1");
    let explicit = format!("{named}api_key_env = \"OTHER\"\n");
    assert_eq!(endpoint(&file(&explicit).env("OTHER", "k2")).api_key.expect("set").reveal(), "k2");
    // A key over plain http stays on this machine.
    let loopback = named.replace("https://box", "http://[::1]:1");
    assert!(endpoint(&file(&loopback).env("MY_BOX_API_KEY", "k1")).api_key.is_some());
}

#[test]
fn models_that_a_task_may_choose() {
    let config = file(
        "[model]\nprovider = \"a\"\n\
         [providers.a]\nbase_url = \"http://x\"\nmodel = \"m\"\nmodels = [\"m2\"]\nreasoning_efforts = [\"low\"]\n\
         [providers.b]\nbase_url = \"http://x\"\nmodel = \"m\"\nreasoning_efforts = [\"low\", \"high\"]\n",
    )
    .accepted();
    assert_eq!(config.models.selectable(), ["a:m", "a:m2", "b:m", "m", "m2"]);
    assert_eq!(config.models.reasoning_efforts(), ["high", "low"]);
}

#[test]
fn what_is_shown_is_the_same_configuration_and_holds_no_secret() {
    let text = format!(
        "plugins = [\"p\"]\nagents = [{{ id = \"b\", url = \"https://b\" }}]\n[server]\nanonymous = \"me \\\"x\\\"\"\n\
         [[card.skills]]\nid = \"a\"\nname = \"A\"\n[retries.per_activity.invoke_tool]\nmaximum_attempts = 1\n{LOCAL_MODEL}"
    );
    let case = file(&text)
        .env("LOCAL_API_KEY", "secret-of-the-box")
        .env("ANTHROPIC_API_KEY", "another-secret")
        .env("OPENAI_BASE_URL", "http://ignored.example")
        .env("TINY_HARNESS_PUSH_KEY", "AAECAwQFBgcICQoLDA0ODw==");
    let config = case.accepted();
    let shown = config.show();
    for secret in ["secret-of-the-box", "another-secret", "AAECAwQFBgcICQoLDA0ODw==", "ignored.example"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("# LOCAL_API_KEY = [REDACTED]"), "{shown}");
    assert!(!format!("{config:?}").contains("secret-of-the-box"));
    let mut again = file(&shown);
    again.env = case.env.clone();
    let mut reloaded = again.accepted();
    // What is left out besides the file's notes is known from the tables alone.
    reloaded.notes = config.notes.clone();
    assert_eq!(reloaded, config, "{shown}");
}

#[test]
fn the_environment_never_changes_where_a_key_goes() {
    let case = no_file().env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", "http://evil.example");
    assert_eq!(endpoint(&case).base_url, "https://api.openai.com/v1");
    assert_eq!(case.accepted().notes, ["OPENAI_BASE_URL is not used; set base_url in [openai] instead"]);
}

#[test]
fn bind_addresses() {
    for (text, shown, loopback) in [
        ("127.0.0.1:0", "127.0.0.1:0", true),
        ("localhost:80", "localhost:80", true),
        ("[::1]:80", "[::1]:80", true),
        ("::1:80", "[::1]:80", true),
    ] {
        let bind = file(&format!("[server]\nbind = \"{text}\"\n{LOCAL_MODEL}")).accepted().server.bind;
        assert_eq!((bind.to_string().as_str(), bind.is_loopback()), (shown, loopback));
    }
    let open = file(&format!(
        "[server]\nbind = \"[::]:80\"\nperimeter = true\nbase_url = \"https://agent.example.com\"\n{LOCAL_MODEL}"
    ));
    assert!(!open.accepted().server.bind.is_loopback());
}

#[test]
fn budgets_and_prices() {
    let case = file(&format!(
        "{LOCAL_MODEL}[budget]\ntask_tokens = 50000\n[prices.\"local:qwen3:8b\"]\ninput = 2.5\noutput = 10\n"
    ));
    let config = case.accepted();
    assert_eq!(config.budget.task_tokens, Some(50_000));
    let price = &config.prices["local:qwen3:8b"];
    assert_eq!((price.input, price.cached, price.output), (2.5, None, 10.0));
    assert!(config.show().contains("[prices.\"local:qwen3:8b\"]"), "{}", config.show());
}

#[test]
fn tokens_admit_their_participants_and_open_the_door() {
    let text = format!(
        "[server]\nbind = \"0.0.0.0:80\"\nbase_url = \"https://a.example\"\npush_allowed = [\"10.0.0.0/8\"]\n\
         [[security.tokens]]\nparticipant = \"ada\"\ntoken_env = \"ADA_TOKEN\"\n{LOCAL_MODEL}"
    );
    let case = file(&text).env("ADA_TOKEN", "0123456789abcdef");
    let config = case.accepted();
    let security = config.security.as_ref().unwrap();
    assert_eq!((security.header.as_deref(), security.tokens[0].0.as_str()), (None, "ada"));
    assert!(!config.show().contains("0123456789abcdef"));
    assert!(config.show().contains("token_env = \"ADA_TOKEN\""));
}

#[test]
fn fallbacks_and_recordings() {
    let text = format!(
        "[model]\nprovider = \"local\"\nfallback = [\"other:big\", \"other\"]\nrecord = \"tape\"\n{LOCAL_MODEL}\
         [providers.other]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"small\"\n"
    );
    let models = file(&text).accepted().models;
    let big = ("other".to_owned(), Some("big".to_owned()));
    assert_eq!(models.fallback, [big, ("other".to_owned(), None)]);
    assert_eq!(models.fallback_after, 2);
    assert!(models.record.is_some_and(|folder| folder.ends_with("tape")));
    let problems = file(&text.replace("\"other\"]", "\"nobody:x\"]")).problems();
    assert!(problems.contains("`fallback` names `nobody:x`"), "{problems}");
}

#[test]
fn signed_tokens_open_the_door_alone_or_beside_others() {
    let text = format!(
        "[server]\nbind = \"0.0.0.0:80\"\nbase_url = \"https://a.example\"\n[security.jwt]\n\
         issuer = \"https://issuer.example/\"\naudience = \"agent\"\njwks = \"h.toml\"\n{LOCAL_MODEL}"
    );
    let case = file(&text);
    let config = case.accepted();
    let security = config.security.as_ref().unwrap();
    let jwt = security.jwt.as_ref().unwrap();
    assert_eq!((security.tokens.len(), jwt.participant_claim.as_str()), (0, "sub"));
    assert_eq!(jwt.jwks.0, JwksSource::File(case.folder.path().join("h.toml")));
    assert!(
        config.show().contains("[security.jwt]\nissuer = \"https://issuer.example/\""),
        "{}",
        config.show()
    );
    let token = "[[security.tokens]]\nparticipant = \"ada\"\ntoken_env = \"ADA_TOKEN\"\n";
    let both = text.replace("\"h.toml\"", "\"https://issuer.example/keys\"") + token;
    let security = file(&both).env("ADA_TOKEN", "0123456789abcdef").accepted().security.unwrap();
    let url = JwksSource::Url("https://issuer.example/keys".to_owned());
    assert_eq!((security.tokens.len(), security.jwt.map(|jwt| jwt.jwks.0)), (1, Some(url)));
}

#[test]
fn a_store_on_a_server() {
    let tables =
        "[store.postgres]\nhost = \"db.internal\"\ndatabase = \"agents\"\nuser = \"harness\"\npool = 4\n";
    let case = file(&format!("{tables}{LOCAL_MODEL}"))
        .env("LOCAL_API_KEY", "secret-of-the-box")
        .env("TINY_HARNESS_PUSH_KEY", "AAECAwQFBgcICQoLDA0ODw==")
        .env("TINY_HARNESS_POSTGRES_PASSWORD", "correct horse battery");
    let config = case.accepted();
    let options = config.postgres.as_ref().unwrap().options();
    assert_eq!((options.host.as_str(), options.port, options.pool), ("db.internal", 5432, 4));
    assert_eq!((options.schema.as_str(), options.tls), ("tiny_harness", PostgresTls::Require));
    assert_eq!(options.password.as_ref().map(Secret::reveal), Some("correct horse battery"));
    let shown = config.show();
    assert!(shown.contains("# TINY_HARNESS_POSTGRES_PASSWORD = [REDACTED]"), "{shown}");
    assert!(!shown.contains("correct horse") && !format!("{config:?}").contains("correct horse"), "{shown}");
    assert_eq!(config.redactor().text("it is correct horse battery"), "it is [REDACTED]");
    let mut again = file(&shown);
    again.env = case.env.clone();
    assert_eq!(again.accepted().postgres, config.postgres, "{shown}");
    let tls = |host: &str| {
        let mut here = file(&format!("{}{LOCAL_MODEL}", tables.replace("db.internal", host)));
        here.env = case.env.clone();
        here.accepted().postgres.unwrap().options().tls
    };
    for host in ["127.0.0.1", "localhost", "::1", "/run/postgresql"] {
        assert_eq!(tls(host), PostgresTls::Disable, "{host}");
    }
    assert_eq!(tls("10.0.0.1"), PostgresTls::Require);
}
