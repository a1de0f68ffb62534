//! Brings a workflow back from the store: the newest snapshot, then the events after it.

use std::{collections::HashMap, sync::Arc};

use harness_model::WorkflowId;
use harness_ports::{ActivityTask, StoredWorkflow, Workflow, WorkflowDefinition};

use super::{Announced, Cursor, Instance, Life, apply, guarded};
use crate::registry::AsideReason;

impl Instance {
    /// The workflow as it is stored, and its announced activities.
    pub(crate) fn load(
        workflow_id: &WorkflowId,
        stored: Option<StoredWorkflow>,
        definitions: &HashMap<&'static str, Arc<dyn WorkflowDefinition>>,
    ) -> Result<(Self, Vec<ActivityTask>), AsideReason> {
        let mut instance = Self::absent(workflow_id);
        let Some(mut stored) = stored else { return Ok((instance, Vec::new())) };
        let activities = std::mem::take(&mut stored.activities);
        instance.next_seq = stored.next_seq;
        instance.snapshot_seq = stored.snapshot.as_ref().map_or(0, |(seq, _)| *seq);
        instance.cursor = Cursor::Unknown;
        instance.announced =
            activities.iter().map(|task| (task.activity_id.clone(), Announced::of(task))).collect();
        instance.life = if stored.closed {
            Life::Closed
        } else {
            let definition = definitions
                .get(stored.workflow_type.as_str())
                .ok_or_else(|| AsideReason::UnknownType(stored.workflow_type.clone()))?;
            Life::Open(replay(definition, &stored).map_err(AsideReason::Unfit)?)
        };
        Ok((instance, activities))
    }
}

/// The state after every stored event. Commands were performed when the events were new, so they are dropped here.
fn replay(
    definition: &Arc<dyn WorkflowDefinition>,
    stored: &StoredWorkflow,
) -> Result<Box<dyn Workflow>, String> {
    let (mut workflow, first) = match &stored.snapshot {
        Some((seq, state)) => {
            let restored = guarded(|| definition.restore(state))?;
            (restored.map_err(|error| error.to_string())?, *seq)
        }
        None => (guarded(|| definition.create())?, 0),
    };
    let mut next = first;
    for (seq, event) in &stored.tail {
        if *seq != next {
            return Err(format!("its journal has event {seq} where {next} belongs"));
        }
        apply(workflow.as_mut(), event)?;
        next += 1;
    }
    if next != stored.next_seq {
        return Err(format!("its journal ends at {next}, not at {}", stored.next_seq));
    }
    Ok(workflow)
}
