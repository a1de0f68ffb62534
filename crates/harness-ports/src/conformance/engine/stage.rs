//! Plays a case: delivers, waits for lines of the transcript, restarts.

use std::{future::Future, sync::Arc, time::Duration};

use futures::{StreamExt, future::BoxFuture};
use harness_model::{Content, LogEntry, TaskEvent, TaskId, WorkflowId};

use super::{
    activities::SuiteActivities,
    lab::{EngineLab, EngineLife, LifePlan, Trouble},
    script::{self, Op, ScriptDefinition},
};
use crate::{Delivered, Delivery, Engine, EngineError};

/// Far longer than anything takes; reached only by a case that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits, but not forever.
pub(super) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited too long: {what}"),
    }
}

/// Waits for a condition that nothing announces.
pub(super) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    in_time(what, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// A lab with the engine that lives in it now.
pub(super) struct Stage<'a> {
    lab: &'a dyn EngineLab,
    pub(super) activities: Arc<SuiteActivities>,
    pub(super) life: Box<dyn EngineLife>,
}

impl<'a> Stage<'a> {
    pub(super) async fn open(lab: &'a dyn EngineLab) -> Self {
        Self::open_with(lab, Trouble::None).await
    }

    pub(super) async fn open_with(lab: &'a dyn EngineLab, trouble: Trouble) -> Self {
        let activities = SuiteActivities::new();
        let life = lab.open(plan(&activities, ScriptDefinition::default(), trouble)).await;
        Self { lab, activities, life }
    }

    /// Kills the process and starts the next one.
    pub(super) async fn kill_and_reopen(self) -> Self {
        self.kill_and_reopen_with(ScriptDefinition::default()).await
    }

    /// The same, with another build of the workflow.
    pub(super) async fn kill_and_reopen_with(self, definition: ScriptDefinition) -> Self {
        let Self { lab, activities, life } = self;
        in_time("the process is dead", life.kill()).await;
        let life = lab.open(plan(&activities, definition, Trouble::None)).await;
        Self { lab, activities, life }
    }

    pub(super) fn engine(&self) -> Arc<dyn Engine> {
        self.life.engine()
    }

    /// Delivers an order, starting the workflow if it does not exist.
    pub(super) fn order(
        &self,
        workflow_id: &str,
        label: &str,
        key: Option<&str>,
        ops: &[Op],
    ) -> BoxFuture<'static, Result<Delivered, EngineError>> {
        let delivery = Delivery {
            workflow_id: WorkflowId::new(workflow_id),
            start: Some(script::start(workflow_id)),
            signal: Some(script::signal(label, key, ops)),
            blocks: Vec::new(),
        };
        let engine = self.engine();
        Box::pin(async move { in_time("the receipt", engine.deliver(delivery)).await })
    }

    /// Delivers an order that must be accepted.
    pub(super) async fn accept(&self, workflow_id: &str, label: &str, ops: &[Op]) {
        let receipt = self.order(workflow_id, label, None, ops).await;
        assert!(matches!(receipt, Ok(Delivered::Accepted { .. })), "{label}: {receipt:?}");
    }

    /// Everything the workflow has seen and said, durably; its numbers have no gaps.
    pub(super) async fn transcript(&self, workflow_id: &str) -> Vec<String> {
        let log = self.life.store().log(&TaskId::new(workflow_id), None, usize::from(u16::MAX)).await;
        let entries = match log {
            Ok(entries) => entries,
            Err(error) => panic!("the log of {workflow_id} cannot be read: {error}"),
        };
        for (seq, entry) in (0..).zip(&entries) {
            assert_eq!(entry.seq, seq, "a gap in the log of {workflow_id}");
        }
        entries.iter().map(line).collect()
    }

    /// Waits until the workflow has written a line.
    pub(super) async fn wait_for(&self, workflow_id: &str, wanted: &str) {
        let mut log = self.life.store().follow(&TaskId::new(workflow_id), None);
        let mut seen = Vec::new();
        let found = async {
            while let Some(Ok(entry)) = log.next().await {
                seen.push(line(&entry));
                if seen.last().is_some_and(|line| line == wanted) {
                    return true;
                }
            }
            false
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        assert!(matches!(found, Ok(true)), "no line {wanted:?} in the log of {workflow_id}: {seen:#?}");
    }

    pub(super) async fn check(&self, workflow_id: &str, expected: &[&str]) {
        assert_eq!(self.transcript(workflow_id).await, expected, "transcript of {workflow_id}");
    }
}

fn plan(activities: &Arc<SuiteActivities>, definition: ScriptDefinition, trouble: Trouble) -> LifePlan {
    LifePlan { activities: Arc::clone(activities) as _, workflows: vec![Arc::new(definition)], trouble }
}

fn line(entry: &LogEntry) -> String {
    match &entry.event {
        TaskEvent::StatusChanged(status) => match &status.text {
            Some(Content::Inline(text)) => text.clone(),
            Some(Content::Block(_)) | None => String::new(),
        },
        TaskEvent::TaskCreated | TaskEvent::ArtifactChanged(_) => String::new(),
    }
}
