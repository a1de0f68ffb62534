//! The command line: what can be typed, and nothing about what it does.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const HINTS: &str = "\
Start with `tiny-harness demo`: it needs no configuration, no key and no network.

Exit status: 0 done, 1 failed, 2 wrong arguments or configuration, 130 or 143 stopped by a signal.";

/// An agent harness: serves and speaks A2A 1.0, runs tool-using agents as durable tasks.
#[derive(Debug, Parser)]
#[command(name = "tiny-harness", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = HINTS)]
pub(crate) struct Cli {
    /// The configuration file. Without one, local defaults apply; `demo` and `bench` bring their own.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the agent over A2A until it is told to stop.
    Serve(ServeArgs),
    /// Work on tasks that servers take, on this or another machine, until it is told to stop. Needs a Temporal server and a store that processes share.
    Worker(WorkerArgs),
    /// Watch an agent settle a complaint: real tools, a durable task, a scripted model. Needs no key and no network.
    Demo(DemoArgs),
    /// Talk to an agent: one message, or a conversation.
    Chat(ChatArgs),
    /// Look at tasks of an agent, cancel one, or purge one of this installation.
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// Look after the schedule by which an agent on Temporal ticks.
    #[command(subcommand)]
    Schedules(SchedulesCommand),
    /// Check or show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Find out whether this configuration works here: store, sign-in keys, plugins, tool servers, and one small call per model provider.
    Doctor,
    /// Measure this machine and this build against the numbers the project holds itself to.
    Bench(BenchArgs),
    /// The tool servers of the demo, over stdio.
    #[command(hide = true)]
    McpDemo(McpDemoArgs),
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Work on tasks as well, in this process. The local engine and an embedded Temporal always do.
    #[arg(long)]
    pub(crate) with_worker: bool,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// Faults for crash tests.
#[derive(Debug, Default, Args)]
pub(crate) struct FaultArgs {
    /// Kill this process right before or after a commit of the store: `before:N`, `after:N`.
    #[arg(long, hide = true, value_name = "WHEN:N")]
    pub(crate) crash_at: Option<String>,
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Answer the agent's questions without a person: a replacement, or the first option.
    #[arg(long)]
    pub(crate) auto: bool,
    /// Print the A2A events as JSON lines instead of a transcript; notes go to standard error.
    #[arg(long)]
    pub(crate) json: bool,
    /// Use a real model instead of the script, such as `openai:gpt-6.1-sol` (needs OPENAI_API_KEY or --base-url).
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub(crate) model: Option<String>,
    /// Address of an OpenAI-compatible server for --model, such as http://127.0.0.1:11434/v1.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Write every exchange with the model into this folder, with secrets masked.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Play back what --record wrote, instead of a model. A request that was not recorded is an error.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["model", "record"])]
    pub(crate) replay: Option<PathBuf>,
    /// Where the demo keeps its state.
    #[arg(long, value_name = "DIR", default_value = ".tiny-harness/demo")]
    pub(crate) state: PathBuf,
    /// Go on with the task of the last demo in this state, however it ended.
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
}

/// Where an agent is, and who asks.
#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    /// Address of the agent. Default: where the configuration says, else http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Who you are: tasks are shown to those who take part in them. Default: $USER.
    #[arg(long, value_name = "ID")]
    pub(crate) participant: Option<String>,
    /// The environment variable that holds your token, for agents that ask for one (sent as a bearer token).
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) token_env: Option<String>,
}

/// Arguments of `chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) peer: PeerArgs,
    /// Go on with this task, named by its id.
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<String>,
    /// Print the A2A events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
    /// Say this, print the answer and leave. Without it: a conversation.
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Vec<String>,
}

/// What to do with tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List tasks, newest status first.
    List {
        #[command(flatten)]
        peer: PeerArgs,
        /// Only tasks in this state, such as `working` or `input-required`.
        #[arg(long, value_name = "STATE")]
        state: Option<String>,
        /// Only tasks of this context.
        #[arg(long, value_name = "CONTEXT")]
        context: Option<String>,
        /// Tasks at most, from 1 to 100.
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one task: status, plan, participants, messages, artifacts.
    Show {
        #[command(flatten)]
        peer: PeerArgs,
        /// Id of the task, as `tasks list` prints it.
        task: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Cancel a task.
    Cancel {
        #[command(flatten)]
        peer: PeerArgs,
        /// Id of the task, as `tasks list` prints it.
        task: String,
    },
    /// Print the events of a task, and follow it while it works.
    Events {
        #[command(flatten)]
        peer: PeerArgs,
        /// Id of the task, as `tasks list` prints it.
        task: String,
        /// Only events after the one with this number.
        #[arg(long, value_name = "SEQ")]
        after: Option<u64>,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Delete a task of this installation with everything of it, and end it first if it goes on.
    Purge {
        /// Address of the server that has the store open. Default: what the configuration says.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Id of the task, as `tasks list` prints it.
        task: String,
    },
}

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedulesCommand {
    /// Delete the heartbeat schedule. The next worker that starts makes it again, with the interval that is then configured.
    Delete,
}

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what is wrong with it, all at once.
    Check,
    /// Print the effective values; secrets are masked.
    Show,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Only rows whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// A short run that shows the harness works; its numbers mean little.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where the servers that are measured keep their state for the time of the run; choose the disk that counts.
    #[arg(long, value_name = "DIR", default_value = ".tiny-harness/bench")]
    pub(crate) state: PathBuf,
    /// Run one of the processes that a measurement consists of.
    #[arg(long, hide = true, value_name = "JSON")]
    pub(crate) part: Option<String>,
}

/// Arguments of `mcp-demo`.
#[derive(Debug, Args)]
pub(crate) struct McpDemoArgs {
    /// `orders` or `policy`.
    #[arg(value_parser = ["orders", "policy"])]
    pub(crate) server: String,
    /// Where the ledger is.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
}
