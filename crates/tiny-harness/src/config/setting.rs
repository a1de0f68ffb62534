//! Types that a key can have: how each is read, shown and named.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use harness_model::Lifecycle;
use harness_telemetry::LogLevel;
use toml::de::{DeInteger, DeValue};

use super::{
    duration::{self, DurationError},
    problem::{Refusal, quoted},
};

/// Entries of a list.
const LIST_MAX: usize = 256;
/// Bytes of one string.
const STRING_BYTES_MAX: usize = 16_384;

/// A value of the configuration.
pub(super) trait Setting: Sized + Default {
    /// What a value is, for people: `a duration`.
    fn kind() -> String;

    /// A value that would do, as TOML.
    fn example() -> String;

    /// Reads a value.
    fn read(value: &DeValue<'_>) -> Result<Self, Refusal>;

    /// The value as TOML; `None` when it is not set.
    fn show(&self) -> Option<String>;

    /// What the value means in this folder: paths become absolute.
    fn settle(self, _cwd: &Path) -> Self {
        self
    }

    /// Part of the value that is at fault, when it is not the whole.
    fn fault(_value: &DeValue<'_>) -> Option<Range<usize>> {
        None
    }
}

/// The refusal of a value of another type.
fn wrong_type<T: Setting>(value: &DeValue<'_>) -> Refusal {
    Refusal::new(format!("must be {}, not {}", T::kind(), type_of(value)))
}

fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Text as a TOML string.
pub(super) fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Setting for String {
    fn kind() -> String {
        "a string".to_owned()
    }

    fn example() -> String {
        "\"...\"".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) if text.len() > STRING_BYTES_MAX => {
                Err(Refusal::with_remedy(format!("is longer than {STRING_BYTES_MAX} bytes"), "shorten it"))
            }
            DeValue::String(text) => Ok(text.clone().into_owned()),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => Err(wrong_type::<Self>(value)),
        }
    }

    fn show(&self) -> Option<String> {
        Some(toml_string(self))
    }
}

impl Setting for bool {
    fn kind() -> String {
        "true or false".to_owned()
    }

    fn example() -> String {
        "true".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        value.as_bool().ok_or_else(|| wrong_type::<Self>(value))
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! whole_number {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn kind() -> String {
                "a whole number".to_owned()
            }

            fn example() -> String {
                "4096".to_owned()
            }

            fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
                let number = value.as_integer().ok_or_else(|| wrong_type::<Self>(value))?;
                integer(number)
                    .and_then(|number| Self::try_from(number).ok())
                    .ok_or_else(|| Refusal::new(format!("must be from 0 to {}, not {number}", Self::MAX)))
            }

            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

whole_number!(u16, u32, u64, usize);

fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

impl Setting for f64 {
    fn kind() -> String {
        "a number".to_owned()
    }

    fn example() -> String {
        "0.5".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let number = match value {
            DeValue::Float(number) => number.as_str().parse::<Self>().ok(),
            // A whole number of a configuration is far below 2^53.
            DeValue::Integer(number) => integer(number).map(|number| number as Self),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => return Err(wrong_type::<Self>(value)),
        };
        number.filter(|number| number.is_finite()).ok_or_else(|| Refusal::new("must be a finite number"))
    }

    fn show(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Setting for Duration {
    fn kind() -> String {
        "a duration".to_owned()
    }

    fn example() -> String {
        "\"PT30S\"".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        match value {
            DeValue::String(text) => duration::parse(text).map_err(|error| {
                let given = quoted(text);
                Refusal::new(match error {
                    DurationError::Shape => {
                        format!("must be an ISO 8601 duration such as `PT30S`, `PT5M` or `P30D`, not {given}")
                    }
                    DurationError::NoFixedLength => {
                        format!("has years or months, which have no fixed length: {given}")
                    }
                    DurationError::TooLong => format!("is longer than a duration can be: {given}"),
                })
            }),
            DeValue::Integer(_) | DeValue::Float(_) => Self::try_from_secs_f64(f64::read(value)?)
                .map_err(|_| Refusal::new("must be a number of seconds that is not negative")),
            DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
                Err(wrong_type::<Self>(value))
            }
        }
    }

    fn show(&self) -> Option<String> {
        Some(toml_string(&duration::format(*self)))
    }
}

impl Setting for PathBuf {
    fn kind() -> String {
        "a path".to_owned()
    }

    fn example() -> String {
        "\"some/path\"".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = value.as_str().ok_or_else(|| wrong_type::<Self>(value))?;
        if text.trim().is_empty() || text.contains('\0') {
            return Err(Refusal::new("must not be empty"));
        }
        Ok(Self::from(text))
    }

    fn show(&self) -> Option<String> {
        Some(toml_string(&self.to_string_lossy()))
    }

    fn settle(self, cwd: &Path) -> Self {
        cwd.join(self)
    }
}

impl<T: Setting> Setting for Option<T> {
    fn kind() -> String {
        T::kind()
    }

    fn example() -> String {
        T::example()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        T::read(value).map(Some)
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(T::show)
    }

    fn settle(self, cwd: &Path) -> Self {
        self.map(|value| value.settle(cwd))
    }

    fn fault(value: &DeValue<'_>) -> Option<Range<usize>> {
        T::fault(value)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn kind() -> String {
        format!("a list; each entry is {}", T::kind())
    }

    fn example() -> String {
        format!("[{}]", T::example())
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let entries = value
            .as_array()
            .ok_or_else(|| Refusal::new(format!("must be a list, not {}", type_of(value))))?;
        if entries.len() > LIST_MAX {
            return Err(Refusal::with_remedy(format!("has more than {LIST_MAX} entries"), "shorten it"));
        }
        let read = |(index, entry): (usize, &toml::Spanned<DeValue<'_>>)| {
            T::read(entry.get_ref()).map_err(|refusal| Refusal {
                message: format!("entry {} {}", index + 1, refusal.message),
                remedy: refusal.remedy,
            })
        };
        entries.iter().enumerate().map(read).collect()
    }

    fn show(&self) -> Option<String> {
        let entries: Vec<String> = self.iter().filter_map(T::show).collect();
        Some(format!("[{}]", entries.join(", ")))
    }

    fn settle(self, cwd: &Path) -> Self {
        self.into_iter().map(|value| value.settle(cwd)).collect()
    }

    /// The first entry that cannot be read: lists are often longer than a line.
    fn fault(value: &DeValue<'_>) -> Option<Range<usize>> {
        let entry = value.as_array()?.iter().find(|entry| T::read(entry.get_ref()).is_err())?;
        Some(entry.span())
    }
}

/// A type with few values, each with a name.
pub(super) trait Choice: Sized + Copy + PartialEq + Default + 'static {
    /// The values and their names.
    const CHOICES: &'static [(Self, &'static str)];
}

impl<T: Choice> Setting for T {
    fn kind() -> String {
        let names: Vec<String> = T::CHOICES.iter().map(|(_, name)| format!("`\"{name}\"`")).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            Some(_) | None => names.concat(),
        }
    }

    fn example() -> String {
        T::default().show().unwrap_or_default()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = value.as_str().ok_or_else(|| wrong_type::<Self>(value))?;
        let found = T::CHOICES.iter().find(|(_, name)| name.eq_ignore_ascii_case(text));
        found
            .map(|(choice, _)| *choice)
            .ok_or_else(|| Refusal::new(format!("must be {}, not {}", Self::kind(), quoted(text))))
    }

    fn show(&self) -> Option<String> {
        T::CHOICES.iter().find(|(choice, _)| choice == self).map(|(_, name)| toml_string(name))
    }
}

impl Choice for Lifecycle {
    const CHOICES: &'static [(Self, &'static str)] =
        &[(Self::Conversation, "conversation"), (Self::Delegated, "delegated")];
}

impl Choice for LogLevel {
    const CHOICES: &'static [(Self, &'static str)] = &[
        (Self::Error, "ERROR"),
        (Self::Warning, "WARNING"),
        (Self::Info, "INFO"),
        (Self::Debug, "DEBUG"),
        (Self::Trace, "TRACE"),
    ];
}

/// Host and port to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BindAddress {
    /// A name or an address, IPv6 without brackets.
    pub(crate) host: String,
    /// 0 lets the system choose.
    pub(crate) port: u16,
}

impl BindAddress {
    /// A port of this machine that the system chooses.
    pub(crate) fn any_loopback_port() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 0 }
    }

    /// Whether only this machine can connect. Decided by the text, never by a name server.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether it stands for every address of the machine.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_unspecified())
    }

    fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let plain = host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:%".contains(&b));
        let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        (plain && digits && !host.is_empty())
            .then(|| Some(Self { host: host.to_owned(), port: port.parse().ok()? }))?
    }
}

impl Default for BindAddress {
    fn default() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 8080 }
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Setting for BindAddress {
    fn kind() -> String {
        "an address with a port".to_owned()
    }

    fn example() -> String {
        "\"127.0.0.1:8080\"".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = value.as_str().ok_or_else(|| wrong_type::<Self>(value))?;
        Self::parse(text).ok_or_else(|| {
            Refusal::new(format!("must be a host, a colon and a port from 0 to 65535, not {}", quoted(text)))
        })
    }

    fn show(&self) -> Option<String> {
        Some(toml_string(&self.to_string()))
    }
}
