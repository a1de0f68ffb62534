//! Plans: steps with dependencies that never form a cycle.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::{TaskRef, limits};

/// A plan of a task. Wire shape: task extension v1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps, in the order the agent wrote them.
    pub steps: Vec<Step>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Unique within the plan: the slug of the name.
    pub id: String,
    /// Short title.
    pub name: String,
    /// What is to be done; may be empty.
    #[serde(default)]
    pub description: String,
    /// Ids of steps that come first.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// What the step produced, once done.
    #[serde(default)]
    pub output: Option<String>,
    /// Tasks that work on this step.
    #[serde(default)]
    pub linked_tasks: Vec<TaskRef>,
    /// Where the step stands.
    #[serde(default)]
    pub state: StepState,
}

/// State of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Not begun.
    #[default]
    Pending,
    /// Being worked on.
    Active,
    /// Finished.
    Done,
    /// Could not be finished.
    Failed,
}

/// A step as the model asks for it: dependencies are names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewStep {
    /// Short title; not empty.
    pub name: String,
    /// What is to be done.
    #[serde(default)]
    pub description: String,
    /// Names of steps that come first.
    #[serde(default)]
    pub depends_on: Vec<String>,
}

/// Why a plan or a step was refused. `Display` is what the model reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two steps share an id.
    #[error("two steps are both called {0:?}; give each step its own name")]
    Duplicate(String),
    /// A dependency names no step.
    #[error("step {step:?} depends on {dependency:?}, which is not a step of the plan")]
    UnknownDependency {
        /// The step.
        step: String,
        /// The name that was not found.
        dependency: String,
    },
    /// The dependencies form a cycle.
    #[error("the dependencies form a cycle through {0:?}; remove one of them")]
    Cycle(String),
    /// More steps than a plan may have.
    #[error("a plan has at most {max} steps, this one has {found}")]
    TooMany {
        /// The limit.
        max: usize,
        /// How many there were.
        found: usize,
    },
    /// No plan is attached yet.
    #[error("there is no plan yet; create one with create_plan")]
    Missing,
    /// The step is not in the plan.
    #[error("no step {step:?}; the plan has: {known}")]
    UnknownStep {
        /// What was asked for.
        step: String,
        /// The ids there are.
        known: String,
    },
}

/// The id of a step called `name`: its letters and digits, of any script, in lower case; runs of other characters become
/// `-`, trimmed; `step` when nothing is left.
pub fn step_slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for ch in name.chars().flat_map(char::to_lowercase) {
        if ch.is_alphanumeric() {
            slug.push(ch);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let trimmed = slug.trim_end_matches('-');
    if trimmed.is_empty() { "step".to_owned() } else { trimmed.to_owned() }
}

impl Plan {
    /// Builds a plan from what the model asked for.
    /// Errors: `Duplicate`, `UnknownDependency`, `Cycle`, `TooMany`; nothing is attached then.
    pub fn new(steps: &[NewStep]) -> Result<Self, PlanError> {
        let plan = Self {
            steps: steps
                .iter()
                .map(|step| Step {
                    id: step_slug(&step.name),
                    name: step.name.clone(),
                    description: step.description.clone(),
                    depends_on: step.depends_on.iter().map(|name| step_slug(name)).collect(),
                    output: None,
                    linked_tasks: Vec::new(),
                    state: StepState::Pending,
                })
                .collect(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// Checks ids, dependencies and size of a plan from anywhere.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.steps.len() > limits::PLAN_STEPS_MAX {
            return Err(PlanError::TooMany { max: limits::PLAN_STEPS_MAX, found: self.steps.len() });
        }
        let mut ids = HashSet::new();
        for step in &self.steps {
            if !ids.insert(step.id.as_str()) {
                return Err(PlanError::Duplicate(step.id.clone()));
            }
        }
        for step in &self.steps {
            if let Some(missing) = step.depends_on.iter().find(|id| !ids.contains(id.as_str())) {
                return Err(PlanError::UnknownDependency {
                    step: step.id.clone(),
                    dependency: missing.clone(),
                });
            }
        }
        self.check_acyclic()
    }

    /// Removes steps without open dependencies until none is left; what stays is a cycle.
    fn check_acyclic(&self) -> Result<(), PlanError> {
        let mut open: HashMap<&str, HashSet<&str>> = self
            .steps
            .iter()
            .map(|s| (s.id.as_str(), s.depends_on.iter().map(String::as_str).collect()))
            .collect();
        for _ in 0..self.steps.len() {
            let ready: Vec<&str> =
                open.iter().filter(|(_, deps)| deps.is_empty()).map(|(id, _)| *id).collect();
            for id in &ready {
                open.remove(id);
            }
            for deps in open.values_mut() {
                deps.retain(|dep| !ready.contains(dep));
            }
        }
        match self.steps.iter().find(|step| open.contains_key(step.id.as_str())) {
            Some(step) => Err(PlanError::Cycle(step.id.clone())),
            None => Ok(()),
        }
    }

    /// Marks the step with this id or name as done.
    pub fn complete(&mut self, step: &str, output: &str) -> Result<String, PlanError> {
        let slug = step_slug(step);
        let known = self.steps.iter().map(|s| s.id.as_str()).collect::<Vec<_>>().join(", ");
        let found = self.steps.iter_mut().find(|s| s.id == step || s.name == step || s.id == slug);
        let Some(found) = found else {
            return Err(PlanError::UnknownStep { step: step.to_owned(), known });
        };
        found.state = StepState::Done;
        found.output = Some(output.to_owned());
        Ok(found.id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, after: &[&str]) -> NewStep {
        NewStep {
            name: name.to_owned(),
            description: String::new(),
            depends_on: after.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    #[test]
    fn slugs() {
        assert_eq!(step_slug("Look up the Order!"), "look-up-the-order");
        assert_eq!(step_slug("  ???  "), "step");
        assert_eq!(step_slug("Prüfung der Größe"), "prüfung-der-größe");
        assert!(
            Plan::new(&[step("订单", &[]), step("退款", &["订单"])]).is_ok(),
            "no script makes names alike"
        );
    }

    #[test]
    fn refuses_cycles_duplicates_and_unknown_steps() {
        assert!(matches!(Plan::new(&[step("a", &["b"]), step("b", &["a"])]), Err(PlanError::Cycle(_))));
        assert!(matches!(Plan::new(&[step("a", &["a"])]), Err(PlanError::Cycle(_))));
        assert!(matches!(Plan::new(&[step("A", &[]), step("a", &[])]), Err(PlanError::Duplicate(_))));
        assert!(matches!(Plan::new(&[step("a", &["zz"])]), Err(PlanError::UnknownDependency { .. })));
    }

    #[test]
    fn completes_by_id_or_name() {
        let mut plan = Plan::new(&[step("Check order", &[]), step("Ship", &["Check order"])]).unwrap();
        assert_eq!(plan.complete("Check order", "found"), Ok("check-order".to_owned()));
        assert_eq!(plan.steps[0].state, StepState::Done);
        plan.steps[1].id = "s2".to_owned();
        assert_eq!(
            plan.complete("Ship", "sent"),
            Ok("s2".to_owned()),
            "a plan from elsewhere has ids of its own"
        );
        plan.steps[1].id = "ship".to_owned();
        let error = plan.complete("nope", "").unwrap_err();
        assert_eq!(error.to_string(), "no step \"nope\"; the plan has: check-order, ship");
    }
}
