//! How long a run waits for nodes.

use std::time::Duration;

/// Limits of the time that a run takes.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// The longest time until the last node has ended.
    pub budget: Duration,
    /// Once more than half of the nodes have ended, the others have this time since the start, or three times the time of those,
    /// whichever is longer.
    pub patience: Duration,
    /// The times in which a command ends by itself, at the end of its input and after the signal to terminate.
    pub endings: [Duration; 2],
}

/// The time in which a run ends once its tests are over.
pub(super) const END_TIME: Duration = Duration::from_secs(10);

/// The longest time of a test, before others show how long it takes; and the shortest limit after that.
const LONGEST_TEST: Duration = Duration::from_secs(30);
const SHORTEST_LIMIT: Duration = Duration::from_secs(6);

/// The longest time without output of a node that is in a test or whose ranks start. It reports every 3 seconds that it is alive.
pub(super) const LONGEST_SILENCE: Duration = Duration::from_secs(12);

/// Times that a slow node may take longer than most nodes: a factor that cold caches and other jobs explain.
const SLOWER: u32 = 3;

impl RunLimits {
    /// The time since the start until which a run of this many nodes waits. `ended` has the times of the nodes whose program
    /// came to its end, in order.
    pub(super) fn until(&self, ended: &[Duration], nodes: usize) -> Duration {
        // A node that fails at once says nothing about the time that others need.
        ended.get(nodes / 2).map_or(self.budget, |most| self.patience.max(*most * SLOWER).min(self.budget))
    }

    /// The time that a test has, by the seconds of earlier ones.
    pub(super) fn test(&self, seconds: &[f64]) -> Duration {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).and_then(|median| Duration::try_from_secs_f64(*median).ok());
        let limit = median.map_or(LONGEST_TEST, |median| SHORTEST_LIMIT.max(median * SLOWER).min(LONGEST_TEST));
        limit.min(self.budget)
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            budget: Duration::from_mins(10),
            patience: Duration::from_secs(15),
            endings: [3, 10].map(Duration::from_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_nodes_decide_how_long_the_others_have() {
        let limits = RunLimits { budget: Duration::from_secs(100), ..RunLimits::default() };
        let until = |ended: &[u64], nodes| {
            let ended: Vec<_> = ended.iter().copied().map(Duration::from_secs).collect();
            limits.until(&ended, nodes).as_secs()
        };
        assert_eq!(until(&[], 2), 100);
        // Half is not most.
        assert_eq!([until(&[1], 2), until(&[1, 2], 4), until(&[1, 2, 3], 4)], [100, 100, 15]);
        assert_eq!([until(&[1, 6], 3), until(&[1, 6, 50], 5), until(&[1], 1)], [18, 100, 15]);
    }
}
