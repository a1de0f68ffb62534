//! Follows a task's stream to the end of a turn, prints it, and survives a server that comes and goes.

use std::time::Duration;

use futures::StreamExt;
use harness_a2a::{AgentClient, ClientError, EventStream, StreamItem, wire::StreamResponse};
use serde_json::json;

use crate::{
    failure::Failure,
    output,
    painter::Painter,
    peer,
    transcript::{Line, Transcript},
};

/// Reconnections in a row before giving up.
const RECONNECTS_MAX: u32 = 20;
/// Wait before each of them.
const RECONNECT_WAIT: Duration = Duration::from_millis(500);
/// Tools whose success changes the plan.
const PLAN_TOOLS: [&str; 2] = ["create_plan", "complete_step"];

/// A task as it is shown.
pub(crate) struct Live {
    pub(crate) client: AgentClient,
    pub(crate) transcript: Transcript,
    pub(crate) painter: Painter,
    /// Events as JSON lines instead of a transcript.
    json: bool,
    last_seq: Option<u64>,
    /// Whether what was shown last ends a turn.
    turn_ended: bool,
    /// Whether the task had ended before it was subscribed to and nothing was shown yet; there may be nothing more.
    was_over: bool,
}

impl Live {
    pub(crate) fn new(client: AgentClient, json: bool) -> Self {
        let painter = Painter::new(&client.card().name, output::columns());
        Self {
            client,
            transcript: Transcript::default(),
            painter,
            json,
            last_seq: None,
            turn_ended: false,
            was_over: false,
        }
    }

    /// Prints words of the person at the terminal.
    pub(crate) fn said(&self, who: &str, words: &str) {
        if !self.json {
            output::text(&self.painter.said(who, words));
        }
    }

    /// Goes on with a task: the next message names it, and the context that it belongs to.
    pub(crate) async fn take_up(&mut self, task: &str) {
        self.transcript.task_id = Some(task.to_owned());
        // An agent that does not show the task says why when it is sent the message.
        if let Ok(task) = self.client.get(task, Some(0)).await {
            self.transcript.context_id = Some(task.context_id).filter(|id| !id.is_empty());
        }
    }

    /// Shows what a task's log has after `after`, up to the end of the turn.
    pub(crate) async fn replay(&mut self, task: &str, after: u64) -> Result<(), Failure> {
        let failed = |error| peer::failed("the task cannot be followed", &error);
        self.transcript.task_id = Some(task.to_owned());
        self.last_seq = Some(after);
        self.was_over = self.client.get(task, Some(0)).await.map_err(failed)?.status.state.is_terminal();
        let stream = self.client.subscribe(task, Some(after)).await.map_err(failed)?;
        self.run(stream).await
    }

    /// Shows everything up to the end of the stream.
    pub(crate) async fn run(&mut self, stream: EventStream) -> Result<(), Failure> {
        let mut stream = stream;
        self.turn_ended = false;
        let mut reconnects = 0;
        loop {
            match self.drain(&mut stream, &mut reconnects).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let (Some(task), true) = (self.transcript.task_id.clone(), reconnects < RECONNECTS_MAX)
                    else {
                        return Err(peer::failed("the stream broke", &error));
                    };
                    stream = self.reconnect(&task, &mut reconnects, error).await?;
                }
            }
        }
    }

    async fn drain(&mut self, stream: &mut EventStream, reconnects: &mut u32) -> Result<(), ClientError> {
        while let Some(item) = stream.next().await {
            let item = item?;
            *reconnects = 0;
            self.show(item).await;
        }
        if self.turn_ended || self.was_over {
            Ok(())
        } else {
            Err(ClientError::Unreachable("the stream ended too early".into()))
        }
    }

    async fn reconnect(
        &mut self,
        task: &str,
        reconnects: &mut u32,
        first: ClientError,
    ) -> Result<EventStream, Failure> {
        let mut error = first;
        while *reconnects < RECONNECTS_MAX {
            *reconnects += 1;
            tokio::time::sleep(RECONNECT_WAIT).await;
            match self.client.subscribe(task, self.last_seq).await {
                Ok(stream) => return Ok(stream),
                Err(next) => error = next,
            }
        }
        Err(peer::failed("the agent went away and did not come back", &error))
    }

    async fn show(&mut self, item: StreamItem) {
        let seen = item.seq.zip(self.last_seq).is_some_and(|(new, old)| new <= old);
        let snapshot = matches!(item.event, StreamResponse::Task(_));
        self.last_seq = item.seq.max(self.last_seq);
        if seen && !snapshot {
            return;
        }
        if self.json {
            output::line(&json!({"seq": item.seq, "event": item.event}).to_string());
        }
        let lines = self.transcript.fold(&item.event);
        self.was_over = false;
        let message = matches!(item.event, StreamResponse::Message(_));
        self.turn_ended = message || self.transcript.is_over() || self.transcript.waits();
        if self.json {
            return;
        }
        let plan_changed = lines.iter().any(changes_plan);
        for line in &lines {
            output::text(&self.painter.paint(line));
        }
        if plan_changed {
            self.show_plan().await;
        }
    }

    /// The plan is part of the task and not of its events.
    async fn show_plan(&mut self) {
        let Some(task) = self.transcript.task_id.clone() else { return };
        // The plan is a courtesy; a task that cannot be read now is no reason to stop the transcript.
        let Ok(task) = self.client.get(&task, Some(0)).await else { return };
        if let Some(plan) = Transcript::plan(&task) {
            output::text(&self.painter.paint(&plan));
        }
    }
}

fn changes_plan(line: &Line) -> bool {
    matches!(line, Line::Tool { name, state, .. } if PLAN_TOOLS.contains(&name.as_str()) && state == "succeeded")
}
