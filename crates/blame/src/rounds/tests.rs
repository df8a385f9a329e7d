use std::collections::BTreeMap;

use super::*;
use crate::fleet::Node;

/// A fleet with leaves of so many nodes, or without leaves.
fn fleet(nodes: usize, of_leaf: Option<usize>) -> Fleet {
    let node = |index: usize| Node { leaf: of_leaf.map(|nodes| index / nodes), present: true };
    Fleet { nodes: (0..nodes).map(node).collect(), expected: None, seed: 7 }
}

/// Checks that no node is in two pairs of a round, and returns how many pairs there are and how often each node and each pair
/// was tested at least and at most.
fn counts(rounds: &[Vec<Pair>]) -> (usize, [usize; 2], [usize; 2]) {
    let (mut nodes, mut pairs) = (BTreeMap::new(), BTreeMap::new());
    for round in rounds {
        let busy = round.iter().flat_map(|(a, b)| [*a, *b]).collect::<Vec<_>>();
        assert_eq!(busy.iter().collect::<BTreeSet<_>>().len(), busy.len(), "{round:?}");
        for node in busy {
            *nodes.entry(node).or_insert(0) += 1;
        }
        for pair in round {
            *pairs.entry(ordered(*pair)).or_insert(0) += 1;
        }
    }
    let range = |counts: Vec<usize>| [counts.iter().copied().min().unwrap(), counts.into_iter().max().unwrap()];
    (pairs.values().sum(), range(nodes.into_values().collect()), range(pairs.into_values().collect()))
}

#[test]
fn small_fleets_get_a_round_robin() {
    let found = |nodes| {
        let rounds = survey(&fleet(nodes, None));
        (rounds.len(), counts(&rounds))
    };
    assert!(survey(&fleet(0, None)).is_empty() && survey(&fleet(1, None)).is_empty());
    assert_eq!(found(2), (8, (8, [8, 8], [8, 8])));
    assert_eq!(found(3), (24, (24, [16, 16], [8, 8])));
    assert_eq!(found(4), (12, (24, [12, 12], [4, 4])));
    assert_eq!(found(5), (12, (24, [9, 10], [2, 3])));
    assert_eq!(found(8), (6, (24, [6, 6], [1, 1])));
    assert_eq!(found(11), (5, (25, [4, 5], [1, 1])));
    assert_eq!(found(15), (4, (28, [3, 4], [1, 1])));
    assert_eq!(found(16), (3, (24, [3, 3], [1, 1])));
}

#[test]
fn large_fleets_get_random_matchings() {
    for nodes in 17..70 {
        let rounds = survey(&fleet(nodes, None));
        let (tests, of_nodes, of_pairs) = counts(&rounds);
        assert_eq!((rounds.len(), tests, of_pairs), (3, 3 * (nodes / 2), [1, 1]), "{nodes} nodes");
        assert_eq!(of_nodes, if nodes % 2 == 0 { [3, 3] } else { [2, 3] }, "{nodes} nodes");
    }
}

/// How many nodes the first two rounds take to where the next two take them: in a round robin, nearly all.
fn turning(nodes: usize) -> usize {
    let rounds = survey(&fleet(nodes, None));
    let partner = |round: usize, node: usize| {
        let (a, b) = rounds[round].iter().find(|(a, b)| *a == node || *b == node).unwrap();
        a + b - node
    };
    let step = |first, second, node| partner(second, partner(first, node));
    (0..nodes).filter(|node| step(0, 1, *node) == step(1, 2, *node)).count()
}

#[test]
fn only_small_fleets_turn() {
    assert!(turning(16) >= 12);
    assert!(turning(18) < 9 && turning(64) < 16);
}

#[test]
fn the_seed_decides_and_absent_nodes_rest() {
    let mut some = fleet(20, None);
    assert_eq!(survey(&some), survey(&some));
    let other = Fleet { seed: 8, ..some.clone() };
    assert_ne!(survey(&some), survey(&other));
    some.nodes[3].present = false;
    assert!(survey(&some).iter().flatten().all(|(a, b)| *a != 3 && *b != 3));
    assert_eq!(counts(&survey(&some)).0, 27);
    let small = fleet(6, None);
    assert_ne!(survey(&small), survey(&Fleet { seed: 8, ..small.clone() }));
}

fn suspects(parts: &[Part]) -> BTreeSet<Part> {
    parts.iter().copied().collect()
}

#[test]
fn a_node_meets_a_clean_one_that_it_has_not_met() {
    let fleet = fleet(6, None);
    let met = [(0, 1), (2, 0), (0, 3)];
    let mut settling = Settling::new(&fleet, &met, &suspects(&[Part::Node(0), Part::Node(4)]));
    assert_eq!(settling.pairs(Part::Node(0)), [(0, 5)]);
    assert!(settling.pairs(Part::Node(0)).is_empty(), "one test at a time");
    assert!(settling.pairs(Part::Node(5)).is_empty());
    let [(4, partner)] = settling.pairs(Part::Node(4))[..] else { panic!() };
    assert!((1..4).contains(&partner));
    let mut settling = Settling::new(&fleet, &met, &suspects(&[Part::Node(0), Part::Node(4), Part::Node(5)]));
    let [(0, partner)] = settling.pairs(Part::Node(0))[..] else { panic!() };
    assert!((1..4).contains(&partner), "one that it has met, where no other is left");
}

#[test]
fn where_no_node_is_clean_any_serves() {
    let fleet = fleet(3, None);
    let all = suspects(&[Part::Node(0), Part::Node(1), Part::Node(2)]);
    let mut settling = Settling::new(&fleet, &[(0, 1)], &all);
    assert_eq!(settling.pairs(Part::Node(0)), [(0, 2)]);
}

#[test]
fn a_link_is_tested_again() {
    let fleet = fleet(4, None);
    let mut settling = Settling::new(&fleet, &[(1, 2)], &suspects(&[Part::Link(1, 2)]));
    assert_eq!(settling.pairs(Part::Link(1, 2)), [(1, 2)]);
    assert!(settling.pairs(Part::Link(2, 3)).is_empty());
    assert!(settling.pairs(Part::Link(0, 1)).is_empty());
    assert_eq!(settling.pairs(Part::Link(0, 3)), [(0, 3)]);
}

#[test]
fn a_node_behind_a_doubtful_uplink_stays_within_its_leaf() {
    let fleet = fleet(12, Some(4));
    let doubtful = suspects(&[Part::Node(0), Part::Uplink(0), Part::Node(5)]);
    let mut settling = Settling::new(&fleet, &[(0, 1), (0, 2)], &doubtful);
    assert_eq!(settling.pairs(Part::Node(0)), [(0, 3)]);
    for seed in 0..20 {
        let fleet = Fleet { seed, ..fleet.clone() };
        let [(5, partner)] = Settling::new(&fleet, &[], &doubtful).pairs(Part::Node(5))[..] else { panic!() };
        assert!(partner > 3, "beyond no doubtful uplink");
    }
    // Without a clean node in the leaf, a suspect serves.
    let leaf = [0, 1, 2, 3].map(Part::Node).into_iter().chain([Part::Uplink(0)]).collect();
    let mut settling = Settling::new(&fleet, &[(0, 1), (2, 0)], &leaf);
    assert_eq!(settling.pairs(Part::Node(0)), [(0, 3)]);
    // Without a clean node beyond sound uplinks, one behind a doubtful uplink serves.
    let far = (4..12).map(Part::Node).chain([Part::Uplink(0)]).collect();
    let [(5, partner)] = Settling::new(&fleet, &[], &far).pairs(Part::Node(5))[..] else { panic!() };
    assert!(partner < 4);
}

#[test]
fn a_node_of_an_unknown_leaf_is_behind_no_doubtful_uplink() {
    let leaves = [None, Some(0), Some(1)];
    let nodes = leaves.into_iter().map(|leaf| Node { leaf, present: true }).collect();
    let fleet = Fleet { nodes, expected: None, seed: 7 };
    let suspects = suspects(&[Part::Node(0), Part::Uplink(0)]);
    assert_eq!(Settling::new(&fleet, &[], &suspects).pairs(Part::Node(0)), [(0, 2)]);
}

#[test]
fn an_uplink_is_crossed_by_clean_nodes() {
    let fleet = fleet(24, Some(6));
    let doubtful = suspects(&[Part::Uplink(0), Part::Uplink(1), Part::Node(2), Part::Node(20)]);
    let pairs = Settling::new(&fleet, &[], &doubtful).pairs(Part::Uplink(0));
    assert_eq!(pairs.len(), 4);
    assert!(pairs.iter().all(|(a, b)| *a < 6 && *a != 2 && *b > 11 && *b != 20), "{pairs:?}");
    assert_eq!(counts(&[pairs]).1, [1, 1]);
    // If all uplinks are in doubt, any other leaf serves.
    let all = suspects(&[0, 1, 2, 3].map(Part::Uplink));
    let pairs = Settling::new(&fleet, &[], &all).pairs(Part::Uplink(0));
    assert!(pairs.len() == 4 && pairs.iter().all(|(a, b)| *a < 6 && *b > 5), "{pairs:?}");
}

#[test]
fn rounds_differ() {
    let fleet = fleet(40, None);
    let next = |tested: &[Pair]| Settling::new(&fleet, tested, &suspects(&[Part::Node(0)])).pairs(Part::Node(0));
    let partners = (1..30).map(|count| next(&vec![(38, 39); count])).collect::<BTreeSet<_>>();
    assert!(partners.len() > 10);
}
