//! From the most probable explanation to a verdict: what is sure enough to blame, what is seen to be sound, and what is neither.

use std::collections::{BTreeMap, BTreeSet};

use crate::decoder::{DEAD, Explanation, Table};
use crate::fleet::{Fleet, InputError, Pair, PairTest, Part, Purpose};
use crate::noise::{levels, median};
use crate::rails::{Rates, capacity};
use crate::rounds::Settling;
use crate::verdict::{Common, Doubt, Fault, State, Verdict, Why};

/// By how many nats a part that is blamed makes the tests more probable, and by how many more than any other part.
const SURE: f64 = 6.0;
const CLEAR: f64 = 3.0;
/// By how many nats a part that is in slow tests must make the tests less probable, to be in no doubt.
const CLEARED: f64 = 4.0;
/// How many slow tests blame a part or a link, and of how many pairs those of a part are.
const SLOW: usize = 3;
const SLOW_LINK: usize = 2;
const PARTNERS: usize = 2;
/// How many fast tests make a part sound.
const FAST: usize = 2;
/// Nodes that are faster among themselves than the reference are a group if they are one in so many.
const GROUP: usize = 10;

/// Decides which parts of the fleet are bad.
///
/// # Errors
///
/// An error names a test that cannot be one of the fleet's.
pub fn decide(fleet: &Fleet, tests: &[PairTest]) -> Result<Verdict, InputError> {
    fleet.check(tests)?;
    let rates = Rates::new(fleet, tests);
    let present = fleet.present().into_iter().collect::<BTreeSet<_>>();
    let is_read = |test: &PairTest| present.contains(&test.pair.0) && present.contains(&test.pair.1);
    let tests = tests.iter().enumerate().filter(|(_, test)| is_read(test));
    let read = tests.filter_map(|(index, test)| Some(Read { index, test, worst: rates.worst(index)? }));
    let tests = read.collect::<Vec<_>>();
    let table = Table::new(&tests.iter().map(|read| fleet.parts(read.test.pair)).collect::<Vec<_>>());
    let logs = tests.iter().map(|read| read.worst).collect::<Vec<_>>();
    let survey = tests.iter().filter(|read| read.test.purpose == Purpose::Survey && read.worst > DEAD);
    let levels = levels(survey.map(|read| read.worst).collect());
    Ok(match Explanation::best(&table, &logs, levels) {
        Some(explanation) => Judge { fleet, tests, rates, table: &table, explanation }.verdict(),
        None => without_rates(fleet),
    })
}

/// The verdict where no test of a survey has a rate.
fn without_rates(fleet: &Fleet) -> Verdict {
    let why = State::Undecided(Doubt { why: Why::NoRate, pairs: Vec::new() });
    let nodes = fleet.nodes.iter().map(|node| if node.present { why.clone() } else { State::Absent });
    Verdict { nodes: nodes.collect(), ..Verdict::default() }
}

/// A test that measured something.
struct Read<'a> {
    index: usize,
    test: &'a PairTest,
    worst: f64,
}

/// What a verdict is made of.
struct Judge<'a> {
    fleet: &'a Fleet,
    tests: Vec<Read<'a>>,
    rates: Rates,
    table: &'a Table,
    explanation: Explanation<'a>,
}

/// The chosen parts: what is wrong with them, or why it is not sure that anything is.
type Findings = BTreeMap<Part, Result<Fault, Why>>;

impl Judge<'_> {
    fn verdict(mut self) -> Verdict {
        let findings = self.findings();
        let levels = &self.rates.references;
        let references = levels.iter().map(|level| level.map(|level| level.at.exp())).collect::<Vec<_>>();
        let floors = levels.iter().flatten().map(|level| level.floor());
        let unseen_loss = 1.0 - floors.fold(self.explanation.floor, f64::min).exp();
        let common = common(self.fleet.expected, &references, unseen_loss);
        let doubts = self.doubts(&findings, &common);
        let mut pairs = self.pairs(&findings, &doubts);
        let fast = self.fast();

        let mut state = |part: Part| match (doubts.get(&part), findings.get(&part)) {
            (Some(why), _) => State::Undecided(Doubt { why: *why, pairs: pairs.remove(&part).unwrap_or_default() }),
            (None, Some(Ok(fault))) => State::Bad(fault.clone()),
            (None, _) => State::Sound { fast: fast.get(&part).copied().unwrap_or_default() },
        };
        let nodes = self.fleet.nodes.iter().enumerate();
        let nodes = nodes.map(|(node, known)| if known.present { state(Part::Node(node)) } else { State::Absent });
        let nodes = nodes.collect();
        let uplinks = self.leaves().into_iter().map(|leaf| (leaf, state(Part::Uplink(leaf)))).collect();
        let link = |part: &Part| if let Part::Link(a, b) = part { Some((*a, *b)) } else { None };
        let links = doubts.keys().chain(findings.keys()).filter_map(link).collect::<BTreeSet<_>>();
        let links = links.into_iter().map(|(a, b)| ((a, b), state(Part::Link(a, b)))).collect();
        Verdict { nodes, uplinks, links, references, noise: self.explanation.level.noise, unseen_loss, common }
    }

    /// Separates the chosen parts that can be blamed from the others.
    fn findings(&mut self) -> Findings {
        let mut findings = Findings::new();
        for number in self.explanation.chosen.keys().copied().collect::<Vec<_>>() {
            let margin = self.explanation.margin(number);
            let rival = self.explanation.rival(number).filter(|(gain, _)| *gain > margin - CLEAR);
            let fault = self.fault(number, margin);
            // Tests that are slow on another rail each time are slow by chance.
            let is_scattered = fault.scope.rails > 1 && fault.scope.slow.is_empty();
            let finding = match rival {
                _ if margin < SURE || is_scattered || !self.is_shown(number) => Err(Why::WeakEvidence),
                Some((_, rival)) => Err(Why::Rival(self.table.part(rival))),
                None => Ok(fault),
            };
            findings.insert(self.table.part(number), finding);
        }
        findings
    }

    /// The part is slow enough, in enough tests that nothing else explains.
    fn is_shown(&self, number: usize) -> bool {
        let slow = self.explanation.slow_alone(number);
        let pairs = slow.iter().filter_map(|test| self.tests.get(*test)).map(|read| Part::link(read.test.pair));
        let is_often = match self.table.part(number) {
            Part::Link(..) => slow.len() >= SLOW_LINK,
            Part::Node(_) | Part::Uplink(_) => slow.len() >= SLOW && pairs.collect::<BTreeSet<_>>().len() >= PARTNERS,
        };
        is_often && self.explanation.capacity(number) < self.explanation.floor / 2.0
    }

    fn fault(&self, number: usize, margin: f64) -> Fault {
        let part = self.table.part(number);
        let tests = |tests: Vec<usize>| tests.into_iter().filter_map(|test| self.tests.get(test)).collect::<Vec<_>>();
        let alone = tests(self.explanation.alone(number)).into_iter().map(|read| (read.index, read.test));
        Fault {
            capacity: capacity(self.explanation.capacity(number)),
            scope: self.rates.scope(part, self.fleet, &alone.collect::<Vec<_>>(), self.explanation.floor),
            evidence: tests(self.explanation.slow_alone(number)).iter().map(|read| read.index).collect(),
            margin,
        }
    }

    /// The parts that are neither blamed nor seen to be sound.
    fn doubts(&self, findings: &Findings, common: &[Common]) -> BTreeMap<Part, Why> {
        let nodes = self.fleet.present().into_iter().map(Part::Node).collect::<Vec<_>>();
        let uplinks = self.leaves().into_iter().map(Part::Uplink).collect::<Vec<_>>();
        let all = |why| nodes.iter().chain(&uplinks).map(move |part| (*part, why));
        let is_fast_enough = self.fleet.expected.is_some() && common.is_empty();
        if !is_fast_enough && (nodes.len() < 3 || is_tied(&nodes, findings) || self.has_faster_group(nodes.len())) {
            return all(Why::NoMajority).chain(findings.keys().map(|part| (*part, Why::NoMajority))).collect();
        }
        let mut doubts = BTreeMap::new();
        if self.fleet.expected.is_some() && common.len() == self.rates.references.len() {
            doubts.extend(all(Why::AllSlow).filter(|(part, _)| !findings.contains_key(part)));
        }
        doubts.extend(self.unrepeated(nodes.len()));
        let fast = self.fast();
        let few = |part: &Part| !findings.contains_key(part) && fast.get(part).is_none_or(|fast| *fast < FAST);
        doubts.extend(all(Why::FewTests).filter(|(part, _)| few(part)));
        let near = self.explanation.gains.iter().filter(|(_, gain)| **gain > -CLEARED);
        let near = near.map(|(number, _)| self.table.part(*number)).filter(|part| !matches!(part, Part::Link(..)));
        doubts.extend(near.map(|part| (part, Why::WeakEvidence)));
        doubts.extend(findings.iter().filter_map(|(part, finding)| Some((*part, *finding.as_ref().err()?))));
        if !is_fast_enough && is_tied(&uplinks, findings) {
            doubts.extend(uplinks.iter().map(|part| (*part, Why::NoMajority)));
        }
        doubts
    }

    /// The links whose only test is unusual, without a reason. Among few nodes, a fast one is unusual, too: all others may be slow.
    fn unrepeated(&self, nodes: usize) -> BTreeMap<Part, Why> {
        let tests = self.count(|_, _| true);
        let few = nodes <= 2 * GROUP;
        let floor = self.explanation.floor;
        let is_unusual = |test, log| log < floor && self.explanation.is_unexplained(test) || few && log > -floor;
        let unusual = self.count(is_unusual);
        let links = unusual.into_keys().filter(|part| matches!(part, Part::Link(..)) && tests.get(part) == Some(&1));
        links.map(|link| (link, Why::NotRepeated)).collect()
    }

    /// Some nodes are faster among themselves than the reference, in all their tests: the others may be slow.
    fn has_faster_group(&self, nodes: usize) -> bool {
        let mut logs = BTreeMap::<Pair, Vec<f64>>::new();
        for (read, log) in self.tests.iter().zip(&self.explanation.logs) {
            let (a, b) = read.test.pair;
            logs.entry((a.min(b), a.max(b))).or_default().push(*log);
        }
        logs.retain(|_, logs| logs.len() > 1 && logs.iter().all(|log| *log > -self.explanation.floor));
        let faster = logs.keys().flat_map(|(a, b)| [a, b]).collect::<BTreeSet<_>>();
        !faster.is_empty() && faster.len() * GROUP >= nodes
    }

    /// How many tests of each part are so, by their number and logarithm.
    fn count(&self, is_counted: impl Fn(usize, f64) -> bool) -> BTreeMap<Part, usize> {
        let mut counts = BTreeMap::new();
        for (test, (read, log)) in self.tests.iter().zip(&self.explanation.logs).enumerate() {
            if is_counted(test, *log) {
                for part in self.fleet.parts(read.test.pair) {
                    *counts.entry(part).or_default() += 1;
                }
            }
        }
        counts
    }

    /// How many tests of each part are as fast as sound ones.
    fn fast(&self) -> BTreeMap<Part, usize> {
        self.count(|_, log| log >= self.explanation.floor / 2.0)
    }

    /// The leaves of the nodes that answer, if they are at least two.
    fn leaves(&self) -> BTreeSet<usize> {
        let leaves = self.fleet.present().into_iter().filter_map(|node| self.fleet.leaf(node)).collect::<BTreeSet<_>>();
        if leaves.len() < 2 { BTreeSet::new() } else { leaves }
    }

    /// The pairs of the next round, by the doubt that they settle. Links come first, because only one pair settles each.
    fn pairs(&self, findings: &Findings, doubts: &BTreeMap<Part, Why>) -> BTreeMap<Part, Vec<Pair>> {
        let tested = self.tests.iter().map(|read| read.test.pair).collect::<Vec<_>>();
        let suspects = findings.keys().chain(doubts.keys()).copied().collect();
        let mut settling = Settling::new(self.fleet, &tested, &suspects);
        let (links, others): (Vec<_>, Vec<_>) = doubts.iter().partition(|(part, _)| matches!(part, Part::Link(..)));
        let leaves = self.leaves().len();
        let helps = |(part, why): &(&Part, &Why)| match (part, why) {
            (_, Why::NoMajority | Why::AllSlow) => false,
            // Tests that cross one of two uplinks cross the other, too.
            (Part::Uplink(_), Why::Rival(_) | Why::WeakEvidence) => leaves > 2,
            _ => true,
        };
        let open = links.into_iter().chain(others).filter(helps);
        open.map(|(part, _)| (*part, settling.pairs(*part))).collect()
    }
}

/// Half of the parts of a kind are suspects: which half is sound is unknown.
fn is_tied(parts: &[Part], findings: &Findings) -> bool {
    let suspects = parts.iter().filter(|part| findings.contains_key(part)).count();
    2 * suspects >= parts.len()
}

/// The rails that are slow on all nodes: beside what is expected, or beside the middle one.
fn common(expected: Option<f64>, references: &[Option<f64>], unseen_loss: f64) -> Vec<Common> {
    let Some(expected) = expected.or_else(|| median(references.iter().flatten().copied().collect())) else {
        return Vec::new();
    };
    let rails =
        references.iter().enumerate().filter_map(|(rail, rate)| Some(Common { rail, rate: (*rate)?, expected }));
    rails.filter(|rail| rail.rate < (1.0 - unseen_loss) * expected).collect()
}

#[cfg(test)]
mod tests;
