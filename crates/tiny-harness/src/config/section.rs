//! Tables of the configuration: one line declares a key with its meaning, type, default and rules.

use super::reader::{Reader, Table};

/// A key, for the documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyDoc {
    /// Name within its table.
    pub(crate) name: &'static str,
    /// What a value is.
    pub(crate) kind: String,
    /// The default as TOML, `none`, or `required`.
    pub(crate) default: String,
    /// Meaning and rules.
    pub(crate) doc: String,
}

/// A table with a fixed set of keys.
pub(super) trait Section: Sized {
    /// The keys.
    fn keys() -> Vec<KeyDoc>;

    /// What the table is for.
    fn about() -> String;

    /// Reads every key; problems go to the reader.
    fn read(table: &Table<'_>, reader: &mut Reader<'_>) -> Self;

    /// Every key with its value as TOML, `None` when it is not set.
    fn show(&self) -> Shown;
}

/// Keys of a table with their values as TOML, `None` when not set.
pub(super) type Shown = Vec<(&'static str, Option<String>)>;

/// What a key is when the file does not set it.
pub(super) enum Fallback<T> {
    /// This value.
    Value(T),
    /// A problem.
    Required,
}

/// The file has to set the key.
pub(super) fn required<T>() -> Fallback<T> {
    Fallback::Required
}

/// The key has a default.
pub(super) fn or<T>(value: impl Into<T>) -> Fallback<T> {
    Fallback::Value(value.into())
}

/// The key may be left out.
pub(super) fn optional<T>() -> Fallback<Option<T>> {
    Fallback::Value(None)
}

impl<T: super::setting::Setting> Fallback<T> {
    /// The default for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Value(value) => value.show().map_or("none".to_owned(), |text| format!("`{text}`")),
            Self::Required => "required".to_owned(),
        }
    }
}

/// Doc comments as one paragraph.
pub(super) fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Declares a table. Each key is `/// meaning`, then `name: type = default [, rule]...;`.
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $( $(#[doc = $doc:literal])+ $key:ident: $type:ty = $fallback:expr $(, $check:expr)*; )*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct $name {
            $( $(#[doc = $doc])+ pub(crate) $key: $type, )*
        }

        impl $crate::config::section::Section for $name {
            fn keys() -> Vec<$crate::config::section::KeyDoc> {
                vec![$( $crate::config::section::KeyDoc {
                    name: stringify!($key),
                    kind: <$type as $crate::config::setting::Setting>::kind(),
                    default: {
                        let fallback: $crate::config::section::Fallback<$type> = $fallback;
                        fallback.describe()
                    },
                    doc: $crate::config::section::paragraph(&[$($doc),+]),
                } ),*]
            }

            fn about() -> String {
                $crate::config::section::paragraph(&[$($about),+])
            }

            fn read(
                table: &$crate::config::reader::Table<'_>,
                reader: &mut $crate::config::reader::Reader<'_>,
            ) -> Self {
                Self { $( $key: reader.value::<$type>(table, stringify!($key), $fallback, &[$(&$check),*]), )* }
            }

            fn show(&self) -> $crate::config::section::Shown {
                vec![$( (stringify!($key), $crate::config::setting::Setting::show(&self.$key)) ),*]
            }
        }
    };
}

pub(super) use section;
