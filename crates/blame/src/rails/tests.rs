use super::*;
use crate::fleet::Node;

fn fleet() -> Fleet {
    let node = |index: usize| Node { leaf: Some(index / 4), present: true };
    Fleet { nodes: (0..8).map(node).collect(), expected: None, seed: 0 }
}

fn test(pair: (usize, usize), rates: Vec<[Option<f64>; 2]>) -> PairTest {
    PairTest { pair, purpose: Purpose::Survey, outcome: Outcome::Rates(rates) }
}

fn pairs() -> Vec<(usize, usize)> {
    (0..8).flat_map(|a| (a + 1..8).map(move |b| (a, b))).collect()
}

fn near(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| (a - b).abs() < 1e-9)
}

#[test]
fn each_rail_has_its_reference() {
    let mut tests =
        pairs().into_iter().map(|pair| test(pair, vec![[Some(50.0); 2], [Some(20.0); 2]])).collect::<Vec<_>>();
    tests[3].outcome = Outcome::Rates(vec![[Some(50.0), Some(25.0)], [Some(20.0), Some(19.0)]]);
    tests[4].outcome = Outcome::Rates(vec![[Some(50.0), None], [None, Some(19.0)]]);
    tests[5].outcome = Outcome::Failed;
    tests[6].outcome = Outcome::Rates(vec![[Some(50.0); 2], [Some(0.0), Some(20.0)]]);
    tests[7].outcome = Outcome::Rates(vec![[Some(f64::NAN), Some(50.0)]]);
    tests[8].outcome = Outcome::Rates(vec![[None; 2]]);
    tests[9].outcome = Outcome::Rates(vec![[Some(f64::INFINITY), Some(50.0)]]);
    tests[10].outcome = Outcome::Rates(vec![[Some(1e-9), Some(50.0)]]);
    let rates = Rates::new(&fleet(), &tests);
    let at = |rail: usize| rates.references[rail].map(|level| level.at);
    assert!(near(at(0), 50_f64.ln()) && near(at(1), 20_f64.ln()));
    assert_eq!(rates.references.len(), 2);
    assert!(near(rates.worst(0), 0.0));
    assert!(near(rates.worst(3), 0.5_f64.ln()), "the slowest of all");
    assert!(near(rates.worst(4), 0.95_f64.ln()), "what was not measured does not count");
    for failed in [5, 6, 7, 9, 10] {
        assert!(near(rates.worst(failed), DEAD), "{failed}");
    }
    assert_eq!(rates.worst(8), None);
    assert_eq!(rates.worst(99), None);
}

#[test]
fn only_surveys_give_references() {
    let mut tests = pairs().into_iter().map(|pair| test(pair, vec![[Some(50.0); 2]])).collect::<Vec<_>>();
    for _ in 0..100 {
        tests.push(PairTest { purpose: Purpose::Settle, ..test((0, 1), vec![[Some(10.0); 2], [Some(9.0); 2]]) });
    }
    let rates = Rates::new(&fleet(), &tests);
    assert!(near(rates.references[0].map(|level| level.at), 50_f64.ln()));
    assert_eq!(rates.references[1], None);
    assert!(near(rates.worst(28), 0.2_f64.ln()), "a rail without a reference does not count");
}

#[test]
fn a_rail_that_never_works_blames_no_test() {
    let tests = pairs().into_iter().map(|pair| test(pair, vec![[Some(50.0); 2], [Some(0.0); 2]])).collect::<Vec<_>>();
    let rates = Rates::new(&fleet(), &tests);
    assert_eq!(rates.references[1], Some(NEVER));
    assert!(near(rates.worst(0), 0.0));
}

#[test]
fn half_of_the_nodes_do_not_make_their_rate_the_reference() {
    // Nodes 5 to 7 have half the rate: 10 of 28 tests are fast.
    let rate = |(_, b): (usize, usize)| if b > 4 { 25.0 } else { 50.0 };
    let tests = pairs().into_iter().map(|pair| test(pair, vec![[Some(rate(pair)), None]])).collect::<Vec<_>>();
    let rates = Rates::new(&fleet(), &tests);
    assert!(near(rates.references[0].map(|level| level.at), 50_f64.ln()));
}

#[test]
fn directions_are_those_of_the_part() {
    let mut tests = pairs().into_iter().map(|pair| test(pair, vec![[Some(50.0); 2]; 3])).collect::<Vec<_>>();
    let slow = |rates: [f64; 2]| Outcome::Rates(vec![[Some(50.0); 2], rates.map(Some), [Some(50.0); 2]]);
    tests.extend(
        [((0, 5), [25.0, 50.0]), ((6, 0), [50.0, 25.0]), ((0, 7), [25.0, 50.0])]
            .map(|(pair, rates)| PairTest { outcome: slow(rates), ..test(pair, Vec::new()) }),
    );
    let rates = Rates::new(&fleet(), &tests);
    let scope = |part| {
        let tests = (28..31).map(|number| (number, &tests[number])).collect::<Vec<_>>();
        rates.scope(part, &fleet(), &tests, -0.1)
    };
    let sends = BTreeMap::from([((1, Direction::Sends), 0.5)]);
    let found = scope(Part::Node(0));
    assert_eq!(found.slow.keys().collect::<Vec<_>>(), sends.keys().collect::<Vec<_>>());
    assert!(near(found.slow.values().next().copied(), 0.5));
    assert_eq!((found.rails(), found.direction()), (Some(BTreeSet::from([1])), Some(Direction::Sends)));
    assert_eq!(scope(Part::Uplink(0)).direction(), Some(Direction::Sends));
    assert_eq!(scope(Part::Uplink(1)).direction(), Some(Direction::Receives));
    assert_eq!(scope(Part::Link(0, 5)).direction(), Some(Direction::Sends));
}

#[test]
fn a_small_loss_is_not_named_beside_a_large_one() {
    let tests = pairs().into_iter().map(|pair| test(pair, vec![[Some(50.0); 2]; 2]));
    let of = |first: f64, second: f64| {
        test((0, 1), vec![[Some(50.0 * first), Some(50.0)], [Some(50.0), Some(50.0 * second)]])
    };
    let tests = tests.chain([of(0.5, 0.92), of(0.915, 0.92), of(0.5, 0.88), of(0.5, 0.93)]).collect::<Vec<_>>();
    let rates = Rates::new(&fleet(), &tests);
    let slow = |number: usize| {
        let scope = rates.scope(Part::Node(0), &fleet(), &[(number, &tests[number])], 0.9_f64.ln());
        scope.slow.into_keys().map(|(rail, _)| rail).collect::<Vec<_>>()
    };
    assert_eq!(slow(28), [0]);
    assert_eq!(slow(29), [0, 1]);
    assert_eq!(slow(30), [0, 1]);
}

#[test]
fn what_failed_is_slow_on_all_rails_and_both_ways() {
    let mut tests = pairs().into_iter().map(|pair| test(pair, vec![[Some(50.0); 2]; 2])).collect::<Vec<_>>();
    tests[0].outcome = Outcome::Failed;
    let rates = Rates::new(&fleet(), &tests);
    let scope = rates.scope(Part::Node(0), &fleet(), &[(0, &tests[0])], -0.1);
    assert_eq!(scope.slow.len(), 4);
    assert!(scope.slow.values().all(|capacity| *capacity == 0.0));
    assert_eq!((scope.rails(), scope.direction()), (None, None));
    assert_eq!(Scope::default().rails(), None);
}

#[test]
fn a_capacity_is_a_fraction() {
    assert!(near(Some(capacity(0.5_f64.ln())), 0.5));
    assert!(near(Some(capacity(-3.4)), (-3.4_f64).exp()));
    assert!(near(Some(capacity(-3.5)), 0.0));
}
