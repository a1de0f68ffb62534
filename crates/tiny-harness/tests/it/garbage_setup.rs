//! Configurations and plugins that are wrong: everything that is wrong is said, and what is right works.

use std::fs;

use crate::{
    api::{message, state, words},
    rig::{NAMESPACE, Rig, tiny_harness},
};

const SCRIPT: &str = "[[turns]]\ntext = \"You said: {{message_text}}\"\n";

#[tokio::test]
async fn every_problem_of_a_configuration_is_reported_at_once_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let text = "colour = \"blue\"\n\n[server]\nbind = \"127.0.0.1:http\"\nport = 8080\nshutdown_grace = \"soon\"\n\n\
                [model]\nprovider = \"nobody\"\n\n[stroe]\nsqlite_path = \"x\"\n";
    fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    for command in [vec!["serve"], vec!["config", "check"], vec!["config", "show"]] {
        let ended = tiny_harness(["--config", &file]).args(command).current_dir(folder.path()).run().await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert_eq!(ended.stdout, "");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 6, "one line a problem, and nothing else: {lines:#?}");
        let places = [
            (1, "colour"),
            (4, "server.bind"),
            (5, "server.port"),
            (6, "server.shutdown_grace"),
            (9, "model.provider"),
            (11, "stroe"),
        ];
        for (line, key) in places {
            let place = format!("{file}:{line}");
            assert!(
                lines.iter().any(|said| said.contains(&place) && said.contains(key)),
                "no line says {place} and {key}: {lines:#?}"
            );
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was started and nothing written");
}

#[tokio::test]
async fn files_that_are_not_there_or_not_toml_are_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.toml").display().to_string();
    let ended = tiny_harness(["config", "check", "--config", &missing]).run().await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains(&missing), "{ended:?}");

    let broken = folder.path().join("broken.toml");
    fs::write(&broken, "[server\nbind = 1\n").unwrap();
    let ended = tiny_harness(["config", "check", "--config", &broken.display().to_string()]).run().await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("broken.toml:1"), "{ended:?}");
}

#[tokio::test]
async fn a_script_that_is_wrong_is_a_problem_of_the_configuration() {
    let rig = Rig::new("[[turns]]\ntext = 5\n\n[[turns]]\nwhen = { moon = \"full\" }\ntext = \"hi\"\n");
    let ended = tiny_harness(["serve", "--config", &rig.config().display().to_string()]).run().await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let said: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("model.toml")).collect();
    assert!(said.len() >= 2 && said.iter().any(|line| line.contains("moon")), "{ended:?}");
}

#[tokio::test]
async fn a_broken_plugin_leaves_the_good_one_alone() {
    let script = "[[turns]]\nwhen = { last_tool_result = { name = \"odd/tools.read\" } }\ntext = \"Read.\"\n\n\
                  [[turns]]\ncalls = [{ name = \"odd/tools.read\", arguments = {} }]\n";
    let mut rig = Rig::new(script);
    let broken: [(&str, &[u8]); 4] = [
        ("not-json", b"{ \"name\": "),
        ("no-name", b"{\"version\": \"1.0.0\"}"),
        ("not-text", b"\xff\xfe\x00"),
        ("wrong-types", b"{\"name\": 7, \"version\": []}"),
    ];
    for (name, manifest) in broken {
        let folder = rig.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("plugin.json"), manifest).unwrap();
        rig = rig.plugin_folder(folder);
    }
    let nowhere = rig.path("nowhere");
    let rig = rig.plugin_folder(nowhere).adverse("plain");
    // Parts of the good plugin that are wrong.
    let prompts = rig.path("odd").join(NAMESPACE).join("prompts");
    fs::create_dir_all(&prompts).unwrap();
    fs::write(prompts.join("bad.md"), "---\n: : :\n---\nnothing").unwrap();
    let skill = rig.path("odd/skills/nameless");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "no front matter at all").unwrap();

    let server = rig.serve().await;
    let log = server.process.stderr();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("\"WARNING\"")).collect();
    for name in ["not-json", "no-name", "not-text", "wrong-types", "nowhere", "bad.md", "nameless"] {
        assert!(warnings.iter().any(|line| line.contains(name)), "no warning names {name}: {log}");
    }
    let task = server.ada().send(message("m-1", "read")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "Read."));
}

#[tokio::test]
async fn a_model_without_an_answer_fails_the_task_and_says_what_to_do() {
    let rig = Rig::new("[[turns]]\nwhen = { text_equals = \"known\" }\ntext = \"Known.\"\n");
    let server = rig.serve().await;
    let task = server.ada().send(message("m-1", "unknown")).await;
    assert_eq!(state(&task), "FAILED");
    assert!(words(&task).contains("model.script_exhausted"), "{task}");
    let task = server.ada().send(message("m-2", "known")).await;
    assert_eq!((state(&task), words(&task)), ("COMPLETED", "Known."));
}

#[tokio::test]
async fn one_store_serves_one_process() {
    let rig = Rig::new(SCRIPT);
    let server = rig.serve().await;
    let config = rig.config().display().to_string();
    let second = tiny_harness(["serve", "--config", &config]).run().await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(
        second.stderr.contains("[store.locked]") && second.stderr.contains("state.sqlite3"),
        "{second:?}"
    );
    let task = server.ada().send(message("m-1", "still there?")).await;
    assert_eq!(words(&task), "You said: still there?");
    server.kill().await;
    // A dead process holds nothing.
    assert_eq!(rig.serve().await.stop().await.code, Some(0));
}
