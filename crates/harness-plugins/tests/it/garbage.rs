//! Whatever a plugin holds, loading ends, does not panic, and the neighbour is loaded.

use proptest::prelude::*;

use crate::fixture::{Fixture, NAMESPACE, assert_contained};

const FILES: [&str; 6] = [
    "plugin.json",
    "mcp.json",
    "skills/a/SKILL.md",
    "skills/a",
    "io.github.madarauchiha-314.tiny-harness/prompts/a.md",
    "io.github.madarauchiha-314.tiny-harness/prompts",
];

/// Text that looks like what a loader expects, cut and mixed.
fn near_miss() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "---\n",
        "name: a\n",
        "description: d\n",
        "&x ",
        "*x",
        "!!str ",
        "|\n",
        "\"$schema\"",
        "\"mcpServers\"",
        "\"https://agent-plugins.org/schemas/1.0.0/mcp.schema.json\"",
        "null",
        "1e999",
        "\"type\":\"stdio\"",
        "\"command\":\"./x\"",
        "\u{feff}",
        "\t",
        "\r\n",
        "  ",
        "- ",
        "? ",
        "extends: ",
        "## ",
        "ü",
    ];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..400),
        prop::collection::vec(prop::sample::select(pieces), 0..60)
            .prop_map(|parts| parts.concat().into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn garbage_is_survived(file in prop::sample::select(FILES.to_vec()), content in near_miss()) {
        let fixture = Fixture::new();
        fixture.good("good").manifest("bad", "bad");
        fixture.write(&format!("bad/{file}"), content);

        let report = fixture.load(&["bad", "good"]);

        let good = report.plugins.iter().find(|plugin| plugin.name == "good").unwrap();
        prop_assert_eq!((good.servers.len(), good.skills.len(), good.prompts.len()), (1, 1, 1));
        report.plugins.iter().for_each(assert_contained);
        for skipped in &report.skipped {
            prop_assert!(!skipped.reason.is_empty() && !skipped.reason.contains('\n'));
        }
    }

    #[test]
    fn front_matter_is_read_or_refused(yaml in near_miss()) {
        let fixture = Fixture::new();
        fixture.good("good").manifest("bad", "bad");
        let mut text = b"---\n".to_vec();
        text.extend(yaml);
        text.extend(b"\n---\nbody");
        fixture.write("bad/skills/a/SKILL.md", &text);
        fixture.write(&format!("bad/{NAMESPACE}/prompts/a.md"), &text);

        let report = fixture.load(&["bad", "good"]);

        prop_assert_eq!(report.plugins.len(), 2);
        let bad = &report.plugins[0];
        prop_assert_eq!(bad.skills.len() + bad.prompts.len() + report.skipped.len(), 2);
    }
}
