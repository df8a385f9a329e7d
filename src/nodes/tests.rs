use cluster::{BetweenNodes, Network, NodeRun, NodeTest, Packets, TogetherRun};
use judge::Rulebook;
use report::Style;

use super::*;

fn node(name: &str, recording: &str) -> NodeRun {
    let path = format!("{}/fixtures/probe/h100-x2/{recording}.jsonl", env!("CARGO_MANIFEST_DIR"));
    NodeRun { name: name.to_owned(), text: std::fs::read(path).unwrap(), fate: Fate::Ended }
}

/// The report on nodes, and its text.
fn judged(nodes: Vec<NodeRun>) -> (ClusterReport, String) {
    judged_for(nodes, FailOn::Error)
}

fn judged_for(nodes: Vec<NodeRun>, fail_on: FailOn) -> (ClusterReport, String) {
    judged_run(&ClusterRun { nodes, ..ClusterRun::default() }, fail_on)
}

fn judged_run(run: &ClusterRun, fail_on: FailOn) -> (ClusterReport, String) {
    let rulebook = Rulebook::builtin(crate::shipped()).unwrap();
    let rulebook = rulebook.only(judge::rules::Rule::is_of_probe);
    let report = judge(run, &Check::new(&rulebook).fail_on(Some(fail_on)), fail_on);
    let mut text = Vec::new();
    report.write_human(&Style { color: false, width: 80, verbose: false, brief: false }, &mut text).unwrap();
    (report, String::from_utf8(text).unwrap())
}

/// The node with this limit of locked memory in place of none.
fn with_memlock(node: NodeRun, bytes: u64) -> NodeRun {
    let text = String::from_utf8(node.text).unwrap();
    let low = text.replace(r#""memlock":{"soft":-1"#, &format!(r#""memlock":{{"soft":{bytes}"#));
    assert_ne!(text, low);
    NodeRun { text: low.into_bytes(), ..node }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[test]
fn sound_nodes_pass() {
    let (report, text) = judged(vec![node("a", "both-healthy"), node("b", "both-healthy"), node("c", "both-healthy")]);
    assert_eq!(report.outcome(), Verdict::Pass, "{text}");
    assert_eq!(first_line(&text), "PASS  3 nodes; no odd node");
    assert!(report.compared > 30 && report.equal == report.compared, "{text}");
}

#[test]
fn a_node_that_differs_is_named_with_what_it_has() {
    let odd = with_memlock(node("c", "one-of-two-busy"), 65536);
    let absent = NodeRun {
        name: "d".to_owned(),
        text: Vec::new(),
        fate: Fate::Absent(
            "its program did not start: its command ended with exit status: 1\nno such image".to_owned(),
        ),
    };
    let nodes = vec![node("a", "both-healthy"), node("b", "both-healthy"), odd, node("e", "both-healthy"), absent];
    let (report, text) = judged(nodes);
    assert_eq!(report.outcome(), Verdict::Fail);
    insta::assert_snapshot!(text);
}

#[test]
fn halves_are_incomplete_and_name_no_node() {
    let low = with_memlock(node("b", "both-healthy"), 8 << 20);
    let (report, text) = judged(vec![node("a", "both-healthy"), low]);
    assert_eq!((report.outcome(), report.odd.len()), (Verdict::Incomplete, 0), "{text}");
    let expected = "INCOMPLETE  2 nodes; no odd node can be named: values differ, and none has a majority";
    assert_eq!(first_line(&text), expected);
}

#[test]
fn a_problem_of_most_nodes_is_of_no_single_one() {
    let busy = |name: &str| node(name, "one-of-two-busy");
    let (report, _) = judged(vec![busy("a"), node("b", "both-healthy"), busy("c")]);
    let finding = report.findings.iter().find(|finding| finding.rule == "runtime/gpu-busy").unwrap();
    assert!(!finding.is_everywhere && report.odd.is_empty(), "{report:?}");
    let (report, _) = judged(vec![node("a", "both-healthy"), node("b", "both-healthy"), busy("c")]);
    assert_eq!(report.odd.iter().map(|odd| odd.name.as_str()).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn a_run_in_which_no_node_ends_blames_none() {
    let absent = |name: &str| NodeRun { name: name.to_owned(), text: Vec::new(), fate: Fate::Absent("why".to_owned()) };
    let (report, text) = judged(vec![absent("a"), absent("b")]);
    assert_eq!((report.outcome(), report.odd.len()), (Verdict::Fail, 0));
    assert_eq!(first_line(&text), "FAIL  2 nodes; none came to its end");
    assert_eq!(judged_for(vec![absent("a")], FailOn::Never).0.outcome(), Verdict::Pass);
}

/// A round robin of these nodes on two rails of 48 MB/s. `tested` changes a test, whose nodes are the first and the second.
fn tested(nodes: usize, change: impl Fn(&mut NodeTest)) -> ClusterRun {
    let pairs = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b)));
    let packets = Some(Packets { sent: 1000, again: 0 });
    let test = |pair| {
        let mut test = NodeTest {
            pair,
            is_survey: true,
            rates: vec![[Some(48_000_000); 2]; 2],
            busbw: Some(40_000_000),
            packets: [packets; 2],
            ..NodeTest::default()
        };
        change(&mut test);
        test
    };
    let between = BetweenNodes { tests: pairs.map(test).collect(), ..BetweenNodes::default() };
    let nodes = (0..nodes).map(|number| node(&format!("n{number}"), "both-healthy")).collect();
    let mut steps = probe::ProbePlan::default_steps().steps;
    steps.push("between-nodes".to_owned());
    ClusterRun { steps, nodes, between, ..ClusterRun::default() }
}

/// The node sends half on its second rail.
fn sends_half(slow: usize) -> impl Fn(&mut NodeTest) {
    move |test| {
        for (way, node) in [test.pair.0, test.pair.1].into_iter().enumerate() {
            if node == slow {
                test.rates[1][way] = Some(24_000_000);
            }
        }
    }
}

#[test]
fn a_slow_rail_is_named_with_its_direction() {
    let mut run = tested(6, sends_half(4));
    let busbw = vec![(1 << 20, 20_000_000), (64 << 20, 38_000_000)];
    run.between.together = vec![TogetherRun { nodes: vec![0, 1, 2, 3, 5], busbw, ..TogetherRun::default() }];
    let (report, text) = judged_run(&run, FailOn::Error);
    assert_eq!((report.outcome(), report.excluded().as_str()), (Verdict::Fail, "n4"));
    insta::assert_snapshot!(text);
    let mut page = Vec::new();
    report.write_html(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("<td class=\"h4\">50</td>") && page.contains("sends at 50 % on rail 1"), "{page}");
}

#[test]
fn a_node_that_loses_packets_is_named_though_its_rate_is_sound() {
    let run = tested(5, |test| {
        if test.pair.1 == 2 {
            test.packets[0] = Some(Packets { sent: 1000, again: 12 });
        } else if test.pair.0 == 2 {
            test.packets[1] = Some(Packets { sent: 1000, again: 12 });
        }
    });
    let (report, text) = judged_run(&run, FailOn::Error);
    let expected =
        "FAIL  5 nodes; the odd node is n2: 1.2 % of the packets to it are sent again, and 0.0 % to all nodes";
    assert_eq!((report.outcome(), first_line(&text)), (Verdict::Fail, expected));
}

#[test]
fn which_of_two_nodes_is_slow_needs_a_rate_to_expect() {
    let (report, text) = judged_run(&tested(2, sends_half(1)), FailOn::Error);
    assert_eq!((report.outcome(), report.odd.len()), (Verdict::Incomplete, 0), "{text}");
    assert!(first_line(&text).contains("all nodes are undecided: no clear majority is equally fast"), "{text}");
    let slow = |test: &mut NodeTest| test.rates = vec![[Some(24_000_000); 2]; 2];
    let network = Network { expected: Some(48_000_000), ..Network::default() };
    let (report, text) = judged_run(&ClusterRun { network, ..tested(4, slow) }, FailOn::Error);
    assert_eq!((report.outcome(), report.excluded().as_str()), (Verdict::Fail, ""), "{text}");
    assert!(
        first_line(&text).contains("nodes; rail 0 carries 24.0 MB/s on all nodes, and 48.0 MB/s was expected"),
        "{text}"
    );
}

#[test]
fn a_failed_test_is_never_passed_over() {
    let fails = |culprit: Option<usize>| {
        move |test: &mut NodeTest| {
            if test.pair == (1, 3) {
                *test = NodeTest { failure: Some("why".to_owned()), culprit, rates: Vec::new(), ..test.clone() };
            }
        }
    };
    let (report, text) = judged_run(&tested(6, fails(Some(3))), FailOn::Error);
    assert_eq!((report.outcome(), report.excluded().as_str()), (Verdict::Fail, "n3"), "{text}");
    assert!(first_line(&text).ends_with("the odd node is n3: a test failed: why"), "{text}");
    let (report, text) = judged_run(&tested(6, fails(None)), FailOn::Error);
    assert_eq!((report.outcome(), report.odd.len()), (Verdict::Incomplete, 0), "{text}");
}

#[test]
fn a_node_that_was_not_tested_is_undecided() {
    let mut run = tested(5, |_| {});
    run.between.tests.retain(|test| test.pair.1 != 4);
    run.between.left_out = vec![(4, "CUDA sees no GPU there, unlike on most nodes".to_owned())];
    let (report, text) = judged_run(&run, FailOn::Error);
    assert_eq!(report.outcome(), Verdict::Incomplete, "{text}");
    assert!(first_line(&text).contains("n4 is undecided: it was not tested: CUDA sees no GPU there"), "{text}");
    let (report, text) = judged_run(&tested(1, |_| {}), FailOn::Error);
    assert_eq!(report.outcome(), Verdict::Incomplete, "{text}");
    assert!(first_line(&text).contains("n0 is undecided: it was not tested: no other node could be tested"), "{text}");
}
