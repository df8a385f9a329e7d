//! What the program is asked to do. The whole form, with its defaults, stands in `payload/plan.py`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::steps::{self, StepRow};

/// A plan. What is not given has the program's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProbePlan {
    /// Names of the steps, in their order.
    pub steps: Vec<String>,
    /// Seconds that each of them may take.
    pub deadlines: BTreeMap<String, u64>,
    /// The program ends when its standard input does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lifeline: bool,
    /// About the step `collectives`.
    pub collectives: Collectives,
    /// About the step `what-if`.
    pub what_if: WhatIf,
}

/// About the step `collectives`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Collectives {
    /// Few sizes and little time.
    pub quick: bool,
    /// Bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<u64>,
    /// Seconds without progress after which ranks are taken to hang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_seconds: Option<u32>,
    /// A hang on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep_rank: Option<SleepRank>,
    /// Names of operations, if not all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// Whether the cost of the first call between two ranks is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_to_point: Option<bool>,
    /// The ranks of this container among those of others; if not given, all are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<World>,
}

/// Ranks of one container among those of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct World {
    /// How many are here.
    pub gpus: u32,
    /// The first of them.
    pub offset: u32,
    /// How many there are in all.
    pub size: u32,
    /// The port at which all meet.
    pub master_port: u16,
}

/// A rank that sleeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SleepRank {
    /// Which.
    pub rank: u32,
    /// Before which operation.
    pub before: String,
}

/// About the step `what-if`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WhatIf {
    /// Variables of each variant.
    pub variants: Vec<BTreeMap<String, String>>,
}

impl ProbePlan {
    /// A plan of these steps, or of those that run without being asked for.
    pub fn new(steps: &[String]) -> Result<Self, String> {
        if let Some(odd) = steps.iter().find(|step| steps::rows().iter().all(|row| row.name != **step)) {
            return Err(format!("there is no step '{odd}'; there are {}", steps::names()));
        }
        if steps.is_empty() {
            return Ok(Self::default_steps());
        }
        let is_wanted = |row: &&StepRow| steps.contains(&row.name);
        let steps = steps::rows().iter().filter(is_wanted).map(|row| row.name.clone()).collect();
        Ok(Self { steps, ..Self::default() }.with_deadlines())
    }

    /// A plan of the steps that run without being asked for.
    pub fn default_steps() -> Self {
        let steps = steps::rows().iter().filter(|row| row.default).map(|row| row.name.clone()).collect();
        Self { steps, ..Self::default() }.with_deadlines()
    }

    /// The same with one step more.
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

    /// How long all of it may take.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.deadlines.values().sum::<u64>() + 120)
    }

    /// As the program takes it.
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
        assert!(ProbePlan::new(&["nccl".to_owned()]).unwrap_err().contains("there are limits, storage, gpus"));
    }
}
