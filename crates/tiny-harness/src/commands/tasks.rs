//! `tiny-harness tasks`: looks at tasks of any A2A agent.

use std::collections::BTreeMap;

use harness_a2a::wire::{ListTasksRequest, Message, Part, Task, TaskState};
use harness_model::{TaskUsage, clean_terminal, names, one_line, truncate_chars};
use serde_json::Value;

use super::purge;
use crate::{
    cli::{PeerArgs, TasksCommand},
    config::Config,
    failure::Failure,
    live::Live,
    output,
    painter::Painter,
    peer::{self, DefaultUrl, Peer},
    transcript::{Line, Transcript, is_answer, state_name},
};

/// Runs one of the task commands.
pub(crate) async fn run(
    command: TasksCommand,
    default_url: DefaultUrl<'_>,
    config: &dyn Fn() -> Result<Config, Failure>,
    env: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let connect = async |args: &PeerArgs| Peer::connect(args, default_url, env).await;
    match command {
        TasksCommand::List { peer, state, context, limit, json } => {
            let request = ListTasksRequest {
                status: state.as_deref().map(parse_state).transpose()?,
                context_id: context,
                page_size: Some(i32::from(limit)),
                ..empty_list_request()?
            };
            list(&connect(&peer).await?, request, json).await
        }
        TasksCommand::Show { peer, task, json } => show(&connect(&peer).await?, &task, json).await,
        TasksCommand::Cancel { peer, task } => {
            let peer = connect(&peer).await?;
            let task =
                peer.client.cancel(&task).await.map_err(|e| peer::failed("the task was not canceled", &e))?;
            output::line(&format!("task {} is {}", task.id, state_name(&task.status.state)));
            Ok(())
        }
        TasksCommand::Purge { url, task } => purge::run(&config()?, &task, url.as_deref()).await,
        TasksCommand::Events { peer, task, after, json } => {
            let peer = connect(&peer).await?;
            let mut live = Live::new(peer.client, json);
            // Position 0 is the creation of the task; a subscription that resumes replays finished tasks too.
            live.replay(&task, after.unwrap_or(0)).await
        }
    }
}

fn empty_list_request() -> Result<ListTasksRequest, Failure> {
    serde_json::from_value(serde_json::json!({})).map_err(|e| Failure::general(e.to_string()))
}

fn parse_state(name: &str) -> Result<TaskState, Failure> {
    let upper = name.to_ascii_uppercase().replace('-', "_");
    let known = harness_model::TaskState::ALL;
    if !known.iter().any(|state| state.name() == upper) {
        let names = known.map(|state| state.name().to_ascii_lowercase().replace('_', "-")).join(", ");
        return Err(Failure::usage(format!("no state {:?}; the states are {names}", one_line(name))));
    }
    serde_json::from_value(Value::String(format!("TASK_STATE_{upper}")))
        .map_err(|e| Failure::general(e.to_string()))
}

async fn list(peer: &Peer, request: ListTasksRequest, json: bool) -> Result<(), Failure> {
    let page = peer.client.list(request).await.map_err(|e| peer::failed("the tasks cannot be listed", &e))?;
    if json {
        return print_json(&page);
    }
    if page.tasks.is_empty() {
        output::line("(no tasks)");
    }
    for task in &page.tasks {
        let when =
            task.status.timestamp.map(|at| at.format("%Y-%m-%d %H:%M:%SZ").to_string()).unwrap_or_default();
        output::line(&format!("{}  {:<14}  {when}  {}", task.id, state_name(&task.status.state), name(task)));
    }
    if !page.next_page_token.is_empty() {
        // Beside the list: what reads it takes lines for tasks.
        output::problem("(there are more; raise --limit or narrow with --state or --context)");
    }
    Ok(())
}

async fn show(peer: &Peer, task: &str, json: bool) -> Result<(), Failure> {
    let task = peer.client.get(task, None).await.map_err(|e| peer::failed("the task cannot be shown", &e))?;
    if json {
        return print_json(&task);
    }
    let extension = task.metadata.as_ref().and_then(|m| m.get(names::TASK_KEY));
    let field = |key: &str| {
        let text = extension.and_then(|e| e.get(key)).and_then(Value::as_str).unwrap_or_default();
        truncate_chars(&one_line(text), 200)
    };
    output::line(&format!("task     {}", task.id));
    output::line(&format!("context  {}", one_line(&task.context_id)));
    output::line(&format!("state    {}", state_name(&task.status.state)));
    output::line(&format!("name     {}", field("name")));
    output::line(&format!("goal     {}", field("goal")));
    for participant in
        extension.and_then(|e| e.get("participants")).and_then(Value::as_array).into_iter().flatten()
    {
        let part = |key: &str| one_line(participant.get(key).and_then(Value::as_str).unwrap_or_default());
        output::line(&format!("who      {} ({}, {})", part("id"), part("kind"), part("role")));
    }
    if let Some(used) = used(&task) {
        output::line(&format!("used     {used}"));
    }
    let mut painter = Painter::new(&peer.client.card().name, output::columns());
    if let Some(plan) = Transcript::plan(&task) {
        output::text(&painter.paint(&plan));
    }
    for message in task.history.iter().flatten() {
        let words: Vec<String> = message.parts.iter().filter_map(Part::as_text).map(clean_terminal).collect();
        if !words.is_empty() {
            output::text(&painter.said(&speaker(message, &painter.agent), &words.join("\n")));
        }
    }
    for artifact in task.artifacts.iter().flatten().filter(|artifact| !is_answer(artifact)) {
        output::text(&painter.paint(&Line::artifact(artifact)));
    }
    Ok(())
}

/// What the task has used of its models; agents of other makes do not say.
fn used(task: &Task) -> Option<String> {
    let usage = task.metadata.as_ref()?.get(names::USAGE_KEY)?;
    let usage: TaskUsage = serde_json::from_value(usage.clone()).ok()?;
    let mut text = format!(
        "{} model calls, {} tokens in ({} from the cache), {} out",
        usage.calls, usage.input_tokens, usage.cached_tokens, usage.output_tokens
    );
    if usage.uncounted_calls > 0 {
        text.push_str(&format!("; {} calls were not counted", usage.uncounted_calls));
    }
    if let Some(cost) = usage.cost_micro_usd {
        text.push_str(&format!("; {}.{:06} USD", cost / 1_000_000, cost % 1_000_000));
    }
    Some(text)
}

fn speaker(message: &Message, agent: &str) -> String {
    let asserted =
        message.metadata.as_ref().and_then(|m| m.get(names::PARTICIPANT_KEY)).and_then(Value::as_str);
    asserted.map_or_else(|| agent.to_owned(), one_line)
}

fn name(task: &Task) -> String {
    let extension = task.metadata.as_ref().and_then(|m| m.get(names::TASK_KEY));
    let name = extension.and_then(|e| e.get("name")).and_then(Value::as_str).unwrap_or_default();
    truncate_chars(&one_line(name), 60)
}

fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::general(e.to_string()))?;
    output::line(&text);
    Ok(())
}
