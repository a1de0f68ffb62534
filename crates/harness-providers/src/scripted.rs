//! A model that answers from a file of turns. The format is described in `docs/scripted-models.md`.

mod fields;
mod play;
mod read;
mod script;
mod source;

use std::{fmt, fs, path::Path, sync::Arc};

use harness_model::{ErrorCode, codes};
use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};

use script::Script;
use source::Source;

/// Bytes of a file of turns.
const FILE_BYTES_MAX: u64 = 1_048_576;

/// How a script is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptFormat {
    /// TOML, `.toml`.
    Toml,
    /// YAML, `.yaml` or `.yml`.
    Yaml,
}

/// A model that answers from a script.
///
/// Which turn answers is a pure function of the request: the same request gets the same answer, in this process and in
/// the next one. There are no counters; order is expressed by what the conversation holds.
#[derive(Clone, Debug)]
pub struct ScriptedProvider {
    name: String,
    origin: String,
    script: Arc<Script>,
}

impl ScriptedProvider {
    /// Reads a script. The ending of the name decides the format; anything but `.yaml` and `.yml` is TOML.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let origin = path.display().to_string();
        let fail = |problem| ScriptError { origin: origin.clone(), problems: vec![problem] };
        let text = read_bounded(path).map_err(|message| fail(ScriptProblem { line: None, message }))?;
        let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
        let format = if is_yaml { ScriptFormat::Yaml } else { ScriptFormat::Toml };
        Self::of(&text, format, origin)
    }

    /// Reads a script that is not in a file.
    pub fn parse(text: &str, format: ScriptFormat) -> Result<Self, ScriptError> {
        Self::of(text, format, "script".to_owned())
    }

    /// The provider under the name it has in the configuration; `scripted` otherwise.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    fn of(text: &str, format: ScriptFormat, origin: String) -> Result<Self, ScriptError> {
        match read::script(&Source::new(text, format)) {
            Ok(script) => Ok(Self { name: "scripted".to_owned(), origin, script: Arc::new(script) }),
            Err(problems) => Err(ScriptError { origin, problems }),
        }
    }
}

impl ModelProvider for ScriptedProvider {
    fn info(&self) -> ModelInfo {
        ModelInfo {
            provider: self.name.clone(),
            model: self.script.model.clone(),
            context_window_tokens: self.script.context_window_tokens,
            endpoint: self.origin.clone(),
            api: "scripted",
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        play::stream(&self.script, &self.name, &request)
    }
}

fn read_bounded(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))
}

/// A script that cannot be used, with everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file, or `script`.
    pub origin: String,
    /// The problems in the order of the file; at least one.
    pub problems: Vec<ScriptProblem>,
}

/// One thing that is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptProblem {
    /// Line, from 1; `None` when the problem has no place.
    pub line: Option<usize>,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl ScriptError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        codes::MODEL_SCRIPT_INVALID
    }
}

/// One line for each problem: `file:line: message`.
impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{}:", self.origin)?;
            if let Some(line) = problem.line {
                write!(f, "{line}:")?;
            }
            write!(f, " {}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScriptError {}
