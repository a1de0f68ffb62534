//! The server under test: the built binary with the example for kits, on a port and a store of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use crate::{
    process,
    session::{Failure, Outcome, Session},
};

/// The configuration that is served.
const CONFIGURATION: &str = "examples/conformance/tiny-harness.toml";
/// How long the server may take to listen.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running server. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    url: String,
    directory: PathBuf,
}

impl Agent {
    /// Starts it and waits until it listens. `target` is where cargo builds; reports go to a folder there.
    pub(crate) fn start(session: &Session, target: &Path) -> Result<Self, Failure> {
        let directory = target.join("conformance");
        let failed =
            |error: std::io::Error| Failure::new(format!("cannot prepare {}: {error}", directory.display()));
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(failed)?;
        }
        fs::create_dir_all(&directory).map_err(failed)?;
        let example = fs::read_to_string(session.root.join(CONFIGURATION)).map_err(failed)?;
        let configuration = directory.join("tiny-harness.toml");
        fs::write(&configuration, of_its_own(&example, &directory)?).map_err(failed)?;
        let log_path = directory.join("server.log");
        let log = fs::File::create(&log_path).map_err(failed)?;
        let program = target.join("debug/tiny-harness");
        let child = process::command(session, &program.to_string_lossy())
            .arg("serve")
            .arg("--config")
            .arg(&configuration)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| Failure::new(format!("cannot run {}: {error}", program.display())))?;
        let mut agent = Self { child, url: String::new(), directory };
        let found = process::poll(START_LIMIT, || {
            let text = fs::read_to_string(&log_path).unwrap_or_default();
            served_at(&text).or_else(|| agent.has_ended().then(String::new))
        });
        agent.url = found.filter(|url| !url.is_empty()).ok_or_else(|| agent.failure("does not serve"))?;
        Ok(agent)
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where reports go.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Fails when the server has ended, or one of its tasks has panicked.
    pub(crate) fn check_alive(&mut self) -> Outcome {
        let log = fs::read_to_string(self.directory.join("server.log")).unwrap_or_default();
        if self.has_ended() || log.contains("panicked at") {
            return Err(self.failure("did not survive the kits"));
        }
        Ok(())
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::new(format!("the server {what}; see {}/server.log", self.directory.display()))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended by itself, which was noticed where it matters.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The example, listening on a free port and with a store in this folder.
fn of_its_own(example: &str, directory: &Path) -> Result<String, Failure> {
    let unreadable = |error: String| Failure::new(format!("{CONFIGURATION} cannot be used: {error}"));
    let mut tables: toml::Table = example.parse().map_err(|error| unreadable(format!("{error}")))?;
    let store = directory.join("state.sqlite3").to_string_lossy().into_owned();
    for (section, key, value) in
        [("server", "bind", "127.0.0.1:0".to_owned()), ("store", "sqlite_path", store)]
    {
        let table = tables.get_mut(section).and_then(toml::Value::as_table_mut);
        let table = table.ok_or_else(|| unreadable(format!("it has no [{section}]")))?;
        table.insert(key.to_owned(), value.into());
    }
    Ok(tables.to_string())
}

/// The address in the line that a server prints once it listens.
fn served_at(log: &str) -> Option<String> {
    let line = log.lines().find(|line| line.starts_with("serving "))?;
    line.rsplit_once(" at ").map(|(_, url)| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_served_on_a_port_and_a_store_of_its_own() {
        let example =
            "[server]\nbind = \"127.0.0.1:8080\"\nanonymous = \"kit\"\n[store]\nsqlite_path = \"a\"\n";
        let tables: toml::Table = of_its_own(example, Path::new("/d")).unwrap().parse().unwrap();
        assert_eq!(tables["server"]["bind"].as_str(), Some("127.0.0.1:0"));
        assert_eq!(tables["server"]["anonymous"].as_str(), Some("kit"));
        assert_eq!(tables["store"]["sqlite_path"].as_str(), Some("/d/state.sqlite3"));
        assert!(of_its_own("[server]\n", Path::new("/d")).is_err());
    }

    #[test]
    fn the_address_is_read_from_the_log() {
        let log = "{\"msg\":\"x\"}\nserving Meet me at noon at http://127.0.0.1:4711\n";
        assert_eq!(served_at(log).as_deref(), Some("http://127.0.0.1:4711"));
        assert_eq!(served_at("starting\n"), None);
    }
}
