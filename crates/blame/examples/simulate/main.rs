//! Simulates a fleet in which the NIC of a node and an uplink are slow, and prints the verdict: `simulate [NODES [SEED]]`. With
//! `simulate table NODES SEEDS [CASE]`, runs the cases of the README's table, and prints how many runs name exactly what is wrong.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use blame::{
    Direction, Fleet, Node, Outcome, Pair, PairTest, Part, Purpose, SETTLING_ROUNDS, State, Verdict, decide, survey,
};
use world::{Run, Slow, World, blamed};

mod world;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let number = |place: usize, default: u64| arguments.get(place).map_or(Ok(default), |text| text.parse());
    if arguments.first().is_some_and(|first| first == "table") {
        let case = arguments.get(3).map_or("", String::as_str);
        return table(usize::try_from(number(1, 64)?)?, number(2, 100)?, case);
    }
    let mut world = World { rails: 4, ..World::new(usize::try_from(number(0, 64)?)?, number(1, 1)?) };
    let nic = Slow {
        part: Part::Node(5),
        rail: Some(2),
        direction: Some(Direction::Sends),
        capacity: 0.5,
        shows: 1.0,
        divided: false,
    };
    world.slow.extend([nic, Slow { part: Part::Uplink(1), rail: None, direction: None, ..nic }]);
    let run = world.run();
    let verdict = &run.verdict;
    let mut out = io::stdout().lock();
    writeln!(out, "{} tests in {} rounds", run.tests.len(), run.rounds)?;
    let [noise, unseen] = [verdict.noise, verdict.unseen_loss].map(|share| 100.0 * share);
    writeln!(out, "noise {noise:.1} %, losses below {unseen:.0} % are not seen")?;
    let sound = verdict.nodes.iter().filter(|state| matches!(state, State::Sound { .. })).count();
    writeln!(out, "{sound} of {} nodes are sound", verdict.nodes.len())?;
    for (part, fault) in verdict.bad() {
        let scope = (fault.scope.rails(), fault.scope.direction());
        writeln!(out, "{part:?}: {:.0} % of a sound one, {scope:?}, by these tests:", 100.0 * fault.capacity)?;
        for test in fault.evidence.iter().filter_map(|test| run.tests.get(*test)).take(3) {
            writeln!(out, "  {:?} {:.1?}", test.pair, test.outcome)?;
        }
    }
    for (part, doubt) in verdict.undecided() {
        writeln!(out, "{part:?}: undecided ({:?}), next {:?}", doubt.why, doubt.pairs)?;
    }
    Ok(())
}

fn table(nodes: usize, seeds: u64, only: &str) -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    for cases in [world::cases, world::rail_cases] {
        for (number, (name, _)) in cases(nodes, 0).into_iter().enumerate().filter(|(_, (name, _))| name.contains(only))
        {
            let mut counts = Counts::default();
            for seed in 0..seeds {
                counts.add(&mut cases(nodes, seed).swap_remove(number).1);
            }
            writeln!(out, "{name:48} {nodes:4} nodes: {}", counts.text())?;
        }
    }
    Ok(())
}

/// What the runs of a case show.
#[derive(Default)]
struct Counts {
    /// They name exactly what is wrong.
    exact: usize,
    /// They blame a sound node.
    wrong_node: usize,
    /// They blame a sound uplink or link.
    wrong_other: usize,
    /// They call a part sound that has a loss which they say they can see.
    missed: usize,
    undecided: usize,
    rounds: Vec<usize>,
    /// The longest decision.
    longest: Duration,
}

impl Counts {
    fn add(&mut self, world: &mut World) {
        let Run { verdict, tests, rounds } = world.run();
        let begun = Instant::now();
        std::hint::black_box(decide(&world.fleet, &tests)).ok();
        self.longest = self.longest.max(begun.elapsed());
        let truth = world.truth();
        let slow = truth.iter().map(|(part, ..)| *part).collect::<BTreeSet<_>>();
        let wrong = verdict.bad().into_keys().filter(|part| !slow.contains(part)).collect::<Vec<_>>();
        let is_node = |part: &Part| matches!(part, Part::Node(_));
        let is_missed = |slow: &Slow| {
            1.0 - slow.capacity > verdict.unseen_loss && matches!(verdict.state(slow.part), Some(State::Sound { .. }))
        };
        self.exact += usize::from(blamed(&verdict) == truth);
        self.wrong_node += usize::from(wrong.iter().any(is_node));
        self.wrong_other += usize::from(!wrong.iter().all(is_node));
        self.missed += usize::from(world.slow.iter().any(is_missed));
        self.undecided += usize::from(!verdict.undecided().is_empty());
        self.rounds.push(rounds);
    }

    fn text(mut self) -> String {
        self.rounds.sort_unstable();
        let Self { exact, wrong_node, wrong_other, missed, undecided, rounds, longest } = self;
        let middle = rounds.get(rounds.len() / 2).unwrap_or(&0);
        let most = rounds.last().unwrap_or(&0);
        format!(
            "exact {exact:4} of {:4}; sound node blamed {wrong_node}, uplink or link {wrong_other}; missed {missed}; \
             undecided {undecided}; rounds {middle} ({most}); decision {longest:.1?}",
            rounds.len()
        )
    }
}
