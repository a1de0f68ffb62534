//! `tiny-harness chat`: one message, or a conversation.

use std::{collections::BTreeMap, io::IsTerminal as _};

use harness_model::clean_terminal;
use harness_ports::IdSource;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::{
    cli::ChatArgs,
    failure::Failure,
    live::Live,
    output::{self, quoted},
    peer::{self, DefaultUrl, Peer},
    system::RandomIds,
};

/// Talks to the agent. Leaving never ends the task.
pub(crate) async fn run(
    args: ChatArgs,
    default_url: DefaultUrl<'_>,
    env: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let message = args.message.join(" ");
    if !args.message.is_empty() && message.trim().is_empty() {
        return Err(Failure::usage("the message is empty; leave it out for a conversation"));
    }
    let peer = Peer::connect(&args.peer, default_url, env).await?;
    let participant = peer.participant.to_string();
    let mut live = Live::new(peer.client, args.json);
    if let Some(task) = &args.task {
        live.take_up(task).await;
    }
    let talked = if args.message.is_empty() {
        converse(&mut live, &peer.url, &participant, args.json).await
    } else {
        live.said(&participant, &message);
        say(&mut live, &message).await
    };
    if !args.json {
        leave(&live, &args);
    }
    talked?;
    if live.transcript.has_failed() {
        return Err(Failure::general(format!("the task is {}", live.transcript.state_name())));
    }
    Ok(())
}

/// Takes turns with the person at the terminal until one of them leaves.
async fn converse(live: &mut Live, url: &str, participant: &str, json: bool) -> Result<(), Failure> {
    if !json {
        let name = &live.painter.agent;
        output::line(&format!(
            "You talk to {name} at {url} as {participant}. An empty line or Ctrl-D leaves; the task stays."
        ));
    }
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while !live.transcript.is_over() {
        if !json {
            output::text(&live.painter.prompt(participant));
        }
        let Some(text) = next_words(&mut input, json).await else { break };
        say(live, &text).await?;
    }
    Ok(())
}

/// Sends a message and shows what comes of it.
async fn say(live: &mut Live, text: &str) -> Result<(), Failure> {
    let task = live.transcript.task_id.clone();
    let request =
        peer::message(RandomIds.fresh(), text, task.as_deref(), live.transcript.context_id.as_deref());
    let stream = live
        .client
        .send_streaming(request)
        .await
        .map_err(|e| peer::failed("the message was not taken", &e))?;
    live.run(stream).await
}

async fn next_words(input: &mut Lines<BufReader<Stdin>>, json: bool) -> Option<String> {
    let text = input.next_line().await.ok().flatten();
    // A terminal has shown what was typed and ended the line; a pipe shows nothing.
    if !json && (text.is_none() || !std::io::stdin().is_terminal()) {
        output::line(&clean_terminal(text.as_deref().unwrap_or_default()));
    }
    text.filter(|text| !text.trim().is_empty())
}

/// What is left behind, and how to go on with it.
fn leave(live: &Live, args: &ChatArgs) {
    let (Some(task), state) = (&live.transcript.task_id, live.transcript.state_name()) else { return };
    if state.is_empty() {
        return;
    }
    output::line("");
    output::line(&format!("task {task} is {state}"));
    let given = [("--url", &args.peer.url), ("--participant", &args.peer.participant)];
    let given = given.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
    let given: String = given.map(|(name, value)| format!(" {name} {}", quoted(value))).collect();
    if live.transcript.waits() {
        output::line(&format!("go on with: tiny-harness chat{given} --task {task}"));
    } else if !live.transcript.is_over() {
        output::line(&format!("follow it with: tiny-harness tasks events{given} {task}"));
    }
}
