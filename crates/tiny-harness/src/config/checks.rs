//! Rules for values, each a function from a value to a refusal.
#![expect(clippy::ptr_arg, reason = "a rule takes a reference to the type of its key")]

use harness_a2a::{AddressGuard, Extension};
use std::{
    collections::BTreeSet,
    fmt::Debug,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use harness_model::one_line;
use harness_providers::check_base_url;

use super::{
    problem::{Refusal, quoted},
    setting::Setting,
};

/// Characters of ids and names.
const NAME_CHARS_MAX: usize = 256;

type Checked = Result<(), Refusal>;

/// From `least` to `most`, both included.
pub(super) fn range<T: Setting + PartialOrd + Debug>(least: T, most: T) -> impl Fn(&T) -> Checked {
    move |value| {
        if *value >= least && *value <= most {
            return Ok(());
        }
        let shown = |bound: &T| bound.show().unwrap_or_default().replace('"', "`");
        Err(Refusal::new(format!("must be from {} to {}, not {}", shown(&least), shown(&most), shown(value))))
    }
}

/// At least `least`.
pub(super) fn at_least(least: Duration) -> impl Fn(&Duration) -> Checked {
    range(least, Duration::from_secs(3_650 * 86_400))
}

/// Applies a rule to a value that may be unset.
pub(super) fn if_set<T>(check: impl Fn(&T) -> Checked) -> impl Fn(&Option<T>) -> Checked {
    move |value| value.as_ref().map_or(Ok(()), &check)
}

/// Applies a rule to each entry; entries are unique.
pub(super) fn each(check: impl Fn(&String) -> Checked) -> impl Fn(&Vec<String>) -> Checked {
    move |values| {
        let mut seen = BTreeSet::new();
        for value in values {
            check(value)?;
            if !seen.insert(value) {
                return Err(Refusal::with_remedy(
                    format!("names {} twice", quoted(value)),
                    "remove one of the two",
                ));
            }
        }
        Ok(())
    }
}

/// No folder is there twice.
pub(super) fn unique_folders(folders: &Vec<PathBuf>) -> Checked {
    let mut seen = BTreeSet::new();
    // Compared by their parts, so that `a/` and `./a` are `a`.
    let plain =
        |folder: &Path| -> PathBuf { folder.components().filter(|c| *c != Component::CurDir).collect() };
    match folders.iter().find(|folder| !seen.insert(plain(folder))) {
        None => Ok(()),
        Some(folder) => Err(Refusal::with_remedy(
            format!("names {} twice", quoted(&folder.to_string_lossy())),
            "remove one of the two",
        )),
    }
}

/// No extension is named twice.
pub(super) fn unique_extensions(extensions: &Vec<Extension>) -> Checked {
    let repeated = extensions.iter().enumerate().find(|(index, each)| extensions[..*index].contains(each));
    match repeated.and_then(|(_, each)| each.show()) {
        None => Ok(()),
        Some(name) => Err(Refusal::with_remedy(
            format!("names {} twice", quoted(name.trim_matches('"'))),
            "remove one of the two",
        )),
    }
}

/// Not empty, and more than spaces.
pub(super) fn not_blank(text: &String) -> Checked {
    if text.trim().is_empty() {
        return Err(Refusal::with_remedy(
            "must not be empty",
            "give it a text, or remove the line for the default",
        ));
    }
    Ok(())
}

/// A name: not blank, one line, at most 256 characters.
pub(super) fn name(text: &String) -> Checked {
    not_blank(text)?;
    if one_line(text) != *text || text.chars().count() > NAME_CHARS_MAX {
        return Err(Refusal::with_remedy(
            format!("must be one line of at most {NAME_CHARS_MAX} characters without spaces at its ends"),
            "shorten it to a plain name",
        ));
    }
    Ok(())
}

/// An id that travels in a header: printable ASCII without spaces at its ends.
pub(super) fn header_id(text: &String) -> Checked {
    name(text)?;
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Ok(());
    }
    Err(Refusal::with_remedy(
        format!("must be printable ASCII, because it travels in an HTTP header, not {}", quoted(text)),
        "use letters, digits and punctuation only",
    ))
}

/// Where a server is: `http` or `https`, a host, no user information, query or fragment.
pub(super) fn base_url(text: &String) -> Checked {
    check_base_url(text, false).map_err(|error| {
        Refusal::with_remedy(error.to_string(), "write it as `https://host` or `http://host:port`")
    })
}

/// What a browser calls an origin, or `*`.
pub(super) fn origin(text: &String) -> Checked {
    if text == "*" {
        return Ok(());
    }
    base_url(text)?;
    let after_scheme = text.split_once("://").map_or("", |(_, rest)| rest);
    if after_scheme.contains('/') {
        return Err(Refusal::with_remedy(
            format!("must be an origin without a path, not {}", quoted(text)),
            "write only scheme, host and port: `https://app.example.com`",
        ));
    }
    Ok(())
}

/// Name of an HTTP header that may carry a secret.
pub(super) fn header_name(text: &String) -> Checked {
    let token = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let taken =
        ["authorization", "x-participant-id", "a2a-version", "a2a-extensions", "content-type", "host"];
    if token && !taken.contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(());
    }
    Err(Refusal::with_remedy(
        format!("must be the name of a header of its own, not {}", quoted(text)),
        "write for example `X-API-Key`; leave it out for a bearer token",
    ))
}

/// A host, an address or a network that push notifications may go to.
pub(super) fn push_address(text: &String) -> Checked {
    AddressGuard::allowing(&[text]).map(drop).map_err(|_| {
        Refusal::with_remedy(
            format!("must be a host, an address or a network, not {}", quoted(text)),
            "write for example `receiver.internal`, `127.0.0.1` or `10.0.0.0/8`",
        )
    })
}

/// A host, a colon and a port.
pub(super) fn host_and_port(text: &String) -> Checked {
    let valid = text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', ' ']) && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if valid {
        return Ok(());
    }
    Err(Refusal::with_remedy("must be a host, a colon and a port", "write it as `host:7233`"))
}

/// The name of an environment variable.
pub(super) fn variable(text: &String) -> Checked {
    let valid = text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if valid {
        return Ok(());
    }
    // The text may be the key itself, pasted into the wrong place: it is not repeated.
    Err(Refusal::with_remedy(
        "must be the name of an environment variable, in capitals",
        "write the name, not the key: `MY_PROVIDER_API_KEY`",
    ))
}

/// Stable error codes.
pub(super) fn error_code(text: &String) -> Checked {
    if harness_model::ALL_CODES.iter().any(|(code, _)| code == text) {
        return Ok(());
    }
    Err(Refusal::with_remedy(
        format!("names {}, which is not an error code", quoted(text)),
        "use a code as in `provider.retryable`; each has a page in docs/errors",
    ))
}

/// Not the id that the roster keeps for this harness itself.
pub(super) fn not_self(text: &String) -> Checked {
    if text == "self" {
        return Err(Refusal::with_remedy(
            "must not be `self`, which names this agent itself",
            "choose another id; `self` is always there without being configured",
        ));
    }
    Ok(())
}
