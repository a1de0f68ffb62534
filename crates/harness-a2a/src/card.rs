//! The agent card: built once from the configuration, served as bytes with an entity tag.

use std::collections::HashMap;

use a2a::{AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use harness_model::{BlockId, Timestamp, names};
use http::{HeaderMap, header};
use serde_json::{Value, json};

use crate::{A2aConfig, Extension, authentication};

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
    /// When this process made it; HTTP dates have whole seconds.
    modified: DateTime<Utc>,
}

impl ServedCard {
    /// The card of a configuration, made `at` this time.
    pub(crate) fn of(config: &A2aConfig, push: PushDeclared, at: Timestamp) -> Self {
        let mut value = serde_json::to_value(agent_card(config, push)).unwrap_or(Value::Null);
        // Maps of the wire types have no order of their own.
        value.sort_all_objects();
        let body = Bytes::from(value.to_string());
        let etag = format!("\"{}\"", &BlockId::of(&body).as_str()[..32]);
        let modified = DateTime::from_timestamp(at.as_millis().div_euclid(1_000), 0).unwrap_or_default();
        Self { body, etag, modified }
    }

    /// The same configuration with or without push notifications, made at the same time.
    pub(crate) fn remade(&self, config: &A2aConfig, push: PushDeclared) -> Self {
        Self::of(config, push, Timestamp::from_millis(self.modified.timestamp_millis()))
    }

    /// The value of `Last-Modified`. Source: RFC 9110 section 5.6.7.
    pub(crate) fn last_modified(&self) -> String {
        self.modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Whether a request says that its sender has this card. A tag counts more than a date. Source: RFC 9110
    /// section 13.2.2.
    pub(crate) fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let texts = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        if headers.contains_key(header::IF_NONE_MATCH) {
            let tags = texts(header::IF_NONE_MATCH).flat_map(|value| value.split(','));
            let mut tags = tags.map(|tag| tag.trim().trim_start_matches("W/"));
            return tags.any(|tag| tag == self.etag || tag == "*");
        }
        let dates = texts(header::IF_MODIFIED_SINCE).map(DateTime::parse_from_rfc2822);
        dates.flatten().any(|since| since >= self.modified)
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
            extensions: Some(
                Extension::ALL.map(|each| declared(each, &config.card.required_extensions)).into(),
            ),
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

fn declared(extension: Extension, required: &[Extension]) -> AgentExtension {
    let (description, params) = match extension {
        Extension::Task => ("Goal, participants, plan and related tasks of a task.", None),
        Extension::Channel => ("Messages, questions and answers between the participants of a task.", None),
        Extension::A2ui => {
            let params = HashMap::from([
                ("acceptsInlineCatalogs".to_owned(), json!(false)),
                ("supportedCatalogIds".to_owned(), json!([names::A2UI_BASIC_CATALOG])),
            ]);
            ("User interfaces that the agent describes and the client renders.", Some(params))
        }
    };
    AgentExtension {
        uri: extension.uri().to_owned(),
        description: Some(description.to_owned()),
        required: Some(required.contains(&extension)),
        params,
    }
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
