//! The tools for skills.

use std::sync::Arc;

use harness_activities::{ResourceContent, ResourceKind, Skill, SkillLibrary, SkillResource};
use harness_agent::{ToolChange, ToolResultFacts};
use harness_model::codes;
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn library(file: std::path::PathBuf) -> SkillLibrary {
    let resource = |kind, name: &str, content| SkillResource { kind, name: name.to_owned(), content };
    SkillLibrary::new([
        Skill {
            name: "support".to_owned(),
            description: "How to\nhelp.".to_owned(),
            body: "Be kind.".to_owned(),
            resources: vec![
                resource(ResourceKind::References, "tone.md", ResourceContent::File(file)),
                resource(ResourceKind::Assets, "logo.png", ResourceContent::Bytes(vec![0xff, 0xfe].into())),
                resource(ResourceKind::Scripts, "gone.sh", ResourceContent::File("/nowhere/gone.sh".into())),
            ],
        },
        Skill {
            name: "bare".to_owned(),
            description: "Nothing.".to_owned(),
            body: String::new(),
            resources: vec![],
        },
    ])
}

struct Skills {
    fixture: Fixture,
    _folder: tempfile::TempDir,
}

impl Skills {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tone.md");
        std::fs::write(&file, "Short sentences.").unwrap();
        let mut fixture = Fixture::new();
        fixture.skills = Arc::new(library(file));
        Self { fixture, _folder: folder }
    }

    async fn call(&self, tool: &str, arguments: Value) -> (ToolResultFacts, String) {
        let input = self.fixture.tool_input(tool, arguments).await;
        let facts = self.fixture.call_tool(&input).await.unwrap();
        let text = self.fixture.result_text(&facts).await;
        (facts, text)
    }
}

#[tokio::test]
async fn skills_are_listed() {
    let skills = Skills::new();
    assert_eq!(skills.call("list_skills", json!({})).await.1, "- bare: Nothing.\n- support: How to help.");
    let files = skills.call("list_skill_resources", json!({"name": "support"})).await.1;
    assert_eq!(files, "- references/tone.md\n- assets/logo.png\n- scripts/gone.sh");
    assert_eq!(skills.call("list_skill_resources", json!({"name": "bare"})).await.1, "(no resources)");
    let none = Fixture::new();
    let input = none.tool_input("list_skills", json!({})).await;
    let facts = none.call_tool(&input).await.unwrap();
    assert_eq!(none.result_text(&facts).await, "(no skills)");
}

#[tokio::test]
async fn a_skill_enters_and_leaves_the_context() {
    let skills = Skills::new();
    let (facts, text) = skills.call("load_skill", json!({"name": "support"})).await;
    assert!(text.starts_with("loaded support"), "{text}");
    let Some(ToolChange::SkillLoaded(loaded)) = facts.change else { panic!("{facts:?}") };
    assert_eq!(loaded.name, "support");
    assert_eq!(skills.fixture.bytes(&loaded.body).await, "Be kind.");
    let (facts, text) = skills.call("unload_skill", json!({"name": "support"})).await;
    assert_eq!(text, "unloaded support");
    assert_eq!(facts.change, Some(ToolChange::SkillUnloaded { name: "support".to_owned() }));
}

#[tokio::test]
async fn files_are_read() {
    let skills = Skills::new();
    let arguments = json!({"name": "support", "kind": "references", "resource": "tone.md"});
    assert_eq!(skills.call("load_skill_resource", arguments).await.1, "Short sentences.");
}

#[tokio::test]
async fn what_is_not_there_is_an_error_without_paths() {
    let skills = Skills::new();
    for (tool, arguments, why) in [
        ("load_skill", json!({"name": "other"}), "there is no skill \"other\""),
        ("unload_skill", json!({"name": "other"}), "there is no skill"),
        ("list_skill_resources", json!({"name": "other"}), "there is no skill"),
        (
            "load_skill_resource",
            json!({"name": "support", "kind": "assets", "resource": "tone.md"}),
            "does not exist",
        ),
        (
            "load_skill_resource",
            json!({"name": "support", "kind": "assets", "resource": "logo.png"}),
            "is not text",
        ),
        (
            "load_skill_resource",
            json!({"name": "support", "kind": "scripts", "resource": "gone.sh"}),
            "cannot be read",
        ),
    ] {
        let (facts, text) = skills.call(tool, arguments).await;
        assert!(facts.is_error && facts.change.is_none());
        assert_eq!(facts.code, Some(codes::SKILL_INVALID));
        assert!(
            text.starts_with("[skill.invalid]") && text.contains(why) && !text.contains("/nowhere"),
            "{text}"
        );
    }
}
