//! `tiny-harness chat`: one message, or a conversation.

use std::collections::BTreeMap;

use harness_ports::IdSource;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

use crate::{
    cli::ChatArgs,
    failure::Failure,
    live::Live,
    output,
    peer::{self, Peer},
    system::RandomIds,
};

/// Talks to the agent. Leaving never ends the task.
pub(crate) async fn run(
    args: ChatArgs,
    default_url: &str,
    env: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let peer = Peer::connect(&args.peer, default_url, env).await?;
    let participant = peer.participant.to_string();
    let mut live = Live::new(peer.client, args.json);
    live.transcript.task_id.clone_from(&args.task);
    if !args.message.is_empty() {
        say(&mut live, &participant, &args.message.join(" "), false).await?;
        return finish(&live, args.json);
    }
    if !args.json {
        let name = &live.painter.agent;
        output::line(&format!(
            "You talk to {name} at {} as {participant}. An empty line or Ctrl-D leaves.",
            peer.url
        ));
    }
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    while !live.transcript.is_over() {
        let Some(text) = ask(&mut input, &participant, args.json).await else { break };
        say(&mut live, &participant, &text, true).await?;
    }
    finish(&live, args.json)
}

/// Sends a message and shows what comes of it.
async fn say(live: &mut Live, participant: &str, text: &str, typed: bool) -> Result<(), Failure> {
    if !typed {
        live.said(participant, text);
    }
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

async fn ask(input: &mut Lines<BufReader<Stdin>>, participant: &str, quiet: bool) -> Option<String> {
    if !quiet {
        output::text(&format!("{participant:>16} › "));
    }
    let text = input.next_line().await.ok()??;
    (!text.trim().is_empty()).then_some(text)
}

fn finish(live: &Live, json: bool) -> Result<(), Failure> {
    let state = live.transcript.state().map(crate::transcript::state_name).unwrap_or_default();
    if let (Some(task), false) = (&live.transcript.task_id, json) {
        output::line("");
        output::line(&format!("task {task} is {state}"));
    }
    match state.as_str() {
        "FAILED" | "REJECTED" => Err(Failure::general(format!("the task is {state}"))),
        _ => Ok(()),
    }
}
