//! What the program is asked to do. The whole form, with its defaults, stands in `payload/plan.py`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// The steps in their order, the seconds that each may take, and whether it runs without being asked for.
const STEPS: &[(&str, u64, bool)] = &[
    ("limits", 20, true),
    ("gpus", 60, true),
    ("topology", 60, true),
    ("rdma", 90, true),
    ("pytorch", 180, true),
    ("collectives", 600, true),
    ("forced-network", 300, false),
    ("what-if", 900, false),
];

/// A plan. What is not given has the program's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Plan {
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

impl Plan {
    /// A plan of these steps, or of those that run without being asked for.
    pub fn new(steps: &[String]) -> Result<Self, String> {
        if let Some(odd) = steps.iter().find(|step| STEPS.iter().all(|(name, ..)| name != step)) {
            let names: Vec<_> = STEPS.iter().map(|(name, ..)| *name).collect();
            return Err(format!("there is no step '{odd}'; there are {}", names.join(", ")));
        }
        let wanted =
            |name: &str, default: bool| if steps.is_empty() { default } else { steps.iter().any(|step| step == name) };
        let chosen = STEPS.iter().filter(|(name, _, default)| wanted(name, *default));
        let steps = chosen.map(|(name, ..)| (*name).to_owned()).collect();
        Ok(Self { steps, ..Self::default() }.with_deadlines())
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
        let chosen = STEPS.iter().filter(|(name, ..)| self.steps.iter().any(|step| step == name));
        self.deadlines = chosen.map(|(name, seconds, _)| ((*name).to_owned(), *seconds)).collect();
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
        let plan = Plan::new(&["collectives".to_owned(), "limits".to_owned()]).unwrap();
        assert_eq!(plan.steps, ["limits", "collectives"]);
        assert_eq!(plan.limit(), Duration::from_secs(740));
        let more = Plan::new(&[]).unwrap().and("what-if").and("limits");
        assert_eq!(more.steps.last().unwrap(), "what-if");
        assert_eq!(more.deadlines.len(), more.steps.len());
        assert!(Plan::new(&["nccl".to_owned()]).unwrap_err().contains("there are limits, gpus"));
    }
}
