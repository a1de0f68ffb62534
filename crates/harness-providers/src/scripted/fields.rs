//! Reading the fields of a table: each is checked, every problem is kept, and what nobody asked for is one too.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    ScriptProblem,
    source::{Source, Step},
};

/// Problems that are listed; a file with more has one cause.
const PROBLEMS_MAX: usize = 100;
/// The longest wait a script may ask for.
const DELAY_MS_MAX: u64 = 600_000;

/// Everything that is wrong so far, with its place.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<(Vec<Step>, String)>);

impl Problems {
    pub(super) fn add(&mut self, path: Vec<Step>, message: impl Into<String>) {
        if self.0.len() < PROBLEMS_MAX {
            self.0.push((path, message.into()));
        }
    }

    /// The problems with their lines, in the order of the file; nothing when there are none.
    pub(super) fn located(self, source: &Source<'_>) -> Vec<ScriptProblem> {
        let locate =
            |(path, message): (Vec<Step>, String)| ScriptProblem { line: source.line(&path), message };
        let mut located: Vec<ScriptProblem> = self.0.into_iter().map(locate).collect();
        located.sort_by_key(|problem| problem.line);
        located
    }
}

/// A table that is being read.
#[derive(Debug)]
pub(super) struct Fields<'v, 'p> {
    map: &'v Map<String, Value>,
    path: Vec<Step>,
    /// Names that were asked for, present or not.
    known: Vec<&'static str>,
    problems: &'p mut Problems,
}

impl<'v, 'p> Fields<'v, 'p> {
    /// Reads a value that has to be a table; `None`, and a problem, when it is not.
    pub(super) fn of(value: &'v Value, path: Vec<Step>, problems: &'p mut Problems) -> Option<Self> {
        let Some(map) = value.as_object() else {
            problems.add(path, "a table is expected here");
            return None;
        };
        Some(Self { map, path, known: Vec::new(), problems })
    }

    /// Notes a problem of the table as a whole.
    pub(super) fn problem(&mut self, message: impl Into<String>) {
        self.problems.add(self.path.clone(), message);
    }

    /// Notes a problem of one field.
    pub(super) fn field_problem(&mut self, name: &str, message: impl Into<String>) {
        self.problems.add(self.path_of(name), message);
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// The value as it is.
    pub(super) fn value(&mut self, name: &'static str) -> Option<&'v Value> {
        self.known.push(name);
        self.map.get(name)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        let value = self.value(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.field_problem(name, format!("`{name}` is text"));
        }
        text.map(str::to_owned)
    }

    /// A text that means something only when it is not empty.
    pub(super) fn filled_text(&mut self, name: &'static str) -> Option<String> {
        let text = self.text(name)?;
        if text.is_empty() {
            self.field_problem(name, format!("`{name}` is empty; leave it out instead"));
        }
        Some(text)
    }

    /// A text that has to be there.
    pub(super) fn required_text(&mut self, name: &'static str) -> String {
        if !self.has(name) {
            self.problem(format!("`{name}` is missing"));
        }
        self.filled_text(name).unwrap_or_default()
    }

    pub(super) fn whole(&mut self, name: &'static str, least: u64, most: u64) -> Option<u64> {
        let value = self.value(name)?;
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.field_problem(name, format!("`{name}` is a whole number from {least} to {most}"));
        }
        number
    }

    pub(super) fn millis(&mut self, name: &'static str) -> Option<Duration> {
        self.whole(name, 0, DELAY_MS_MAX).map(Duration::from_millis)
    }

    pub(super) fn truth(&mut self, name: &'static str) -> Option<bool> {
        let value = self.value(name)?;
        if !value.is_boolean() {
            self.field_problem(name, format!("`{name}` is true or false"));
        }
        value.as_bool()
    }

    /// One of a few words.
    pub(super) fn word<T: Clone>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning.clone());
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.field_problem(name, format!("`{name}` is one of: {}", words.join(", ")));
        }
        found
    }

    /// A table of its own, read by `read`.
    pub(super) fn table<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'v, '_>) -> T,
    ) -> Option<T> {
        let value = self.value(name)?;
        self.read_table(value, self.path_of(name), read)
    }

    /// A list, or one value in the place of a list of one; each is given to `read` with its place.
    pub(super) fn one_or_more<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Self, &'v Value, Vec<Step>) -> Option<T>,
    ) -> Vec<T> {
        let path = self.path_of(name);
        match self.value(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                if items.is_empty() {
                    self.field_problem(name, format!("`{name}` is empty; leave it out instead"));
                }
                let place = |at| [path.as_slice(), &[Step::Index(at)]].concat();
                items.iter().enumerate().filter_map(|(at, item)| read(self, item, place(at))).collect()
            }
            Some(value) => read(self, value, path).into_iter().collect(),
        }
    }

    /// Reads a value that has to be a table of its own.
    pub(super) fn read_table<T>(
        &mut self,
        value: &'v Value,
        path: Vec<Step>,
        read: impl FnOnce(&mut Fields<'v, '_>) -> T,
    ) -> Option<T> {
        let mut fields = Fields::of(value, path, self.problems)?;
        let result = read(&mut fields);
        fields.finish();
        Some(result)
    }

    /// Notes a problem at a place that was handed out before.
    pub(super) fn problem_at(&mut self, path: Vec<Step>, message: impl Into<String>) {
        self.problems.add(path, message);
    }

    /// Complains about every field that was not asked for.
    pub(super) fn finish(self) {
        let Self { map, path, known, problems } = self;
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let place = [path.as_slice(), &[Step::Key(key.clone())]].concat();
            problems.add(place, format!("`{key}` is not known here; possible are: {}", known.join(", ")));
        }
    }

    fn path_of(&self, name: &str) -> Vec<Step> {
        [self.path.as_slice(), &[Step::Key(name.to_owned())]].concat()
    }
}
