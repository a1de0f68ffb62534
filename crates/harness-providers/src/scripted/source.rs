//! The text of a script as a value, and the line where a part of the value stands.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{ScriptFormat, ScriptProblem};

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A script as it was written.
#[derive(Debug)]
pub(super) struct Source<'t> {
    text: &'t str,
    format: ScriptFormat,
}

impl<'t> Source<'t> {
    pub(super) fn new(text: &'t str, format: ScriptFormat) -> Self {
        Self { text, format }
    }

    /// The value, or every place where the text is not in its format.
    pub(super) fn value(&self) -> Result<Value, Vec<ScriptProblem>> {
        match self.format {
            ScriptFormat::Toml => {
                let (_, errors) = toml::de::DeTable::parse_recoverable(self.text);
                if errors.is_empty() {
                    let table = toml::from_str::<toml::Table>(self.text);
                    return table.map(from_toml_table).map_err(|error| vec![self.toml_problem(&error)]);
                }
                Err(errors.iter().map(|error| self.toml_problem(error)).collect())
            }
            ScriptFormat::Yaml => {
                let value = serde_yaml_ng::from_str(self.text).map_err(|error| vec![yaml_problem(&error)])?;
                from_yaml(value).map_err(|what| vec![ScriptProblem { line: None, message: what.to_owned() }])
            }
        }
    }

    /// The line of a part; that of the nearest part around it when it does not exist.
    pub(super) fn line(&self, path: &[Step]) -> Option<usize> {
        (0..=path.len()).rev().find_map(|length| self.line_of(&path[..length]))
    }

    /// Reads the text again with a reader that stops at the part: the error says where.
    fn line_of(&self, path: &[Step]) -> Option<usize> {
        match self.format {
            ScriptFormat::Toml => {
                let reader = toml::Deserializer::parse(self.text).ok()?;
                self.toml_line(&Seek(path).deserialize(reader).err()?)
            }
            ScriptFormat::Yaml => {
                let reader = serde_yaml_ng::Deserializer::from_str(self.text);
                Some(Seek(path).deserialize(reader).err()?.location()?.line())
            }
        }
    }

    fn toml_line(&self, error: &toml::de::Error) -> Option<usize> {
        let before = self.text.get(..error.span()?.start)?;
        Some(before.bytes().filter(|byte| *byte == b'\n').count() + 1)
    }

    fn toml_problem(&self, error: &toml::de::Error) -> ScriptProblem {
        ScriptProblem { line: self.toml_line(error), message: format!("not valid TOML: {}", error.message()) }
    }
}

fn yaml_problem(error: &serde_yaml_ng::Error) -> ScriptProblem {
    ScriptProblem {
        line: error.location().map(|location| location.line()),
        message: format!("not valid YAML: {error}"),
    }
}

fn from_toml_table(table: toml::Table) -> Value {
    Value::Object(table.into_iter().map(|(key, value)| (key, from_toml(value))).collect())
}

fn from_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        // JSON has no dates; tools take them as text.
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(from_toml).collect(),
        toml::Value::Table(table) => from_toml_table(table),
    }
}

/// Fails for what JSON cannot say.
fn from_yaml(value: serde_yaml_ng::Value) -> Result<Value, &'static str> {
    use serde_yaml_ng::Value as Yaml;
    Ok(match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(truth) => truth.into(),
        Yaml::Number(number) => serde_json::to_value(number).map_err(|_| "a number that JSON cannot say")?,
        Yaml::String(text) => text.into(),
        Yaml::Sequence(items) => items.into_iter().map(from_yaml).collect::<Result<_, _>>()?,
        Yaml::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let Yaml::String(key) = key else { return Err("a key that is not text; write it in quotes") };
                map.insert(key, from_yaml(value)?);
            }
            Value::Object(map)
        }
        Yaml::Tagged(_) => return Err("tags (`!name`) have no meaning here"),
    })
}

/// Reads up to a place and fails there on purpose.
#[derive(Clone, Copy)]
struct Seek<'p>(&'p [Step]);

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seek<'_> {
    fn scalar<E: de::Error>(self) -> Result<(), E> {
        if self.0.is_empty() { Err(E::custom("here")) } else { Ok(()) }
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (first, rest) = match self.0.split_first() {
            None => return Err(de::Error::custom("here")),
            Some((Step::Key(key), rest)) => (Some(key.as_str()), rest),
            Some((Step::Index(_), rest)) => (None, rest),
        };
        while let Some(found) = map.next_key_seed(SeekKey { wanted: first, stop: rest.is_empty() })? {
            if found {
                map.next_value_seed(Seek(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let (wanted, rest) = match self.0.split_first() {
            None => return Err(de::Error::custom("here")),
            Some((Step::Index(wanted), rest)) => (Some(*wanted), rest),
            Some((Step::Key(_), rest)) => (None, rest),
        };
        let mut at = 0;
        loop {
            let more = if wanted == Some(at) {
                items.next_element_seed(Seek(rest))?.is_some()
            } else {
                items.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(());
            }
            at += 1;
        }
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.scalar()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.scalar()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.scalar()
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.scalar()
    }
}

/// Says whether a key is the wanted one, or fails at it when it is the place itself.
struct SeekKey<'p> {
    wanted: Option<&'p str>,
    stop: bool,
}

impl<'de> DeserializeSeed<'de> for SeekKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for SeekKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        let found = self.wanted == Some(key);
        if found && self.stop { Err(E::custom("here")) } else { Ok(found) }
    }
}
