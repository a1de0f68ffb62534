//! The wires there are.

/// A protocol that model servers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI Chat Completions, the one that nearly every server speaks.
    ChatCompletions,
    /// OpenAI Responses. Nothing is kept at the provider: every request carries the whole conversation.
    Responses {
        /// Ask for reasoning in sealed form and send it back in later turns. Servers refuse this for models that do
        /// not reason, so it is a choice.
        encrypted_reasoning: bool,
    },
    /// Anthropic Messages.
    Messages,
}

impl Api {
    /// Its name in configuration, logs and spans.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat_completions",
            Self::Responses { .. } => "responses",
            Self::Messages => "messages",
        }
    }

    /// The base URL of the company that defined it.
    pub fn default_base_url(self) -> &'static str {
        match self {
            Self::ChatCompletions | Self::Responses { .. } => "https://api.openai.com/v1",
            Self::Messages => "https://api.anthropic.com/v1",
        }
    }

    /// What is appended to a base URL.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/chat/completions",
            Self::Responses { .. } => "/responses",
            Self::Messages => "/messages",
        }
    }

    /// What one answer is called, for errors.
    pub(crate) fn answer_noun(self) -> &'static str {
        match self {
            Self::ChatCompletions => "a chat completion",
            Self::Responses { .. } => "a response",
            Self::Messages => "a message",
        }
    }
}
