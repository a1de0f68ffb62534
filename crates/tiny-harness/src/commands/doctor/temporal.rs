//! What `doctor` finds out about Temporal. Nothing is started, and nothing is fetched.

use harness_engine_temporal::{Inspection, StuckWorkflow, inspect};

use super::Findings;
use crate::{
    config::{Config, TemporalConfig, TemporalMode},
    failure::Failure,
    harness::{self, temporal},
};

const WHAT: &str = "temporal";
/// Stuck workflows that are named.
const NAMED_MAX: usize = 5;
/// A second try may be that of a worker that went away; more are trouble.
const ATTEMPTS_OF_TROUBLE: u32 = 3;

/// Looks at the engine on Temporal, if one is configured.
pub(super) async fn look(config: &Config, findings: &mut Findings) {
    let Some(table) = &config.temporal else { return };
    let shared = if harness::store_is_shared(config) {
        "processes share the store: run `serve` and `worker` as often as you like"
    } else {
        "the store belongs to one process, which does both: run one `serve --with-worker`, and no `worker`"
    };
    match table.table.mode {
        TemporalMode::Embedded => embedded(config, table, findings),
        TemporalMode::Remote => {
            findings.note(WHAT, shared);
            remote(table, findings).await;
        }
    }
}

fn embedded(config: &Config, table: &TemporalConfig, findings: &mut Findings) {
    findings
        .note(WHAT, "embedded, a development server: one `serve`, which works as well; not for production");
    match temporal::binary(table).look() {
        Ok(Some(path)) => findings.good(WHAT, &format!("program {}", path.display())),
        Ok(None) => findings.note(
            WHAT,
            "there is no `temporal` here; the first `serve` fetches it (temporal.embedded.binary_path chooses one)",
        ),
        Err(error) => findings.bad(WHAT, &format!("{error} (temporal.embedded)")),
    }
    match temporal::database(config, table) {
        Some(path) if path.exists() => findings.good(WHAT, &format!("state in {}", path.display())),
        Some(path) => findings.note(WHAT, &format!("state will be in {}", path.display())),
        None => findings.note(WHAT, "state in memory; tasks go on from the store alone"),
    }
}

async fn remote(table: &TemporalConfig, findings: &mut Findings) {
    let queue = &table.table.task_queue;
    let address = match temporal::remote(table) {
        Ok(address) => address,
        Err(Failure { lines, .. }) => return findings.bad(WHAT, &lines.join("; ")),
    };
    let found = match inspect(&address, queue).await {
        Ok(found) => found,
        Err(error) => {
            return findings.bad(WHAT, &format!("[{}] {error} (temporal.address)", error.code()));
        }
    };
    findings.good(WHAT, &format!("version {} at {}", found.server_version, address.target));
    if !found.namespace_exists {
        let text = format!("there is no namespace {:?}; create it (temporal.namespace)", address.namespace);
        return findings.bad(WHAT, &text);
    }
    findings.good(
        WHAT,
        &format!("namespace {}, queue {queue}, open workflows: {}", address.namespace, found.open_workflows),
    );
    workers(&found, queue, findings);
    if table.table.search_attributes && !found.search_attributes {
        let text = "the search attributes are not registered; the next worker that starts tries to \
                    (temporal.search_attributes)";
        findings.note(WHAT, text);
    }
    stuck(&found, findings);
}

fn workers(found: &Inspection, queue: &str, findings: &mut Findings) {
    let at_work = found.workers.iter().filter(|worker| worker.workflows && worker.activities);
    let names: Vec<_> = at_work.map(|worker| worker.identity.as_str()).collect();
    if names.is_empty() {
        let text = format!(
            "nobody works on queue {queue}: messages are taken, and wait for a `worker` or `serve --with-worker`"
        );
        findings.note(WHAT, &text);
    } else {
        findings.good(WHAT, &format!("workers: {} ({})", names.len(), names.join(", ")));
    }
}

fn stuck(found: &Inspection, findings: &mut Findings) {
    let troubled = |stuck: &&StuckWorkflow| stuck.attempt >= ATTEMPTS_OF_TROUBLE;
    let stuck: Vec<_> = found.stuck.iter().filter(troubled).collect();
    if stuck.is_empty() {
        return findings.good(WHAT, &format!("no workflow task fails, of {} looked at", found.looked_at));
    }
    let named = stuck.iter().take(NAMED_MAX);
    let named: Vec<_> = named.map(|one| format!("{} (try {})", one.workflow_id, one.attempt)).collect();
    let text = format!(
        "workflow tasks fail again and again, of {} workflows: {}; the log of a worker says why, and builds of workers may \
         differ",
        stuck.len(),
        named.join(", ")
    );
    findings.bad(WHAT, &text);
}
