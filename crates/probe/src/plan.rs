//! The plan that the program receives. `payload/plan.py` documents all of its fields, with their defaults.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use model::suggestion_or_all;

use super::steps::{self, StepRow};

/// A plan. The program has defaults for fields that are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProbePlan {
    /// Names of the steps, in order.
    pub steps: Vec<String>,
    /// Time limit of each step, in seconds.
    pub deadlines: BTreeMap<String, u64>,
    /// True if the program ends when its standard input ends.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lifeline: bool,
    /// Options of the step `collectives`.
    pub collectives: Collectives,
    /// Options of the step `what-if`.
    pub what_if: WhatIf,
}

/// Options of the step `collectives`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Collectives {
    /// True to measure few sizes for a short time.
    pub quick: bool,
    /// Sizes in bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u64>,
    /// Seconds without progress after which ranks count as hung.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_seconds: Option<u32>,
    /// A deliberate hang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep_rank: Option<SleepRank>,
    /// Names of operations; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// True to measure the cost of the first call between two ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_to_point: Option<bool>,
    /// Ranks of this container in a job of several containers; `None` if this container has all ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<World>,
}

/// Ranks of one container in a job of several containers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct World {
    /// Number of ranks in this container.
    pub gpus: u32,
    /// First rank of this container.
    pub offset: u32,
    /// Number of ranks in all containers.
    pub size: u32,
    /// Port of the rendezvous.
    pub master_port: u16,
}

/// A rank that sleeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SleepRank {
    /// The rank.
    pub rank: u32,
    /// Operation before which the rank sleeps.
    pub before: String,
}

/// Options of the step `what-if`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WhatIf {
    /// Environment variables of each variant.
    pub variants: Vec<BTreeMap<String, String>>,
}

impl ProbePlan {
    /// Creates a plan of these steps, or of the default steps if `steps` is empty. Returns an error for an unknown
    /// step.
    pub fn new(steps: &[String]) -> Result<Self, String> {
        if let Some(odd) = steps.iter().find(|step| steps::rows().iter().all(|row| row.name != **step)) {
            let names = steps::rows().iter().map(|row| &*row.name);
            return Err(format!("unknown step '{odd}'; {}", suggestion_or_all(odd, names)));
        }
        if steps.is_empty() {
            return Ok(Self::default_steps());
        }
        let is_wanted = |row: &&StepRow| steps.contains(&row.name);
        let steps = steps::rows().iter().filter(is_wanted).map(|row| row.name.clone()).collect();
        Ok(Self { steps, ..Self::default() }.with_deadlines())
    }

    /// Creates a plan of the default steps.
    pub fn default_steps() -> Self {
        let steps = steps::rows().iter().filter(|row| row.default).map(|row| row.name.clone()).collect();
        Self { steps, ..Self::default() }.with_deadlines()
    }

    /// Adds a step, unless the plan has it.
    #[must_use]
    pub fn and(mut self, step: &str) -> Self {
        if !self.steps.iter().any(|other| other == step) {
            self.steps.push(step.to_owned());
        }
        self.with_deadlines()
    }

    fn with_deadlines(mut self) -> Self {
        let chosen = steps::rows().iter().filter(|row| self.steps.contains(&row.name));
        self.deadlines = chosen.map(|row| (row.name.clone(), row.deadline)).collect();
        self
    }

    /// Time limit of the whole plan.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.deadlines.values().sum::<u64>() + 120)
    }

    /// Serializes the plan for the program.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_their_order() {
        let plan = ProbePlan::new(&["collectives".to_owned(), "limits".to_owned()]).unwrap();
        assert_eq!(plan.steps, ["limits", "collectives"]);
        assert_eq!(plan.limit(), Duration::from_secs(740));
        let more = ProbePlan::new(&[]).unwrap().and("what-if").and("limits");
        assert_eq!(more.steps.last().unwrap(), "what-if");
        assert_eq!(more.deadlines.len(), more.steps.len());
        assert!(ProbePlan::new(&["nccl".to_owned()]).unwrap_err().contains("available: limits, storage, gpus"));
    }
}
