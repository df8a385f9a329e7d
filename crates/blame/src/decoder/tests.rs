use super::*;

const LEVEL: Level = Level { at: 0.0, noise: 0.03 };
const HALF: f64 = -0.7;

fn parts(a: usize, b: usize) -> Vec<Part> {
    vec![Part::Node(a), Part::Node(b), Part::link((a, b))]
}

/// Tests of all pairs of some nodes, `times` times, with the logarithms that `log` gives.
fn pairs(nodes: usize, times: usize, log: impl Fn(usize, usize) -> f64) -> (Table, Vec<f64>) {
    let pairs = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect::<Vec<_>>();
    let pairs = pairs.repeat(times);
    let table = Table::new(&pairs.iter().map(|(a, b)| parts(*a, *b)).collect::<Vec<_>>());
    (table, pairs.into_iter().map(|(a, b)| log(a, b)).collect())
}

fn chosen(explanation: &Explanation<'_>) -> Vec<(Part, f64)> {
    explanation.chosen.iter().map(|(part, capacity)| (explanation.table.part(*part), *capacity)).collect()
}

fn number(table: &Table, part: Part) -> usize {
    table.parts.iter().position(|known| *known == part).unwrap()
}

/// The density of a test as the method defines it.
fn density(distance: f64) -> f64 {
    0.995 * 0.379_606_69 / 0.03 * (1.0 + (distance / 0.03).powi(2) / 5.0).powi(-3) + 0.005 / 4.3
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

#[test]
fn sound_tests_need_no_part() {
    let (table, logs) = pairs(4, 2, |a, _| if a == 0 { 0.01 } else { -0.01 });
    let explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), []);
    assert!(explanation.gains.is_empty());
    assert!(near(explanation.evidence(), 6.0 * density(0.01).ln() + 6.0 * density(-0.01).ln()));
}

#[test]
fn logarithms_are_relative_to_the_level_and_not_below_a_failure() {
    let (table, _) = pairs(3, 1, |_, _| 0.0);
    let explanation = Explanation::new(&table, &[2.0, 2.1, -9.0], Level { at: 2.0, noise: 0.03 });
    assert!(near(explanation.logs[0], 0.0) && near(explanation.logs[1], 0.1));
    assert!(near(explanation.logs[2], DEAD));
    assert!(near(explanation.floor, 0.9_f64.ln()));
}

#[test]
fn one_node_explains_its_slow_tests() {
    let (table, logs) = pairs(5, 1, |a, _| if a == 0 { HALF } else { 0.0 });
    let mut explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), [(Part::Node(0), HALF)]);
    let node = number(&table, Part::Node(0));
    let with = (0.75 * density(0.0) + 0.25 * density(HALF)).ln();
    let cost = (0.01_f64 / 0.99).ln() - 2.0;
    let margin = cost + 4.0 * (with - density(HALF).ln());
    assert!(near(explanation.margin(node), margin), "{}", explanation.margin(node));
    assert!(near(explanation.evidence(), cost + 4.0 * with + 6.0 * density(0.0).ln()));
    assert!(near(explanation.capacity(node), HALF));
    assert_eq!(explanation.alone(node), [0, 1, 2, 3]);
    assert_eq!(explanation.slow_alone(node), [0, 1, 2, 3]);
    assert!(!explanation.is_unexplained(0) && explanation.is_unexplained(4));
    // The other nodes of slow tests, and the links, explain nothing more.
    assert_eq!(explanation.gains.len(), 8);
    assert!(explanation.gains.values().all(|gain| *gain < -6.0), "{:?}", explanation.gains);
    assert_eq!(explanation.chosen.len(), 1);
}

#[test]
fn the_slowest_part_decides() {
    // Node 0 at half, node 1 at a quarter; their own test is as slow as the slower one.
    let quarter = 2.0 * HALF;
    let (table, logs) = pairs(7, 1, |a, _| [HALF, quarter].get(a).copied().unwrap_or(0.0));
    let mut logs = logs;
    logs[0] = quarter;
    let explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), [(Part::Node(0), HALF), (Part::Node(1), quarter)]);
    let faster = number(&table, Part::Node(0));
    let slower = number(&table, Part::Node(1));
    assert_eq!(explanation.bad[0].iter().map(|bad| bad.capacity).collect::<Vec<_>>(), [quarter, HALF]);
    assert!(near(explanation.capacity(faster), HALF), "the test with node 1 says nothing of node 0");
    assert!(near(explanation.capacity(slower), quarter));
    assert_eq!(explanation.alone(faster).len(), 5);
    let both = 0.75 * density(0.0) + 0.25 * 0.75 * density(quarter - HALF) + 0.25 * 0.25 * density(quarter);
    assert!(near(explanation.log_density(0, None), both.ln()));
    let third = 0.75 * density(0.0) + 0.25 * 0.75 * density(quarter + 1.0) + 0.0625 * 0.75 * density(quarter - HALF);
    let more = Bad { capacity: -1.0, is_shared: false };
    assert!(near(explanation.log_density(0, Some(more)), (third + density(quarter) / 64.0).ln()));
}

/// Tests across the uplink of leaf 9, with these logarithms, and as many fast ones elsewhere.
fn across(slow: &[f64]) -> (Table, Vec<f64>) {
    let test = |a: usize, from, to| [parts(a, a + 50), vec![Part::Uplink(from), Part::Uplink(to)]].concat();
    let crossing = (0..slow.len()).map(|a| test(a % 3, 9, 7 + a % 2));
    let others = (0..slow.len()).map(|a| test(10 + a, 7 + a % 2, 8 - a % 2));
    let table = Table::new(&crossing.chain(others).collect::<Vec<_>>());
    (table, slow.iter().copied().chain(slow.iter().map(|_| 0.0)).collect())
}

#[test]
fn tests_share_an_uplink() {
    // Alone, two at once, four at once; no other part explains the slower ones.
    let (table, logs) =
        across(&[HALF, 2.0 * HALF, 3.0 * HALF, 2.0 * HALF, 3.0 * HALF, HALF, 3.0 * HALF, HALF, 2.0 * HALF]);
    let explanation = Explanation::new(&table, &logs, LEVEL);
    let [(Part::Uplink(9), capacity)] = chosen(&explanation)[..] else { panic!("{:?}", chosen(&explanation)) };
    assert!(near(capacity, HALF), "the most that a test has");
    assert!(near(explanation.capacity(number(&table, Part::Uplink(9))), 2.0 * HALF), "the middle of its tests");
}

#[test]
fn an_uplink_is_sound_whose_own_tests_are_fast() {
    // The slow tests across uplink 7 are slower than those across uplink 8, and equally so, by chance.
    let (table, logs) = across(&[-1.6, HALF, -1.6, HALF, -1.6, HALF, -1.6, HALF, -1.6]);
    let explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), [(Part::Uplink(9), HALF)]);
}

#[test]
fn what_an_uplink_explains_is_not_explained_again() {
    // Nodes 0 to 2 are behind uplink 9, which is slow; each crosses it four times.
    let test = |a, b, from, to| [parts(a, b), vec![Part::Uplink(from), Part::Uplink(to)]].concat();
    let slow = (0..3).flat_map(|a| (0..4).map(move |b| test(a, 10 + 4 * a + b, 9, 7 + b % 2)));
    let fast = (0..12).map(|a| test(10 + a, 30 + a, 7 + a % 2, 8 - a % 2));
    let table = Table::new(&slow.chain(fast).collect::<Vec<_>>());
    let logs = (0..24).map(|test| if test < 12 { HALF } else { 0.0 }).collect::<Vec<_>>();
    let mut explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), [(Part::Uplink(9), HALF)]);
    assert!(explanation.gains.values().all(|gain| *gain < 0.0));
    let uplink = number(&table, Part::Uplink(9));
    let (gain, rival) = explanation.rival(uplink).unwrap();
    assert!(gain < explanation.margin(uplink) - 10.0);
    assert_ne!(rival, uplink);
}

#[test]
fn many_small_losses_are_one_of_the_floor() {
    let (table, logs) = pairs(7, 1, |a, _| if a == 0 { -0.09 } else { 0.0 });
    let explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), [(Part::Node(0), LEVEL.floor())]);
}

#[test]
fn noise_is_not_noticed() {
    for (log, noise) in [(-0.055, 0.03), (-0.06, 0.03), (-0.025, 0.01)] {
        let (table, logs) = pairs(4, 1, |a, _| if a == 0 { log } else { 0.0 });
        assert!(Explanation::new(&table, &logs, Level { at: 0.0, noise }).gains.is_empty());
    }
}

#[test]
fn a_fast_test_is_no_evidence() {
    let bound = 0.75 * LEVEL.floor();
    let (table, logs) = pairs(6, 1, |a, b| if a > 0 { 0.0 } else { [0.0, 0.0, bound, HALF, HALF, HALF][b] });
    let explanation = Explanation::new(&table, &logs, LEVEL);
    let node = number(&table, Part::Node(0));
    assert_eq!(chosen(&explanation), [(Part::Node(0), HALF)]);
    assert_eq!(explanation.alone(node), [0, 1, 2, 3, 4]);
    assert_eq!(explanation.slow_alone(node), [2, 3, 4]);
}

#[test]
fn parts_of_the_same_tests_are_rivals() {
    let test = |a: usize, b: usize| [parts(a, b), vec![Part::Uplink(0), Part::Uplink(1)]].concat();
    let mut tests = vec![test(0, 10), test(1, 11), test(2, 12), test(3, 13)];
    tests.extend([parts(0, 1), parts(2, 3), parts(10, 11), parts(12, 13)]);
    let logs = (0..8).map(|test| if test < 4 { HALF } else { 0.0 }).collect::<Vec<_>>();
    let table = Table::new(&tests);
    let mut explanation = Explanation::new(&table, &logs, LEVEL);
    let [(part, _)] = chosen(&explanation)[..] else { panic!("{:?}", chosen(&explanation)) };
    let number = number(&table, part);
    let margin = explanation.margin(number);
    let (gain, rival) = explanation.rival(number).unwrap();
    assert!(near(gain, margin));
    assert!(matches!(table.part(rival), Part::Uplink(_)) && rival != number);
    assert_eq!(chosen(&explanation), [(part, HALF)], "asking changes nothing");
}

#[test]
fn the_most_probable_level_is_taken() {
    // Two of four nodes are at half: five of six tests are slow.
    let (table, logs) = pairs(4, 4, |_, b| if b == 1 { 0.0 } else { HALF });
    let levels = vec![Level { at: HALF, noise: 0.03 }, LEVEL];
    let explanation = Explanation::best(&table, &logs, levels).unwrap();
    assert!(near(explanation.level.at, 0.0));
    assert_eq!(chosen(&explanation), [(Part::Node(2), HALF), (Part::Node(3), HALF)]);
    assert!(Explanation::best(&table, &logs, Vec::new()).is_none());
}

#[test]
fn a_slow_test_alone_is_chance() {
    let (table, logs) = pairs(6, 1, |a, b| if (a, b) == (0, 1) { HALF } else { 0.0 });
    let explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), []);
    assert!(explanation.is_unexplained(0));
    assert_eq!(explanation.gains.len(), 3);
}

#[test]
fn a_link_needs_more_than_a_node() {
    let node = cost(Part::Node(0));
    let link = cost(Part::link((0, 1)));
    assert!(near(node, -6.595_119_85) && near(link, -11.210_240_37), "{node} {link}");
    assert!(near(cost(Part::Uplink(0)), node));
    let (table, mut logs) = pairs(4, 4, |_, _| 0.0);
    for again in 0..4 {
        logs[6 * again] = HALF;
    }
    let explanation = Explanation::new(&table, &logs, LEVEL);
    assert_eq!(chosen(&explanation), [(Part::Link(0, 1), HALF)]);
}

#[test]
fn a_wide_spread_of_slow_tests_has_a_capacity_among_them() {
    let (table, mut logs) = pairs(9, 1, |a, _| if a == 0 { HALF } else { 0.0 });
    for (place, log) in logs.iter_mut().take(8).enumerate() {
        *log = [-0.2, -0.7, -2.0, -0.69, -1.0, -0.3, -0.71, -1.9][place];
    }
    let explanation = Explanation::new(&table, &logs, LEVEL);
    // Of eight in order, those at 10, 30, 50, 70 and 90 %.
    assert_eq!(chosen(&explanation), [(Part::Node(0), -0.7)]);
}
