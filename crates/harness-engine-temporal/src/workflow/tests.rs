//! Histories of earlier builds are replayed by this one. How they are kept: `tests/it/histories.rs`.

use std::{fs, path::Path};

use temporalio_client::WorkflowHistory;
use temporalio_sdk::workflow_replayer::{WorkflowReplayer, WorkflowReplayerOptions};

use super::TaskWorkflow;

fn kept() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories");
    let paths = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut kept: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            (path.file_stem().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    kept.sort();
    kept
}

/// Gives the failures.
async fn replay(histories: &[(String, String)]) -> Vec<String> {
    let options = WorkflowReplayerOptions::new()
        .register_workflow_with_factory::<TaskWorkflow, _>(TaskWorkflow::default)
        .unwrap()
        .build();
    let read = histories.iter().map(|(_, json)| WorkflowHistory::from_json(json.as_bytes()).unwrap());
    let results = WorkflowReplayer::new(options).unwrap().replay_workflows(read).await.unwrap();
    let failure = |(result, (name, _)): (
        temporalio_sdk::workflow_replayer::WorkflowReplayResult,
        &(String, String),
    )| { result.replay_failure.map(|failure| format!("{name}: {failure}")) };
    results.into_iter().zip(histories).filter_map(failure).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kept_history_is_replayed() {
    let kept = kept();
    assert!(kept.len() >= 6, "{} histories", kept.len());
    let failures = replay(&kept).await;
    assert!(failures.is_empty(), "{failures:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_another_engine_made_is_found_out() {
    let mut kept = kept();
    kept.retain(|(name, _)| name == "activities-and-close");
    // As if an earlier build had scheduled another kind of activity.
    let forged = kept[0].1.replace("\"run_activity.v1\"", "\"ran_activity.v1\"");
    assert_ne!(forged, kept[0].1);
    kept[0].1 = forged;
    assert_eq!(replay(&kept).await.len(), 1);
}
