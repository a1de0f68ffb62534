//! Talking to an agent from the terminal: who asks, where the agent is, and how errors read.

use std::{collections::BTreeMap, error::Error as _};

use harness_a2a::{
    AgentClient, ClientError, ClientLimits,
    wire::{Message, Part, Role, SendMessageRequest},
};
use harness_model::{ParticipantId, Secret, codes, one_line, truncate_chars};

use crate::{cli::PeerArgs, failure::Failure, system};

/// Finds the address of an agent that the arguments do not name.
pub(crate) type DefaultUrl<'a> = &'a dyn Fn() -> Result<String, Failure>;

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
        default_url: DefaultUrl<'_>,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let url = match &args.url {
            Some(url) => address(url)?,
            None => default_url()?,
        };
        let participant = participant(args.participant.as_deref(), env)?;
        let client = AgentClient::connect(&url, Some(participant.clone()), ClientLimits::default())
            .await
            .map_err(|error| no_agent(&url, &error))?;
        let client = match &args.token_env {
            Some(variable) => signed_in(&client, variable, env)?,
            None => client,
        };
        Ok(Self { client, participant, url })
    }
}

/// The client with the token that this variable holds.
fn signed_in(
    client: &AgentClient,
    variable: &str,
    env: &BTreeMap<String, String>,
) -> Result<AgentClient, Failure> {
    let token = env.get(variable).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| {
        Failure::usage(format!("--token-env names {}, which is not set", one_line(variable)))
    })?;
    client
        .signed_in(&Secret::new(token.as_str()))
        .map_err(|_| Failure::usage(format!("{} holds characters that cannot be sent", one_line(variable))))
}

/// An address that can be called and holds no secret, since it is printed.
fn address(url: &str) -> Result<String, Failure> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        Some(host) if !host.is_empty() && !host.contains('@') => Ok(url.to_owned()),
        Some(_) | None => Err(Failure::usage(
            "--url takes the address of an agent without user name and password, such as http://127.0.0.1:8080",
        )),
    }
}

fn no_agent(url: &str, error: &ClientError) -> Failure {
    let what = reason(&format!("cannot talk to the agent at {url}"), error);
    Failure::general(if matches!(error, ClientError::Unreachable(_)) {
        format!("{what}; is it running? `tiny-harness serve` starts one, --url names another")
    } else {
        what
    })
}

/// Who talks: what was given, otherwise the user of this machine. It travels in an HTTP header.
pub(crate) fn participant(
    given: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Result<ParticipantId, Failure> {
    let name = match given {
        Some(name) => name.trim().to_owned(),
        None => system::user_name(env).ok_or_else(|| {
            Failure::usage("USER is not set, so say who you are, for example --participant ada")
        })?,
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        return Err(Failure::usage(
            "a participant is named in printable ASCII; say who you are, for example --participant ada",
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

/// What went wrong with the agent, on one line.
pub(crate) fn failed(what: &str, error: &ClientError) -> Failure {
    Failure::general(reason(what, error))
}

/// The error with its first cause; what lies between the two names layers of this program.
fn reason(what: &str, error: &ClientError) -> String {
    let mut text = format!("[{}] {what}: {error}", codes::A2A_REQUEST_FAILED);
    let mut cause = error.source();
    while let Some(next) = cause.and_then(|cause| cause.source()) {
        cause = Some(next);
    }
    if let Some(first) = cause {
        text.push_str(&format!(": {first}"));
    }
    truncate_chars(&one_line(&text), 600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_absolute_and_hold_no_password() {
        for good in ["http://127.0.0.1:8080", "https://agents.example.com/support", "http://[::1]:1/x?@"] {
            assert_eq!(address(good).unwrap(), good);
        }
        for bad in ["", "127.0.0.1:8080", "ftp://a", "http://", "http:///x", "http://ada:secret@host/"] {
            let failure = address(bad).unwrap_err();
            assert_eq!(failure.status, 2, "{bad}");
            assert!(!failure.lines[0].contains("secret"), "{failure:?}");
        }
    }
}
