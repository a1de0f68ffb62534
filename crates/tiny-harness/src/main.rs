//! The `tiny-harness` binary: reads arguments, environment and configuration, wires everything, and turns the way a
//! command ended into an exit status.

mod activity_log;
mod cli;
mod commands;
mod config;
mod failure;
mod faults;
mod harness;
mod live;
mod output;
mod painter;
mod peer;
mod system;
mod transcript;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Parser;
use harness_telemetry::{LogGuard, LogLevel, LogOptions, LogTarget, init_logs};

use cli::{Cli, Command};
use commands::{demo::Demo, serve::Stopped};
use config::Config;
use failure::Failure;
use system::SystemClock;

/// Address that `chat` and `tasks` use when nothing else is said.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let env = environment();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Failure::general(format!("cannot start the runtime: {error}")))),
    };
    // Only one provider is ever installed: here, before anything could want one.
    let _installed_before = rustls::crypto::ring::default_provider().install_default();
    let ended = runtime.block_on(run(cli, env));
    // A read of standard input cannot be interrupted; nothing else is left by now.
    runtime.shutdown_timeout(Duration::from_millis(50));
    end(ended)
}

/// Runs one command. `Some` when a signal ended it.
async fn run(cli: Cli, env: BTreeMap<String, String>) -> Result<Option<Stopped>, Failure> {
    let file = cli.config.as_deref();
    let default_url: peer::DefaultUrl<'_> = &|| default_url(file, &env);
    match cli.command {
        Command::Demo(_) | Command::Bench(_) if file.is_some() => {
            Err(Failure::usage("this command brings its own configuration; leave out --config"))
        }
        Command::Serve(args) => {
            let config = load_config(file, &env)?;
            let _logs = logs(config.o11y.log_level, LogTarget::Stderr, &config)?;
            let stopped = commands::serve::run(args, &config, env, program()?).await?;
            Ok((stopped == Stopped::Interrupted).then_some(stopped))
        }
        Command::Worker(args) => {
            let config = load_config(file, &env)?;
            let _logs = logs(config.o11y.log_level, LogTarget::Stderr, &config)?;
            commands::worker::run(args, &config, env, program()?).await.map(Some)
        }
        Command::Demo(args) => {
            let demo = Demo::prepare(args, &env)?;
            let target = LogTarget::File(demo.log_file());
            // The file is where the demo tells people to look further: it says what happened, in many lines.
            let _logs = logs(LogLevel::Debug, target, &demo.config)?;
            demo.run(env, program()?).await
        }
        Command::Chat(args) => commands::chat::run(args, default_url, &env).await.map(|()| None),
        Command::Tasks(command) => {
            let config = || load_config(file, &env);
            commands::tasks::run(command, default_url, &config, &env).await.map(|()| None)
        }
        Command::Schedules(command) => {
            let config = load_config(file, &env)?;
            let _logs = logs(LogLevel::Error, LogTarget::Stderr, &config)?;
            commands::schedules::run(&command, &config).await.map(|()| None)
        }
        Command::Config(command) => {
            let config = load_config(file, &env)?;
            commands::config::run(&command, &config);
            Ok(None)
        }
        Command::Doctor => {
            let config = load_config(file, &env)?;
            let _logs = logs(LogLevel::Error, LogTarget::Stderr, &config)?;
            commands::doctor::run(&config, env, program()?).await.map(|()| None)
        }
        Command::Bench(args) => commands::bench::run(args, program()?).await.map(|()| None),
        Command::McpDemo(args) => commands::mcp_demo::run(args).await.map(|()| None),
    }
}

/// Reads the configuration; every problem of it is a line of the failure.
fn load_config(file: Option<&Path>, env: &BTreeMap<String, String>) -> Result<Config, Failure> {
    let cwd = std::env::current_dir()
        .map_err(|e| Failure::general(format!("cannot find the working directory: {e}")))?;
    config::load(file, env, &cwd)
        .map_err(|problems| Failure::config(problems.iter().map(ToString::to_string).collect()))
}

/// Where `chat` and `tasks` look for the agent: what the configuration says, and the usual address without one.
fn default_url(file: Option<&Path>, env: &BTreeMap<String, String>) -> Result<String, Failure> {
    let Some(file) = file else { return Ok(DEFAULT_URL.to_owned()) };
    let config = load_config(Some(file), env).map_err(|mut failure| {
        failure
            .lines
            .push("error: the address of the agent is in the configuration; or give it with --url".into());
        failure
    })?;
    Ok(config.server.base_url.clone().unwrap_or_else(|| format!("http://{}", config.server.bind)))
}

/// This program, for starting tool servers and servers to measure.
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::general(format!("cannot find this program: {e}")))
}

/// The environment, read once. Values that are not text cannot be meant for this program.
fn environment() -> BTreeMap<String, String> {
    let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(readable).collect()
}

fn logs(level: LogLevel, target: LogTarget, config: &Config) -> Result<LogGuard, Failure> {
    let (clock, redactor) = (Arc::new(SystemClock::default()), Arc::new(config.redactor()));
    init_logs(LogOptions { level, target, redactor, clock }).map_err(|e| Failure::general(e.to_string()))
}

fn usage(error: &clap::Error) -> ExitCode {
    // Help and version go to standard output and are no failure.
    let _gone = error.print();
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

fn end(ended: Result<Option<Stopped>, Failure>) -> ExitCode {
    match ended {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(Stopped::Interrupted)) => ExitCode::from(130),
        Ok(Some(Stopped::Terminated)) => ExitCode::from(143),
        Err(failure) => {
            for line in &failure.lines {
                output::problem(line);
            }
            ExitCode::from(failure.status)
        }
    }
}
