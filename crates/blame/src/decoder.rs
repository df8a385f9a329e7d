//! The bad parts that explain the slow tests best.
//!
//! A test is as fast as its slowest part. A part is sound or has a capacity below that; a bad part shows in a test with a
//! probability, and the noise has Student's distribution. Parts are taken one by one, each time the one that raises the
//! probability of all tests most, until none does. Numbers are natural logarithms: rates relative to a sound test, and
//! probabilities, in nats.

#![expect(clippy::indexing_slicing, reason = "parts and tests are numbered by the table that holds them")]

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::Part;
use crate::noise::{Level, median, quantile};

/// The logarithm of a failed test.
pub(crate) const DEAD: f64 = -4.0;
/// The probability that a bad part shows in a test.
const SHOWS: f64 = 0.75;
/// The probability that a test is slow for no lasting reason, and the range in which its rate is: from `DEAD` to 0.3.
const CHANCE: f64 = 0.005;
const RANGE: f64 = 4.3;
/// The factor of Student's distribution with 5 degrees of freedom: Γ(3) / (Γ(2.5) √(5π)).
const STUDENT: f64 = 0.379_606_689_822_494_4;
/// What choosing a capacity costs, in nats.
const FIT: f64 = 2.0;
/// The probability that other tests use an uplink at the same time, and how far below its capacity a test is then: to an eighth.
const SHARED: f64 = 0.25;
const SHARED_RANGE: f64 = 2.08;
/// How many tests without another bad part, all of them fast, make an uplink sound.
const ALONE: usize = 3;

/// The tests and the parts that they use, by numbers.
#[derive(Debug, Default)]
pub(crate) struct Table {
    parts: Vec<Part>,
    /// The parts of each test.
    parts_of: Vec<Vec<usize>>,
    /// The tests of each part.
    tests_of: Vec<Vec<usize>>,
}

impl Table {
    pub(crate) fn new(tests: &[Vec<Part>]) -> Self {
        let known = tests.iter().flatten().copied().collect::<BTreeSet<_>>();
        let number = known.iter().copied().zip(0..).collect::<BTreeMap<_, usize>>();
        let parts_of =
            tests.iter().map(|parts| parts.iter().map(|part| number[part]).collect()).collect::<Vec<Vec<usize>>>();
        let mut tests_of = vec![Vec::new(); known.len()];
        for (test, parts) in parts_of.iter().enumerate() {
            for part in parts {
                tests_of[*part].push(test);
            }
        }
        Self { parts: known.into_iter().collect(), parts_of, tests_of }
    }

    /// The parts that share a test with this one, and itself.
    fn neighbours(&self, part: usize) -> BTreeSet<usize> {
        self.tests_of[part].iter().flat_map(|test| &self.parts_of[*test]).copied().collect()
    }

    fn tests_of(&self, part: usize) -> &[usize] {
        &self.tests_of[part]
    }

    pub(crate) fn part(&self, number: usize) -> Part {
        self.parts[number]
    }
}

/// The most probable bad parts.
#[derive(Debug)]
pub(crate) struct Explanation<'t> {
    table: &'t Table,
    /// What sound tests are like.
    pub(crate) level: Level,
    /// Tests below it are slow.
    pub(crate) floor: f64,
    /// The tests, relative to the level.
    pub(crate) logs: Vec<f64>,
    /// The bad parts of each test, that of the lowest capacity first.
    bad: Vec<Vec<Bad>>,
    /// The bad parts and their capacities.
    pub(crate) chosen: BTreeMap<usize, f64>,
    /// By how much each other part that is in a slow test would raise the probability of the tests: negative.
    pub(crate) gains: BTreeMap<usize, f64>,
}

/// A bad part.
#[derive(Clone, Copy, Debug)]
struct Bad {
    capacity: f64,
    /// Other tests may use it at the same time.
    is_shared: bool,
}

impl<'t> Explanation<'t> {
    /// The explanation with the most probable of these levels.
    pub(crate) fn best(table: &'t Table, logs: &[f64], levels: Vec<Level>) -> Option<Self> {
        let explanations = levels.into_iter().map(|level| Self::new(table, logs, level));
        explanations.max_by(|a, b| a.evidence().total_cmp(&b.evidence()))
    }

    /// Explains the logarithms of the table's tests.
    fn new(table: &'t Table, logs: &[f64], level: Level) -> Self {
        let logs = logs.iter().map(|log| (log - level.at).max(DEAD)).collect::<Vec<_>>();
        let bad = vec![Vec::new(); logs.len()];
        let (chosen, gains) = Default::default();
        let mut explanation = Self { table, level, floor: level.floor(), logs, bad, chosen, gains };
        explanation.choose();
        explanation
    }

    /// Adds parts to those chosen as long as one raises the probability.
    fn choose(&mut self) {
        let noticed = (-2.0 * self.level.noise).min(-0.03);
        let slow = self.logs.iter().enumerate().filter(|(_, log)| **log < noticed);
        let mut open =
            slow.flat_map(|(test, _)| &self.table.parts_of[test]).map(|part| (*part, self.gain(*part))).collect();
        while let Some((part, capacity)) = best(&open) {
            self.add(part, capacity);
            open.remove(&part);
            for other in self.table.neighbours(part) {
                if let Some(gain) = open.get_mut(&other) {
                    *gain = self.gain(other);
                }
            }
        }
        self.acquit_uplinks();
        self.gains = open.into_iter().map(|(part, (gain, _))| (part, gain)).collect();
    }

    /// Drops the uplinks that are slow only in tests of other chosen parts. The rates of a divided uplink vary so much that another
    /// uplink of its tests explains some of them a little better.
    fn acquit_uplinks(&mut self) {
        for part in self.chosen.keys().copied().collect::<Vec<_>>() {
            let is_uplink = matches!(self.table.part(part), Part::Uplink(_));
            if is_uplink && self.alone(part).len() >= ALONE && self.slow_alone(part).is_empty() {
                self.remove(part);
            }
        }
    }

    fn add(&mut self, part: usize, capacity: f64) {
        let added = self.bad(part, capacity);
        for test in self.table.tests_of(part) {
            let bad = &mut self.bad[*test];
            bad.push(added);
            bad.sort_by(|a, b| a.capacity.total_cmp(&b.capacity));
        }
        self.chosen.insert(part, capacity);
    }

    fn remove(&mut self, part: usize) {
        let Some(capacity) = self.chosen.remove(&part) else { return };
        for test in self.table.tests_of(part) {
            let bad = &mut self.bad[*test];
            bad.remove(bad.partition_point(|other| other.capacity < capacity));
        }
    }

    /// By how much the part, if bad, raises the probability of all tests, and its best capacity.
    fn gain(&self, part: usize) -> (f64, f64) {
        let tests = self.table.tests_of(part);
        let mut slow = tests.iter().map(|test| self.logs[*test]).filter(|log| *log < self.floor).collect::<Vec<_>>();
        slow.sort_by(f64::total_cmp);
        let capacities = [0.1, 0.3, 0.5, 0.7, 0.9, 1.0].into_iter().filter_map(|share| quantile(&slow, share));
        let without = tests.iter().map(|test| self.log_density(*test, None)).sum::<f64>();
        // Of equally good capacities the last is taken: the highest of the tests.
        let with = std::iter::once(self.floor).chain(capacities).map(|capacity| {
            let bad = Some(self.bad(part, capacity));
            let raised = tests.iter().map(|test| self.log_density(*test, bad)).sum::<f64>() - without;
            (cost(self.table.parts[part]) + raised, capacity)
        });
        with.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NEG_INFINITY, self.floor))
    }

    /// The logarithm of the density of a test, with one more bad part of this capacity.
    fn log_density(&self, test: usize, more: Option<Bad>) -> f64 {
        let log = self.logs[test];
        let bad = &self.bad[test];
        let split = more.map_or(0, |more| bad.partition_point(|other| other.capacity < more.capacity));
        // The slowest part shows, else the next one, and if none does, the test is like a sound one.
        let (mut density, mut rest) = (0.0, 1.0);
        for Bad { capacity, is_shared } in bad[..split].iter().chain(&more).chain(&bad[split..]) {
            let distance = log - capacity;
            density += rest * SHOWS * if *is_shared { self.shared_density(distance) } else { self.density(distance) };
            rest *= 1.0 - SHOWS;
        }
        (density + rest * self.density(log)).ln()
    }

    /// The density of a rate that is this far from the capacity of the slowest part.
    fn density(&self, distance: f64) -> f64 {
        let noise = self.level.noise;
        (1.0 - CHANCE) * STUDENT / noise * (1.0 + (distance / noise).powi(2) / 5.0).powi(-3) + CHANCE / RANGE
    }

    /// The density of a rate that is this far from the capacity of a part that other tests may use.
    fn shared_density(&self, distance: f64) -> f64 {
        let is_within = (-SHARED_RANGE..0.0).contains(&distance);
        let shared = if is_within { 1.0 / SHARED_RANGE } else { 0.0 };
        (1.0 - SHARED) * self.density(distance) + SHARED * shared
    }

    fn bad(&self, part: usize, capacity: f64) -> Bad {
        Bad { capacity, is_shared: matches!(self.table.parts[part], Part::Uplink(_)) }
    }

    /// The logarithm of the probability of the tests and of the chosen parts.
    fn evidence(&self) -> f64 {
        let tests = (0..self.logs.len()).map(|test| self.log_density(test, None)).sum::<f64>();
        tests + self.chosen.keys().map(|part| cost(self.table.parts[*part])).sum::<f64>()
    }

    /// By how much a chosen part raises the probability of the tests.
    pub(crate) fn margin(&mut self, part: usize) -> f64 {
        let Some(capacity) = self.chosen.get(&part).copied() else { return 0.0 };
        self.remove(part);
        let gain = self.gain(part).0;
        self.add(part, capacity);
        gain
    }

    /// The part that explains the tests best if this chosen one is sound, and by how much it raises their probability.
    pub(crate) fn rival(&mut self, part: usize) -> Option<(f64, usize)> {
        let capacity = self.chosen.get(&part).copied()?;
        self.remove(part);
        let others = self.table.neighbours(part).into_iter();
        let others = others.filter(|other| *other != part && !self.chosen.contains_key(other));
        let best = others.map(|other| (self.gain(other).0, other)).max_by(|a, b| a.0.total_cmp(&b.0));
        self.add(part, capacity);
        best
    }

    /// The capacity of a chosen part: the middle of its tests in which no other chosen part is.
    pub(crate) fn capacity(&self, part: usize) -> f64 {
        let chosen = self.chosen.get(&part).copied().unwrap_or_default();
        median(self.alone(part).into_iter().map(|test| self.logs[test]).collect()).unwrap_or(chosen)
    }

    /// The tests in which no other chosen part is.
    pub(crate) fn alone(&self, part: usize) -> Vec<usize> {
        self.table.tests_of(part).iter().copied().filter(|test| self.bad[*test].len() == 1).collect()
    }

    /// Those of them that are clearly slow.
    pub(crate) fn slow_alone(&self, part: usize) -> Vec<usize> {
        let mut tests = self.alone(part);
        tests.retain(|test| self.logs[*test] < 0.75 * self.floor);
        tests
    }

    /// No chosen part explains the test.
    pub(crate) fn is_unexplained(&self, test: usize) -> bool {
        self.bad[test].is_empty()
    }
}

/// The open part that raises the probability most, with its capacity, if one does.
fn best(open: &BTreeMap<usize, (f64, f64)>) -> Option<(usize, f64)> {
    let (part, (gain, capacity)) = open.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
    (*gain > 0.0).then_some((*part, *capacity))
}

/// What it costs to call a part bad: the logarithm of the odds before any test, and the choice of its capacity.
fn cost(part: Part) -> f64 {
    let before: f64 = match part {
        Part::Node(_) | Part::Uplink(_) => 1e-2,
        Part::Link(..) => 1e-4,
    };
    (before / (1.0 - before)).ln() - FIT
}

#[cfg(test)]
mod tests;
