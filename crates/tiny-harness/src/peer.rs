//! Talking to an agent from the terminal: who asks, where the agent is, and how errors read.

use std::{collections::BTreeMap, error::Error as _};

use harness_a2a::{
    AgentClient, ClientError, ClientLimits,
    wire::{Message, Part, Role, SendMessageRequest},
};
use harness_model::{ParticipantId, one_line, truncate_chars};

use crate::{cli::PeerArgs, failure::Failure, system};

/// The agent, and who talks to it.
pub(crate) struct Peer {
    pub(crate) client: AgentClient,
    pub(crate) participant: ParticipantId,
    pub(crate) url: String,
}

impl Peer {
    /// Connects to the agent the arguments name, or to the default address.
    pub(crate) async fn connect(
        args: &PeerArgs,
        default_url: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let participant = participant(args.participant.as_deref(), env)?;
        let url = args.url.clone().unwrap_or_else(|| default_url.to_owned());
        let client = AgentClient::connect(&url, Some(participant.clone()), ClientLimits::default())
            .await
            .map_err(|error| failed(&format!("cannot talk to the agent at {url}"), &error))?;
        Ok(Self { client, participant, url })
    }
}

/// Who talks: what was given, otherwise the user of this machine. It travels in an HTTP header.
pub(crate) fn participant(
    given: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Result<ParticipantId, Failure> {
    let name = match given {
        Some(name) => name.trim().to_owned(),
        None => system::user_name(env).unwrap_or_default(),
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        return Err(Failure::usage(
            "--participant must be printable ASCII and not empty; say who you are, for example --participant ada",
        ));
    }
    Ok(ParticipantId::new(name))
}

/// A message with this text.
pub(crate) fn message(
    message_id: String,
    text: &str,
    task_id: Option<&str>,
    context_id: Option<&str>,
) -> SendMessageRequest {
    let mut message = Message::new(Role::User, vec![Part::text(text)]);
    message.message_id = message_id;
    message.task_id = task_id.map(str::to_owned);
    message.context_id = context_id.map(str::to_owned);
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

/// What went wrong with the agent, with its causes, on one line.
pub(crate) fn failed(what: &str, error: &ClientError) -> Failure {
    let mut text = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    Failure::general(truncate_chars(&one_line(&text), 600))
}
