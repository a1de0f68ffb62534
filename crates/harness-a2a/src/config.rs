//! What the server is configured with; values only, read and checked by the binary.

use harness_model::{AgentId, Lifecycle, ParticipantId, names};

use crate::{AddressGuard, Extension, PushKey, PushRetry, SecurityScheme};

/// Configuration of the A2A server.
#[derive(Clone, Debug)]
pub struct A2aConfig {
    /// Where clients reach the server: `http://host:port`, with or without a trailing slash.
    pub base_url: String,
    /// The id under which this harness takes part in tasks. A request may assert it only with proof.
    pub agent_id: AgentId,
    /// What the card says about the agent.
    pub card: CardConfig,
    /// Lifecycle of tasks whose envelope does not choose one.
    pub lifecycle: Lifecycle,
    /// Who a request acts as that asserts nobody; `None` refuses such requests.
    pub anonymous: Option<ParticipantId>,
    /// Participants that may choose lifecycle, model and reasoning effort of a new task.
    pub delegators: Vec<ParticipantId>,
    /// Models that a delegator may choose.
    pub models: Vec<String>,
    /// Reasoning efforts that a delegator may choose.
    pub reasoning_efforts: Vec<String>,
    /// Bytes of a request body; larger ones are refused before they are read as JSON.
    pub max_request_bytes: usize,
    /// Requests per minute and peer address; 0 turns the limit off.
    pub rate_limit_per_minute: u32,
    /// Origins that browsers may call from; `*` allows every origin, an empty list none.
    pub cors_origins: Vec<String>,
    /// Seals the credentials of push receivers and proves the harness's own requests. Without it there are neither
    /// push notifications nor requests that assert this agent's own id.
    pub push_key: Option<PushKey>,
    /// Which push receivers may be called: public addresses, and what it allows besides.
    pub push_guard: AddressGuard,
    /// How callers sign in; any one of the schemes is enough. When there is none, identity is asserted, and a perimeter
    /// must authenticate.
    pub security: Vec<SecurityScheme>,
    /// When deliveries of push notifications are repeated.
    pub push_retry: PushRetry,
}

impl A2aConfig {
    /// The defaults of every other value.
    pub fn new(base_url: impl Into<String>, agent_id: AgentId) -> Self {
        Self {
            base_url: base_url.into(),
            agent_id,
            card: CardConfig::default(),
            lifecycle: Lifecycle::default(),
            anonymous: None,
            delegators: Vec::new(),
            models: Vec::new(),
            reasoning_efforts: Vec::new(),
            max_request_bytes: 1 << 20,
            rate_limit_per_minute: 120,
            cors_origins: Vec::new(),
            push_key: None,
            push_guard: AddressGuard::default(),
            push_retry: PushRetry::default(),
            security: Vec::new(),
        }
    }
}

/// What the card says about the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardConfig {
    /// Name for people and models.
    pub name: String,
    /// What the agent is for.
    pub description: String,
    /// Version of the agent.
    pub version: String,
    /// What it can do; ids are unique.
    pub skills: Vec<CardSkill>,
    /// Extensions without which nobody is served: every request has to name them.
    pub required_extensions: Vec<Extension>,
}

impl Default for CardConfig {
    fn default() -> Self {
        Self {
            name: names::DEFAULT_AGENT.to_owned(),
            description:
                "A general-purpose agent that plans, uses tools and keeps people informed while it works \
                          on a task."
                    .to_owned(),
            version: "0.1.0".to_owned(),
            skills: Vec::new(),
            required_extensions: Vec::new(),
        }
    }
}

/// One skill on the card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardSkill {
    /// Unique on the card.
    pub id: String,
    /// Name for people and models.
    pub name: String,
    /// What it does; may be empty.
    pub description: String,
    /// Keywords; may be empty.
    pub tags: Vec<String>,
    /// Example requests; may be empty.
    pub examples: Vec<String>,
}
