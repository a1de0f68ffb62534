//! What is loaded, what is skipped, and that one never depends on the other.

use std::{os::unix::fs::PermissionsExt, path::PathBuf};

use harness_plugins::{McpTransport, PromptRole, PromptSection, load_plugins};

use crate::fixture::{Fixture, NAMESPACE, assert_contained, mcp, skipped};

/// Servers of each kind.
const SERVERS: &str = r#"{
    "orders": {"type":"stdio","command":"tiny-harness","args":["demo-server","${PLUGIN_DATA}/x","${HOME}"],
               "env":{"CONFIG":"${PLUGIN_ROOT}/config.json"}},
    "own": {"type":"stdio","command":"./bin/server","cwd":"${PLUGIN_DATA}/kept/deep"},
    "remote": {"type":"streamable-http","url":"https://example.com/mcp","headers":{"X-Tenant":"t"}}
}"#;

/// One server for each way to be wrong, and a good one.
const BROKEN_SERVERS: &str = r#"{
    "a-nothing": {"type":"stdio"},
    "b-unknown": {"type":"stdio","command":"x","shell":true},
    "c-variant": {"type":"streamable-http","url":"https://x","command":"x"},
    "d-placeholder": {"type":"stdio","command":"${PLUGIN_ROOT}/x"},
    "e-shell": {"type":"stdio","command":"npx thing"},
    "f-absolute": {"type":"stdio","command":"/bin/sh"},
    "g-reserved": {"type":"stdio","command":"x","env":{"PLUGIN_DATA":"/"}},
    "h-args": {"type":"stdio","command":"x","args":[1]},
    "i-cwd": {"type":"stdio","command":"x","cwd":"data"},
    "j-sse": {"type":"sse","url":"https://x"},
    "k-type": {"type":"grpc"},
    "l-headers": {"type":"streamable-http","url":"https://x","headers":{"X-A":"1","x-a":"2"}},
    "m-http": {"type":"streamable-http","url":"http://example.com"},
    "n-list": [],
    "a/b": {"type":"stdio","command":"x"},
    "z-good": {"type":"stdio","command":"x"}
}"#;

#[test]
fn a_whole_plugin_loads() {
    let fixture = Fixture::new();
    fixture
        .manifest("p", "acme.support")
        .write("p/bin/server", "#!/bin/sh")
        .write("p/mcp.json", mcp(SERVERS))
        .skill("p", "support-agent", "license: MIT\nallowed-tools: a b\nmetadata:\n  version: 1.0\n")
        .write("p/skills/support-agent/references/policy.md", "x")
        .write("p/skills/support-agent/scripts/run.sh", "x")
        .write("p/skills/support-agent/references/deeper/no.md", "x")
        .write("p/skills/no-skill-here/README.md", "x")
        .write(
            &format!("p/{NAMESPACE}/systemprompt.md"),
            "You help.\n\n## Role\n\nShop.\n\n## Rules\nBe kind.\n",
        )
        .write(&format!("p/{NAMESPACE}/prompts/shop.md"), "---\nextends: Rules\n---\nThe shop is ours.\n");

    let report = fixture.load(&["p"]);

    assert!(report.skipped.is_empty() && report.notes.is_empty(), "{report:?}");
    let plugin = &report.plugins[0];
    assert_contained(plugin);
    assert_eq!((plugin.name.as_str(), plugin.version.as_deref()), ("acme.support", Some("1.0.0")));
    let (root, data) = (fixture.path("p"), fixture.path("data/acme.support"));
    assert_eq!(plugin.data_folder, data);
    assert_eq!(data.metadata().unwrap().permissions().mode() & 0o777, 0o700);

    let prefixes: Vec<&str> = plugin.servers.iter().map(|server| server.registry_prefix.as_str()).collect();
    assert_eq!(prefixes, ["acme.support/orders", "acme.support/own", "acme.support/remote"]);
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    assert_eq!(
        plugin.servers[0].transport,
        McpTransport::Stdio {
            command: "tiny-harness".to_owned(),
            args: vec!["demo-server".to_owned(), format!("{}/x", text(&data)), "${HOME}".to_owned()],
            env: [
                ("CONFIG".to_owned(), format!("{}/config.json", text(&root))),
                ("PLUGIN_DATA".to_owned(), text(&data)),
                ("PLUGIN_ROOT".to_owned(), text(&root)),
            ]
            .into(),
            cwd: root.clone(),
        }
    );
    let McpTransport::Stdio { command, cwd, .. } = &plugin.servers[1].transport else { panic!() };
    assert_eq!((command, cwd), (&text(&root.join("bin/server")), &data.join("kept/deep")));
    assert!(cwd.is_dir());
    assert_eq!(
        plugin.servers[2].transport,
        McpTransport::StreamableHttp {
            url: "https://example.com/mcp".to_owned(),
            headers: [("x-tenant".to_owned(), "t".to_owned())].into(),
        }
    );

    let skill = &plugin.skills[0];
    assert_eq!((skill.name.as_str(), skill.description.as_str()), ("support-agent", "Use it well."));
    assert_eq!(skill.body, "# Steps\n\nDo it.");
    assert_eq!(skill.resources, ["references/policy.md", "scripts/run.sh"]);
    assert_eq!(skill.allowed_tools, ["a", "b"]);
    assert_eq!(skill.metadata["version"], "1.0");

    let PromptRole::Whole { preamble, sections } = &plugin.prompts[0].role else { panic!() };
    assert_eq!((plugin.prompts[0].id.as_str(), preamble.as_str()), ("system", "You help."));
    assert_eq!(sections[1], section("rules", "Be kind."));
    let extension =
        PromptRole::Extension { section: "rules".to_owned(), text: "The shop is ours.".to_owned() };
    assert_eq!(plugin.prompts[1].role, extension);
}

#[test]
fn a_broken_plugin_takes_no_other_down() {
    let fixture = Fixture::new();
    fixture
        .good("first")
        .write("broken/plugin.json", "{\"$schema\": 1")
        .write("nameless/plugin.json", "{}")
        .write("empty/README.md", "x")
        .write("huge/plugin.json", " ".repeat(70_000))
        .write("binary/plugin.json", [0xff, 0xfe, 0x00])
        .write("file", "x")
        .good("last");
    let folders = ["first", "broken", "nameless", "empty", "huge", "binary", "file", "missing", "last"];

    let report = fixture.load(&folders);

    let names: Vec<&str> = report.plugins.iter().map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(names, ["first", "last"]);
    for plugin in &report.plugins {
        assert_eq!((plugin.servers.len(), plugin.skills.len(), plugin.prompts.len()), (1, 1, 1));
    }
    let expected = [
        "plugin broken skipped: broken/plugin.json: not valid JSON at line 1, column 13 [plugin.invalid]",
        "plugin nameless skipped: nameless/plugin.json: $schema is required and must be \
         https://agent-plugins.org/schemas/1.0.0/plugin.schema.json [plugin.invalid]",
        "plugin empty skipped: empty/plugin.json: does not exist [plugin.invalid]",
        "plugin huge skipped: huge/plugin.json: is larger than 65536 bytes [plugin.invalid]",
        "plugin binary skipped: binary/plugin.json: is not UTF-8 text [plugin.invalid]",
        "plugin file skipped: the folder is not a folder [plugin.invalid]",
        "plugin missing skipped: the folder does not exist [plugin.invalid]",
    ];
    assert_eq!(skipped(&fixture, &report), expected);
}

#[test]
fn a_broken_part_takes_no_other_down() {
    let fixture = Fixture::new();
    fixture
        .good("p")
        .write("p/mcp.json", mcp(BROKEN_SERVERS))
        .skill("p", "extra-key", "tools: all\n")
        .skill("p", "Upper", "")
        .write("p/skills/other-name/SKILL.md", "---\nname: another\ndescription: d\n---\n")
        .write("p/skills/no-text/SKILL.md", "---\nname: no-text\ndescription: \" \"\n---\n")
        .write("p/skills/list/SKILL.md", "---\nname: list\ndescription: d\nmetadata: [a]\n---\n")
        .write("p/skills/alias/SKILL.md", "---\nname: alias\ndescription: &x d\n---\n")
        .write("p/skills/plain/SKILL.md", "no front matter")
        .write(&format!("p/{NAMESPACE}/prompts/bad.md"), "---\nextends: a\nmore: b\n---\nx")
        .write(&format!("p/{NAMESPACE}/prompts/empty.md"), "---\nid: e\n---\n")
        .write(&format!("p/{NAMESPACE}/hooks.json"), "{}")
        .write(&format!("p/{NAMESPACE}/commands/x.md"), "x")
        .write("p/com.example.other/anything", "ignored");

    let report = fixture.load(&["p"]);

    let plugin = &report.plugins[0];
    let servers: Vec<&str> = plugin.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(servers, ["z-good"]);
    assert_eq!(plugin.skills.len(), 1);
    assert_eq!(plugin.prompts.len(), 1);
    insta::assert_snapshot!(skipped(&fixture, &report).join("\n"), @r#"
    MCP server p/a-nothing skipped: command is required and must be a non-empty string [plugin.invalid]
    MCP server p/b-unknown skipped: unknown field `shell`; this type has type, command, args, env, cwd [plugin.invalid]
    MCP server p/c-variant skipped: unknown field `command`; this type has type, url, headers [plugin.invalid]
    MCP server p/d-placeholder skipped: command must not contain `${`; placeholders work in args, env and cwd [plugin.invalid]
    MCP server p/e-shell skipped: command `npx thing` must be one executable; its arguments belong in args [plugin.invalid]
    MCP server p/f-absolute skipped: command `/bin/sh` must be a bare name, or a path inside the plugin that begins with `./` [plugin.invalid]
    MCP server p/g-reserved skipped: env must not set PLUGIN_DATA; the harness sets it [plugin.invalid]
    MCP server p/h-args skipped: args must hold strings only [plugin.invalid]
    MCP server p/i-cwd skipped: cwd `data` must begin with `./`, `${PLUGIN_ROOT}` or `${PLUGIN_DATA}` [plugin.invalid]
    MCP server p/j-sse skipped: the transport `sse` is not supported; use `streamable-http` [plugin.component_skipped]
    MCP server p/k-type skipped: type `grpc` is unknown; it is `stdio` or `streamable-http` [plugin.invalid]
    MCP server p/l-headers skipped: headers: `x-a` is given twice [plugin.invalid]
    MCP server p/m-http skipped: url must be `https` unless the host is literally localhost or a loopback address [plugin.invalid]
    MCP server p/n-list skipped: must be an object [plugin.invalid]
    MCP server p/a/b skipped: a server's name must be 1 to 64 printable characters without `/`, `<`, `>` [plugin.invalid]
    skill p/Upper skipped: skills/Upper/SKILL.md: name `Upper` is not valid: 1 to 64 lower-case letters and digits in words joined by single hyphens [skill.invalid]
    skill p/alias skipped: skills/alias/SKILL.md: line 3: anchors, aliases and tags (`&`, `*`, `!`) are not allowed; put the text in quotes [skill.invalid]
    skill p/extra-key skipped: skills/extra-key/SKILL.md: front matter: unknown field `tools`, expected one of `name`, `description`, `license`, `compatibility`, `metadata`, `allowed-tools` at line 4 column 1 [skill.invalid]
    skill p/list skipped: skills/list/SKILL.md: front matter: metadata: invalid type: sequence, expected a map at line 4 column 11 [skill.invalid]
    skill p/no-text skipped: skills/no-text/SKILL.md: description must have 1 to 1024 characters [skill.invalid]
    skill p/other-name skipped: skills/other-name/SKILL.md: name `another` must be the name of the folder, `other-name` [skill.invalid]
    skill p/plain skipped: skills/plain/SKILL.md: must begin with a front matter between two `---` lines [skill.invalid]
    prompt p/prompts/bad.md skipped: prompts/bad.md: front matter: unknown field `more`, expected `id` or `extends` at line 3 column 1 [prompt.invalid]
    prompt p/prompts/empty.md skipped: prompts/empty.md: has no text [prompt.invalid]
    hooks p skipped: this build does not run hooks of plugins [plugin.component_skipped]
    commands p skipped: this build does not run commands of plugins [plugin.component_skipped]
    "#);
}

#[test]
fn an_invalid_mcp_file_disables_only_the_servers() {
    for (text, reason) in [
        ("{}".to_owned(), "$schema is required"),
        ("[]".to_owned(), "must be a JSON object"),
        (mcp("[]"), "mcpServers is required"),
        (mcp("{}").replace("{\"$", "{\"more\":1,\"$"), "unknown field `more`"),
        (mcp("{}").replace("1.0.0", "2.0.0"), "$schema is required"),
        ("[".repeat(40), "nested deeper"),
        (" ".repeat(300_000), "is larger than"),
    ] {
        let fixture = Fixture::new();
        fixture.good("p").write("p/mcp.json", &text);
        let report = fixture.load(&["p"]);
        assert_eq!((report.plugins[0].servers.len(), report.plugins[0].skills.len()), (0, 1));
        assert_eq!(report.skipped.len(), 1);
        assert!(report.skipped[0].reason.contains(reason), "{}", report.skipped[0]);
    }
}

#[test]
fn of_two_with_one_name_the_first_stays() {
    let fixture = Fixture::new();
    fixture.good("a").manifest("copy", "a").manifest("b", "b").skill("b", "a-skill", "");
    fixture.write(&format!("b/{NAMESPACE}/prompts/x.md"), "---\nid: a-rules\n---\nx");

    let report = fixture.load(&["a", "copy", "b"]);

    let names: Vec<&str> = report.plugins.iter().map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(report.plugins[1].skills.is_empty() && report.plugins[1].prompts.is_empty());
    let codes: Vec<(&str, &str)> =
        report.skipped.iter().map(|skipped| (skipped.id.as_str(), skipped.code.as_str())).collect();
    assert_eq!(
        codes,
        [("a", "entity.conflict"), ("b/a-skill", "entity.conflict"), ("b/a-rules", "entity.conflict")]
    );
}

#[test]
fn no_plugins_is_fine() {
    let report = load_plugins(&[], &PathBuf::from("/nowhere"));
    assert!(report.plugins.is_empty() && report.skipped.is_empty());
}

fn section(name: &str, text: &str) -> PromptSection {
    PromptSection { name: name.to_owned(), text: text.to_owned() }
}
