//! Simulated fleets, from the survey to the verdict, with fixed seeds. `cargo run --release -p ncclcheck-blame --example simulate
//! -- table NODES SEEDS` has more of them.

use crate::{Part, SETTLING_ROUNDS, State, survey};

#[path = "../examples/simulate/world.rs"]
mod world;

use world::{Run, World, blamed};

/// How many of the first seeds give exactly what is wrong. No seed may blame a sound node.
fn exact(cases: impl Fn(u64) -> World, seeds: u64) -> u64 {
    let run = |seed| {
        let mut world = cases(seed);
        let Run { verdict, tests, rounds } = world.run();
        assert!(rounds <= survey(&world.fleet).len() + SETTLING_ROUNDS);
        assert!(verdict.bad().values().flat_map(|fault| &fault.evidence).all(|test| *test < tests.len()));
        let truth = world.truth();
        let is_slow = |part: &Part| truth.iter().any(|(slow, ..)| slow == part);
        let wrong = verdict.bad().into_keys().filter(|part| matches!(part, Part::Node(_)) && !is_slow(part));
        assert_eq!(wrong.collect::<Vec<_>>(), [], "seed {seed}");
        u64::from(blamed(&verdict) == truth)
    };
    (0..seeds).map(run).sum()
}

/// Runs some seeds of every case, and compares how many are exact with the number that it gives for each. Other cases are exact in all.
fn table(cases: fn(usize, u64) -> Vec<(&'static str, World)>, nodes: usize, seeds: u64, fewer: &[(&str, u64)]) {
    for (number, (name, _)) in cases(nodes, 0).into_iter().enumerate() {
        let expected = fewer.iter().find(|(case, _)| *case == name).map_or(seeds, |(_, exact)| *exact);
        let found = exact(|seed| cases(nodes, seed).swap_remove(number).1, seeds);
        assert!(found >= expected, "{name}, {nodes} nodes: {found} of {seeds}");
    }
}

#[test]
fn eight_nodes() {
    let fewer = [
        ("3 nodes at half", 9),
        ("1 node at 88 %", 9),
        ("3 nodes at 88 %", 3),
        ("1 node at 88 %, heavy tails", 6),
        ("1 node at half in 70 % of its tests", 9),
    ];
    table(world::cases, 8, 10, &fewer);
    table(world::rail_cases, 8, 3, &[]);
}

#[test]
fn sixty_four_nodes() {
    table(world::cases, 64, 3, &[]);
    table(world::rail_cases, 64, 1, &[]);
}

#[test]
fn two_of_four_are_never_sound() {
    for rate in [0.5, 0.7] {
        for seed in 0..20 {
            let verdict = World::new(4, seed).with(Part::Node(1), rate).with(Part::Node(2), rate).run().verdict;
            assert!(verdict.nodes.iter().all(|state| matches!(state, State::Undecided(_))), "seed {seed}: {verdict:?}");
        }
    }
}
