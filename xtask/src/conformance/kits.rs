//! The kits: how each is run, and how what it says is read.

use std::{fs, path::Path, process::Stdio, time::Duration};

use serde::Deserialize;

use crate::{
    process,
    session::{Failure, Session},
};

/// Where `tools/a2a-kits/setup.py` installs.
const INSTALLED: &str = ".tools/a2a-kits";
/// How long one kit may take.
const KIT_LIMIT: Duration = Duration::from_mins(2);

/// Something of others that drives a server.
#[derive(Debug)]
pub(crate) struct Kit {
    /// Its name in the expectations, and of its folder.
    pub(crate) name: &'static str,
    /// The program: the first one that is there.
    programs: &'static [&'static str],
    /// Its arguments; `URL` and `REPORT` stand for the server and the file for the report.
    arguments: &'static [&'static str],
    /// What it leaves behind.
    report: Report,
}

#[derive(Clone, Copy, Debug)]
enum Report {
    /// A file that a2a-testbed writes.
    Testbed,
    /// Lines of `ok NAME` and `not ok NAME: WHY` on stdout.
    Lines,
}

/// Every kit.
pub(crate) const KITS: &[Kit] = &[
    Kit {
        name: "testbed",
        programs: &[".tools/a2a-kits/testbed/bin/a2a-testbed"],
        arguments: &[
            "conformance",
            "URL",
            "--strict",
            "--baseline",
            "none",
            "--push-receiver",
            "local",
            "--report",
            "REPORT",
        ],
        report: Report::Testbed,
    },
    Kit {
        name: "python-sdk",
        // The official client comes with the testbed where there is one.
        programs: &[".tools/a2a-kits/testbed/bin/python", ".tools/a2a-kits/python-sdk/bin/python"],
        arguments: &["tools/a2a-kits/python_client.py", "URL"],
        report: Report::Lines,
    },
    Kit {
        name: "js-sdk",
        programs: &["node"],
        arguments: &["tools/a2a-kits/js_client.mjs", ".tools/a2a-kits/js-sdk", "URL"],
        report: Report::Lines,
    },
];

/// How a check of a kit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ended {
    Passed,
    Failed,
    Skipped,
}

/// One check of a kit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) ended: Ended,
    /// What the kit says about it; may be empty.
    pub(crate) detail: String,
}

impl Kit {
    /// Whether the kit is there in whole.
    pub(crate) fn is_installed(&self, session: &Session) -> bool {
        session.root.join(INSTALLED).join(self.name).join("installed.txt").exists()
    }

    /// The program to run: a path in the repository that exists, or else the last name, looked up where programs are.
    fn program(&self, session: &Session) -> &'static str {
        let exists = |program: &&&'static str| session.root.join(program).exists();
        self.programs.iter().find(exists).or(self.programs.last()).copied().unwrap_or_default()
    }

    /// Runs it to its end; its checks, sorted by name. `directory` takes its output and its report.
    pub(crate) fn run(&self, session: &Session, url: &str, directory: &Path) -> Result<Vec<Check>, Failure> {
        let output = directory.join(format!("{}.txt", self.name));
        let report = match self.report {
            Report::Testbed => directory.join(format!("{}.json", self.name)),
            Report::Lines => output.clone(),
        };
        let failed =
            |what: String| Failure::new(format!("the kit {} {what}; see {}", self.name, output.display()));
        let file = || fs::File::options().create(true).append(true).open(&output);
        let (stdout, stderr) = match (file(), file()) {
            (Ok(stdout), Ok(stderr)) => (stdout, stderr),
            (Err(error), _) | (_, Err(error)) => {
                return Err(failed(format!("has no place to write: {error}")));
            }
        };
        let path = report.to_string_lossy();
        let arguments = self.arguments.iter().map(|argument| match *argument {
            "URL" => url,
            "REPORT" => &path,
            other => other,
        });
        let mut command = process::command(session, self.program(session));
        command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        let status = process::run_bounded(session, &mut command, KIT_LIMIT)?;
        let text = fs::read_to_string(&report).map_err(|_| failed(format!("ended with {status}")))?;
        let mut checks = match self.report {
            // Its status is 1 when a check failed, which the expectations judge.
            Report::Testbed => testbed(&text).map_err(failed)?,
            Report::Lines if !status.success() => return Err(failed(format!("ended with {status}"))),
            Report::Lines => lines(&text),
        };
        if checks.is_empty() {
            return Err(failed("checked nothing".to_owned()));
        }
        checks.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(checks)
    }
}

#[derive(Deserialize)]
struct TestbedReport {
    results: Vec<TestbedResult>,
}

#[derive(Deserialize)]
struct TestbedResult {
    id: String,
    outcome: String,
    #[serde(default)]
    detail: String,
}

/// Reads the report of a2a-testbed. What it only warns about, or could not ask, is a failure here.
fn testbed(text: &str) -> Result<Vec<Check>, String> {
    let report: TestbedReport =
        serde_json::from_str(text).map_err(|error| format!("wrote a report that cannot be read: {error}"))?;
    let check = |result: TestbedResult| Check {
        name: result.id,
        ended: match result.outcome.as_str() {
            "pass" => Ended::Passed,
            "skip" => Ended::Skipped,
            _ => Ended::Failed,
        },
        detail: result.detail,
    };
    Ok(report.results.into_iter().map(check).collect())
}

/// Reads what our scripts over the official clients print; other lines are not theirs.
fn lines(text: &str) -> Vec<Check> {
    let check = |line: &str| {
        let (ended, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (Ended::Failed, rest),
            None => (Ended::Passed, line.strip_prefix("ok ")?),
        };
        let (name, detail) = rest.split_once(": ").unwrap_or((rest, ""));
        Some(Check { name: name.to_owned(), ended, detail: detail.to_owned() })
    };
    text.lines().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, ended: Ended, detail: &str) -> Check {
        Check { name: name.to_owned(), ended, detail: detail.to_owned() }
    }

    #[test]
    fn lines_of_scripts_are_read() {
        let text = "ok a.b\nwarning: ok\nnot ok c.d: Error: of some kind\n";
        let expected = [check("a.b", Ended::Passed, ""), check("c.d", Ended::Failed, "Error: of some kind")];
        assert_eq!(lines(text), expected);
    }

    #[test]
    fn only_a_pass_passes_and_only_a_skip_is_skipped() {
        let result = |outcome: &str| format!(r#"{{"id": "x", "outcome": "{outcome}", "more": 1}}"#);
        for (outcome, ended) in [
            ("pass", Ended::Passed),
            ("skip", Ended::Skipped),
            ("fail", Ended::Failed),
            ("warn", Ended::Failed),
            ("error", Ended::Failed),
        ] {
            let text = format!(r#"{{"results": [{}]}}"#, result(outcome));
            assert_eq!(testbed(&text).unwrap(), [check("x", ended, "")]);
        }
        assert!(testbed("{}").is_err());
    }
}
