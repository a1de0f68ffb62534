//! Intrinsic calls: changes the model asks for on its own task.

use harness_model::{
    ArtifactChange, ArtifactId, CodedError, HelpRequest, Plan, PlanError, ToolCallState, codes, limits,
    step_slug,
};

use super::{
    apply::Step,
    publishing::Publication,
    state::{Phase, own_result},
    turn::ANSWER_ARTIFACT,
};
use crate::{IntrinsicRequest, ItemDraft, PlannedCall};

/// Carries out a request and says what the model reads about it.
pub(super) fn apply(
    step: &mut Step<'_>,
    call: &PlannedCall,
    request: IntrinsicRequest,
) -> (ItemDraft, ToolCallState) {
    let result = match request {
        IntrinsicRequest::CreatePlan { steps } => create_plan(step, &steps),
        IntrinsicRequest::CompleteStep { step: name, output } => complete_step(step, &name, &output),
        IntrinsicRequest::AskParticipant { participant_id, question, options } => {
            ask(step, HelpRequest { participant_id, question, options })
        }
        IntrinsicRequest::PublishArtifact { name, description, parts } => {
            let artifact_id = artifact_id(&name);
            let text = format!("artifact {artifact_id} published");
            step.publish(Publication::artifact(ArtifactChange {
                artifact_id,
                name: Some(name),
                description,
                parts,
                append: false,
                last_chunk: true,
            }));
            Ok(text)
        }
        IntrinsicRequest::RejectTask { reason } => reject(step, reason),
    };
    match result {
        Ok(text) => (own_result(&call.call_id, &call.name, false, text), ToolCallState::Succeeded),
        Err(error) => (own_result(&call.call_id, &call.name, true, error.to_string()), ToolCallState::Failed),
    }
}

fn create_plan(step: &mut Step<'_>, steps: &[harness_model::NewStep]) -> Result<String, CodedError> {
    let plan = Plan::new(steps).map_err(plan_error)?;
    within_limit(&plan)?;
    let count = plan.steps.len();
    step.data.extension.plan = Some(plan);
    Ok(format!("plan attached with {count} steps"))
}

fn complete_step(step: &mut Step<'_>, name: &str, output: &str) -> Result<String, CodedError> {
    let mut plan = step.data.extension.plan.clone().ok_or(PlanError::Missing).map_err(plan_error)?;
    let id = plan.complete(name, output).map_err(plan_error)?;
    within_limit(&plan)?;
    step.data.extension.plan = Some(plan);
    Ok(format!("step {id} done"))
}

/// A plan is part of every input of the model and of every record of the task.
fn within_limit(plan: &Plan) -> Result<(), CodedError> {
    let bytes = serde_json::to_vec(plan).map_or(usize::MAX, |json| json.len());
    if bytes > limits::PLAN_BYTES_MAX {
        let max = limits::PLAN_BYTES_MAX;
        let text =
            format!("the plan would have {bytes} bytes and may have {max}; use fewer or shorter texts");
        return Err(CodedError::new(codes::TOOL_INVALID_ARGUMENTS, text));
    }
    Ok(())
}

/// The id of an artifact of this name. Ids of answers are of their own kind, and no name may take one.
fn artifact_id(name: &str) -> ArtifactId {
    let slug = step_slug(name);
    ArtifactId::new(if slug.starts_with(ANSWER_ARTIFACT) { format!("artifact-{slug}") } else { slug })
}

fn plan_error(error: PlanError) -> CodedError {
    let code = match error {
        PlanError::Missing => codes::PLAN_MISSING,
        PlanError::UnknownStep { .. } => codes::PLAN_UNKNOWN_STEP,
        PlanError::Duplicate(_)
        | PlanError::UnknownDependency { .. }
        | PlanError::Cycle(_)
        | PlanError::TooMany { .. } => codes::PLAN_CYCLE,
    };
    CodedError::new(code, error.to_string())
}

fn ask(step: &mut Step<'_>, help: HelpRequest) -> Result<String, CodedError> {
    let participants = &step.data.extension.participants;
    let is_self = help.participant_id.as_str() == step.data.agent_id.as_str();
    if is_self || !participants.iter().any(|p| p.id == help.participant_id) {
        let others =
            participants.iter().map(|p| p.id.as_str()).filter(|id| *id != step.data.agent_id.as_str());
        let known = others.collect::<Vec<_>>().join(", ");
        let text = format!("{:?} cannot be asked here; you can ask: {known}", help.participant_id.as_str());
        return Err(CodedError::new(codes::CHANNEL_NOT_A_MEMBER, text));
    }
    let text = format!("asked {}; waiting for the reply", help.participant_id);
    if let Phase::Tools(round) = &mut step.data.phase {
        round.asked = Some(help);
    }
    Ok(text)
}

fn reject(step: &mut Step<'_>, reason: harness_model::Content) -> Result<String, CodedError> {
    if step.data.acted {
        let text = "a tool has acted for this task already; finish it or say why you cannot go on";
        return Err(CodedError::new(codes::TASK_EFFECTS_EXIST, text));
    }
    if let Phase::Tools(round) = &mut step.data.phase {
        round.rejected = Some(reason);
    }
    Ok("the task will be rejected after this turn".to_owned())
}
