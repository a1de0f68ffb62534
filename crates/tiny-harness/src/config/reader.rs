//! Reading of a parsed file: finds keys, remembers where they are, and collects every problem.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use harness_model::Secret;
use toml::de::{DeTable, DeValue};

use super::{
    problem::{ConfigProblem, Refusal, quoted},
    reference,
    section::{Fallback, Section},
    setting::Setting,
};

/// Largest edit distance at which a key is taken for a misspelling.
const MISSPELLING_MAX: usize = 3;
/// Parts of names of keys that people use for secrets.
const SECRET_WORDS: [&str; 5] = ["api_key", "apikey", "password", "secret", "token"];

/// One table of the file, or the place where it would be.
pub(super) struct Table<'a> {
    /// Dotted path; empty for the top of the file.
    path: String,
    entries: Option<&'a DeTable<'a>>,
    at: Option<usize>,
}

impl Table<'_> {
    /// Whether the file has it.
    pub(super) fn is_present(&self) -> bool {
        self.entries.is_some()
    }

    /// Whether the file sets this key in it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// Dotted path of a key in it.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// A rule for values.
pub(super) type Check<'c, T> = &'c dyn Fn(&T) -> Result<(), Refusal>;

/// Collects values and problems.
pub(super) struct Reader<'a> {
    file: Option<String>,
    text: &'a str,
    cwd: &'a Path,
    problems: Vec<ConfigProblem>,
    /// Dotted paths of the keys that the file sets.
    pub(super) set: BTreeSet<String>,
    /// Secrets by variable.
    pub(super) secrets: BTreeMap<String, Secret>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(file: Option<String>, text: &'a str, cwd: &'a Path) -> Self {
        Self { file, text, cwd, problems: Vec::new(), set: BTreeSet::new(), secrets: BTreeMap::new() }
    }

    /// Whether there is a file at all.
    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// The problems, in the order of the file; those without a line come last.
    pub(super) fn into_problems(mut self) -> Vec<ConfigProblem> {
        self.problems.sort_by_key(|problem| (problem.file.is_none(), problem.line.unwrap_or(usize::MAX)));
        self.problems.dedup();
        self.problems
    }

    pub(super) fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Whether a problem of this dotted key is known.
    pub(super) fn has_problem_at(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.key == key)
    }

    /// The top of the file.
    pub(super) fn root(&self, entries: &'a DeTable<'a>) -> Table<'a> {
        Table { path: String::new(), entries: Some(entries), at: None }
    }

    /// A table inside a table. What is there but is no table is a problem.
    pub(super) fn table(&mut self, parent: &Table<'a>, name: &str) -> Table<'a> {
        let path = parent.key(name);
        let Some((key, value)) = parent.entries.and_then(|entries| entries.get_key_value(name)) else {
            return Table { path, entries: None, at: None };
        };
        let at = Some(key.span().start);
        if let Some(entries) = value.get_ref().as_table() {
            return Table { path, entries: Some(entries), at };
        }
        let message = format!("`{name}` must be a table");
        self.add(at, &path, message, format!("write it as a section: `[{path}]`"));
        Table { path, entries: None, at: None }
    }

    /// Tables inside a table, by name.
    pub(super) fn named_tables(&mut self, parent: &Table<'a>, name: &str) -> Vec<(String, Table<'a>)> {
        let outer = self.table(parent, name);
        let names: Vec<String> = outer
            .entries
            .iter()
            .flat_map(|entries| entries.keys())
            .map(|key| key.get_ref().to_string())
            .collect();
        names
            .into_iter()
            .map(|name| {
                let table = self.table(&outer, &name);
                (name, table)
            })
            .filter(|(_, table)| table.is_present())
            .collect()
    }

    /// A list of tables inside a table.
    pub(super) fn list_of_tables(&mut self, parent: &Table<'a>, name: &str) -> Vec<Table<'a>> {
        let Some((key, value)) = parent.entries.and_then(|entries| entries.get_key_value(name)) else {
            return Vec::new();
        };
        let (at, path) = (key.span().start, parent.key(name));
        let refused = |reader: &mut Self, at| {
            let message = format!("`{name}` must be a list of tables");
            reader.add(Some(at), &path, message, format!("write `[[{path}]]` before the keys of each entry"));
        };
        let Some(entries) = value.get_ref().as_array() else {
            refused(self, at);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match entry.get_ref().as_table() {
                Some(table) => {
                    let path = format!("{path}[{index}]");
                    tables.push(Table { path, entries: Some(table), at: Some(entry.span().start) });
                }
                None => refused(self, entry.span().start),
            }
        }
        tables
    }

    /// Reads a table whole. Keys that it does not have, other than the `nested` tables, are problems.
    pub(super) fn section<T: Section>(&mut self, table: &Table<'a>, nested: &[&str]) -> T {
        let keys = T::keys();
        let known: Vec<&str> = keys.iter().map(|key| key.name).chain(nested.iter().copied()).collect();
        self.refuse_unknown(table, &known);
        T::read(table, self)
    }

    /// Reads one key.
    pub(super) fn value<T: Setting>(
        &mut self,
        table: &Table<'_>,
        key: &str,
        fallback: Fallback<T>,
        checks: &[Check<'_, T>],
    ) -> T {
        let entry = table.entries.and_then(|entries| entries.get_key_value(key));
        let Some((name, value)) = entry else {
            return match fallback {
                Fallback::Value(value) => value.settle(self.cwd),
                Fallback::Required => {
                    let remedy = format!("add `{key} = {}`", T::example());
                    self.add(table.at, &table.key(key), format!("`{key}` is required"), remedy);
                    T::default()
                }
            };
        };
        self.set.insert(table.key(key));
        let read = T::read(value.get_ref());
        let checked = read.and_then(|read| checks.iter().try_for_each(|check| check(&read)).map(|()| read));
        match checked {
            Ok(read) => read.settle(self.cwd),
            Err(refusal) => {
                let at = T::fault(value.get_ref()).map_or(name.span().start, |span| span.start);
                let example = match &fallback {
                    Fallback::Value(value) => value.show().filter(|text| text != "[]"),
                    Fallback::Required => None,
                };
                let remedy = refusal.remedy.unwrap_or_else(|| {
                    format!("write for example `{key} = {}`", example.unwrap_or_else(T::example))
                });
                self.add(Some(at), &table.key(key), format!("`{key}` {}", refusal.message), remedy);
                T::default()
            }
        }
    }

    /// Adds a problem of a key that was read before.
    pub(super) fn refuse(&mut self, table: &Table<'_>, key: &str, message: String, remedy: String) {
        let entry = table.entries.and_then(|entries| entries.get_key_value(key));
        let at = entry.map_or(table.at, |(name, _)| Some(name.span().start));
        self.add(at, &table.key(key), message, remedy);
    }

    /// Adds a problem of a whole table.
    pub(super) fn refuse_table(&mut self, table: &Table<'_>, message: String, remedy: String) {
        let path = if table.path.is_empty() { "<root>" } else { &table.path };
        self.add(table.at, path, message, remedy);
    }

    /// Adds a problem of the environment.
    pub(super) fn refuse_variable(&mut self, variable: &str, message: String, remedy: String) {
        self.problems.push(ConfigProblem {
            file: None,
            line: None,
            key: variable.to_owned(),
            message,
            remedy,
        });
    }

    /// Adds a problem at a byte of the text.
    pub(super) fn add(&mut self, at: Option<usize>, key: &str, message: String, remedy: String) {
        let line = at.and_then(|at| self.text.get(..at)).map(|before| before.matches('\n').count() + 1);
        self.problems.push(ConfigProblem {
            file: self.file.clone(),
            line,
            key: key.to_owned(),
            message,
            remedy,
        });
    }

    /// Adds a problem for each key that is not among `known`.
    pub(super) fn refuse_unknown(&mut self, table: &Table<'_>, known: &[&str]) {
        let Some(entries) = table.entries else { return };
        for (name, value) in entries.iter().filter(|(name, _)| !known.contains(&name.get_ref().as_ref())) {
            let key = name.get_ref().as_ref();
            let what = if matches!(value.get_ref(), DeValue::Table(_)) { "table" } else { "key" };
            let message = format!("unknown {what} {}", quoted(key));
            self.add(Some(name.span().start), &table.key(key), message, advice(table, key, known));
        }
    }
}

/// What to do about a key that a table does not have.
fn advice(table: &Table<'_>, key: &str, known: &[&str]) -> String {
    let lower = key.to_ascii_lowercase();
    if SECRET_WORDS.iter().any(|word| lower.contains(word)) {
        return "remove the line: secrets come from the environment only, for example OPENAI_API_KEY"
            .to_owned();
    }
    let homes = reference::homes_of(key);
    if homes.iter().any(|home| home.is_empty()) && !table.path.is_empty() {
        return format!("move {} to the top of the file, before the first [section]", quoted(key));
    }
    let near = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= MISSPELLING_MAX.min(candidate.len() / 2))
        .min();
    if let Some((_, candidate)) = near {
        return format!("did you mean `{candidate}`?");
    }
    match homes.first() {
        Some(home) => format!("it belongs in [{home}]"),
        None => format!("remove it, or use one of {}", known.join(", ")),
    }
}
