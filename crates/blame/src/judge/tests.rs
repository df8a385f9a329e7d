use super::*;
use crate::fleet::{Node, Outcome};
use crate::rails::Direction;

/// A fleet with leaves of so many nodes, or without leaves.
fn fleet(nodes: usize, of_leaf: Option<usize>) -> Fleet {
    let node = |index: usize| Node { leaf: of_leaf.map(|nodes| index / nodes), present: true };
    Fleet { nodes: (0..nodes).map(node).collect(), expected: None, seed: 7 }
}

fn test((a, b): Pair, rate: f64) -> PairTest {
    let outcome = Outcome::Rates(vec![[Some(rate), None]]);
    PairTest { pair: (a, b), purpose: Purpose::Survey, outcome }
}

fn pairs(nodes: usize) -> Vec<Pair> {
    (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect()
}

/// Tests of all pairs of a fleet, without noise.
fn all(fleet: &Fleet, rate: impl Fn(usize, usize) -> f64) -> Vec<PairTest> {
    pairs(fleet.nodes.len()).into_iter().map(|(a, b)| test((a, b), rate(a, b))).collect()
}

fn bad(verdict: &Verdict) -> Vec<Part> {
    verdict.bad().into_keys().collect()
}

fn whys(verdict: &Verdict) -> Vec<(Part, Why)> {
    verdict.undecided().into_iter().map(|(part, doubt)| (part, doubt.why)).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_sound_fleet_is_sound() {
    let fleet = fleet(6, None);
    let verdict = decide(&fleet, &all(&fleet, |_, _| 50.0)).unwrap();
    assert_eq!(verdict.nodes, vec![State::Sound { fast: 5 }; 6]);
    assert!(verdict.uplinks.is_empty() && verdict.links.is_empty() && verdict.common.is_empty());
    assert!(near(verdict.references[0].unwrap(), 50.0));
    assert!(near(verdict.unseen_loss, 0.1));
    assert!(verdict.noise > 0.015 && verdict.noise < 0.03);
    assert!(verdict.next_round().is_empty());
}

#[test]
fn a_slow_node_is_blamed_with_its_tests() {
    let fleet = fleet(6, None);
    let verdict = decide(&fleet, &all(&fleet, |a, b| if a == 1 || b == 1 { 20.0 } else { 50.0 })).unwrap();
    assert_eq!(bad(&verdict), [Part::Node(1)]);
    let State::Bad(fault) = &verdict.nodes[1] else { panic!() };
    assert!(near(fault.capacity, 0.4) && fault.margin > 15.0);
    assert_eq!(fault.evidence, [0, 5, 6, 7, 8]);
    assert_eq!(fault.scope.slow.keys().collect::<Vec<_>>(), [&(0, Direction::Sends), &(0, Direction::Receives)]);
    assert!(verdict.undecided().is_empty());
    assert_eq!(verdict.state(Part::Node(0)), Some(&State::Sound { fast: 4 }));
    assert_eq!(verdict.state(Part::Uplink(0)), None);
}

#[test]
fn failures_and_zero_are_slow() {
    let fleet = fleet(6, None);
    let mut tests = all(&fleet, |a, b| if a == 1 || b == 1 { 0.0 } else { 50.0 });
    tests[0].outcome = Outcome::Failed;
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(bad(&verdict), [Part::Node(1)]);
    assert!(near(verdict.bad()[&Part::Node(1)].capacity, 0.0));
    assert_eq!(verdict.bad()[&Part::Node(1)].evidence.len(), 5);
}

#[test]
fn an_absent_node_is_named_and_its_tests_are_not_read() {
    let mut fleet = fleet(6, None);
    fleet.nodes[0].present = false;
    fleet.nodes[5].present = false;
    let tests = all(&fleet, |a, b| if a == 0 || b == 5 { 0.0 } else { 50.0 });
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(verdict.nodes[0], State::Absent);
    assert_eq!(verdict.nodes[5], State::Absent);
    assert_eq!(verdict.nodes[1..5], vec![State::Sound { fast: 3 }; 4]);
    assert!(verdict.bad().is_empty() && verdict.undecided().is_empty());
    let once = all(&fleet, |a, b| if (a, b) == (0, 3) || (a, b) == (4, 5) { 0.0 } else { 50.0 });
    assert!(decide(&fleet, &once).unwrap().undecided().is_empty());
}

#[test]
fn tests_of_other_nodes_are_errors() {
    let fleet = fleet(2, None);
    assert_eq!(decide(&fleet, &[test((0, 2), 1.0)]), Err(InputError::NoSuchNode { test: 0, node: 2 }));
}

#[test]
fn without_a_rate_nothing_is_known() {
    let mut fleet = fleet(4, None);
    fleet.nodes[3].present = false;
    let failed = all(&fleet, |_, _| 0.0).into_iter().map(|test| PairTest { outcome: Outcome::Failed, ..test });
    for tests in [Vec::new(), all(&fleet, |_, _| 0.0), failed.collect()] {
        let verdict = decide(&fleet, &tests).unwrap();
        let known = [0, 1, 2].map(|node| (Part::Node(node), Why::NoRate));
        assert_eq!(whys(&verdict), known);
        assert_eq!(verdict.nodes[3], State::Absent);
    }
}

#[test]
fn two_slow_nodes_of_four_are_undecided() {
    let fleet = fleet(4, None);
    for rate in [0.0, 10.0, 25.0, 35.0] {
        let tests = vec![all(&fleet, |_, b| if b > 1 { rate } else { 50.0 }); 4].concat();
        let verdict = decide(&fleet, &tests).unwrap();
        let known = [0, 1, 2, 3].map(|node| (Part::Node(node), Why::NoMajority));
        assert_eq!(whys(&verdict), known, "{rate}");
        assert!(verdict.next_round().is_empty());
        let trusted = Fleet { expected: Some(50.0), ..fleet.clone() };
        assert_eq!(bad(&decide(&trusted, &tests).unwrap()), [Part::Node(2), Part::Node(3)], "{rate}");
    }
}

#[test]
fn one_fast_pair_of_many_slow_ones_is_tested_again_and_leaves_all_undecided() {
    let fleet = fleet(8, None);
    let mut tests = all(&fleet, |_, b| if b > 1 { 25.0 } else { 50.0 });
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(whys(&verdict), [(Part::Link(0, 1), Why::NotRepeated)]);
    assert_eq!(verdict.next_round(), [(0, 1)]);
    tests.push(PairTest { purpose: Purpose::Settle, ..test((1, 0), 50.0) });
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(whys(&verdict).len(), 8);
    assert!(whys(&verdict).iter().all(|(_, why)| *why == Why::NoMajority));
    // If it was chance, all are sound.
    *tests.last_mut().unwrap() = PairTest { purpose: Purpose::Settle, ..test((1, 0), 25.0) };
    let verdict = decide(&fleet, &tests).unwrap();
    assert!(verdict.undecided().is_empty() && verdict.bad().is_empty());
}

#[test]
fn a_fast_pair_among_very_many_nodes_is_no_group() {
    for (nodes, doubts) in [(20, 20), (21, 0)] {
        let fleet = fleet(nodes, None);
        let mut tests = all(&fleet, |_, b| if b > 1 { 25.0 } else { 50.0 });
        tests.push(PairTest { purpose: Purpose::Settle, ..test((0, 1), 50.0) });
        assert_eq!(decide(&fleet, &tests).unwrap().undecided().len(), doubts, "{nodes} nodes");
        tests.pop();
        let unrepeated = decide(&fleet, &tests).unwrap().undecided().len();
        assert_eq!(unrepeated, usize::from(nodes == 20), "{nodes} nodes");
    }
}

#[test]
fn two_nodes_need_an_expected_rate() {
    let mut fleet = fleet(2, None);
    let tests = vec![test((0, 1), 50.0); 8];
    let known = [0, 1].map(|node| (Part::Node(node), Why::NoMajority));
    assert_eq!(whys(&decide(&fleet, &tests).unwrap()), known);
    fleet.expected = Some(50.0);
    assert_eq!(decide(&fleet, &tests).unwrap().nodes, vec![State::Sound { fast: 8 }; 2]);
    fleet.expected = Some(100.0);
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(verdict.undecided().len(), 2);
    assert_eq!(verdict.common.len(), 1);
}

#[test]
fn a_fleet_that_is_slow_alike_blames_nobody() {
    let mut fleet = fleet(6, None);
    fleet.expected = Some(100.0);
    let slow = |a: usize, b: usize| if a == 3 || b == 3 { 20.0 } else { 50.0 };
    let verdict = decide(&fleet, &all(&fleet, |_, _| 50.0)).unwrap();
    assert_eq!(verdict.common, [Common { rail: 0, rate: verdict.references[0].unwrap(), expected: 100.0 }]);
    assert!(whys(&verdict).iter().all(|(_, why)| *why == Why::AllSlow));
    assert_eq!(verdict.undecided().len(), 6);
    assert!(verdict.bad().is_empty() && verdict.next_round().is_empty());
    // One that is slower than the others is bad all the same.
    let verdict = decide(&fleet, &all(&fleet, slow)).unwrap();
    assert_eq!(bad(&verdict), [Part::Node(3)]);
    fleet.expected = Some(55.0);
    assert_eq!(decide(&fleet, &all(&fleet, |_, _| 50.0)).unwrap().common, []);
}

#[test]
fn a_rail_that_is_slow_everywhere_blames_no_node() {
    let fleet = fleet(6, None);
    let rates = |third: f64| Outcome::Rates([50.0, 52.0, third, 51.0].map(|rate| [Some(rate); 2]).to_vec());
    for third in [25.0, 0.0] {
        let tests = pairs(6).into_iter().map(|pair| PairTest { outcome: rates(third), ..test(pair, 1.0) });
        let verdict = decide(&fleet, &tests.collect::<Vec<_>>()).unwrap();
        assert!(verdict.bad().is_empty() && verdict.undecided().is_empty());
        let [common] = verdict.common[..] else { panic!("{:?}", verdict.common) };
        assert_eq!(common.rail, 2);
        assert!(near(common.rate, third) && near(common.expected, 51.0));
    }
    let tests = pairs(6).into_iter().map(|pair| PairTest { outcome: rates(48.0), ..test(pair, 1.0) });
    assert_eq!(decide(&fleet, &tests.collect::<Vec<_>>()).unwrap().common, []);
}

#[test]
fn references_are_those_of_sound_pairs_where_most_are_slow() {
    let fleet = Fleet { expected: Some(50.0), ..fleet(5, None) };
    let tests = vec![all(&fleet, |_, b| if b > 1 { 25.0 } else { 50.0 }); 3].concat();
    let verdict = decide(&fleet, &tests).unwrap();
    assert!(near(verdict.references[0].unwrap(), 50.0));
    assert_eq!(bad(&verdict), [2, 3, 4].map(Part::Node));
    assert!(verdict.bad().values().all(|fault| near(fault.capacity, 0.5)));
}

#[test]
fn few_tests_leave_a_node_undecided() {
    let fleet = fleet(6, None);
    let mut tests = all(&fleet, |_, _| 50.0);
    tests.retain(|test| test.pair.1 != 5 || test.pair.0 == 0);
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(whys(&verdict), [(Part::Node(5), Why::FewTests)]);
    let [(5, partner)] = verdict.next_round()[..] else { panic!() };
    assert_ne!(partner, 0);
    tests.push(test((1, 5), 50.0));
    assert!(decide(&fleet, &tests).unwrap().undecided().is_empty());
    tests.retain(|test| test.pair.1 != 5);
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(whys(&verdict), [(Part::Node(5), Why::FewTests)], "a node without tests");
}

#[test]
fn a_slow_test_that_nothing_explains_is_repeated() {
    let fleet = fleet(10, None);
    let mut tests = all(&fleet, |a, b| if (a, b) == (2, 7) { 25.0 } else { 50.0 });
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(whys(&verdict), [(Part::Link(2, 7), Why::NotRepeated)]);
    assert_eq!(verdict.next_round(), [(2, 7)]);
    tests.push(test((7, 2), 50.0));
    assert!(decide(&fleet, &tests).unwrap().undecided().is_empty());
    // With few other tests, the node is in doubt, too.
    tests.retain(|test| test.pair.0 != 2 || test.pair.1 == 7 || test.pair.1 == 8);
    assert_eq!(whys(&decide(&fleet, &tests).unwrap()), [(Part::Node(2), Why::WeakEvidence)]);
}

#[test]
fn a_slow_link_is_blamed() {
    let fleet = fleet(8, None);
    let slow = test((1, 4), 25.0);
    let mut tests = all(&fleet, |a, b| if (a, b) == (1, 4) { 25.0 } else { 50.0 });
    let verdict = decide(&fleet, &tests).unwrap();
    assert!(bad(&verdict).is_empty(), "one slow test is chance");
    tests.push(slow);
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(bad(&verdict), [Part::Link(1, 4)]);
    assert_eq!(verdict.links.keys().collect::<Vec<_>>(), [&(1, 4)]);
    assert!(matches!(verdict.state(Part::Link(1, 4)), Some(State::Bad(_))));
    tests.push(test((1, 4), 25.0));
    assert_eq!(bad(&decide(&fleet, &tests).unwrap()), [Part::Link(1, 4)]);
    assert!(verdict.undecided().is_empty());
}

#[test]
fn one_partner_is_not_enough_to_blame_a_node() {
    let fleet = fleet(6, None);
    let mut tests = all(&fleet, |_, _| 50.0);
    tests.retain(|test| test.pair.1 != 5);
    tests.extend(vec![test((0, 5), 25.0); 4]);
    let verdict = decide(&fleet, &tests).unwrap();
    assert!(bad(&verdict).is_empty());
    assert_eq!(whys(&verdict), [(Part::Node(5), Why::WeakEvidence)]);
    tests.push(test((1, 5), 25.0));
    assert_eq!(bad(&decide(&fleet, &tests).unwrap()), [Part::Node(5)]);
}

#[test]
fn tests_that_are_slow_on_another_rail_each_blame_nobody() {
    let fleet = fleet(6, None);
    let found = |slow_rail: fn(usize) -> usize| {
        let outcome = |(a, b): Pair| {
            let rate = |rail| if b == 5 && rail == slow_rail(a) { 25.0 } else { 50.0 };
            Outcome::Rates((0..5).map(|rail| [Some(rate(rail)), Some(50.0)]).collect())
        };
        let tests = pairs(6).into_iter().map(|pair| PairTest { outcome: outcome(pair), ..test(pair, 1.0) });
        bad(&decide(&fleet, &tests.collect::<Vec<_>>()).unwrap())
    };
    assert_eq!(found(|_| 2), [Part::Node(5)]);
    assert_eq!(found(|node| node), []);
}

#[test]
fn two_slow_tests_are_not_enough_to_blame_a_node() {
    let fleet = fleet(6, None);
    let mut tests = all(&fleet, |_, b| if b == 5 { 25.0 } else { 50.0 });
    tests.retain(|test| test.pair.1 != 5 || test.pair.0 < 2);
    assert_eq!(whys(&decide(&fleet, &tests).unwrap()), [(Part::Node(5), Why::WeakEvidence)]);
    tests.push(test((2, 5), 25.0));
    assert_eq!(bad(&decide(&fleet, &tests).unwrap()), [Part::Node(5)]);
}

fn crossing(a: usize, b: usize, of_leaf: usize, leaf: usize) -> bool {
    a / of_leaf != b / of_leaf && (a / of_leaf == leaf || b / of_leaf == leaf)
}

#[test]
fn a_slow_uplink_is_blamed() {
    let fleet = fleet(12, Some(3));
    let verdict = decide(&fleet, &all(&fleet, |a, b| if crossing(a, b, 3, 2) { 30.0 } else { 50.0 })).unwrap();
    assert_eq!(bad(&verdict), [Part::Uplink(2)]);
    assert!(verdict.undecided().is_empty());
    assert_eq!(verdict.uplinks.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(near(verdict.bad()[&Part::Uplink(2)].capacity, 0.6));
    assert_eq!(verdict.nodes[6], State::Sound { fast: 2 });
    assert!(matches!(verdict.uplinks[&0], State::Sound { fast: 18 }));
}

#[test]
fn half_of_the_uplinks_are_undecided() {
    let mut fleet = fleet(12, Some(3));
    let rate = |a, b| if crossing(a, b, 3, 2) || crossing(a, b, 3, 1) { 25.0 } else { 50.0 };
    let verdict = decide(&fleet, &all(&fleet, rate)).unwrap();
    assert_eq!(whys(&verdict), [0, 1, 2, 3].map(|leaf| (Part::Uplink(leaf), Why::NoMajority)));
    fleet.expected = Some(50.0);
    let verdict = decide(&fleet, &all(&fleet, rate)).unwrap();
    assert_eq!(bad(&verdict), [Part::Uplink(1), Part::Uplink(2)]);
}

#[test]
fn two_uplinks_cannot_be_told_from_each_other() {
    let mut fleet = fleet(8, Some(4));
    let tests = all(&fleet, |a, b| if crossing(a, b, 4, 0) { 25.0 } else { 50.0 });
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(whys(&verdict), [0, 1].map(|leaf| (Part::Uplink(leaf), Why::NoMajority)));
    fleet.expected = Some(50.0);
    let verdict = decide(&fleet, &tests).unwrap();
    assert!(bad(&verdict).is_empty());
    let whys = whys(&verdict);
    assert!(
        whys.iter().any(|(part, why)| matches!((part, why), (Part::Uplink(a), Why::Rival(Part::Uplink(b))) if a != b))
    );
    assert!(verdict.next_round().is_empty());
    // With a third leaf, other tests distinguish them.
    let fleet = self::fleet(12, Some(4));
    let slow = |a, b| crossing(a, b, 4, 0) && crossing(a, b, 4, 1);
    let mut tests = all(&fleet, |a, b| if slow(a, b) { 25.0 } else { 50.0 });
    tests.retain(|test| test.pair.1 < 8 || !crossing(test.pair.0, test.pair.1, 4, 2));
    let verdict = decide(&fleet, &tests).unwrap();
    assert!(matches!(verdict.uplinks[&0], State::Undecided(_)) && matches!(verdict.uplinks[&1], State::Undecided(_)));
    let State::Undecided(doubt) = verdict.state(Part::Uplink(0)).unwrap() else { panic!() };
    assert!(!doubt.pairs.is_empty());
}

#[test]
fn one_leaf_has_no_uplink() {
    let fleet = fleet(6, Some(6));
    assert!(decide(&fleet, &all(&fleet, |_, _| 50.0)).unwrap().uplinks.is_empty());
}

#[test]
fn what_is_neither_slow_nor_fast_makes_no_node_sound() {
    let fleet = fleet(8, None);
    let few = |rate| {
        let mut tests = all(&fleet, |a, b| if b == 7 && a > 0 { rate } else { 50.0 });
        tests.retain(|test| test.pair.1 != 7 || test.pair.0 < 2);
        whys(&decide(&fleet, &tests).unwrap())
    };
    assert_eq!(few(48.0), []);
    assert_eq!(few(46.5), [(Part::Node(7), Why::FewTests)]);
}

#[test]
fn three_nodes_are_enough() {
    let fleet = fleet(3, None);
    let tests = vec![all(&fleet, |_, b| if b == 2 { 25.0 } else { 50.0 }); 8].concat();
    assert_eq!(bad(&decide(&fleet, &tests).unwrap()), [Part::Node(2)]);
}

#[test]
fn a_node_alone_on_its_leaf_is_a_rival_of_its_uplink() {
    let mut fleet = fleet(9, Some(4));
    fleet.nodes[8].leaf = Some(2);
    let verdict = decide(&fleet, &all(&fleet, |_, b| if b == 8 { 25.0 } else { 50.0 })).unwrap();
    assert!(bad(&verdict).is_empty());
    let rivals = [(Part::Node(8), Part::Uplink(2)), (Part::Uplink(2), Part::Node(8))];
    let found = whys(&verdict);
    assert!(rivals.iter().any(|(part, rival)| found.contains(&(*part, Why::Rival(*rival)))), "{found:?}");
}

#[test]
fn links_and_then_nodes_are_settled_first() {
    let fleet = fleet(8, None);
    let mut tests = all(&fleet, |a, b| if (a, b) == (1, 6) { 25.0 } else { 50.0 });
    tests.retain(|test| test.pair.0 != 0);
    let verdict = decide(&fleet, &tests).unwrap();
    assert_eq!(verdict.links[&(1, 6)], State::Undecided(Doubt { why: Why::NotRepeated, pairs: vec![(1, 6)] }));
    let State::Undecided(doubt) = &verdict.nodes[0] else { panic!() };
    assert_eq!(doubt.why, Why::FewTests);
    let [(0, partner)] = doubt.pairs[..] else { panic!() };
    assert!(partner != 1 && partner != 6);
    assert_eq!(verdict.next_round().len(), 2);
}

#[test]
fn all_nodes_together_may_be_slow_though_every_pair_is_sound() {
    let fleet = fleet(6, None);
    let sound = decide(&fleet, &all(&fleet, |_, _| 50.0)).unwrap();
    assert!(!sound.is_slow_together(25.0, 50.0) && sound.is_slow_together(24.0, 50.0));
    let node = decide(&fleet, &all(&fleet, |a, _| if a == 0 { 25.0 } else { 50.0 })).unwrap();
    assert!(node.is_slow_together(24.0, 50.0), "the slow node takes no part");
    let mut link = node;
    let fault = link.nodes[0].clone();
    assert!(matches!(fault, State::Bad(_)));
    link.links.insert((1, 2), fault);
    assert!(!link.is_slow_together(24.0, 50.0), "a bad link explains it");
}

/// From 45 to 55.
fn noisy(a: usize, b: usize) -> f64 {
    [45.0, 46.0, 47.0, 48.0, 49.0, 50.0, 51.0, 52.0, 53.0, 54.0, 55.0][(7 * a + 3 * b) % 11]
}

#[test]
fn noise_hides_small_losses_and_the_verdict_says_so() {
    let fleet = fleet(12, None);
    let verdict = decide(&fleet, &all(&fleet, noisy)).unwrap();
    assert!(verdict.bad().is_empty());
    assert!(verdict.noise > 0.05 && verdict.noise < 0.09, "{}", verdict.noise);
    assert!(near(verdict.unseen_loss, 1.0 - (-3.0 * verdict.noise).exp()));
}

#[test]
fn a_noisy_rail_hides_losses_too() {
    let fleet = fleet(12, None);
    let rates = |a, b| Outcome::Rates(vec![[Some(noisy(a, b)); 2], [Some(50.0); 2]]);
    let tests = pairs(12).into_iter().map(|(a, b)| PairTest { outcome: rates(a, b), ..test((a, b), 1.0) });
    let verdict = decide(&fleet, &tests.collect::<Vec<_>>()).unwrap();
    assert!(verdict.unseen_loss > 0.15, "{}", verdict.unseen_loss);
}
