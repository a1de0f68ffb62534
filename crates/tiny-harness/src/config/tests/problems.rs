//! Every problem at once, each with its line and what to do about it.

use insta::assert_snapshot;

use super::{file, no_file};

#[test]
fn every_kind_of_mistake_in_one_file() {
    let case = file(include_str!("mistakes.toml"));
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:1: `plugins` must be a list, not a string; write for example `plugins = ["some/path"]` (plugins)
    configuration error: h.toml:3: `id` must not be `self`, which names this agent itself; choose another id; `self` is always there without being configured (agents[0].id)
    configuration error: h.toml:4: `url` must begin with http:// or https:// followed by a host; write it as `https://host` or `http://host:port` (agents[1].url)
    configuration error: h.toml:4: `updates` must be `"auto"`, `"follow"` or `"off"`, not `sometimes`; write for example `updates = "auto"` (agents[1].updates)
    configuration error: h.toml:5: `url` must not hold a user name or a password; keys come from the environment; write it as `https://host` or `http://host:port` (agents[2].url)
    configuration error: h.toml:5: `follow_interval` must be from `PT1S` to `P3650D`, not `PT0.5S`; write for example `follow_interval = "PT5S"` (agents[2].follow_interval)
    configuration error: h.toml:5: `id` `billing` is used twice in agents; give each entry an id of its own (agents[2].id)
    configuration error: h.toml:6: `id` is required; add `id = "..."` (agents[3].id)
    configuration error: h.toml:9: unknown table `sever`; did you mean `server`? (sever)
    configuration error: h.toml:13: unknown key `bidn`; did you mean `bind`? (server.bidn)
    configuration error: h.toml:14: `bind` must be a host, a colon and a port from 0 to 65535, not `127.0.0.1`; write for example `bind = "127.0.0.1:8080"` (server.bind)
    configuration error: h.toml:15: `max_request_bytes` must be a whole number, not true or false; write for example `max_request_bytes = 1048576` (server.max_request_bytes)
    configuration error: h.toml:16: `rate_limit_per_minute` must be from 0 to 4294967295, not -1; write for example `rate_limit_per_minute = 120` (server.rate_limit_per_minute)
    configuration error: h.toml:17: `delegators` names `a` twice; remove one of the two (server.delegators)
    configuration error: h.toml:18: `cors_origins` must be an origin without a path, not `https://x/path`; write only scheme, host and port: `https://app.example.com` (server.cors_origins)
    configuration error: h.toml:19: `agent_id` must not be empty; give it a text, or remove the line for the default (server.agent_id)
    configuration error: h.toml:20: `lifecycle` must be `"conversation"` or `"delegated"`, not `forever`; write for example `lifecycle = "conversation"` (server.lifecycle)
    configuration error: h.toml:21: unknown key `plugins`; move `plugins` to the top of the file, before the first [section] (server.plugins)
    configuration error: h.toml:22: `shutdown_grace` has years or months, which have no fixed length: `P1M`; write for example `shutdown_grace = "PT10S"` (server.shutdown_grace)
    configuration error: h.toml:25: `name` must not be empty; give it a text, or remove the line for the default (card.name)
    configuration error: h.toml:29: `name` is required; add `name = "..."` (card.skills[1].name)
    configuration error: h.toml:30: `id` `a` is used twice in card.skills; give each entry an id of its own (card.skills[1].id)
    configuration error: h.toml:31: `tags` entry 2 must be a string, not a whole number; write for example `tags = ["..."]` (card.skills[1].tags)
    configuration error: h.toml:33: provider `openai` needs a key and OPENAI_API_KEY is not set; set OPENAI_API_KEY, or set base_url to a server that needs none (openai)
    configuration error: h.toml:34: unknown key `api_key`; remove the line: secrets come from the environment only, for example OPENAI_API_KEY (openai.api_key)
    configuration error: h.toml:35: `context_window_tokens` must be a whole number, not a string; write for example `context_window_tokens = 4096` (openai.context_window_tokens)
    configuration error: h.toml:36: `max_output_tokens` must be from 1 to 1000000, not 0; write for example `max_output_tokens = 2000` (openai.max_output_tokens)
    configuration error: h.toml:39: `compaction_fraction` must be from 0.1 to 1.0, not 1.5; write for example `compaction_fraction = 0.75` (context.compaction_fraction)
    configuration error: h.toml:40: `max_turns` must be a whole number, not a number with a fraction; write for example `max_turns = 50` (context.max_turns)
    configuration error: h.toml:42: `maximum_interval` is shorter than `initial_interval`; make it at least as long (retries.default.maximum_interval)
    configuration error: h.toml:44: `non_retryable_error_types` names `what`, which is not an error code; use a code as in `provider.retryable`; each has a page in docs/errors (retries.default.non_retryable_error_types)
    configuration error: h.toml:45: `invoke_everything` is not the name of an activity; use one of intake, assemble_context, compaction_trigger, compact, invoke_llm, invoke_model, invoke_tool, decide_completion, persist, send_channel_message, emit_event, dispatch_hooks, run_remote_agent_turn, poll_channels, monitor_snapshot, retention_sweep, start_agent_task, cancel_remote_task (retries.per_activity.invoke_everything)
    configuration error: h.toml:49: `log_level` must be `"ERROR"`, `"WARNING"`, `"INFO"`, `"DEBUG"` or `"TRACE"`, not `LOUD`; write for example `log_level = "INFO"` (o11y.log_level)
    configuration error: h.toml:50: `otlp_endpoint` must begin with http:// or https:// followed by a host; write it as `https://host` or `http://host:port` (o11y.otlp_endpoint)
    "#);
}

#[test]
fn a_file_that_is_not_toml() {
    assert_snapshot!(file("[server\nbind = 1\n\n[card]\nname = oops\n[card]\n").problems(), @r#"
    configuration error: h.toml:1: not valid TOML: unclosed table, expected `]`; correct the line; https://toml.io describes the format (<root>)
    configuration error: h.toml:5: not valid TOML: string values must be quoted, expected literal string; correct the line; https://toml.io describes the format (<root>)
    configuration error: h.toml:6: not valid TOML: duplicate key; correct the line; https://toml.io describes the format (<root>)
    "#);
}

#[test]
fn a_file_that_is_not_there_or_no_file() {
    let mut case = no_file();
    case.has_file = true;
    assert_snapshot!(case.problems(), @"configuration error: there is no such file; give the path of a readable TOML file with --config, or leave the option out (h.toml)");
    std::fs::create_dir(case.folder.path().join("h.toml")).unwrap();
    assert_snapshot!(case.problems(), @"configuration error: this is a folder, not a file; give the path of a readable TOML file with --config, or leave the option out (h.toml)");
}

#[test]
fn no_model_in_the_file() {
    assert_snapshot!(file("").problems(), @"configuration error: no model is configured; set OPENAI_API_KEY, or add a [providers.NAME] table with base_url and model, or a [model.scripted] table with path; `tiny-harness demo` needs none of them (OPENAI_API_KEY)");
}

#[test]
fn secrets_that_cannot_be_used_are_named_and_never_shown() {
    let case = no_file()
        .env("OPENAI_API_KEY", "sk-with a space")
        .env("TINY_HARNESS_PUSH_KEY", "bm90IGxvbmcgZW5vdWdo")
        .env("LANGFUSE_SECRET_KEY", "two\nlines");
    assert_snapshot!(case.problems(), @r#"
    configuration error: OPENAI_API_KEY holds spaces, line breaks or characters that no key has; set it to the key alone, without quotes and without a line break (OPENAI_API_KEY)
    configuration error: TINY_HARNESS_PUSH_KEY is not base64 of 16, 24 or 32 bytes; make one with `openssl rand -base64 32` (TINY_HARNESS_PUSH_KEY)
    configuration error: LANGFUSE_SECRET_KEY holds spaces, line breaks or characters that no key has; set it to the key alone, without quotes and without a line break (LANGFUSE_SECRET_KEY)
    "#);
}

#[test]
fn a_server_that_others_can_reach() {
    let case = file("[server]\nbind = \"0.0.0.0:8080\"\nanonymous = \"me\"\nagent_id = \"me\"\n")
        .env("OPENAI_API_KEY", "k");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:1: `base_url` is required when `bind` is `0.0.0.0:8080`: it is no address that others can call; add `base_url = "https://..."`, the address by which clients reach this server (server.base_url)
    configuration error: h.toml:2: `bind` `0.0.0.0:8080` can be reached from other machines and nothing authenticates requests; bind to 127.0.0.1, let callers sign in ([security]), or put an authenticating proxy in front and set `perimeter = true` (server.bind)
    configuration error: h.toml:3: `anonymous` is the id of this agent itself; choose another participant id (server.anonymous)
    "#);
}

#[test]
fn providers() {
    let mut all = Vec::new();
    for (name, text) in [
        ("chosen and missing", "[model]\nprovider = \"local\"\n"),
        (
            "chosen without its key",
            "[model]\nprovider = \"openai\"\n[openai]\n[providers.b]\nbase_url = \"http://x\"\nmodel = \"m\"\n",
        ),
        (
            "none chosen",
            "[providers.a]\nbase_url = \"http://x\"\nmodel = \"m\"\n[providers.b]\nbase_url = \"http://x\"\nmodel = \"m\"\n",
        ),
        (
            "a variable that is not set",
            "[providers.a]\nbase_url = \"https://x\"\nmodel = \"m\"\napi_key_env = \"A_KEY\"\n",
        ),
        (
            "a key in place of its variable",
            "[providers.a]\nbase_url = \"https://x\"\nmodel = \"m\"\napi_key_env = \"sk-abcdefghij\"\n",
        ),
        (
            "a key over plain http",
            "[providers.a]\nbase_url = \"http://example.com\"\nmodel = \"m\"\napi_key_env = \"SET_KEY\"\n",
        ),
        ("a reserved name", "[providers.openai]\nbase_url = \"https://x\"\nmodel = \"m\"\n"),
        ("required keys", "[providers.a]\n[model.scripted]\n[model]\nprovider = \"a\"\n"),
        ("a script that is not there", "[model.scripted]\npath = \"turns.toml\"\n"),
        ("another company without its key", "[anthropic]\nmodel = \"claude-opus-5-5\"\n"),
        ("an unknown protocol", "[openai]\napi = \"grpc\"\nbase_url = \"http://127.0.0.1\"\n"),
        ("no table", "openai = 3\n[providers]\na = 1\n"),
    ] {
        let case = file(text).env("SET_KEY", "key");
        all.push(format!("-- {name}\n{}", case.problems()));
    }
    assert_snapshot!(all.join("\n"), @r#"
    -- chosen and missing
    configuration error: h.toml:2: `provider` names `local`, which is not configured; add a [providers.local] table with base_url and model (model.provider)
    -- chosen without its key
    configuration error: h.toml:3: provider `openai` needs a key and OPENAI_API_KEY is not set; set OPENAI_API_KEY, or set base_url to a server that needs none (openai)
    -- none chosen
    configuration error: h.toml: several providers are configured (a, b) and none is chosen; add `provider = "..."` to [model] (model.provider)
    -- a variable that is not set
    configuration error: h.toml:1: provider `a` needs a key and A_KEY is not set; set A_KEY, or remove api_key_env (providers.a)
    -- a key in place of its variable
    configuration error: h.toml:4: `api_key_env` must be the name of an environment variable, in capitals; write the name, not the key: `MY_PROVIDER_API_KEY` (providers.a.api_key_env)
    -- a key over plain http
    configuration error: h.toml:2: `base_url` must be https: a key is set, and plain http is only for localhost, 127.0.0.0/8 and [::1]; write `https://`, or unset the key if the server needs none (providers.a.base_url)
    -- a reserved name
    configuration error: h.toml:1: `openai` cannot be the name of a provider; use up to 32 lower-case letters, digits, `-` and `_`, and none of openai, anthropic, scripted, unconfigured, replay (providers.openai)
    -- required keys
    configuration error: h.toml:1: `base_url` is required; add `base_url = "..."` (providers.a.base_url)
    configuration error: h.toml:1: `model` is required; add `model = "..."` (providers.a.model)
    configuration error: h.toml:2: `path` is required; add `path = "some/path"` (model.scripted.path)
    -- a script that is not there
    configuration error: h.toml:1: there is no file DIR/turns.toml; write the path of a file of turns; relative paths start where tiny-harness is started (model.scripted)
    -- another company without its key
    configuration error: h.toml:1: provider `anthropic` needs a key and ANTHROPIC_API_KEY is not set; set ANTHROPIC_API_KEY, or set base_url to a server that needs none (anthropic)
    -- an unknown protocol
    configuration error: h.toml:2: `api` must be `"responses"`, `"chat_completions"` or `"messages"`, not `grpc`; write for example `api = "responses"` (openai.api)
    -- no table
    configuration error: h.toml:1: `openai` must be a table; write it as a section: `[openai]` (openai)
    configuration error: h.toml:3: `a` must be a table; write it as a section: `[providers.a]` (providers.a)
    configuration error: no model is configured; set OPENAI_API_KEY, or add a [providers.NAME] table with base_url and model, or a [model.scripted] table with path; `tiny-harness demo` needs none of them (OPENAI_API_KEY)
    "#);
}

#[test]
fn temporal_is_checked() {
    let case = file("[temporal]\nmode = \"cloud\"\naddress = \"x\"\n[temporal.embedded]\nport = 0\n")
        .env("OPENAI_API_KEY", "k");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:2: `mode` must be `"remote"` or `"embedded"`, not `cloud`; write for example `mode = "remote"` (temporal.mode)
    configuration error: h.toml:3: `address` must be a host, a colon and a port; write it as `host:7233` (temporal.address)
    configuration error: h.toml:5: `port` must be from 1 to 65535, not 0; write for example `port = 4096` (temporal.embedded.port)
    "#);
}

#[test]
fn a_remote_temporal_needs_to_be_found_and_to_know_us() {
    let case = file("[temporal]\nclient_key = \"k\"\n[temporal.embedded]\n").env("OPENAI_API_KEY", "k");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:1: `address` is required when `mode` is `remote`; write for example `address = "temporal.internal:7233"`, or choose `mode = "embedded"` (temporal.address)
    configuration error: h.toml:1: `namespace` is required when `mode` is `remote`; write for example `namespace = "default"`, or choose `mode = "embedded"` (temporal.namespace)
    configuration error: h.toml:2: `client_key` is of no use without `client_certificate`; set `client_certificate` as well, or remove `client_key` (temporal.client_key)
    configuration error: h.toml:3: [temporal.embedded] has no meaning when `mode` is `remote`; remove the table, or choose `mode = "embedded"` (temporal.embedded)
    "#);
    let remote = "[temporal]\naddress = \"t:7233\"\nnamespace = \"n\"\n";
    assert_snapshot!(file(remote).env("OPENAI_API_KEY", "k").problems(), @r#"
    configuration error: TEMPORAL_API_KEY is not set, and no certificate says who we are (temporal.client_certificate); set one of them, or `tls = false` for a server that asks nobody (TEMPORAL_API_KEY)
    "#);
    let clear = format!("{remote}tls = false\n");
    let case = file(&clear).env("OPENAI_API_KEY", "k").env("TEMPORAL_API_KEY", "secret");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:4: TEMPORAL_API_KEY is set and `tls` is off: the key would travel in the clear; remove `tls = false`, or unset TEMPORAL_API_KEY (temporal.tls)
    "#);
}

#[test]
fn an_embedded_temporal_takes_nothing_of_a_remote_one() {
    let case = file("[temporal]\nmode = \"embedded\"\naddress = \"t:7233\"\ntls = true\n")
        .env("OPENAI_API_KEY", "k")
        .env("TEMPORAL_API_KEY", "secret");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:3: `address` has no meaning when `mode` is `embedded`; remove `address`, or choose `mode = "remote"` (temporal.address)
    configuration error: h.toml:4: `tls` has no meaning when `mode` is `embedded`; remove `tls`, or choose `mode = "remote"` (temporal.tls)
    configuration error: TEMPORAL_API_KEY is set, and an embedded server takes no key; unset TEMPORAL_API_KEY, or choose `mode = "remote"` (temporal.mode) (TEMPORAL_API_KEY)
    "#);
}

#[test]
fn a_key_below_the_wrong_heading() {
    let case =
        file("sqlite_path = \"x\"\nmax_turns = 1\n[card]\nbase_url = \"http://x\"\nagents = []\nextra = 1\n")
            .env("OPENAI_API_KEY", "k");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:1: unknown key `sqlite_path`; it belongs in [store] (sqlite_path)
    configuration error: h.toml:2: unknown key `max_turns`; it belongs in [context] (max_turns)
    configuration error: h.toml:4: unknown key `base_url`; it belongs in [server] (card.base_url)
    configuration error: h.toml:5: unknown key `agents`; move `agents` to the top of the file, before the first [section] (card.agents)
    configuration error: h.toml:6: unknown key `extra`; remove it, or use one of name, description, version, required_extensions, skills (card.extra)
    "#);
}

#[test]
fn a_required_extension_that_there_is_not_or_twice() {
    for (list, message) in [
        ("[\"task\", \"plan\"]", "entry 2 must be `\"task\"`, `\"channel\"` or `\"a2ui\"`, not `plan`"),
        ("[\"a2ui\", \"task\", \"a2ui\"]", "`required_extensions` names `a2ui` twice; remove one of the two"),
    ] {
        let case = file(&format!("[card]\nrequired_extensions = {list}\n")).env("OPENAI_API_KEY", "k");
        assert!(case.problems().contains(message), "{}", case.problems());
    }
}

#[test]
fn a_plugin_twice() {
    let case = file("plugins = [\"a/b\", \"./a//b/\"]\n").env("OPENAI_API_KEY", "k");
    assert_snapshot!(case.problems(), @"configuration error: h.toml:1: `plugins` names `./a//b/` twice; remove one of the two (plugins)");
}

#[test]
fn names_of_keys_cannot_forge_a_line() {
    let case =
        file("[providers.\"x\\nconfiguration error: y\"]\n\"\\u001b[2J\" = 1\n").env("OPENAI_API_KEY", "k");
    let problems = case.problems();
    assert!(problems.lines().all(|line| line.starts_with("configuration error: h.toml:")), "{problems}");
    assert!(!problems.contains('\u{1b}'), "{problems:?}");
}

#[test]
fn sign_in() {
    let text = "[security]\nheader = \"Authorization\"\n[[security.tokens]]\nparticipant = \"ada\"\ntoken_env = \"SHORT\"\n\
                [[security.tokens]]\nparticipant = \"bob\"\ntoken_env = \"UNSET\"\n[server]\npush_allowed = [\"not a host\"]\n";
    let case = file(text).env("SHORT", "abc").env("OPENAI_API_KEY", "sk-abcdefghij");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:2: `header` must be the name of a header of its own, not `Authorization`; write for example `X-API-Key`; leave it out for a bearer token (security.header)
    configuration error: h.toml:8: `token_env` names `UNSET`, which is not set; set UNSET (security.tokens[1].token_env)
    configuration error: h.toml:10: `push_allowed` must be a host, an address or a network, not `not a host`; write for example `receiver.internal`, `127.0.0.1` or `10.0.0.0/8` (server.push_allowed)
    configuration error: the token is shorter than 16 characters; make one with `openssl rand -hex 32` (SHORT)
    "#);
}

#[test]
fn sign_in_with_signed_tokens() {
    let jwt = |jwks: &str, more: &str| {
        format!("[security]\n{more}[security.jwt]\nissuer = \" \"\naudience = \"a\"\njwks = \"{jwks}\"\n")
    };
    let problems =
        |jwks: &str, more: &str| file(&jwt(jwks, more)).env("OPENAI_API_KEY", "sk-abcdefghij").problems();
    let empty =
        file("[security]\n[security.jwt]\nparticipant_claim = \"\"\n").env("OPENAI_API_KEY", "sk-abcdefghij");
    let unsafe_address = problems("http://issuer.example/keys", "header = \"X-Key\"\n");
    let all = [unsafe_address, problems("keys.json", ""), empty.problems()].join("\n");
    assert_snapshot!(all, @r#"
    configuration error: h.toml:2: `header` is for the tokens of [[security.tokens]], and there are none; remove it; signed tokens travel in `Authorization` (security.header)
    configuration error: h.toml:4: `issuer` must not be empty; give it a text, or remove the line for the default (security.jwt.issuer)
    configuration error: h.toml:6: `jwks` must be an https address without user information, or http on a literal loopback address; write it as `https://host/path`, or give the path of a file (security.jwt.jwks)
    configuration error: h.toml:3: `issuer` must not be empty; give it a text, or remove the line for the default (security.jwt.issuer)
    configuration error: h.toml:5: `jwks` names `DIR/keys.json`, which is not a file; give the address or the file of the issuer's keys (security.jwt.jwks)
    configuration error: h.toml:2: `issuer` is required; add `issuer = "..."` (security.jwt.issuer)
    configuration error: h.toml:2: `audience` is required; add `audience = "..."` (security.jwt.audience)
    configuration error: h.toml:2: `jwks` is required; add `jwks = "https://issuer.example.com/.well-known/jwks.json"` (security.jwt.jwks)
    configuration error: h.toml:3: `participant_claim` must not be empty; give it a text, or remove the line for the default (security.jwt.participant_claim)
    "#);
}

#[test]
fn a_store_on_a_server_that_is_not_described_well() {
    let text = "[store]\nsqlite_path = \"x\"\n[store.postgres]\nport = 0\nschema = \"My Schema\"\ntls = \"maybe\"\npool = 1\n\
                password = \"hunter22\"\n[model.scripted]\npath = \"s\"\n";
    let case = file(text).env("TINY_HARNESS_POSTGRES_PASSWORD", "two\nlines");
    assert_snapshot!(case.problems(), @r#"
    configuration error: h.toml:2: `sqlite_path` and [store.postgres] exclude each other; remove one of the two (store.sqlite_path)
    configuration error: h.toml:3: TINY_HARNESS_PUSH_KEY is not set, and whoever shares a store needs the same one; make one with `openssl rand -base64 32` and set it for every process (store.postgres)
    configuration error: h.toml:3: `database` is required; add `database = "..."` (store.postgres.database)
    configuration error: h.toml:3: `user` is required; add `user = "..."` (store.postgres.user)
    configuration error: h.toml:4: `port` must be from 1 to 65535, not 0; write for example `port = 5432` (store.postgres.port)
    configuration error: h.toml:5: `schema` must be lower-case letters, digits and underscores, and not begin with a digit or `pg_`, not `My Schema`; choose a plain name of at most 48 characters, for example `tiny_harness` (store.postgres.schema)
    configuration error: h.toml:6: `tls` must be `"disable"`, `"require"` or `"verify-full"`, not `maybe`; write for example `tls = "require"` (store.postgres.tls)
    configuration error: h.toml:7: `pool` must be from 2 to 200, not 1; write for example `pool = 8` (store.postgres.pool)
    configuration error: h.toml:8: unknown key `password`; remove the line: secrets come from the environment only, for example OPENAI_API_KEY (store.postgres.password)
    configuration error: h.toml:9: there is no file DIR/s; write the path of a file of turns; relative paths start where tiny-harness is started (model.scripted)
    configuration error: TINY_HARNESS_POSTGRES_PASSWORD holds line breaks or other control characters, or is too long; set it to the password alone (TINY_HARNESS_POSTGRES_PASSWORD)
    "#);
}
