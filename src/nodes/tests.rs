use cluster::{BetweenNodes, Network, NodeRun, NodeTest, Packets, PortRates, TogetherRun, WritesTest};
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
fn one_node_is_compared_with_none() {
    let (_, text) = judged(vec![with_memlock(node("a", "both-healthy"), 65_536)]);
    assert!(first_line(&text).ends_with("  1 node; no other node to compare it with"), "{text}");
    assert!(text.contains("\n  on   a\n") && !text.contains("no single node"), "{text}");
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
    let why = "it did not start\nwarning: old\nerror: no such image".to_owned();
    let absent = |name: &str| NodeRun { name: name.to_owned(), text: Vec::new(), fate: Fate::Absent(why.clone()) };
    let (report, text) = judged(vec![absent("a"), absent("b")]);
    assert_eq!((report.outcome(), report.odd.len()), (Verdict::Fail, 0));
    assert_eq!(first_line(&text), "FAIL  2 nodes; none came to its end; a: it did not start: error: no such image");
    assert_eq!(judged_for(vec![absent("a")], FailOn::Never).0.outcome(), Verdict::Pass);
}

/// A round robin of these nodes on two rails of 48 MB/s. `tested` changes a test, whose nodes are the first and the second.
fn tested(nodes: usize, change: impl Fn(&mut NodeTest)) -> ClusterRun {
    let pairs = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b)));
    let packets = Some(Packets { sent: 1000, again: 0 });
    let test = |pair| {
        let mut test = NodeTest {
            pair,
            round: Some(1 + pair.0),
            is_survey: true,
            rates: vec![[Some(48_000_000); 2]; 2],
            busbw: Some(40_000_000),
            bytes: Some(64 << 20),
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
    assert!(
        page.contains("title=\"n4 to n2 in round 3: 48.0 MB/s, 24.0 MB/s\">50</td>")
            && page.contains("sends at 50 % on rail 1"),
        "{page}"
    );
}

#[test]
fn rdma_writes_name_the_nic_of_a_slow_node_or_say_why_not() {
    let test = |pair, back: Option<u64>| {
        let names = ["mlx5_0:1", "mlx5_0:1"].map(ToOwned::to_owned);
        let why = back.is_none().then(|| "n4: no completion within 5 s".to_owned());
        let ports = vec![PortRates { names, rates: [Some(48_000_000_000), back], why, is_tried: true }];
        WritesTest { pair, ports, failure: None }
    };
    let mut run = tested(6, sends_half(4));
    run.between.writes = vec![test((0, 4), Some(24_000_000_000)), test((0, 1), Some(48_000_000_000))];
    let cause = |run: &ClusterRun| {
        let (report, text) = judged_run(run, FailOn::Error);
        let part = report.network.unwrap().parts.remove(0);
        let rows = [
            "\n  cause  ",
            "\n  RDMA  n0 mlx5_0:1 > n4 mlx5_0:1: 48.0 GB/s; back: ",
            "\n  RDMA  n0 mlx5_0:1 > n1 mlx5_0:1: ",
        ];
        assert!(rows.into_iter().all(|row| text.contains(row)), "{text}");
        part.cause.map(|cause| (cause.kind, cause.text)).unwrap()
    };
    let nic = "the NIC, its cable, switch port or slot: by RDMA writes without GPU and NCCL, mlx5_0:1 sends 24.0 GB/s, and sound ones 48.0 GB/s";
    let unused = "unknown: a port is slow for RDMA, too, and it is unknown whether the tests used it";
    assert_eq!(cause(&run), ("unknown", unused.to_owned()));
    run.nodes[4] = with_log("n4", &IB, "400 Gb/sec (4X NDR)");
    assert_eq!(cause(&run), ("nic", nic.to_owned()));
    let (report, _) = judged_run(&run, FailOn::Error);
    let [mut page, mut json] = [Vec::new(), Vec::new()];
    report.write_html(&mut page).unwrap();
    report.write_json(&mut json).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(
        page.contains(nic) && page.contains("<li>n0 mlx5_0:1 &gt; n4 mlx5_0:1: 48.0 GB/s; back: 24.0 GB/s</li>"),
        "{page}"
    );
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let ports = serde_json::json!([{"names": ["mlx5_0:1", "mlx5_0:1"], "rates": [48_000_000_000_u64, 24_000_000_000_u64], "why": null}]);
    assert_eq!(
        json["network"]["writes"][0],
        serde_json::json!({"nodes": ["n0", "n4"], "ports": ports, "failure": null})
    );
    assert_eq!(json["network"]["parts"][0]["cause"]["writes"], serde_json::json!([0, 1]));
    let mut record = Vec::new();
    run.write(&mut record).unwrap();
    assert_eq!(ClusterRun::read(&record).unwrap(), run);
    run.between.writes[0] = test((0, 4), Some(48_000_000_000));
    assert_eq!(cause(&run).0, "above-nic");
    run.between.writes[0] = test((0, 4), None);
    let (kind, text) = cause(&run);
    assert!(kind == "below-nccl" && text.ends_with("settings of RDMA: n4: no completion within 5 s"), "{text}");
}

#[test]
fn rdma_writes_of_nodes_that_fail_or_lose_packets_say_what_they_show() {
    let names = ["mlx5_0:1", "mlx5_0:1"].map(ToOwned::to_owned);
    let ports = vec![PortRates { names, rates: [Some(48_000_000_000); 2], ..PortRates::default() }];
    let writes = [(0, 4), (0, 1)].map(|pair| WritesTest { pair, ports: ports.clone(), failure: None });
    let cause = |change: &dyn Fn(&mut NodeTest)| {
        let mut run = tested(6, change);
        run.between.writes = writes.to_vec();
        run.nodes[4] = with_log("n4", &IB, "400 Gb/sec (4X NDR)");
        let part = judged_run(&run, FailOn::Error).0.network.unwrap().parts.remove(0);
        let cause = part.cause.unwrap();
        (part.name, cause.kind, cause.text)
    };
    let (name, kind, text) = cause(&|test| {
        if test.pair == (2, 4) {
            test.failure = Some("n4: no connection".to_owned());
            test.culprit = Some(4);
        }
    });
    assert!(
        (&*name, kind) == ("n4", "above-nic") && text.ends_with("the sockets by which ranks meet"),
        "{name}: {text}"
    );
    let (name, kind, text) = cause(&|test| {
        if test.pair.1 == 4 {
            test.packets[0] = Some(Packets { sent: 1000, again: 12 });
        } else if test.pair.0 == 4 {
            test.packets[1] = Some(Packets { sent: 1000, again: 12 });
        }
    });
    assert!((&*name, kind) == ("n4", "unknown") && text.ends_with("where packets are lost"), "{name}: {text}");
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
    let mut lost = tested(6, fails(Some(3)));
    lost.nodes[3].fate = Fate::Failed("it was killed".to_owned());
    let (report, text) = judged_run(&lost, FailOn::Error);
    assert!(first_line(&text).ends_with("the odd node is n3: failed: it was killed"), "{text}");
    assert_eq!(report.odd[0].reasons, ["failed: it was killed", "a test failed: why"]);
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

/// The node with the step between nodes: these lines of NCCL's log, and this port of an RDMA device.
fn with_log(name: &str, lines: &[&str], rate: &str) -> NodeRun {
    use serde_json::json;
    let port = json!({"port": 1, "rate": rate, "state": "4: ACTIVE", "link_layer": "Ethernet", "nccl_gid": [],
        "verbs": {"active_mtu_bytes": 4096, "state": "ACTIVE"}});
    let devices =
        json!([{"name": "mlx5_0", "board_id": "b", "fw_ver": "1", "numa_node": 0, "opens": true, "ports": [port]}]);
    let mut events = vec![
        json!({"event": "hello", "plan": {"steps": ["rdma", "between-nodes"]}}),
        json!({"event": "start", "step": "rdma", "deadline": 1.0}),
        json!({"event": "result", "step": "rdma", "seconds": 1.0, "body": {"devices": devices}}),
        json!({"event": "start", "step": "between-nodes", "deadline": 1.0}),
        json!({"event": "part", "step": "between-nodes", "body": {"kind": "ready", "id": name, "backend": "nccl"}}),
    ];
    let line = |line: &&str| json!({"event": "log", "step": "between-nodes", "run": 0, "rank": 0, "line": line});
    events.extend(lines.iter().map(line));
    events.push(
        json!({"event": "log", "step": "between-nodes", "run": 1, "rank": 0, "line": "NCCL INFO Using network Socket"}),
    );
    events.push(json!({"event": "result", "step": "between-nodes", "seconds": 1.0, "body": {"tests": 1}}));
    events.push(json!({"event": "end", "run": 2, "failed": 0, "skipped": 0}));
    let line = |event: &serde_json::Value| event.to_string().replacen('{', "{\"ncclcheck\":1,", 1) + "\n";
    NodeRun { name: name.to_owned(), text: events.iter().map(line).collect::<String>().into_bytes(), fate: Fate::Ended }
}

const IB: [&str; 2] =
    ["a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:192.0.2.2<0>", "NCCL INFO Using network IB"];

/// A round robin of three sound nodes with these logs, which then reach this much together.
fn together(nodes: &[NodeRun; 3], busbw: Vec<(u64, u64)>) -> ClusterRun {
    let mut run = tested(3, |_| {});
    let all = TogetherRun { nodes: vec![0, 1, 2], busbw, seconds: Some(0.065), ..TogetherRun::default() };
    run.between.together = vec![all];
    ClusterRun { nodes: nodes.to_vec(), steps: ["rdma", "between-nodes"].map(str::to_owned).to_vec(), ..run }
}

#[test]
fn slow_together_and_sound_in_pairs_blames_no_node() {
    let nodes = ["n0", "n1", "n2"].map(|name| with_log(name, &IB, "200 Gb/sec (4X HDR)"));
    let slow = together(&nodes, vec![(1 << 20, 30_000_000), (64 << 20, 18_000_000), (1 << 30, 19_000_000)]);
    let (report, text) = judged_run(&slow, FailOn::Error);
    assert_eq!((report.outcome(), report.odd.len()), (Verdict::Pass, 0), "{text}");
    assert!(first_line(&text).contains("no odd node, but 3 sound nodes together reach 19.0 MB/s"), "{text}");
    assert!(text.contains("warning[cluster/network]: all nodes: 3 sound nodes together"), "{text}");
    let time = report.network.as_ref().unwrap().together[0].least_seconds.unwrap();
    assert!((time - 0.0429).abs() < 1e-4, "{time}");
    assert!(text.contains("1 GiB in 65.0 ms, and the ports"), "{text}");
    let part = &report.network.as_ref().unwrap().parts[0];
    assert_eq!(verdict_of_part(part, FailOn::Warning), Verdict::Fail);
    // Half is enough, and so is what a larger message reaches.
    let fast = together(&nodes, vec![(64 << 20, 10_000_000), (1 << 30, 20_000_000)]);
    assert_eq!(first_line(&judged_run(&fast, FailOn::Error).1), "PASS  3 nodes; no odd node");
    let mut failed = together(&nodes, Vec::new());
    failed.between.together[0].failure = Some("why".to_owned());
    let (report, text) = judged_run(&failed, FailOn::Error);
    assert_eq!(report.outcome(), Verdict::Incomplete, "{text}");
    let mut lost = failed.clone();
    lost.nodes[2].fate = Fate::Failed("nothing came from it".to_owned());
    let (report, text) = judged_run(&lost, FailOn::Error);
    assert!(
        first_line(&text).starts_with("FAIL  3 nodes; the odd node is n2") && !text.contains("together failed"),
        "{text}"
    );
    assert_eq!(report.excluded().as_str(), "n2");
    failed.between.together[0].over_sockets = true;
    assert_eq!(judged_run(&failed, FailOn::Error).0.outcome(), Verdict::Pass);
}

#[test]
fn the_least_time_is_unknown_without_rates() {
    let nodes = ["n0", "n1", "n2"].map(|name| with_log(name, &IB, "unknown"));
    let (report, _) = judged_run(&together(&nodes, vec![(1 << 30, 40_000_000)]), FailOn::Error);
    let run = &report.network.unwrap().together[0];
    let why = run.least_unknown.as_deref();
    assert_eq!((run.least_seconds, why), (None, Some("the rate of mlx5_0:1 could not be read on n0")));
}

#[test]
fn a_node_whose_log_shows_another_network_is_odd() {
    let socket = ["NCCL INFO Using network Socket", "a:1:2 [0] NCCL WARN Cuda failure 101 'invalid device ordinal'"];
    let node = |name, lines| with_log(name, lines, "200 Gb/sec (4X HDR)");
    let run = together(&[node("n0", &IB), node("n1", &socket), node("n2", &IB)], vec![(1 << 30, 40_000_000)]);
    let (report, text) = judged_run(&run, FailOn::Error);
    assert_eq!((report.outcome(), report.excluded().as_str()), (Verdict::Fail, "n1"), "{text}");
    let expected = "the odd node is n1: network that NCCL uses between nodes is Socket, and IB on 2 of 3 nodes";
    assert!(first_line(&text).ends_with(expected), "{text}");
    assert!(text.contains("NCCL  n1: warns: Cuda failure 101"), "{text}");
    let silent = together(&[node("n0", &IB), node("n1", &[]), node("n2", &IB)], Vec::new());
    let (report, text) = judged_run(&silent, FailOn::Error);
    assert_eq!(report.outcome(), Verdict::Incomplete, "{text}");
    assert!(text.contains("NCCL's log of the tests between nodes names no network"), "{text}");
}
