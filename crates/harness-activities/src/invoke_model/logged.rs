//! What the store knows about the task besides the input: the newest words of a participant, and what an earlier try of
//! this activity has streamed.

use harness_agent::InvokeModelInput;
use harness_model::{ArtifactChange, BlockRef, ContentBody, HistoryEntry, Message, TaskEvent};
use harness_ports::{ActivityFailure, Store, TaskFields};

use super::scrubbed_text::Logged;
use crate::{blocks, failure};

/// Entries of the history among which the newest message is looked for.
const RECENT: usize = 8;
/// Log entries that one read returns.
const PAGE: usize = 256;

/// Facts about the task.
#[derive(Debug)]
pub(super) struct TaskFacts {
    /// Plain text of the newest message of a participant, when the history still shows it.
    pub(super) message_text: Option<String>,
    /// What the log holds of the answer.
    pub(super) logged: Logged,
}

pub(super) async fn task_facts(
    store: &dyn Store,
    input: &InvokeModelInput,
) -> Result<TaskFacts, ActivityFailure> {
    let fields = TaskFields { history: Some(RECENT), artifacts: false };
    let task = store.task(&input.task_id, fields).await.map_err(|error| failure::of_store(&error))?;
    let Some(task) = task else {
        return Ok(TaskFacts { message_text: None, logged: logged(store, input, None).await? });
    };
    let newest = task.history.iter().rev().find_map(|entry| message_block(entry, input));
    let message = async {
        match newest {
            Some(block) => Ok(Some(blocks::json::<Message>(store, block).await?.text())),
            None => Ok(None),
        }
    };
    // A turn begins with a status, so the chunks of its answer come after the newest one.
    let logged = async {
        if task.last_seq == task.status_seq {
            return Ok(Logged { begun: false, text: String::new() });
        }
        logged(store, input, Some(task.status_seq)).await
    };
    let (message_text, logged) = futures::try_join!(message, logged)?;
    Ok(TaskFacts { message_text, logged })
}

fn message_block<'a>(entry: &'a HistoryEntry, input: &InvokeModelInput) -> Option<&'a BlockRef> {
    match entry {
        HistoryEntry::Message { message_id, block } => {
            (input.latest_message.as_ref() == Some(message_id)).then_some(block)
        }
        HistoryEntry::Status { .. } => None,
    }
}

async fn logged(
    store: &dyn Store,
    input: &InvokeModelInput,
    after: Option<u64>,
) -> Result<Logged, ActivityFailure> {
    let mut changes = changes(store, input, after).await?;
    if after.is_some() && changes.first().is_some_and(|change| change.append) {
        // Its beginning lies before the newest status after all.
        changes = self::changes(store, input, None).await?;
    }
    let start = changes.iter().rposition(|change| !change.append).unwrap_or(0);
    let parts = changes.get(start..).unwrap_or_default().iter().flat_map(|change| &change.parts);
    let texts = parts.map(|part| async {
        match &part.body {
            ContentBody::Text(text) => blocks::content(store, text).await,
            // An answer has only text; anything else makes the texts differ, and the answer starts anew.
            ContentBody::Data(_) | ContentBody::Raw(_) | ContentBody::Url(_) => Ok("\u{0}".to_owned()),
        }
    });
    Ok(Logged { begun: !changes.is_empty(), text: blocks::all(texts.collect()).await?.concat() })
}

/// The changes of the answer's artifact, oldest first.
async fn changes(
    store: &dyn Store,
    input: &InvokeModelInput,
    mut after: Option<u64>,
) -> Result<Vec<ArtifactChange>, ActivityFailure> {
    let mut changes = Vec::new();
    loop {
        let page = store.log(&input.task_id, after, PAGE).await.map_err(|error| failure::of_store(&error))?;
        let is_last = page.len() < PAGE;
        after = page.last().map(|entry| entry.seq).or(after);
        for entry in page {
            match entry.event {
                TaskEvent::ArtifactChanged(change) if change.artifact_id == input.artifact_id => {
                    changes.push(change);
                }
                TaskEvent::ArtifactChanged(_) | TaskEvent::StatusChanged(_) | TaskEvent::TaskCreated => {}
            }
        }
        if is_last {
            return Ok(changes);
        }
    }
}
