//! What is expected of the checks that do not pass. Everything else has to pass.

use std::{fmt, fs};

use serde::Deserialize;

use super::kits::{Check, Ended};
use crate::session::{Failure, Session};

/// The file with them.
pub(crate) const EXPECTATIONS: &str = "conformance/expected-failures.toml";

/// The checks that are expected not to pass.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectations {
    #[serde(default, rename = "expected")]
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kit: String,
    check: String,
    ends: Ended,
    reason: String,
}

/// What a check means for the build, as one line.
#[derive(Debug)]
pub(crate) enum Verdict<'a> {
    Passed(&'a Check),
    AsExpected(&'a Check, &'a str),
    /// It does not pass, and nobody expects that.
    New(&'a Check),
    /// It passes, or ends in another way than expected.
    Unexpected(&'a Check, &'a str),
    /// The kit has no such check.
    Gone(&'a str),
}

impl Expectations {
    /// Reads the file.
    /// Errors: it is not there, has fields it should not have, or an entry that says nothing.
    pub(crate) fn read(session: &Session) -> Result<Self, Failure> {
        let unusable = |error: String| Failure::new(format!("{EXPECTATIONS}: {error}"));
        let text =
            fs::read_to_string(session.root.join(EXPECTATIONS)).map_err(|e| unusable(e.to_string()))?;
        Self::parse(&text).map_err(unusable)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let read: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        match read.entries.iter().find(|entry| entry.ends == Ended::Passed || entry.reason.trim().is_empty())
        {
            Some(entry) => Err(format!("the entry for {} needs another end or a reason", entry.check)),
            None => Ok(read),
        }
    }

    /// Compares the checks of a kit with what is expected of it.
    pub(crate) fn judge<'a>(&'a self, kit: &str, checks: &'a [Check]) -> Vec<Verdict<'a>> {
        let entries = || self.entries.iter().filter(|entry| entry.kit == kit);
        let verdict = |check: &'a Check| match entries().find(|entry| entry.check == check.name) {
            Some(entry) if entry.ends == check.ended => Verdict::AsExpected(check, &entry.reason),
            Some(entry) => Verdict::Unexpected(check, &entry.reason),
            None if check.ended == Ended::Passed => Verdict::Passed(check),
            None => Verdict::New(check),
        };
        let gone = entries().filter(|entry| !checks.iter().any(|check| check.name == entry.check));
        checks.iter().map(verdict).chain(gone.map(|entry| Verdict::Gone(&entry.check))).collect()
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(check) => write!(f, "ok         {}", check.name),
            Self::AsExpected(check, reason) => write!(f, "expected   {}: {reason}", check.name),
            Self::New(check) => write!(f, "NEW        {}: {:?}: {}", check.name, check.ended, check.detail),
            Self::Unexpected(check, reason) => {
                write!(f, "UNEXPECTED {}: {:?}, although {reason}", check.name, check.ended)
            }
            Self::Gone(name) => write!(f, "GONE       {name}: the kit has no such check"),
        }
    }
}

/// The verdicts on a kit, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    passed: usize,
    expected: usize,
    /// What breaks the build.
    pub(crate) problems: usize,
}

impl Tally {
    /// Counts one.
    pub(crate) fn add(&mut self, verdict: &Verdict<'_>) {
        match verdict {
            Verdict::Passed(_) => self.passed += 1,
            Verdict::AsExpected(..) => self.expected += 1,
            Verdict::New(_) | Verdict::Unexpected(..) | Verdict::Gone(_) => self.problems += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, expected, problems } = self;
        write!(f, "{passed} passed, {expected} not, as expected, {problems} problem(s)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(ends: &[(&str, Ended)]) -> Vec<Check> {
        let check = |(name, ended): &(&str, Ended)| Check {
            name: (*name).to_owned(),
            ended: *ended,
            detail: "why".to_owned(),
        };
        ends.iter().map(check).collect()
    }

    fn entry(check: &str, ends: &str) -> String {
        format!("[[expected]]\nkit = \"k\"\ncheck = \"{check}\"\nends = \"{ends}\"\nreason = \"so it is\"\n")
    }

    #[test]
    fn whatever_is_not_as_written_is_a_problem() {
        let text =
            entry("b", "failed") + &entry("c", "failed") + &entry("d", "skipped") + &entry("e", "failed");
        let expectations = Expectations::parse(&text).unwrap();
        let checks = checks(&[
            ("a", Ended::Passed),
            ("b", Ended::Failed),
            ("c", Ended::Passed),
            ("d", Ended::Failed),
            ("f", Ended::Skipped),
        ]);
        let verdicts = expectations.judge("k", &checks);
        let words: Vec<String> = verdicts
            .iter()
            .map(|verdict| verdict.to_string().split_whitespace().next().unwrap().to_owned())
            .collect();
        assert_eq!(words, ["ok", "expected", "UNEXPECTED", "UNEXPECTED", "NEW", "GONE"]);
        let mut tally = Tally::default();
        verdicts.iter().for_each(|verdict| tally.add(verdict));
        assert_eq!((tally.passed, tally.expected, tally.problems), (1, 1, 4));
        assert_eq!(
            expectations.judge("other", &checks).len(),
            checks.len(),
            "another kit's are not concerned"
        );
    }

    #[test]
    fn an_entry_has_an_end_and_a_reason() {
        assert!(Expectations::parse("").unwrap().entries.is_empty());
        assert!(Expectations::parse(&entry("a", "passed")).is_err());
        assert!(Expectations::parse(&entry("a", "failed").replace("so it is", " ")).is_err());
        assert!(Expectations::parse(&(entry("a", "failed") + "note = \"x\"\n")).is_err());
    }
}
