//! Other models for the tries after the first ones have failed.

use std::{fmt, num::NonZeroU32, sync::Arc};

use harness_ports::{ModelInfo, ModelProvider, ModelRequest, ModelStream};

/// A model that is asked when those before it failed.
#[derive(Clone)]
pub struct FallbackModel {
    /// Who is asked.
    pub provider: Arc<dyn ModelProvider>,
    /// The model; `None` for the provider's default. The one that the task chose belongs to the first provider.
    pub model: Option<String>,
    /// The reasoning effort; `None` for none.
    pub reasoning_effort: Option<String>,
}

impl fmt::Debug for FallbackModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { provider, model, reasoning_effort } = self;
        let name = provider.info().provider;
        write!(f, "FallbackModel({name}, model: {model:?}, reasoning_effort: {reasoning_effort:?})")
    }
}

/// Asks one model after the other, in an order that is configured.
///
/// It retries nothing itself. Whoever runs the tries of a call counts them; the number alone decides who is asked, so a
/// restart in between changes nothing. Only failures that are worth another try lead to one: a refused key or an empty
/// account is told at once and does not move on.
#[derive(Clone)]
pub struct FallbackProvider {
    first: Arc<dyn ModelProvider>,
    others: Vec<FallbackModel>,
    tries_each: NonZeroU32,
}

impl fmt::Debug for FallbackProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, others, tries_each } = self;
        write!(f, "FallbackProvider({}, {others:?}, {tries_each} tries each)", first.info().provider)
    }
}

impl FallbackProvider {
    /// Asks `first`, then the others in order, each after `tries_each` tries of the one before. The last one gets all
    /// tries that are left.
    pub fn new(first: Arc<dyn ModelProvider>, others: Vec<FallbackModel>, tries_each: NonZeroU32) -> Self {
        Self { first, others, tries_each }
    }

    /// The other model that this try asks, and whether it is the first to; `None` for the first provider.
    fn other(&self, attempt: u32) -> Option<(&FallbackModel, bool)> {
        let tries_before = attempt.saturating_sub(1);
        let place =
            usize::try_from(tries_before / self.tries_each).unwrap_or(usize::MAX).min(self.others.len());
        let is_first_try = tries_before.is_multiple_of(self.tries_each.get());
        self.others.get(place.checked_sub(1)?).map(|other| (other, is_first_try))
    }
}

impl ModelProvider for FallbackProvider {
    /// The first provider, with the smallest context window of all: a request has to fit whoever answers it.
    fn info(&self) -> ModelInfo {
        let info = self.first.info();
        let windows = self.others.iter().map(|other| other.provider.info().context_window_tokens);
        let context_window_tokens = windows.fold(info.context_window_tokens, u64::min);
        ModelInfo { context_window_tokens, ..info }
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.stream_attempt(request, 1)
    }

    fn stream_attempt(&self, request: ModelRequest, attempt: u32) -> ModelStream {
        let Some((other, is_first_try)) = self.other(attempt) else {
            return self.first.stream_attempt(request, attempt);
        };
        if is_first_try {
            let info = other.provider.info();
            tracing::warn!(
                task_id = %request.meta.task_id,
                turn = request.meta.turn,
                attempt,
                provider = info.provider,
                model = other.model.as_deref().unwrap_or(&info.model),
                "the models before this one failed; it is asked instead"
            );
        }
        let request = ModelRequest {
            model: other.model.clone(),
            reasoning_effort: other.reasoning_effort.clone(),
            ..request
        };
        other.provider.stream_attempt(request, attempt)
    }
}
