//! The start of a task: its ids, its extension, and who may choose what.

use harness_model::{
    AgentId, BlockId, Brief, ContextId, EnvelopeKind, Message, PartBody, Participant, ParticipantId,
    ParticipantKind, ParticipantRole, StartTask, TaskExtension, TaskId, TaskMode, limits, names, one_line,
    parse_envelope, truncate_chars,
};

use crate::{A2aConfig, A2aError};

/// The id of the task that a sender's first message creates. The same message always names the same task, so that a
/// repeated first message needs no table; the installation's secret salt keeps the ids from being guessed.
pub(super) fn derived_ids(
    install_id: &str,
    sender: &ParticipantId,
    message: &Message,
) -> (TaskId, ContextId) {
    let id = |kind| {
        let seed = serde_json::json!([kind, install_id, sender.as_str(), message.message_id.as_str()]);
        uuid_of(&BlockId::of(seed.to_string().as_bytes()))
    };
    (TaskId::from(id("task")), ContextId::from(id("context")))
}

/// The first 128 bits of a digest in the form of a version 8 UUID. Source: RFC 9562 section 5.8.
fn uuid_of(digest: &BlockId) -> String {
    let hex = digest.as_str();
    let variant = match hex.as_bytes()[16] {
        b'0' | b'4' | b'8' | b'c' => '8',
        b'1' | b'5' | b'9' | b'd' => '9',
        b'2' | b'6' | b'a' | b'e' => 'a',
        _ => 'b',
    };
    format!("{}-{}-8{}-{variant}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// Start input of a new task. A `task` envelope is consumed: its part leaves the message.
/// Errors: `InvalidParams` for envelopes that are not valid or ask for more than the sender may; nothing is created.
pub(super) fn start_task(
    config: &A2aConfig,
    task_id: TaskId,
    context_id: ContextId,
    sender: &ParticipantId,
    message: &mut Message,
) -> Result<StartTask, A2aError> {
    let envelope = parse_envelope(message).map_err(|e| A2aError::invalid_params(e.to_string()))?;
    let brief = match envelope {
        Some(envelope) if envelope.kind == EnvelopeKind::Task => {
            let brief =
                Brief::parse(&envelope.payload).map_err(|e| A2aError::invalid_params(e.to_string()))?;
            check_trust(config, sender, &brief)?;
            remove_envelope(message);
            Some(brief)
        }
        Some(_) | None => None,
    };
    let asked = brief.as_ref().and_then(|brief| brief.lifecycle);
    let (mut extension, model, reasoning_effort, depth) = match brief {
        Some(brief) => (brief.extension, brief.model, brief.reasoning_effort, brief.depth.unwrap_or(0)),
        None => (default_extension(&message.text(), sender), None, None, 0),
    };
    ensure_assignee(&mut extension, &config.agent_id)?;
    let start = StartTask {
        mode: task_mode(&extension, &config.agent_id),
        lifecycle: asked.unwrap_or(config.lifecycle),
        agent_id: config.agent_id.clone(),
        task_id,
        context_id,
        extension,
        model,
        reasoning_effort,
        depth,
        awaits_message: !says_something(message),
    };
    check_size(&start)?;
    Ok(start)
}

/// Only delegators choose how a task is run, and only among what is configured.
fn check_trust(config: &A2aConfig, sender: &ParticipantId, brief: &Brief) -> Result<(), A2aError> {
    if brief.needs_trust() && !config.delegators.contains(sender) {
        return Err(A2aError::invalid_params(
            "only delegators may choose lifecycle, model or reasoning_effort of a task",
        ));
    }
    let choices = [
        ("model", &brief.model, &config.models),
        ("reasoning_effort", &brief.reasoning_effort, &config.reasoning_efforts),
    ];
    for (field, chosen, allowed) in choices {
        if chosen.as_ref().is_some_and(|value| !allowed.contains(value)) {
            return Err(A2aError::invalid_params(format!("the {field} is not one this agent may use")));
        }
    }
    Ok(())
}

/// Removes the part that was read as the envelope: the first of its media type.
fn remove_envelope(message: &mut Message) {
    let is_envelope = |part: &harness_model::Part| {
        part.media_type.as_deref() == Some(names::EVENT_MEDIA_TYPE) && matches!(part.body, PartBody::Data(_))
    };
    if let Some(index) = message.parts.iter().position(is_envelope) {
        message.parts.remove(index);
    }
}

fn default_extension(text: &str, sender: &ParticipantId) -> TaskExtension {
    let goal = text.trim();
    let first_line = one_line(goal.lines().next().unwrap_or_default());
    TaskExtension {
        name: match first_line.as_str() {
            "" => "task".to_owned(),
            line => truncate_chars(line, limits::TASK_NAME_CHARS_MAX),
        },
        goal: truncate_chars(goal, limits::TASK_TEXT_CHARS_MAX),
        participants: vec![Participant {
            id: sender.clone(),
            kind: ParticipantKind::Human,
            role: ParticipantRole::Reporter,
            display_name: String::new(),
        }],
        ..TaskExtension::default()
    }
}

/// Somebody has to do the work: without an assignee it is this agent.
fn ensure_assignee(extension: &mut TaskExtension, agent_id: &AgentId) -> Result<(), A2aError> {
    let participants = &mut extension.participants;
    if participants.iter().any(|p| p.role == ParticipantRole::Assignee) {
        return Ok(());
    }
    let own = ParticipantId::from(agent_id.as_str());
    if let Some(listed) = participants.iter_mut().find(|p| p.id == own) {
        listed.role = ParticipantRole::Assignee;
        return Ok(());
    }
    if participants.len() >= limits::PARTICIPANTS_MAX {
        return Err(A2aError::invalid_params(format!(
            "invalid task extension: more than {} participants, this agent included",
            limits::PARTICIPANTS_MAX
        )));
    }
    participants.push(Participant {
        id: own,
        kind: ParticipantKind::Agent,
        role: ParticipantRole::Assignee,
        display_name: String::new(),
    });
    Ok(())
}

/// This agent works when it is an assignee, alone or among others.
fn task_mode(extension: &TaskExtension, agent_id: &AgentId) -> TaskMode {
    let own = ParticipantId::from(agent_id.as_str());
    if extension.has_role(&own, ParticipantRole::Assignee) { TaskMode::Agent } else { TaskMode::Participant }
}

/// The start input becomes part of a history, whose payloads are bounded.
fn check_size(start: &StartTask) -> Result<(), A2aError> {
    let bytes = serde_json::to_vec(start).map_err(A2aError::internal)?.len();
    if bytes > limits::HISTORY_PAYLOAD_BYTES_MAX {
        return Err(A2aError::invalid_params(format!(
            "invalid task extension: {bytes} bytes with everything filled in, at most {} are allowed",
            limits::HISTORY_PAYLOAD_BYTES_MAX
        )));
    }
    Ok(())
}

/// Whether a new task's first message says anything besides its envelope.
pub(super) fn says_something(message: &Message) -> bool {
    !message.parts.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_like_uuids_and_depend_on_everything() {
        let message = |id: &str| Message {
            message_id: id.into(),
            context_id: None,
            task_id: None,
            role: harness_model::Role::User,
            parts: Vec::new(),
            metadata: serde_json::Map::new(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        };
        let ids = |install: &str, sender: &str, id: &str| {
            derived_ids(install, &ParticipantId::from(sender), &message(id))
        };
        let (task, context) = ids("i", "ada", "m");
        assert_eq!(ids("i", "ada", "m"), (task.clone(), context.clone()));
        assert_ne!(task.as_str(), context.as_str());
        for other in [ids("j", "ada", "m"), ids("i", "bob", "m"), ids("i", "ada", "n")] {
            assert_ne!(other.0, task);
        }
        let groups: Vec<usize> = task.as_str().split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(task.as_str().as_bytes()[14], b'8');
        assert!(b"89ab".contains(&task.as_str().as_bytes()[19]));
    }

    #[test]
    fn the_name_is_the_first_line_cut() {
        let extension = |text: &str| default_extension(text, &ParticipantId::from("ada"));
        assert_eq!(extension("").name, "task");
        assert_eq!(extension("  \n first\tline \nsecond ").name, "first line");
        assert_eq!(extension("  \n first line \nsecond ").goal, "first line \nsecond");
        assert_eq!(extension(&"x".repeat(99)).name.chars().count(), 60);
    }

    #[test]
    fn an_agent_that_only_watches_becomes_the_assignee_when_nobody_else_is() {
        let own = AgentId::from("me");
        let mut extension = default_extension("x", &ParticipantId::from("ada"));
        ensure_assignee(&mut extension, &own).unwrap();
        assert_eq!(task_mode(&extension, &own), TaskMode::Agent);
        extension.participants[1].role = ParticipantRole::Watcher;
        extension.participants[0].role = ParticipantRole::Assignee;
        assert_eq!(task_mode(&extension, &own), TaskMode::Participant);
        extension.participants[0].role = ParticipantRole::Reporter;
        ensure_assignee(&mut extension, &own).unwrap();
        assert_eq!(extension.participants.len(), 2);
        assert_eq!(task_mode(&extension, &own), TaskMode::Agent);
    }
}
