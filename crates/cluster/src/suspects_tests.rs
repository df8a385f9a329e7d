use blame::Verdict;

use crate::between::NodeTest;
use crate::losses::Packets;

use super::*;

/// Four nodes, of which the last is undecided. In the test of nodes 0 and 3 the port has these rates, between sound ones 100.
fn found(rates: [Option<u64>; 2], used: Option<&[&str]>) -> Cause {
    found_if(true, rates, used)
}

/// The same, of ports that were tried or not.
fn found_if(is_tried: bool, rates: [Option<u64>; 2], used: Option<&[&str]>) -> Cause {
    let mut between = BetweenNodes::default();
    let test = |pair, rates, why: Option<&str>| {
        let names = ["mlx5_0:1", "mlx5_0:1"].map(ToOwned::to_owned);
        let ports = vec![PortRates { names, rates, why: why.map(ToOwned::to_owned), is_tried }];
        WritesTest { pair, ports, failure: None }
    };
    between.writes =
        vec![test((0, 3), rates, rates[0].is_none().then_some("why")), test((0, 1), [Some(100), Some(98)], None)];
    let used = |node: usize| {
        assert_eq!(node, 3);
        used.map(|used| used.iter().map(|&name| name.to_owned()).collect())
    };
    let (cause, tests) = cause(Part::Node(3), &between, &verdict(), &used).unwrap();
    assert_eq!(tests, [0, 1]);
    cause
}

fn verdict() -> Verdict {
    let doubt = State::Undecided(blame::Doubt { why: blame::Why::WeakEvidence, pairs: Vec::new() });
    let sound = || State::Sound { fast: 3 };
    Verdict { nodes: vec![sound(), sound(), sound(), doubt], unseen_loss: 0.1, ..Verdict::default() }
}

const USED: Option<&[&str]> = Some(&["mlx5_0:1"]);

#[test]
fn slow_writes_name_the_port_and_its_direction() {
    let slow = SlowPort { name: "mlx5_0:1".to_owned(), direction: Direction::Sends, rate: 50, reference: 98 };
    assert_eq!(found([Some(99), Some(50)], USED), Cause::Ports(vec![slow]));
    assert!(matches!(found([Some(99), Some(50)], None), Cause::Unknown(why) if why.starts_with("a port is slow")));
}

#[test]
fn fast_writes_leave_what_is_above_the_ports_only_if_nccl_uses_them_all() {
    assert_eq!(found([Some(99), Some(97)], USED), Cause::AbovePorts);
    for used in [None, Some(&["mlx5_0:1", "mlx5_1:1"][..])] {
        assert!(matches!(found([Some(99), Some(97)], used), Cause::Unknown(_)));
    }
}

#[test]
fn what_is_not_clear_is_unknown() {
    assert_eq!(found_if(false, [None, None], USED), Cause::Unknown("why".to_owned()));
    let between = "mlx5_0:1 is neither clearly slow nor clearly fast".to_owned();
    assert_eq!(found([Some(99), Some(92)], USED), Cause::Unknown(between));
    let mut alone =
        BetweenNodes { writes: vec![WritesTest { pair: (0, 3), ..WritesTest::default() }], ..Default::default() };
    let unknown = |between: &BetweenNodes| cause(Part::Node(3), between, &verdict(), &|_| None);
    assert!(matches!(unknown(&alone), Some((Cause::Unknown(why), _)) if why.starts_with("no other pair")));
    alone.writes[0].failure = Some("n3: no device".to_owned());
    assert_eq!(unknown(&alone), Some((Cause::Unknown("n3: no device".to_owned()), vec![0])));
    assert_eq!(unknown(&BetweenNodes::default()), None);
}

#[test]
fn writes_that_fail_beside_sound_ones_are_a_cause_of_their_own() {
    assert_eq!(found([None, None], USED), Cause::Failing("why".to_owned()));
    assert!(matches!(found([None, None], None), Cause::Unknown(why) if why.starts_with("RDMA writes fail, too")));
}

#[test]
fn a_suspect_is_tested_with_a_sound_node_of_its_leaf_and_that_one_with_another() {
    let pairs =
        |leaf_of: &[usize], takes_tests: [bool; 4]| pairs(&BetweenNodes::default(), &verdict(), leaf_of, &takes_tests);
    assert_eq!(pairs(&[0, 1, 1, 1], [true; 4]), [(1, 3), (1, 0)]);
    assert_eq!(pairs(&[], [false, true, false, true]), [(1, 3)]);
    assert_eq!(pairs(&[], [true, true, true, false]), []);
}

#[test]
fn nodes_whose_tests_failed_or_that_lose_packets_are_suspects_and_no_partners() {
    let sound = || State::Sound { fast: 3 };
    let verdict = Verdict { nodes: (0..6).map(|_| sound()).collect(), unseen_loss: 0.1, ..Verdict::default() };
    let failed = |pair, culprit| NodeTest { pair, culprit, failure: Some("why".to_owned()), ..NodeTest::default() };
    let tests_of = |tests: &[NodeTest]| {
        let between = BetweenNodes { tests: tests.to_vec(), ..BetweenNodes::default() };
        pairs(&between, &verdict, &[], &[true; 6])
    };
    assert_eq!(tests_of(&[]), []);
    assert_eq!(tests_of(&[failed((0, 3), Some(0))]), [(1, 0), (1, 2)]);
    assert_eq!(tests_of(&[failed((1, 0), None)]), [(0, 1), (0, 2)]);
    let packets = |again| Some(Packets { sent: 1000, again });
    let lossy = |other| NodeTest { pair: (0, other), packets: [packets(20), packets(0)], ..NodeTest::default() };
    let sound = NodeTest { pair: (1, 2), packets: [packets(0), packets(0)], ..NodeTest::default() };
    assert_eq!(tests_of(&[lossy(1), lossy(2), lossy(3), sound.clone(), sound]), [(1, 0), (1, 2)]);
}
