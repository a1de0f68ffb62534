//! The agent card: built once from the configuration, served as bytes with an entity tag.

use std::collections::HashMap;

use a2a::{AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill};
use bytes::Bytes;
use harness_model::{BlockId, names};
use serde_json::{Value, json};

use crate::{A2aConfig, authentication};

/// Media types a message part may have.
pub(crate) const INPUT_MODES: [&str; 5] = [
    "text/plain",
    names::TASK_MEDIA_TYPE,
    names::CHANNEL_MEDIA_TYPE,
    names::EVENT_MEDIA_TYPE,
    names::A2UI_MEDIA_TYPE,
];

/// Media types of what the agent says.
const OUTPUT_MODES: [&str; 4] =
    ["text/plain", names::TASK_MEDIA_TYPE, names::CHANNEL_MEDIA_TYPE, names::A2UI_MEDIA_TYPE];

/// Extensions of the card, in its order. None is required.
pub(crate) const EXTENSIONS: [&str; 3] =
    [names::TASK_EXTENSION, names::CHANNEL_EXTENSION, names::A2UI_EXTENSION];

/// Whether the card declares push notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushDeclared {
    Yes,
    No,
}

/// The card as it is served.
#[derive(Debug)]
pub(crate) struct ServedCard {
    /// Canonical JSON: the same configuration gives the same bytes in every process.
    pub(crate) body: Bytes,
    /// Strong entity tag, quotes included.
    pub(crate) etag: String,
}

impl ServedCard {
    pub(crate) fn of(config: &A2aConfig, push: PushDeclared) -> Self {
        let mut value = serde_json::to_value(agent_card(config, push)).unwrap_or(Value::Null);
        // Maps of the wire types have no order of their own.
        value.sort_all_objects();
        let body = Bytes::from(value.to_string());
        let etag = format!("\"{}\"", &BlockId::of(&body).as_str()[..32]);
        Self { body, etag }
    }
}

/// The card of a configuration.
fn agent_card(config: &A2aConfig, push: PushDeclared) -> AgentCard {
    let url = format!("{}/", config.base_url.trim_end_matches('/'));
    let (security_schemes, security_requirements) = authentication::on_card(&config.security).unzip();
    let modes = |modes: &[&str]| modes.iter().map(|mode| (*mode).to_owned()).collect();
    AgentCard {
        name: config.card.name.clone(),
        description: config.card.description.clone(),
        version: config.card.version.clone(),
        supported_interfaces: vec![
            AgentInterface::new(&url, a2a::TRANSPORT_PROTOCOL_JSONRPC),
            AgentInterface::new(&url, a2a::TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(push == PushDeclared::Yes),
            extensions: Some(extensions()),
            extended_agent_card: None,
        },
        default_input_modes: modes(&INPUT_MODES),
        default_output_modes: modes(&OUTPUT_MODES),
        skills: config.card.skills.iter().map(skill).collect(),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes,
        security_requirements,
        signatures: None,
    }
}

fn extensions() -> Vec<AgentExtension> {
    let extension = |uri: &str, description: &str, params| AgentExtension {
        uri: uri.to_owned(),
        description: Some(description.to_owned()),
        required: Some(false),
        params,
    };
    let a2ui = HashMap::from([
        ("acceptsInlineCatalogs".to_owned(), json!(false)),
        ("supportedCatalogIds".to_owned(), json!([names::A2UI_BASIC_CATALOG])),
    ]);
    vec![
        extension(EXTENSIONS[0], "Goal, participants, plan and related tasks of a task.", None),
        extension(EXTENSIONS[1], "Messages, questions and answers between the participants of a task.", None),
        extension(
            EXTENSIONS[2],
            "User interfaces that the agent describes and the client renders.",
            Some(a2ui),
        ),
    ]
}

fn skill(skill: &crate::CardSkill) -> AgentSkill {
    AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: (!skill.examples.is_empty()).then(|| skill.examples.clone()),
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }
}
