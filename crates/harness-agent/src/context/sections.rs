//! Sections of the context: each has a name, a tag, and a place in a fixed order.

use std::fmt::Write as _;

use harness_model::{Participant, Plan, StepState, TaskExtension, one_line};

use super::ContextParts;

/// The static prefix: system prompt, participants, agents, skills index.
pub(super) fn static_sections(parts: &ContextParts<'_>) -> String {
    let skills: Vec<String> = parts
        .skills_index
        .iter()
        .map(|skill| format!("- {}: {}", one_line(&skill.name), one_line(&skill.description)))
        .collect();
    let sections = [
        ("system_prompt", parts.prompt.render()),
        ("participants", participants(&parts.extension.participants, parts)),
        ("agents", parts.agents.to_owned()),
        ("skills_index", if skills.is_empty() { "(no skills)".to_owned() } else { skills.join("\n") }),
    ];
    let mut text = join(&sections);
    text.push('\n');
    text
}

/// What changes from turn to turn: loaded skills, task, plan, summary.
pub(super) fn task_sections(parts: &ContextParts<'_>) -> String {
    let mut sections: Vec<(String, String)> = parts
        .skills
        .iter()
        .map(|(name, body)| (format!("skill:{}", one_line(name)), body.trim().to_owned()))
        .collect();
    sections.push(("task".to_owned(), task(parts.extension, parts)));
    sections.push(("plan".to_owned(), plan(parts.extension.plan.as_ref())));
    sections.push(("state_summary".to_owned(), parts.summary.unwrap_or("(none)").to_owned()));
    join(&sections)
}

fn join<N: AsRef<str>>(sections: &[(N, String)]) -> String {
    let tagged: Vec<String> =
        sections.iter().map(|(name, content)| format!("<{0}>\n{content}\n</{0}>", name.as_ref())).collect();
    tagged.join("\n\n")
}

fn participants(list: &[Participant], parts: &ContextParts<'_>) -> String {
    if list.is_empty() {
        return "(no participants)".to_owned();
    }
    let line = |participant: &Participant| {
        let mut line =
            format!("- {} ({}): {}", participant.id, participant.kind.name(), participant.role.name());
        if !participant.display_name.is_empty() {
            let _infallible = write!(line, " — {}", one_line(&participant.display_name));
        }
        if participant.id.as_str() == parts.agent_id.as_str() {
            line.push_str(" (you)");
        }
        line
    };
    list.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn task(extension: &TaskExtension, parts: &ContextParts<'_>) -> String {
    let mut lines = vec![
        format!("name: {}", one_line(&extension.name)),
        format!("state: {}", parts.state.name()),
        format!("goal: {}", extension.goal),
    ];
    if !extension.description.is_empty() {
        lines.push(format!("description: {}", extension.description));
    }
    if !extension.acceptance_criteria.is_empty() {
        lines.push("acceptance criteria:".to_owned());
        let criteria = extension.acceptance_criteria.iter();
        lines.extend(
            criteria.map(|c| format!("  - [{}] {}", if c.met { 'x' } else { ' ' }, one_line(&c.text))),
        );
    }
    if !extension.sub_tasks.is_empty() {
        let ids: Vec<&str> = extension.sub_tasks.iter().map(|task| task.task_id.as_str()).collect();
        lines.push(format!("sub-tasks: {}", ids.join(", ")));
    }
    lines.join("\n")
}

fn plan(plan: Option<&Plan>) -> String {
    let Some(plan) = plan else {
        return "(no plan yet; create one with create_plan)".to_owned();
    };
    let line = |step: &harness_model::Step| {
        let mark = match step.state {
            StepState::Done => 'x',
            StepState::Active => '>',
            StepState::Failed => '!',
            StepState::Pending => ' ',
        };
        let mut line = format!("- [{mark}] {}: {}", step.id, one_line(&step.name));
        if !step.depends_on.is_empty() {
            let _infallible = write!(line, " (after {})", step.depends_on.join(", "));
        }
        if let Some(output) = &step.output {
            let _infallible = write!(line, " → {}", one_line(output));
        }
        line
    };
    plan.steps.iter().map(line).collect::<Vec<_>>().join("\n")
}
