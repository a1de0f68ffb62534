//! The whole program over a PostgreSQL server: it says what it found, goes on after a crash, and is alone.

use std::path::Path;

use harness_testkit::{PostgresServer, Program};
use serde_json::json;

use crate::{
    api::{Binding, message, state},
    rig::{Rig, Server, tiny_harness},
};

const SCRIPT: &str = r#"
[[turns]]
text = "You said: {{message_text}}"
"#;
const PUSH_KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";

fn program<const N: usize>(args: [&str; N], config: &Path) -> Program {
    tiny_harness(args).args(["--config".as_ref(), config.as_os_str()]).env("TINY_HARNESS_PUSH_KEY", PUSH_KEY)
}

async fn serve<const N: usize>(config: &Path, args: [&str; N]) -> Server {
    Server::launch(program(["serve"], config).args(args)).await
}

#[tokio::test]
async fn a_task_on_a_server_survives_its_process() {
    let Some(database) = PostgresServer::start().await else { return };
    let rig = Rig::new(SCRIPT).postgres(database.port());
    let config = rig.config();
    let doctor = program(["doctor"], &config).run().await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(
        doctor.stdout.contains("store: PostgreSQL, ") && doctor.stdout.contains("version 1"),
        "{doctor:?}"
    );
    for point in ["before:1", "after:1", "before:3", "after:3"] {
        let server = serve(&config, ["--crash-at", point]).await;
        let api = server.api(Binding::JsonRpc, "ada");
        let sent = message(point, "hello");
        let request = api.request("SendMessage", &json!({"message": sent}));
        let answer = request.send().await.and_then(reqwest::Response::error_for_status);
        assert!(answer.is_err(), "{point}: {answer:?}");
        assert!(server.process.ended().await.was_killed(), "{point}");
        let server = serve(&config, []).await;
        let api = server.api(Binding::JsonRpc, "ada");
        let task = api.send(sent).await;
        assert_eq!(state(&task), "COMPLETED", "{point}");
        let second = program(["serve"], &config).run().await;
        assert_eq!(second.code, Some(1), "{second:?}");
        assert!(second.stderr.contains("[store.locked]"), "{second:?}");
        assert_eq!(api.ok("GetTask", json!({"id": task["id"]})).await["id"], task["id"]);
        assert_eq!(server.stop().await.code, Some(0));
    }
    assert!(!rig.store().exists(), "nothing is in a file");
}
