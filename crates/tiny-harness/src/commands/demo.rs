//! `tiny-harness demo`: a complaint is settled, live, in one process.
//!
//! Everything but the model is real: a server, a client, a durable task, two tool servers, a ledger. Every message of
//! the demo has an id that is written down before it is sent, so that a demo that was killed at any moment goes on with
//! `--resume` by sending the same messages again: the agent knows those it has.

mod example;
mod session;

use std::{
    collections::BTreeMap,
    io::IsTerminal as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use harness_a2a::{AgentClient, ClientLimits};
use harness_model::{ParticipantId, clean_terminal};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    activity_log::ActivityLog,
    cli::DemoArgs,
    commands::serve::{Stopped, stop_signal},
    config::Config,
    failure::Failure,
    faults,
    harness::{Harness, StartOptions, engine::Role},
    live::Live,
    output::{self, quoted},
    peer,
    transcript::Question,
};
use session::Session;

/// Who complains.
const CUSTOMER: &str = "ada";
/// The person at the terminal, who speaks for the customer.
const YOU: &str = "you";
/// The complaint.
const COMPLAINT: &str = "My Nimbus 900 blender from order 48213 arrived with a cracked jar. What can you do?";
/// Questions that are answered in one run; the script asks once, a real model may ask more.
const QUESTIONS_MAX: u32 = 8;

/// The demo, ready to run: its files are in place and its configuration is read.
pub(crate) struct Demo {
    args: DemoArgs,
    /// This program, when a shell would not find it by its name.
    elsewhere: Option<PathBuf>,
    state: PathBuf,
    session: Session,
    pub(crate) config: Config,
}

/// How a run ended.
enum Ended {
    /// The task is over, or waits for somebody who is not here.
    Task,
    /// Somebody asked the demo to stop.
    Stopped(Stopped),
}

impl Demo {
    /// Writes the example and reads its configuration.
    pub(crate) fn prepare(args: DemoArgs, env: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let state = std::path::absolute(&args.state).map_err(|e| io_failure("resolve", &args.state, &e))?;
        if state.to_str().is_none() {
            return Err(Failure::usage("--state takes a path that is UTF-8 text"));
        }
        let model = example::Model::of(&args)?;
        let session = if args.resume { Session::load(&state)? } else { Session::begin(&state) };
        example::private_folder(&state)?;
        let file = example::write(&state, &model, args.record.as_deref())?;
        let config = crate::load_config(Some(&file), env)?;
        Ok(Self { args, elsewhere: None, state, session, config })
    }

    /// Where this run writes its log.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.state.join("tiny-harness.log")
    }

    /// Runs to the end of the task, or until somebody stops it.
    pub(crate) async fn run(
        mut self,
        env: BTreeMap<String, String>,
        program: PathBuf,
    ) -> Result<Option<Stopped>, Failure> {
        let stop = stop_signal()?;
        self.elsewhere = (!is_on_path(&env)).then(|| program.clone());
        let on_commit = self.args.faults.crash_at.as_deref().map(faults::crash_hook).transpose()?;
        let options = StartOptions { env, program, on_commit, observer: Some(Arc::new(ActivityLog)) };
        let mut config = self.config.clone();
        // Nobody but this run needs to know the port, and a served agent may be using the usual one.
        config.server.bind = crate::config::BindAddress::any_loopback_port();
        let harness = Harness::start(&config, Role::ServerAndWorker, options).await?;
        // Only now is the state this run's own: until here, another demo may have been at work in it.
        self.session.save()?;
        self.note(&format!(
            "{} at {}, state in {}",
            self.config.card.name,
            harness.base_url,
            self.state.display()
        ));
        let base_url = harness.base_url.clone();
        let ended = tokio::select! {
            driven = self.drive(&base_url) => driven.map(|()| Ended::Task),
            stopped = stop => Ok(Ended::Stopped(stopped)),
        };
        harness.stop().await;
        match ended? {
            Ended::Task => Ok(None),
            Ended::Stopped(stopped) => {
                self.note("");
                self.note(&format!(
                    "stopped; go on with: tiny-harness demo --resume{}",
                    self.state_argument()
                ));
                self.say_where();
                Ok(Some(stopped))
            }
        }
    }

    /// The customer's side: complains, answers, and reads what comes.
    async fn drive(&mut self, base_url: &str) -> Result<(), Failure> {
        let customer = Some(ParticipantId::from(CUSTOMER));
        let client = AgentClient::connect(base_url, customer, ClientLimits::default())
            .await
            .map_err(|e| peer::failed("cannot talk to the demo's agent", &e))?;
        let mut live = Live::new(client, self.args.json);
        let (mut message_id, mut text) = (self.session.message_id(0), COMPLAINT.to_owned());
        live.said(CUSTOMER, &text);
        for question in 1..=QUESTIONS_MAX {
            let task = live.transcript.task_id.clone();
            let request = peer::message(message_id, &text, task.as_deref(), None);
            let stream = live.client.send_streaming(request).await;
            live.run(stream.map_err(|e| peer::failed("the message was not taken", &e))?).await?;
            let Some(asked) = live.transcript.asked.clone() else { break };
            message_id = self.session.message_id(question);
            let Some(answer) = self.answer(question, &asked, &live).await? else { break };
            text = answer;
        }
        self.farewell(&live);
        if live.transcript.has_failed() {
            let (state, log) = (live.transcript.state_name(), self.log_file());
            return Err(Failure::general(format!("the task is {state}; see {}", log.display())));
        }
        Ok(())
    }

    /// The answer to a question: the one given before this run was interrupted, or a new one.
    async fn answer(
        &mut self,
        number: u32,
        asked: &Question,
        live: &Live,
    ) -> Result<Option<String>, Failure> {
        if let Some(answer) = self.session.answer(number) {
            live.said(CUSTOMER, &answer);
            return Ok(Some(answer));
        }
        let answer = if self.args.auto {
            let answer = auto_answer(asked);
            live.said(CUSTOMER, &answer);
            Some(answer)
        } else {
            self.ask(&live.painter.prompt(YOU)).await
        };
        if let Some(answer) = &answer {
            self.session.keep_answer(number, answer)?;
        }
        Ok(answer)
    }

    async fn ask(&self, prompt: &str) -> Option<String> {
        self.note_inline(prompt);
        let mut line = String::new();
        let read = BufReader::new(tokio::io::stdin()).read_line(&mut line).await.ok()?;
        let answer = line.trim().to_owned();
        // A terminal has shown what was typed and ended the line; a pipe shows nothing.
        if read == 0 || !std::io::stdin().is_terminal() {
            self.note(&clean_terminal(&answer));
        }
        (!answer.is_empty()).then_some(answer)
    }

    fn farewell(&self, live: &Live) {
        let state = live.transcript.state_name();
        let task = live.transcript.task_id.as_deref().unwrap_or("?");
        self.note("");
        self.note(&format!("task {task} is {state}"));
        if !live.transcript.is_over() {
            self.note(&format!("it waits; go on with: tiny-harness demo --resume{}", self.state_argument()));
        }
        let data = self.state.join("plugin-data").join("demo-support");
        self.note("look further:");
        self.note(&format!("  what the tools did   {}", data.join("orders-ledger.jsonl").display()));
        self.note(&format!("  what happened inside {}", self.log_file().display()));
        self.note(&format!(
            "  serve this agent     tiny-harness serve --config {}",
            quoted(&self.state.join(example::CONFIG_FILE).display().to_string())
        ));
        self.note(&format!("  then, elsewhere      tiny-harness tasks list --participant {CUSTOMER}"));
        self.say_where();
    }

    /// Advice that a shell cannot follow is none.
    fn say_where(&self) {
        if let Some(program) = &self.elsewhere {
            self.note(&format!("  tiny-harness here is {}", quoted(&program.display().to_string())));
        }
    }

    fn state_argument(&self) -> String {
        let usual = Path::new(".tiny-harness/demo");
        if self.args.state == usual {
            String::new()
        } else {
            format!(" --state {}", quoted(&self.args.state.display().to_string()))
        }
    }

    /// Prints beside the events: on standard error when those are for a program.
    fn note(&self, text: &str) {
        if self.args.json { output::problem(text) } else { output::line(text) }
    }

    fn note_inline(&self, text: &str) {
        if self.args.json { output::problem(text) } else { output::text(text) }
    }
}

/// Whether a shell finds this program by its name.
fn is_on_path(env: &BTreeMap<String, String>) -> bool {
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    std::env::split_paths(path).any(|folder| folder.join("tiny-harness").is_file())
}

fn auto_answer(asked: &Question) -> String {
    let wish = asked.options.iter().find(|option| option.to_lowercase().contains("replace"));
    let answer = wish.or_else(|| asked.options.first());
    answer.cloned().unwrap_or_else(|| "A replacement, please, to the address on the order.".to_owned())
}

fn io_failure(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::general(format!("cannot {what} {}: {error}", path.display()))
}
