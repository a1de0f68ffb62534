//! `tiny-harness bench`: measures this build on this machine, as a client sees it.
//!
//! What is measured runs in processes of its own and is called over HTTP. Next to every number stands the bar that the
//! project holds itself to and, where there is one, a floor measured in the same run.

mod child;
mod client;
mod cost;
mod figure;
mod http;
mod lab;
mod load;
mod machine;
mod parts;
mod report;
mod rows;

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::time::timeout;

use crate::{cli::BenchArgs, failure::Failure, output, system::RandomIds};
use harness_ports::IdSource;
use lab::{Effort, Lab};
use machine::Machine;
use report::{Outcome, Report};
use rows::{ROWS, Row};

/// Measures, prints, and cleans up.
pub(crate) async fn run(args: BenchArgs, program: PathBuf) -> Result<(), Failure> {
    if let Some(part) = &args.part {
        return parts::run(part, program).await;
    }
    let wanted = wanted(args.only.as_deref())?;
    allow_many_connections();
    let state = std::path::absolute(&args.state)
        .map_err(|e| Failure::general(format!("cannot resolve {}: {e}", args.state.display())))?;
    let folder = state.join(RandomIds.fresh());
    lab::private_folder(&folder)?;
    let report = measure(&args, &wanted, program, &folder).await;
    std::fs::remove_dir_all(&folder)
        .map_err(|e| Failure::general(format!("cannot remove {}: {e}", folder.display())))?;
    let report = report?;
    output::text(&if args.json { report.json() } else { report.table() });
    if report.is_whole() { Ok(()) } else { Err(Failure::general("not everything could be measured")) }
}

async fn measure(
    args: &BenchArgs,
    wanted: &[&Row],
    program: PathBuf,
    folder: &Path,
) -> Result<Report, Failure> {
    let machine = Machine::look(folder).await?;
    if !args.json {
        output::text(&format!("{}\n\n", machine.lines().join("\n")));
    }
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let lab = Lab::new(program, folder.to_owned(), effort);
    let mut outcomes = Vec::new();
    for row in wanted {
        output::problem(&format!("measuring: {}", row.name));
        let measured = timeout(effort.row_time, (row.measure)(&lab)).await;
        outcomes.push(match measured {
            Ok(Ok(figures)) => Outcome::Measured(figures),
            Ok(Err(failure)) => Outcome::failed(row.name, &failure),
            Err(_) => Outcome::failed(row.name, &Failure::general("it took too long")),
        });
    }
    Ok(Report::new(machine, args.quick, outcomes))
}

fn wanted(only: Option<&str>) -> Result<Vec<&'static Row>, Failure> {
    let only = only.unwrap_or_default().to_lowercase();
    let wanted: Vec<_> = ROWS.iter().filter(|row| row.name.to_lowercase().contains(&only)).collect();
    if wanted.is_empty() {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        return Err(Failure::usage(format!(
            "--only takes a part of one of these names: {}",
            names.join(", ")
        )));
    }
    Ok(wanted)
}

/// A thousand subscribers need as many file descriptors on either side; the server inherits what is allowed here.
fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Whoever may not do this finds out when connections fail.
    let _refused = setrlimit(Resource::Nofile, limit);
}
