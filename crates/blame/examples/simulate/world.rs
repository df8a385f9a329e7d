//! A simulated fleet: nodes on leaves of 16, parts that are slow, noise, and a run from the first round to the verdict.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Direction, Fleet, Node, Outcome, Pair, PairTest, Part, Purpose, SETTLING_ROUNDS, Verdict, decide, survey};

/// A part that is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    pub(crate) part: Part,
    /// The only rail that is slow, or all.
    pub(crate) rail: Option<usize>,
    /// The only direction that is slow, or both.
    pub(crate) direction: Option<Direction>,
    /// What is left of the rate; zero if nothing works.
    pub(crate) capacity: f64,
    /// The probability that a test shows it.
    pub(crate) shows: f64,
    /// The tests of a round that cross it at the same time divide it.
    pub(crate) divided: bool,
}

/// What a part is called, with the rail and the direction that alone are slow.
pub(crate) type Name = (Part, Option<usize>, Option<Direction>);

/// A fleet and what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) fleet: Fleet,
    pub(crate) slow: Vec<Slow>,
    /// How many rails are measured, each way; zero for one rate of the pair.
    pub(crate) rails: usize,
    /// The standard deviation of the noise.
    pub(crate) noise: f64,
    /// The noise has heavy tails: Student's distribution with 4 degrees of freedom.
    pub(crate) tails: bool,
    pub(crate) random: fastrand::Rng,
    /// How many tests of the round cross the uplink of each leaf.
    pub(crate) crossing: BTreeMap<usize, u32>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) verdict: Verdict,
    pub(crate) tests: Vec<PairTest>,
    pub(crate) rounds: usize,
}

impl World {
    /// A sound fleet with 3 % noise. Fleets of 32 nodes and more have leaves of 16.
    pub(crate) fn new(nodes: usize, seed: u64) -> Self {
        let node = |index| Node { leaf: (nodes >= 32).then_some(index / 16), present: true };
        let fleet = Fleet { nodes: (0..nodes).map(node).collect(), expected: None, seed };
        let random = fastrand::Rng::with_seed(seed.wrapping_mul(7919).wrapping_add(17));
        Self { fleet, slow: Vec::new(), rails: 0, noise: 0.03, tails: false, random, crossing: BTreeMap::new() }
    }

    /// Adds a slow part.
    pub(crate) fn with(mut self, part: Part, capacity: f64) -> Self {
        self.slow.push(Slow { part, rail: None, direction: None, capacity, shows: 1.0, divided: false });
        self
    }

    /// Tests pairs from the survey to the last round that settles something.
    pub(crate) fn run(&mut self) -> Run {
        let surveys = survey(&self.fleet);
        let mut rounds = surveys.len();
        let mut tests = Vec::new();
        for pairs in surveys {
            tests.extend(self.round(pairs, Purpose::Survey));
        }
        let mut verdict = decide(&self.fleet, &tests).unwrap_or_default();
        for _ in 0..SETTLING_ROUNDS {
            let pairs = verdict.next_round();
            if pairs.is_empty() {
                break;
            }
            tests.extend(self.round(pairs, Purpose::Settle));
            verdict = decide(&self.fleet, &tests).unwrap_or_default();
            rounds += 1;
        }
        Run { verdict, tests, rounds }
    }

    /// What the tests of a round measure.
    fn round(&mut self, pairs: Vec<Pair>, purpose: Purpose) -> Vec<PairTest> {
        self.crossing.clear();
        for (a, b) in &pairs {
            let leaves = [*a, *b].map(|node| self.leaf(node));
            for leaf in leaves.into_iter().flatten().filter(|_| leaves[0] != leaves[1]) {
                *self.crossing.entry(leaf).or_default() += 1;
            }
        }
        pairs.into_iter().map(|pair| self.test(pair, purpose)).collect()
    }

    /// What a test of the pair measures.
    pub(crate) fn test(&mut self, pair: Pair, purpose: Purpose) -> PairTest {
        let shown = self.slow.clone().into_iter().filter(|slow| self.random.f64() < slow.shows).collect::<Vec<_>>();
        let rates = if self.rails == 0 {
            vec![[Some(self.rate(pair, 0, Direction::Sends, &shown, 0.003, 0.0)), None]]
        } else {
            let shared = self.normal() * self.noise / 2.0;
            let rails = 0..self.rails;
            let mut rate = |rail, way| Some(self.rate(pair, rail, way, &shown, 0.0005, shared));
            rails.map(|rail| [rate(rail, Direction::Sends), rate(rail, Direction::Receives)]).collect()
        };
        PairTest { pair, purpose, outcome: Outcome::Rates(rates) }
    }

    /// The rate of a rail, away from the first node or towards it.
    fn rate(&mut self, (a, b): Pair, rail: usize, way: Direction, shown: &[Slow], chance: f64, shared: f64) -> f64 {
        let leaf_a = self.leaf(a);
        let leaf_b = self.leaf(b);
        let mut left: f64 = 1.0;
        for slow in shown.iter().filter(|slow| slow.rail.is_none_or(|slow| slow == rail)) {
            let at = |first: bool, second: bool| {
                let sends = if way == Direction::Sends { first } else { second };
                let receives = if way == Direction::Sends { second } else { first };
                match slow.direction {
                    None => sends || receives,
                    Some(Direction::Sends) => sends,
                    Some(Direction::Receives) => receives,
                }
            };
            let hit = match slow.part {
                Part::Node(node) => at(node == a, node == b),
                Part::Uplink(of) => leaf_a != leaf_b && at(leaf_a == Some(of), leaf_b == Some(of)),
                Part::Link(low, high) => (a.min(b), a.max(b)) == (low, high),
            };
            if hit {
                let others = match slow.part {
                    Part::Uplink(leaf) if slow.divided => self.crossing.get(&leaf).map_or(0, |tests| tests - 1),
                    _ => 0,
                };
                let users = if others > 0 { 1.0 + self.random.f64() * f64::from(others) } else { 1.0 };
                left = left.min(slow.capacity / users);
            }
        }
        if self.random.f64() < chance {
            left *= 0.3 + 0.5 * self.random.f64();
        }
        let mut noise = self.normal();
        if self.tails {
            let square = -(self.random.f64().max(1e-12) * self.random.f64().max(1e-12)).ln();
            noise /= (square / 2.0).sqrt();
        }
        50.0 * left * (shared + self.noise * noise).exp()
    }

    fn leaf(&self, node: usize) -> Option<usize> {
        self.fleet.nodes.get(node)?.leaf
    }

    /// A number of the normal distribution.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.random.f64()).cos()
    }

    /// What is wrong.
    pub(crate) fn truth(&self) -> BTreeSet<Name> {
        self.slow.iter().map(|slow| (slow.part, slow.rail, slow.direction)).collect()
    }
}

/// What the verdict blames, as precisely as it was measured.
pub(crate) fn blamed(verdict: &Verdict) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    for (part, fault) in verdict.bad() {
        let direction =
            fault.scope.direction().filter(|_| fault.scope.slow.len() != fault.scope.rails || fault.scope.rails > 1);
        match fault.scope.rails() {
            Some(rails) => names.extend(rails.into_iter().map(|rail| (part, Some(rail), direction))),
            None => names.extend([(part, None, direction)]),
        }
    }
    names
}

/// The cases of the table of the README, for one seed.
pub(crate) fn cases(nodes: usize, seed: u64) -> Vec<(&'static str, World)> {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(104_729).wrapping_add(nodes as u64));
    let leaves = nodes / 16;
    let world = World::new(nodes, seed);
    let mut some = |count: usize| random.choose_multiple(0..nodes, count);
    let at = |chosen: Vec<usize>, capacity: f64| {
        chosen.into_iter().fold(World::new(nodes, seed), |world, node| world.with(Part::Node(node), capacity))
    };
    let mut cases = vec![
        ("nothing", world.clone()),
        ("nothing, noise 8 %", World { noise: 0.08, ..world.clone() }),
        ("nothing, heavy tails", World { tails: true, ..world.clone() }),
        ("1 node at half", at(some(1), 0.5)),
        ("2 nodes at half", at(some(2), 0.5)),
        ("3 nodes at half", at(some(3), 0.5)),
    ];
    let mut chosen = some(3);
    let dead = chosen.pop().unwrap_or_default();
    cases.push(("2 nodes at half, 1 dead", at(chosen, 0.5).with(Part::Node(dead), 0.0)));
    cases.push(("5 % of the nodes at half", at(some((nodes / 20).max(1)), 0.5)));
    cases.push(("1 node at 88 %", at(some(1), 0.88)));
    cases.push(("3 nodes at 88 %", at(some(3), 0.88)));
    cases.push(("1 node at 88 %, heavy tails", World { tails: true, ..at(some(1), 0.88) }));
    cases.push(("1 node at 88 %, noise 1 %", World { noise: 0.01, ..at(some(1), 0.88) }));
    let mut sometimes = at(some(1), 0.5);
    sometimes.slow.iter_mut().for_each(|slow| slow.shows = 0.7);
    cases.push(("1 node at half in 70 % of its tests", sometimes));
    if (6..32).contains(&nodes) {
        cases.push(("1 uplink at half, divided among tests", divided(nodes, seed)));
    }
    if leaves > 1 {
        let leaf = random.usize(..leaves);
        let inside = 16 * leaf + random.usize(..16);
        let outside = (16 * (leaf + 1) + random.usize(..16)) % nodes;
        let uplink = |capacity| World::new(nodes, seed).with(Part::Uplink(leaf), capacity);
        cases.push(("1 uplink at half", uplink(0.5)));
        let both = uplink(0.5).with(Part::Node(inside), 0.5).with(Part::Node(outside), 0.5);
        cases.push(("1 uplink, 1 node behind it, 1 elsewhere, at half", both));
        cases.push(("1 uplink at 70 %, 1 node at 88 %", uplink(0.7).with(Part::Node(outside), 0.88)));
        if leaves > 8 {
            let other = (leaf + 1 + random.usize(..leaves - 1)) % leaves;
            cases.push(("2 uplinks at half", uplink(0.5).with(Part::Uplink(other), 0.5)));
        }
    }
    cases
}

/// The case of an uplink that sends half of what one node sends, and that tests share, with leaves of three.
fn divided(nodes: usize, seed: u64) -> World {
    let mut world = World { rails: 2, noise: 0.01, ..World::new(nodes, seed) };
    world.fleet.nodes.iter_mut().enumerate().for_each(|(index, node)| node.leaf = Some(index * 3 / nodes));
    let part = Part::Uplink((seed % 3) as usize);
    let direction = Some(Direction::Sends);
    world.slow.push(Slow { part, rail: None, direction, capacity: 0.5, shows: 1.0, divided: true });
    world
}

/// The cases with 8 rails.
pub(crate) fn rail_cases(nodes: usize, seed: u64) -> Vec<(&'static str, World)> {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(31).wrapping_add(nodes as u64));
    let leaves = nodes / 16;
    let world = World { rails: 8, ..World::new(nodes, seed) };
    let mut nics = |count: usize, capacity: f64| {
        let mut world = world.clone();
        for node in random.choose_multiple(0..nodes, count) {
            let rail = Some(random.usize(..8));
            world.slow.push(Slow {
                part: Part::Node(node),
                rail,
                direction: None,
                capacity,
                shows: 1.0,
                divided: false,
            });
        }
        world
    };
    let mut cases = vec![
        ("nothing", nics(0, 1.0)),
        ("1 NIC at half", nics(1, 0.5)),
        ("2 NICs at half", nics(2, 0.5)),
        ("3 NICs at half", nics(3, 0.5)),
        ("1 NIC at 85 %", nics(1, 0.85)),
    ];
    let mut one_way = nics(1, 0.5);
    one_way.slow.iter_mut().for_each(|slow| slow.direction = Some(Direction::Sends));
    cases.push(("1 NIC at half, sending only", one_way));
    let mut node = nics(2, 0.5);
    node.slow.iter_mut().take(1).for_each(|slow| slow.rail = None);
    cases.push(("1 node at half, 1 NIC elsewhere at half", node));
    if leaves > 1 {
        let leaf = random.usize(..leaves);
        let rail = Some(random.usize(..8));
        let uplink =
            Slow { part: Part::Uplink(leaf), rail, direction: None, capacity: 0.5, shows: 1.0, divided: false };
        cases.push(("1 uplink of 1 rail at half", World { slow: vec![uplink], ..world.clone() }));
        let nic = Slow { part: Part::Node(16 * leaf + random.usize(..16)), rail: Some(random.usize(..8)), ..uplink };
        cases.push(("that, and 1 NIC behind it at half", World { slow: vec![uplink, nic], ..world }));
    }
    cases
}
