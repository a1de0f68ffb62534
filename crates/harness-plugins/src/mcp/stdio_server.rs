//! Servers that are processes: the executable token, the placeholders and the working folder.

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use harness_model::codes;

use super::{Fields, McpTransport, ServerError};
use crate::{
    package::{Package, PackageError},
    report::quoted,
};

const ROOT_VARIABLE: &str = "PLUGIN_ROOT";
const DATA_VARIABLE: &str = "PLUGIN_DATA";
const ROOT_PLACEHOLDER: &str = "${PLUGIN_ROOT}";
const DATA_PLACEHOLDER: &str = "${PLUGIN_DATA}";

pub(super) fn read(
    package: &Package,
    data_folder: &Path,
    fields: &Fields,
) -> Result<McpTransport, ServerError> {
    fields.only(&["type", "command", "args", "env", "cwd"])?;
    let command = command(package, fields.required("command")?)?;
    let (args, env, cwd) = (fields.list("args")?, fields.map("env")?, fields.optional("cwd")?);
    for (name, _) in &env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(ServerError::invalid(format!(
                "env: {} cannot be the name of a variable",
                quoted(name)
            )));
        }
        if matches!(*name, ROOT_VARIABLE | DATA_VARIABLE) {
            return Err(ServerError::invalid(format!("env must not set {name}; the harness sets it")));
        }
    }
    // Last, so that nothing is made on disk for a server that is refused anyway.
    let data = data_package(data_folder)?;
    let places = Places { root: package.text(), data: data.text() };
    let mut env: BTreeMap<String, String> =
        env.into_iter().map(|(name, value)| (name.to_owned(), places.expand(value))).collect();
    env.insert(ROOT_VARIABLE.to_owned(), package.text().to_owned());
    env.insert(DATA_VARIABLE.to_owned(), data.text().to_owned());
    Ok(McpTransport::Stdio {
        command,
        args: args.into_iter().map(|arg| places.expand(arg)).collect(),
        env,
        cwd: working_folder(package, &data, cwd)?,
    })
}

/// A bare name stays as it is; a path of the plugin becomes absolute. Nothing in it is expanded.
fn command(package: &Package, command: &str) -> Result<String, ServerError> {
    if command.contains("${") {
        return Err(ServerError::invalid(
            "command must not contain `${`; placeholders work in args, env and cwd",
        ));
    }
    if let Some(relative) = command.strip_prefix("./") {
        let path = package
            .resolve(relative)
            .map_err(|error| ServerError::invalid(format!("command {} {error}", quoted(command))))?;
        if !path.is_file() {
            return Err(ServerError::invalid(format!("command {} is not a regular file", quoted(command))));
        }
        return path
            .into_os_string()
            .into_string()
            .map_err(|_| ServerError::invalid("command is not UTF-8 text after its symlinks are followed"));
    }
    if command.contains(['/', '\\']) || command == "." || command == ".." {
        return Err(ServerError::invalid(format!(
            "command {} must be a bare name, or a path inside the plugin that begins with `./`",
            quoted(command)
        )));
    }
    if command.contains(char::is_whitespace) {
        return Err(ServerError::invalid(format!(
            "command {} must be one executable; its arguments belong in args",
            quoted(command)
        )));
    }
    Ok(command.to_owned())
}

fn working_folder(package: &Package, data: &Package, cwd: Option<&str>) -> Result<PathBuf, ServerError> {
    let Some(cwd) = cwd else {
        return Ok(package.root().to_owned());
    };
    let refused = |error: PackageError| ServerError::invalid(format!("cwd {} {error}", quoted(cwd)));
    let folder = if let Some(relative) = cwd.strip_prefix("./").or_else(|| below(cwd, ROOT_PLACEHOLDER)) {
        package.resolve(relative).map_err(refused)?
    } else if let Some(relative) = below(cwd, DATA_PLACEHOLDER) {
        data.ensure_folder(relative).map_err(refused)?
    } else {
        return Err(ServerError::invalid(format!(
            "cwd {} must begin with `./`, `${{PLUGIN_ROOT}}` or `${{PLUGIN_DATA}}`",
            quoted(cwd)
        )));
    };
    if folder.is_dir() { Ok(folder) } else { Err(refused(PackageError::NotAFolder)) }
}

/// What follows `placeholder` in a path, relative; `None` when the path does not begin with it.
fn below<'a>(path: &'a str, placeholder: &str) -> Option<&'a str> {
    match path.strip_prefix(placeholder)? {
        "" => Some(""),
        rest => rest.strip_prefix('/'),
    }
}

/// The data folder of the plugin, made when it is missing.
fn data_package(folder: &Path) -> Result<Package, ServerError> {
    // Servers keep what customers say there; nobody else on the host has any business in it.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(PackageError::from)
        .and_then(|()| Package::open(folder))
        .map_err(|error| ServerError {
            code: codes::PLUGIN_COMPONENT_SKIPPED,
            reason: format!("the plugin's data folder {} {error}", folder.display()),
        })
}

/// What the placeholders stand for.
struct Places<'a> {
    root: &'a str,
    data: &'a str,
}

impl Places<'_> {
    /// One pass: what a placeholder stands for is never searched for placeholders again.
    fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            out.push_str(&rest[..at]);
            let (value, after) = if let Some(after) = rest[at..].strip_prefix(ROOT_PLACEHOLDER) {
                (self.root, after)
            } else if let Some(after) = rest[at..].strip_prefix(DATA_PLACEHOLDER) {
                (self.data, after)
            } else {
                ("${", &rest[at + 2..])
            };
            out.push_str(value);
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_once_and_only_what_is_known() {
        let places = Places { root: "/r/${PLUGIN_DATA}", data: "/d" };
        for (text, expanded) in [
            ("--x=${PLUGIN_ROOT}/a:${PLUGIN_DATA}", "--x=/r/${PLUGIN_DATA}/a:/d"),
            ("${PLUGIN_DATA}${PLUGIN_DATA}", "/d/d"),
            ("${HOME} ${ $${PLUGIN_DATA} ${PLUGIN_ROOT", "${HOME} ${ $/d ${PLUGIN_ROOT"),
            ("${PLUGIN_${PLUGIN_DATA}}", "${PLUGIN_/d}"),
            ("", ""),
        ] {
            assert_eq!(places.expand(text), expanded, "{text}");
        }
    }

    #[test]
    fn a_prefix_of_a_name_is_not_the_placeholder() {
        assert_eq!(below("${PLUGIN_DATA}", DATA_PLACEHOLDER), Some(""));
        assert_eq!(below("${PLUGIN_DATA}/a/b", DATA_PLACEHOLDER), Some("a/b"));
        assert_eq!(below("${PLUGIN_DATA}x", DATA_PLACEHOLDER), None);
        assert_eq!(below("x${PLUGIN_DATA}", DATA_PLACEHOLDER), None);
    }
}
