//! Whatever a file holds, reading it ends with a configuration or with problems that have a line.

use proptest::prelude::*;

use super::file;

fn near_miss() -> impl Strategy<Value = String> {
    let pieces = vec![
        "[server]\n",
        "[[agents]]\n",
        "[providers.a]\n",
        "[card]\n",
        "[[card.skills]]\n",
        "[retries.per_activity.x]\n",
        "bind = ",
        "id = ",
        "url = ",
        "models = ",
        "timeout = ",
        "path",
        " = ",
        "\"",
        "'",
        "\n",
        "[",
        "]",
        "{",
        "}",
        ",",
        "1",
        "-1",
        "1e999",
        "nan",
        "0x7fffffffffffffffffff",
        "true",
        "1979-05-27",
        "\"PT1S\"",
        "\"http://[::\"",
        "\u{0}",
        "\u{202e}",
        "\"\"\"",
        "a.b.c = 1\n",
        "\"k\\n\\u202e\" = 1\n",
        "[providers.\"\\u0007x\"]\n",
        "# x\n",
        "ü",
    ];
    prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(pieces), 0..40).prop_map(|parts| parts.concat()),
    ]
}

proptest! {
    #[test]
    fn garbage_is_answered(text in near_miss()) {
        if let Err(problems) = file(&text).load() {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                let line = problem.to_string();
                prop_assert!(!line.contains('\n') && !line.contains('\u{0}') && !line.contains('\u{202e}'), "{line:?}");
                prop_assert!(!problem.remedy.is_empty());
                prop_assert!(problem.line.is_none_or(|line| line <= text.split('\n').count()), "{line}");
            }
        }
    }
}

#[test]
fn size_and_encoding_are_checked_before_parsing() {
    let case = file(&"# x\n".repeat(300_000));
    assert!(case.problems().contains("larger than 1048576 bytes"), "{}", case.problems());
    std::fs::write(case.folder.path().join("h.toml"), [0xff, 0x00]).unwrap();
    assert!(case.problems().contains("not UTF-8"), "{}", case.problems());
}

#[test]
fn deep_nesting_is_refused() {
    let case = file(&format!("a = {}", "[".repeat(100_000)));
    assert!(case.problems().contains("not valid TOML"));
    let dotted = format!("{} = 1\n", vec!["a"; 20_000].join("."));
    assert!(file(&dotted).load().is_err());
}
