//! No path leads out of a plugin, however it is written and whatever it is linked to.

use harness_plugins::{McpTransport, load_plugins};
use proptest::prelude::*;

use crate::fixture::{Fixture, assert_contained, mcp};

#[test]
fn symlinks_may_lead_within_and_nowhere_else() {
    let fixture = Fixture::new();
    fixture
        .good("p")
        .write("outside/secret", "s")
        .write("outside/SKILL.md", "---\nname: linked\ndescription: d\n---\n")
        .write("outside/tree/SKILL.md", "---\nname: tree\ndescription: d\n---\n")
        .write("p/bin/real", "x")
        .link("p/bin/inside", "real")
        .link("p/bin/out", fixture.path("outside/secret"))
        .link("p/bin/nowhere", "gone")
        .link("p/out", fixture.path("outside"))
        .link("p/skills/linked/SKILL.md", fixture.path("outside/SKILL.md"))
        .link("p/skills/tree", fixture.path("outside/tree"))
        .link("p/skills/p-skill/references/secret.md", fixture.path("outside/secret"))
        .write("p/skills/p-skill/references/own.md", "x")
        .write(
            "p/mcp.json",
            mcp(r#"{
                "inside": {"type":"stdio","command":"./bin/inside"},
                "out": {"type":"stdio","command":"./bin/out"},
                "gone": {"type":"stdio","command":"./bin/nowhere"},
                "up": {"type":"stdio","command":"./../outside/secret"},
                "cwd-out": {"type":"stdio","command":"x","cwd":"./out"},
                "cwd-up": {"type":"stdio","command":"x","cwd":"${PLUGIN_ROOT}/.."},
                "data-up": {"type":"stdio","command":"x","cwd":"${PLUGIN_DATA}/.."},
                "data-ok": {"type":"stdio","command":"x","cwd":"${PLUGIN_DATA}"}
            }"#),
        );

    let report = fixture.load(&["p"]);

    let plugin = &report.plugins[0];
    assert_contained(plugin);
    let servers: Vec<&str> = plugin.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(servers, ["inside", "data-ok"]);
    let skills: Vec<&str> = plugin.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(skills, ["p-skill"]);
    assert_eq!(plugin.skills[0].resources, ["references/own.md"]);
    assert_eq!(report.notes.len(), 1);
    assert!(report.notes[0].text.contains("secret.md leads outside"), "{}", report.notes[0]);
}

#[test]
fn a_manifest_or_a_component_folder_from_outside_is_refused() {
    let fixture = Fixture::new();
    fixture.good("real").manifest("p", "p").write("linked/README.md", "x");
    fixture.link("p/skills", fixture.path("real/skills")).link("p/mcp.json", fixture.path("real/mcp.json"));
    fixture.link("linked/plugin.json", fixture.path("real/plugin.json"));

    let report = fixture.load(&["p", "linked"]);

    assert_eq!(report.plugins.len(), 1);
    assert!(report.plugins[0].servers.is_empty() && report.plugins[0].skills.is_empty());
    assert_eq!(report.skipped.len(), 3);
    for skipped in &report.skipped {
        assert!(skipped.reason.contains("leads outside"), "{skipped}");
    }
}

#[test]
fn a_data_folder_that_was_linked_away_is_not_followed() {
    let fixture = Fixture::new();
    fixture.good("p").write("outside/x", "x");
    fixture.link("data/p/kept", fixture.path("outside"));
    fixture
        .write("p/mcp.json", mcp(r#"{"a":{"type":"stdio","command":"x","cwd":"${PLUGIN_DATA}/kept/new"}}"#));
    let report = fixture.load(&["p"]);
    assert!(report.plugins[0].servers.is_empty());
    assert!(!fixture.path("outside/new").exists());
}

#[test]
fn a_pipe_does_not_stop_the_loader() {
    let fixture = Fixture::new();
    fixture.good("p").write("q/README.md", "x");
    let made = std::process::Command::new("mkfifo").arg(fixture.path("q/plugin.json")).status().unwrap();
    assert!(made.success());
    let report = fixture.load(&["q", "p"]);
    assert_eq!(report.plugins.len(), 1);
    assert!(report.skipped[0].reason.contains("is not a regular file"));
}

#[test]
fn a_plugin_reached_through_a_link_is_where_the_link_leads() {
    let fixture = Fixture::new();
    fixture.good("real").link("alias", fixture.path("real"));
    let report = load_plugins(&[fixture.path("alias")], &fixture.data_root());
    assert_eq!(report.plugins[0].root, fixture.path("real"));
    assert_contained(&report.plugins[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_spelling_of_a_path_gets_out(parts in prop::collection::vec(path_part(), 0..8), bare in any::<bool>()) {
        let path = if bare { parts.concat() } else { format!("./{}", parts.concat()) };
        let fixture = Fixture::new();
        fixture.good("p").write("p/a/f", "x").write("out/f", "x").link("p/l", fixture.path("out"));
        let quoted = serde_json::to_string(&path).unwrap();
        fixture.write("p/mcp.json", mcp(&format!(
            r#"{{"c":{{"type":"stdio","command":{quoted}}},"d":{{"type":"stdio","command":"x","cwd":{quoted}}}}}"#
        )));

        let report = fixture.load(&["p"]);

        prop_assert_eq!(report.plugins.len(), 1);
        assert_contained(&report.plugins[0]);
        for server in &report.plugins[0].servers {
            if let McpTransport::Stdio { command, .. } = &server.transport {
                prop_assert!(!command.contains('$'), "{command}");
            }
        }
    }
}

/// Pieces of which hostile paths are made.
fn path_part() -> impl Strategy<Value = &'static str> {
    let parts = [
        "a",
        "/",
        "..",
        ".",
        "l",
        "f",
        "${PLUGIN_ROOT}",
        "${PLUGIN_DATA}",
        "~",
        "\\",
        "\0",
        "//",
        "/etc",
        " ",
    ];
    prop::sample::select(parts.to_vec())
}
