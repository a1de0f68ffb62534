//! A provider that answers from recordings.

mod difference;

use std::{
    collections::{BTreeMap, HashMap},
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, stream};
use harness_model::{Redactor, clean_field, limits::JSON_DEPTH_MAX, parse_json_bounded};
use harness_ports::{
    ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelProvider, ModelRequest, ModelStream,
};
use serde_json::Value;

use crate::exchange::{Exchange, Outcome, RecordedProvider, asked, fingerprint};
use difference::Differences;

/// Bytes of one recording.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Recordings in a folder.
const FILES_MAX: usize = 20_000;
/// Levels of nesting that a recording adds to what it holds.
const DEPTH_MAX: usize = JSON_DEPTH_MAX + 16;
/// Differences that are shown.
const SHOWN_MAX: usize = 6;
/// Characters of the message about a request that was not recorded.
const MESSAGE_CHARS_MAX: usize = 900;

/// Why recordings cannot be played back: every problem there is, each with its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayError {
    /// What is wrong, one a line.
    pub problems: Vec<String>,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("\n"))
    }
}

impl std::error::Error for ReplayError {}

/// Serves what [`crate::RecordingProvider`] wrote, and nothing else.
///
/// A request has to be equal to a recorded one in everything that counts for its answer; one that differs is an error
/// that shows the difference to the nearest recording. Which recording answers is a function of the request and the
/// number of the try alone.
#[derive(Clone, Debug)]
pub struct ReplayProvider {
    recordings: Arc<Recordings>,
    redactor: Redactor,
}

#[derive(Debug)]
struct Recordings {
    origin: String,
    provider: RecordedProvider,
    /// By fingerprint and try.
    exchanges: HashMap<String, BTreeMap<u32, Exchange>>,
    /// One of each fingerprint, in the order of their files.
    names: Vec<(String, String)>,
}

impl ReplayProvider {
    /// Reads every recording of a folder.
    pub fn load(dir: &Path) -> Result<Self, ReplayError> {
        let origin = dir.display().to_string();
        let one = |problem: String| ReplayError { problems: vec![format!("{origin}: {problem}")] };
        let files = files(dir).map_err(|error| one(format!("cannot be read: {error}")))?;
        if files.is_empty() || files.len() > FILES_MAX {
            return Err(one(format!("holds {} recordings, not 1 to {FILES_MAX}", files.len())));
        }
        let mut problems = Vec::new();
        let mut recordings = Recordings {
            origin,
            provider: RecordedProvider {
                name: "replay".to_owned(),
                model: String::new(),
                endpoint: String::new(),
                api: String::new(),
                context_window_tokens: 0,
            },
            exchanges: HashMap::new(),
            names: Vec::new(),
        };
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match read(&path) {
                Ok(exchange) => recordings.add(name, exchange),
                Err(problem) => problems.push(format!("{}: {problem}", path.display())),
            }
        }
        if problems.is_empty() {
            Ok(Self { recordings: Arc::new(recordings), redactor: Redactor::default() })
        } else {
            Err(ReplayError { problems })
        }
    }

    /// Masks these secrets in requests before they are compared, as they were masked when they were recorded.
    #[must_use]
    pub fn with_redactor(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }
}

impl ModelProvider for ReplayProvider {
    fn info(&self) -> ModelInfo {
        let Recordings { origin, provider, .. } = &*self.recordings;
        ModelInfo {
            provider: provider.name.clone(),
            model: provider.model.clone(),
            context_window_tokens: provider.context_window_tokens,
            endpoint: origin.clone(),
            api: "replay",
        }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.stream_attempt(request, 1)
    }

    fn stream_attempt(&self, request: ModelRequest, attempt: u32) -> ModelStream {
        let asked = asked(&request, &self.redactor);
        let mut events: Vec<Result<ModelEvent, ModelError>> = Vec::new();
        match self.recordings.answering(&asked, attempt) {
            Some(exchange) => {
                events.extend(exchange.deltas.iter().cloned().map(|text| Ok(ModelEvent::TextDelta(text))));
                events.push(match &exchange.outcome {
                    Outcome::Answer(output) => Ok(ModelEvent::Done(output.clone())),
                    Outcome::Error(error) => Err(error.into()),
                });
            }
            None => events.push(Err(self.recordings.not_recorded(&asked))),
        }
        stream::iter(events).boxed()
    }
}

impl Recordings {
    fn add(&mut self, name: String, exchange: Exchange) {
        if self.names.is_empty() {
            self.provider = exchange.provider.clone();
        }
        let fingerprint = fingerprint(&exchange.request);
        let tries = self.exchanges.entry(fingerprint.clone()).or_default();
        if tries.is_empty() {
            self.names.push((name, fingerprint));
        }
        tries.insert(exchange.attempt, exchange);
    }

    /// The recording of this try, else of the last one before it, else the first one.
    fn answering(&self, asked: &Value, attempt: u32) -> Option<&Exchange> {
        let tries = self.exchanges.get(&fingerprint(asked))?;
        let found = tries.range(..=attempt).next_back().or_else(|| tries.iter().next());
        found.map(|(_, exchange)| exchange).filter(|exchange| exchange.request == *asked)
    }

    fn not_recorded(&self, asked: &Value) -> ModelError {
        let nearest = self.names.iter().filter_map(|(name, fingerprint)| {
            let (_, exchange) = self.exchanges.get(fingerprint)?.iter().next()?;
            Some((Differences::of(&exchange.request, asked, SHOWN_MAX), name))
        });
        let Some((found, name)) = nearest.min_by_key(|(found, _)| found.count) else {
            return ModelError::new(ModelErrorKind::ScriptExhausted, "nothing is recorded");
        };
        let Differences { mut shown, count } = found;
        if count > shown.len() {
            shown.push(format!("{count} differences in all"));
        }
        let message =
            format!("this request was not recorded; it differs from {name} in {}", shown.join("; "));
        let message = clean_field(&message, Some(MESSAGE_CHARS_MAX)).text;
        ModelError::new(ModelErrorKind::ScriptExhausted, message)
    }
}

fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            break;
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Exchange, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    let value = parse_json_bounded(&bytes, DEPTH_MAX).map_err(|error| error.to_string())?;
    serde_json::from_value(value).map_err(|error| format!("is not a recording: {error}"))
}
