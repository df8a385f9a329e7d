//! Rates over the reference of their rail, and which rails and directions of a bad part are slow.

use std::collections::{BTreeMap, BTreeSet};

use crate::decoder::{DEAD, Explanation, Table};
use crate::fleet::{Fleet, Outcome, PairTest, Part, Purpose};
use crate::noise::{Level, levels, median};

/// A direction, seen from a node, from a leaf, or from the lower node of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Away from it.
    Sends,
    /// Towards it.
    Receives,
}

/// The rails and directions of a bad part that are slow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// The slow ones, by rail and direction, and their capacity as a fraction of a sound rail. Empty where none is slow in more
    /// than half of its tests, or where no test with sound partners shows them.
    pub slow: BTreeMap<(usize, Direction), f64>,
    /// How many rails were measured.
    pub rails: usize,
}

impl Scope {
    /// The rails that are slow; none where all are, or where it is unknown.
    pub fn rails(&self) -> Option<BTreeSet<usize>> {
        let rails = self.slow.keys().map(|(rail, _)| *rail).collect::<BTreeSet<_>>();
        (!rails.is_empty() && rails.len() < self.rails).then_some(rails)
    }

    /// The direction that is slow; none where both are, or where it is unknown.
    pub fn direction(&self) -> Option<Direction> {
        let mut directions = self.slow.keys().map(|(_, direction)| *direction);
        let first = directions.next()?;
        directions.all(|direction| direction == first).then_some(first)
    }
}

/// The rates of the tests, as logarithms over the reference of their rail.
#[derive(Debug)]
pub(crate) struct Rates {
    /// Those of each test by rail, from the first node to the second and back; none where the test failed.
    tests: Vec<Option<Vec<[Option<f64>; 2]>>>,
    /// The rate of a sound pair, by rail; none where no survey measured it.
    pub(crate) references: Vec<Option<Level>>,
}

impl Rates {
    pub(crate) fn new(fleet: &Fleet, tests: &[PairTest]) -> Self {
        let rails = |test: &PairTest| match &test.outcome {
            Outcome::Failed => None,
            Outcome::Rates(rates) => Some(rates.len()),
        };
        let count = tests.iter().filter_map(rails).max().unwrap_or_default();
        let references = (0..count).map(|rail| reference(fleet, tests, rail)).collect::<Vec<_>>();
        let over = |rates: &[[Option<f64>; 2]]| {
            let pairs = rates.iter().zip(&references);
            pairs.map(|(rates, reference)| rates.map(|rate| over_reference(rate?, *reference))).collect()
        };
        let tests = tests.iter().map(|test| match &test.outcome {
            Outcome::Failed => None,
            Outcome::Rates(rates) => Some(over(rates)),
        });
        Self { tests: tests.collect(), references }
    }

    /// The slowest rate of a test; none if it measured nothing.
    pub(crate) fn worst(&self, test: usize) -> Option<f64> {
        let Some(rates) = self.tests.get(test)? else { return Some(DEAD) };
        rates.iter().flatten().flatten().copied().min_by(f64::total_cmp)
    }

    /// The rails and directions of a part that are slow in most of these tests: below the floor, as a logarithm.
    pub(crate) fn scope(&self, part: Part, fleet: &Fleet, tests: &[(usize, &PairTest)], floor: f64) -> Scope {
        let mut seen = BTreeMap::<_, Vec<f64>>::new();
        for (number, test) in tests {
            let ways = if leaves_first(part, fleet, test) {
                [Direction::Sends, Direction::Receives]
            } else {
                [Direction::Receives, Direction::Sends]
            };
            for rail in 0..self.references.len() {
                let rates = match self.tests.get(*number) {
                    Some(Some(rates)) => rates.get(rail).copied().unwrap_or_default(),
                    _ => [Some(DEAD); 2],
                };
                for (way, rate) in ways.into_iter().zip(rates) {
                    seen.entry((rail, way)).or_default().extend(rate);
                }
            }
        }
        let medians = seen.into_iter().filter_map(|(key, rates)| Some((key, median(rates)?))).collect::<Vec<_>>();
        let worst = medians.iter().map(|(_, log)| *log).fold(0.0, f64::min);
        // Beside a rail that is much slower, a small loss of another one is more often noise.
        let clear = if worst < 2.0 * floor { floor } else { 0.75 * floor };
        let slow = medians.into_iter().filter(|(_, log)| *log < clear);
        Scope { slow: slow.map(|(key, log)| (key, capacity(log))).collect(), rails: self.references.len() }
    }
}

/// A capacity as a fraction of a sound one.
pub(crate) fn capacity(log: f64) -> f64 {
    if log - 0.5 <= DEAD { 0.0 } else { log.exp() }
}

/// The first rate of the test leads away from the part.
fn leaves_first(part: Part, fleet: &Fleet, test: &PairTest) -> bool {
    let (first, _) = test.pair;
    match part {
        Part::Node(node) | Part::Link(node, _) => node == first,
        Part::Uplink(leaf) => fleet.leaf(first) == Some(leaf),
    }
}

/// The rate of a sound pair on a rail.
fn reference(fleet: &Fleet, tests: &[PairTest], rail: usize) -> Option<Level> {
    let survey = tests.iter().filter(|test| test.purpose == Purpose::Survey);
    let rates = survey.filter_map(|test| match &test.outcome {
        Outcome::Rates(rates) => Some((test.pair, rates.get(rail)?)),
        Outcome::Failed => None,
    });
    let rates =
        rates.flat_map(|(pair, rates)| rates.iter().flatten().map(move |rate| (pair, *rate))).collect::<Vec<_>>();
    if !rates.is_empty() && rates.iter().all(|(_, rate)| !works(*rate)) {
        return Some(NEVER);
    }
    let rates = rates.into_iter();
    let (pairs, logs): (Vec<_>, Vec<_>) =
        rates.filter(|(_, rate)| works(*rate)).map(|(pair, rate)| (pair, rate.ln())).unzip();
    let levels = levels(logs.clone());
    if let [only] = levels[..] {
        return Some(only);
    }
    let table = Table::new(&pairs.into_iter().map(|pair| fleet.parts(pair)).collect::<Vec<_>>());
    Explanation::best(&table, &logs, levels).map(|explanation| explanation.level)
}

/// The level of a rail that works in no test: the logarithm of zero.
const NEVER: Level = Level { at: f64::NEG_INFINITY, noise: 0.0 };

/// The rate can be one.
fn works(rate: f64) -> bool {
    rate.is_finite() && rate > 0.0
}

/// A rate over the reference; none if the rail has no reference, or works in no test, for which no node is to blame.
fn over_reference(rate: f64, reference: Option<Level>) -> Option<f64> {
    let reference = reference.filter(|level| level.at.is_finite())?;
    Some(if works(rate) { (rate.ln() - reference.at).max(DEAD) } else { DEAD })
}

#[cfg(test)]
mod tests;
