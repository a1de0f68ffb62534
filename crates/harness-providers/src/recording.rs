//! A provider that writes down what passes through it.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::{StreamExt, stream};
use harness_model::Redactor;
use harness_ports::{ModelError, ModelEvent, ModelInfo, ModelProvider, ModelRequest, ModelStream};

use serde_json::Value;

use crate::exchange::{Exchange, Format, Outcome, RecordedError, asked, fingerprint};

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
#[error("cannot write recordings into {dir}; does the folder exist and may it be written?")]
pub struct RecordingError {
    /// The folder.
    pub dir: PathBuf,
    /// What the system says.
    #[source]
    pub source: std::io::Error,
}

/// Writes every exchange with another provider into a folder, one JSON file each, everything secret masked.
///
/// The name of a file says turn, request and try, so the same exchange is written to the same file again. A call that is
/// dropped before its end leaves none. A file that cannot be written is told in the log; the call goes on.
#[derive(Clone)]
pub struct RecordingProvider {
    inner: Arc<dyn ModelProvider>,
    dir: Arc<Path>,
    redactor: Redactor,
}

impl fmt::Debug for RecordingProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordingProvider({}, {})", self.inner.info().provider, self.dir.display())
    }
}

impl RecordingProvider {
    /// Records into `dir`, which is created when it is missing.
    pub fn new(
        inner: Arc<dyn ModelProvider>,
        dir: &Path,
        redactor: Redactor,
    ) -> Result<Self, RecordingError> {
        fs::create_dir_all(dir).map_err(|source| RecordingError { dir: dir.to_owned(), source })?;
        Ok(Self { inner, dir: dir.into(), redactor })
    }
}

impl ModelProvider for RecordingProvider {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.stream_attempt(request, 1)
    }

    fn stream_attempt(&self, request: ModelRequest, attempt: u32) -> ModelStream {
        let call = RecordedCall {
            provider: self.inner.info(),
            task_id: self.redactor.text(request.meta.task_id.as_str()),
            turn: request.meta.turn,
            attempt,
            request: asked(&request, &self.redactor),
            deltas: Vec::new(),
            events: self.inner.stream_attempt(request, attempt),
            dir: Arc::clone(&self.dir),
            redactor: self.redactor.clone(),
        };
        stream::unfold(call, async |mut call| call.next().await.map(|event| (event, call))).boxed()
    }
}

/// A call on its way.
struct RecordedCall {
    provider: ModelInfo,
    task_id: String,
    turn: u32,
    attempt: u32,
    request: Value,
    deltas: Vec<String>,
    events: ModelStream,
    dir: Arc<Path>,
    redactor: Redactor,
}

impl RecordedCall {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        let event = self.events.next().await?;
        let outcome = match &event {
            Ok(ModelEvent::TextDelta(text)) => {
                self.deltas.push(text.clone());
                return Some(event);
            }
            Ok(ModelEvent::Done(output)) => Outcome::Answer(output.clone()),
            Err(error) => Outcome::Error(RecordedError::from(error)),
        };
        let exchange = self.exchange(outcome);
        if let Err(error) = write(&self.dir, &exchange).await {
            let dir = self.dir.display();
            tracing::warn!(%dir, %error, "an exchange with the model was not recorded");
        }
        Some(event)
    }

    fn exchange(&mut self, outcome: Outcome) -> Exchange {
        let exchange = Exchange {
            format: Format,
            provider: self.provider.clone().into(),
            task_id: std::mem::take(&mut self.task_id),
            turn: self.turn,
            attempt: self.attempt,
            request: self.request.take(),
            deltas: std::mem::take(&mut self.deltas),
            outcome,
        };
        exchange.masked(&self.redactor)
    }
}

async fn write(dir: &Path, exchange: &Exchange) -> std::io::Result<()> {
    let Exchange { turn, attempt, request, .. } = exchange;
    let name = format!("turn-{turn:05}-{}-try-{attempt}.json", fingerprint(request));
    let mut text = serde_json::to_vec_pretty(exchange).map_err(std::io::Error::other)?;
    text.push(b'\n');
    // Under its name there is never half a file.
    let unfinished = dir.join(format!("{name}.unfinished"));
    tokio::fs::write(&unfinished, text).await?;
    tokio::fs::rename(unfinished, dir.join(name)).await
}
