//! Help, versions, and what the configuration commands print.

use crate::rig::{Rig, tiny_harness};

const SCRIPT: &str = "[[turns]]\ntext = \"hi\"\n";

#[tokio::test]
async fn help_and_usage() {
    let help = tiny_harness(["--help"]).run().await;
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{help:?}");
    insta::assert_snapshot!(help.stdout, @r#"
    An agent harness: serves and speaks A2A 1.0, runs tool-using agents as durable tasks

    Usage: tiny-harness [OPTIONS] <COMMAND>

    Commands:
      serve      Serve the agent over A2A until it is told to stop
      worker     Work on tasks that servers take, on this or another machine, until it is told to stop.
                 Needs a Temporal server and a store that processes share
      demo       Watch an agent settle a complaint: real tools, a durable task, a scripted model. Needs
                 no key and no network
      chat       Talk to an agent: one message, or a conversation
      tasks      Look at tasks of an agent, cancel one, or purge one of this installation
      schedules  Look after the schedule by which an agent on Temporal ticks
      config     Check or show the configuration
      doctor     Find out whether this configuration works here: store, sign-in keys, plugins, tool
                 servers, and one small call per model provider
      bench      Measure this machine and this build against the numbers the project holds itself to
      help       Print this message or the help of the given subcommand(s)

    Options:
          --config <FILE>  The configuration file. Without one, local defaults apply; `demo` and `bench`
                           bring their own
      -h, --help           Print help
      -V, --version        Print version

    Start with `tiny-harness demo`: it needs no configuration, no key and no network.

    Exit status: 0 done, 1 failed, 2 wrong arguments or configuration, 130 or 143 stopped by a signal.
    "#);
    let version = tiny_harness(["--version"]).run().await;
    assert_eq!(version.stdout, format!("tiny-harness {}\n", env!("CARGO_PKG_VERSION")));
    for args in [&["sreve"][..], &["serve", "--port", "1"], &["tasks"], &["demo", "--state"]] {
        let wrong = tiny_harness([]).args(args).run().await;
        assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(!wrong.stderr.is_empty());
    }
    let similar = tiny_harness(["sreve"]).run().await;
    assert!(similar.stderr.contains("serve"), "says what may have been meant: {similar:?}");
}

#[tokio::test]
async fn a_valid_configuration_is_said_so() {
    let rig = Rig::new(SCRIPT);
    let config = rig.config().display().to_string();
    let checked = tiny_harness(["config", "check", "--config", &config]).run().await;
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (Some(0), "the configuration is valid\n"),
        "{checked:?}"
    );
    assert!(!rig.store().exists(), "checking starts nothing");
}

#[tokio::test]
async fn secrets_are_masked_wherever_they_could_be_shown() {
    let tables = "[openai]\nmodel = \"m\"\n\n[providers.local]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"n\"\napi_key_env = \"MY_KEY\"\n";
    let rig = Rig::new(SCRIPT).tables(tables);
    let config = rig.config().display().to_string();
    let secrets = [("OPENAI_API_KEY", "sk-0123456789abcdef0123"), ("MY_KEY", "quite-another-secret-value")];
    let with_secrets = |args: [&str; 4]| {
        secrets.iter().fold(tiny_harness(args), |program, (name, value)| program.env(name, value))
    };
    let shown = with_secrets(["config", "show", "--config", &config]).run().await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for expected in ["OPENAI_API_KEY", "MY_KEY", "agent_id", "shutdown_grace", "max_turns"] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown:?}");
    }
    for text in [&shown.stdout, &shown.stderr] {
        for (_, secret) in secrets {
            assert!(!text.contains(secret), "{secret} is told: {text}");
        }
    }
    // What is shown is a configuration again.
    let again = rig.path("again.toml");
    std::fs::write(&again, &shown.stdout).unwrap();
    let again = again.display().to_string();
    let checked = with_secrets(["config", "check", "--config", &again]).run().await;
    assert_eq!(checked.code, Some(0), "{checked:?}\n{}", shown.stdout);
}

#[tokio::test]
async fn the_configuration_of_the_deployment_page_is_valid() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/deployment.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let rig = Rig::new(SCRIPT);
    let file = rig.path("deployed.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let config = file.display().to_string();
        let program = tiny_harness(["config", "check", "--config", &config]);
        program
            .env("TINY_HARNESS_PUSH_KEY", "AAECAwQFBgcICQoLDA0ODw==")
            .env("OPENAI_API_KEY", "sk-no-key-at-all")
    };
    let checked = check(example).run().await;
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (Some(0), "the configuration is valid\n"),
        "{checked:?}"
    );
    // The variant for the container example.
    let (before, _) = example.split_once("[store.postgres]").unwrap();
    let composed = format!(
        "{before}[store.postgres]\nhost = \"postgres\"\ndatabase = \"agents\"\nuser = \"harness\"\ntls = \"disable\"\n\
         [temporal]\naddress = \"temporal:7233\"\nnamespace = \"orders\"\ntls = false\n"
    );
    let checked = check(&composed).run().await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
}
