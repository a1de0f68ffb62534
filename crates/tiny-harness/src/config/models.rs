//! The tables that say which models there are.

use std::{path::PathBuf, time::Duration};

use super::{
    checks::{base_url, each, if_set, name, range, variable},
    section::{optional, or, required, section},
    setting::Choice,
};

const TIMEOUT_LEAST: Duration = Duration::from_secs(1);
const TIMEOUT_MOST: Duration = Duration::from_secs(3_600);
const TIMEOUT: Duration = Duration::from_secs(60);
const OUTPUT_TOKENS: u32 = 2_000;
const OUTPUT_TOKENS_MOST: u32 = 1_000_000;
const WINDOW_LEAST: u64 = 1_024;
const WINDOW_MOST: u64 = 100_000_000;

section! {
    /// Which provider answers when a task does not choose one.
    Model {
        /// `openai`, `anthropic`, `scripted`, or the NAME of a `[providers.NAME]` table. Not set: the only provider
        /// that the file configures, else `openai` when it is configured or `OPENAI_API_KEY` is set.
        provider: Option<String> = optional(), if_set(name);
        /// Models that are asked, in this order, when those before them fail and may be tried again: each is
        /// `provider:model`, or the name of a provider for its own model.
        fallback: Vec<String> = or([]), each(name);
        /// Tries of one model before the next one is asked. From 1 to 100.
        fallback_after: u32 = or(2_u32), range(1, 100);
        /// Folder where every exchange with a model is written down, with secrets masked, for `[model.replay]`.
        record: Option<PathBuf> = optional();
    }
}

section! {
    /// Plays back what `record` wrote down. A request that was not recorded is an error that shows the difference.
    Replay {
        /// The folder.
        path: PathBuf = required();
    }
}

section! {
    /// A model that answers from a file of turns, for demos and tests. The format is in `docs/scripted-models.md`.
    Scripted {
        /// The file.
        path: PathBuf = required();
    }
}

section! {
    /// OpenAI, or one other server that speaks its protocol. The key is `OPENAI_API_KEY`.
    OpenAi {
        /// Where the API is. Not set: `https://api.openai.com/v1`, which needs the key. Plain `http` together with a key only
        /// to a literal loopback address.
        base_url: Option<String> = optional(), if_set(base_url);
        /// The protocol.
        api: Api = or(Api::Responses);
        /// The model, passed on as it is.
        model: String = or("gpt-6.1-sol"), name;
        /// Models that a task may choose besides `model`.
        models: Vec<String> = or([]), each(name);
        /// Reasoning efforts that a task may choose.
        reasoning_efforts: Vec<String> = or([]), each(name);
        /// The longest silence of the server. From 1 second to 1 hour.
        timeout: Duration = or(TIMEOUT), range(TIMEOUT_LEAST, TIMEOUT_MOST);
        /// Tokens of one answer. From 1 to 1000000.
        max_output_tokens: u32 = or(OUTPUT_TOKENS), range(1, OUTPUT_TOKENS_MOST);
        /// Tokens that the model can read and write. Not set: a built-in table by model.
        context_window_tokens: Option<u64> = optional(), if_set(range(WINDOW_LEAST, WINDOW_MOST));
        /// Whether answers are streamed.
        stream: bool = or(true);
    }
}

section! {
    /// Anthropic, or one other server that speaks its protocol. The key is `ANTHROPIC_API_KEY`.
    Anthropic {
        /// Where the API is. Not set: `https://api.anthropic.com/v1`, which needs the key. Plain `http` together with a key
        /// only to a literal loopback address.
        base_url: Option<String> = optional(), if_set(base_url);
        /// The model, passed on as it is.
        model: String = required(), name;
        /// Models that a task may choose besides `model`.
        models: Vec<String> = or([]), each(name);
        /// Reasoning efforts that a task may choose.
        reasoning_efforts: Vec<String> = or([]), each(name);
        /// The longest silence of the server. From 1 second to 1 hour.
        timeout: Duration = or(TIMEOUT), range(TIMEOUT_LEAST, TIMEOUT_MOST);
        /// Tokens of one answer. From 1 to 1000000.
        max_output_tokens: u32 = or(OUTPUT_TOKENS), range(1, OUTPUT_TOKENS_MOST);
        /// Tokens that the model can read and write. Not set: a built-in table by model.
        context_window_tokens: Option<u64> = optional(), if_set(range(WINDOW_LEAST, WINDOW_MOST));
        /// Whether answers are streamed.
        stream: bool = or(true);
    }
}

section! {
    /// Any other server that speaks one of the three protocols, under a NAME of your choice: lower-case letters, digits, `-` and `_`.
    Compatible {
        /// Where the API is. Plain `http` together with a key only to a literal loopback address.
        base_url: String = required(), base_url;
        /// The environment variable that holds the key; it must then be set. Not set: `<NAME>_API_KEY` in capitals, and no
        /// key is sent when that is not set either.
        api_key_env: Option<String> = optional(), if_set(variable);
        /// The protocol.
        api: Api = or(Api::ChatCompletions);
        /// The model, passed on as it is.
        model: String = required(), name;
        /// Models that a task may choose besides `model`.
        models: Vec<String> = or([]), each(name);
        /// Reasoning efforts that a task may choose.
        reasoning_efforts: Vec<String> = or([]), each(name);
        /// The longest silence of the server. From 1 second to 1 hour.
        timeout: Duration = or(TIMEOUT), range(TIMEOUT_LEAST, TIMEOUT_MOST);
        /// Tokens of one answer. From 1 to 1000000.
        max_output_tokens: u32 = or(OUTPUT_TOKENS), range(1, OUTPUT_TOKENS_MOST);
        /// Tokens that the model can read and write. Not set: 32768.
        context_window_tokens: Option<u64> = optional(), if_set(range(WINDOW_LEAST, WINDOW_MOST));
        /// Whether answers are streamed.
        stream: bool = or(true);
    }
}

impl Anthropic {
    /// The table that `ANTHROPIC_API_KEY` alone stands for.
    pub(super) fn with_model(model: &str) -> Self {
        Self {
            base_url: None,
            stream: true,
            model: model.to_owned(),
            models: Vec::new(),
            reasoning_efforts: Vec::new(),
            timeout: TIMEOUT,
            max_output_tokens: OUTPUT_TOKENS,
            context_window_tokens: None,
        }
    }
}

/// The protocol of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI Responses.
    #[default]
    Responses,
    /// OpenAI Chat Completions.
    ChatCompletions,
    /// Anthropic Messages.
    Messages,
}

impl Choice for Api {
    const CHOICES: &'static [(Self, &'static str)] = &[
        (Self::Responses, "responses"),
        (Self::ChatCompletions, "chat_completions"),
        (Self::Messages, "messages"),
    ];
}
