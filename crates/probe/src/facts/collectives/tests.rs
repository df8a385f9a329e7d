use serde_json::{Value as Json, json};

use super::super::super::wire::events::{EventBody, LogEvent, StepFailure};
use super::*;

/// The body of a JSON object.
fn body(value: Json) -> EventBody {
    match value {
        Json::Object(body) => body,
        other => panic!("{other} is not an object"),
    }
}

fn step(name: &str, parts: Vec<Json>, outcome: StepOutcome) -> StepRecord {
    let parts = parts.into_iter().map(body).collect();
    StepRecord { name: name.to_owned(), parts, log: Vec::new(), read_log: None, outcome, seconds: None }
}

fn done() -> StepOutcome {
    StepOutcome::Done { body: EventBody::new(), unclean_exit: None }
}

fn failed(how: &str, kind: Option<&str>, message: &str) -> StepOutcome {
    let how = how.to_owned();
    let kind = kind.map(ToOwned::to_owned);
    let message = message.to_owned();
    StepOutcome::Failed(Box::new(StepFailure { how, kind, message, ..StepFailure::default() }))
}

fn said(lines: &[&str]) -> Vec<LogEvent> {
    let log = |line: &&str| LogEvent {
        step: "collectives".to_owned(),
        run: 0,
        rank: Some(0),
        line: (*line).to_owned(),
        left_out: None,
    };
    lines.iter().map(log).collect()
}

fn measurement(operation: &str, bytes: u64, busbw: f64, wrong: impl Into<Json>) -> Json {
    let wrong = wrong.into();
    json!({"kind": "measurement", "operation": operation, "bytes": bytes, "busbw_bytes_per_second": busbw, "wrong": wrong})
}

fn facts(step: StepRecord) -> Facts {
    let mut facts = Facts::default();
    let mut recording = Recording::default();
    recording.steps.push(step);
    produce(&recording, &mut facts);
    facts
}

/// Formats a fact: its value, `-` if it is absent, `? WHY` if it is unknown.
fn shown(facts: &Facts, key: &key::Definition) -> String {
    match facts.view(key) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => "-".to_owned(),
        Fact::Unknown(gap) => format!("? {}", gap.why),
    }
}

const SIZES: [u64; 3] = [8, 64 << 20, 256 << 20];

#[test]
fn wrong_values_are_listed_by_operation_and_size() {
    let wrong = |values: &[Json], outcome: StepOutcome| {
        let parts = values.iter().zip(SIZES).map(|(wrong, bytes)| measurement("all_reduce", bytes, 1e9, wrong.clone()));
        shown(&facts(step("collectives", parts.collect(), outcome)), &key::RUN_NCCL_WRONG)
    };
    let broke = || failed("exception", None, "it broke");
    assert_eq!(wrong(&[json!(0), json!(0)], done()), "-");
    assert_eq!(wrong(&[json!(0), json!(3)], done()), "all_reduce of 64 MiB: 3 wrong values");
    assert_eq!(
        wrong(&[json!(1), json!(0), json!(2)], done()),
        "all_reduce of 8 bytes: 1 wrong values, all_reduce of 256 MiB: 2 wrong values"
    );
    // Wrong values stay wrong after a failure, but values that were not compared are unknown.
    assert_eq!(wrong(&[json!(1)], broke()), "all_reduce of 8 bytes: 1 wrong values");
    assert_eq!(wrong(&[json!(0)], broke()), "? the step failed: it broke");
    assert_eq!(wrong(&[json!(0)], StepOutcome::Open), "? the step did not end");
}

#[test]
fn values_that_were_not_compared_are_unknown() {
    let mut unread = measurement("all_reduce", 8, 1e9, Json::Null);
    unread["unread"] = json!({"wrong": "out of memory"});
    let good = measurement("all_reduce", 8, 1e9, 0);
    let facts_of = |parts| facts(step("collectives", parts, done()));
    assert_eq!(shown(&facts_of(vec![good, unread.clone()]), &key::RUN_NCCL_WRONG), "? out of memory");
    let bad = measurement("broadcast", 8, 1e9, 1);
    assert_eq!(shown(&facts_of(vec![bad, unread]), &key::RUN_NCCL_WRONG), "broadcast of 8 bytes: 1 wrong values");
    let nothing = body(json!({"left_out": [{"why": "one GPU"}, {"why": "another reason"}]}));
    let nothing = || StepOutcome::Done { body: nothing.clone(), unclean_exit: None };
    let of = |parts: Vec<Json>| shown(&facts(step("collectives", parts, nothing())), &key::RUN_NCCL_WRONG);
    assert_eq!(of(vec![]), "? nothing was measured: one GPU");
    assert_eq!(of(vec![measurement("all_reduce", 8, 1e9, 0)]), "-");
    assert_eq!(shown(&facts_of(vec![]), &key::RUN_NCCL_WRONG), "-");
}

#[test]
fn bandwidth_is_taken_at_the_largest_size() {
    let parts = vec![
        measurement("all_reduce", 64 << 20, 4e9, 0),
        measurement("all_reduce", 256 << 20, 123_456_789_000.0, 0),
        measurement("all_reduce", 8, 5e9, 0),
        measurement("broadcast", 8, 1e6, 0),
    ];
    let step = step("collectives", parts, done());
    assert_eq!(bandwidth(&step, "all_reduce"), Some(123_456_789_000.0));
    assert_eq!(bandwidth(&step, "broadcast"), Some(1e6));
    assert_eq!(bandwidth(&step, "alltoall"), None);
    let facts = facts(step);
    assert_eq!(shown(&facts, &key::RUN_NCCL_BUSBW), "all_reduce=123.5, broadcast=0.0");
    assert_eq!(shown(&facts, &key::RUN_NCCL_ALL_REDUCE), "123457");
}

#[test]
fn all_reduce_counts_from_64_mib_on() {
    let speed = |bytes: u64, outcome: StepOutcome| {
        let step = step("collectives", vec![measurement("all_reduce", bytes, 2e9, 0)], outcome);
        shown(&facts(step), &key::RUN_NCCL_ALL_REDUCE)
    };
    assert_eq!(speed(64 << 20, done()), "2000");
    assert_eq!(speed((64 << 20) - 1, done()), "-");
    assert_eq!(speed(64 << 20, StepOutcome::Open), "2000");
    assert_eq!(speed(8, StepOutcome::Open), "? the step did not end");
    let none = facts(step("collectives", vec![], done()));
    assert_eq!(shown(&none, &key::RUN_NCCL_BUSBW), "-");
    assert_eq!(shown(&none, &key::RUN_NCCL_ALL_REDUCE), "-");
}

#[test]
fn times_are_in_milliseconds() {
    let times = json!({"kind": "times", "init_seconds": 1.25, "first_call_seconds": 0.5});
    let pairs = [("call", 9.0), ("nothing", 0.0996), ("nothing", 7.0)];
    let pairs = pairs.map(|(by, first)| json!({"kind": "point-to-point", "prepared_by": by, "first_seconds": first}));
    let parts: Vec<_> = [times].into_iter().chain(pairs).collect();
    let all = facts(step("collectives", parts, done()));
    assert_eq!(shown(&all, &key::RUN_NCCL_INIT), "1750");
    assert_eq!(shown(&all, &key::RUN_NCCL_PAIR), "100");
    let none = facts(step("collectives", vec![json!({"kind": "times", "init_seconds": 1.0})], done()));
    assert_eq!(shown(&none, &key::RUN_NCCL_INIT), "-");
    assert_eq!(shown(&none, &key::RUN_NCCL_PAIR), "-");
}

#[test]
fn nccl_works_once_its_first_call_has_returned() {
    let times = || vec![json!({"kind": "times"})];
    let broke = || failed("exception", Some("DistBackendError"), "NCCL error\n  in  line 1");
    for (parts, outcome, works, error, hang) in [
        (times(), done(), "true", "-", "-"),
        (times(), broke(), "true", "DistBackendError: NCCL error in line 1", "-"),
        (vec![], broke(), "false", "DistBackendError: NCCL error in line 1", "-"),
        (vec![], failed("exit", None, "status  1"), "false", "status 1", "-"),
        (vec![], failed("deadline", None, "rank 1 is late"), "false", "-", "rank 1 is late"),
        (vec![], StepOutcome::Open, "? the collectives did not end", "-", "-"),
    ] {
        let facts = facts(step("collectives", parts, outcome));
        assert_eq!(shown(&facts, &key::RUN_NCCL_WORKS), works);
        assert_eq!(shown(&facts, &key::RUN_NCCL_ERROR), error);
        assert_eq!(shown(&facts, &key::RUN_NCCL_HANG), hang);
    }
}

#[test]
fn the_facts_of_a_skipped_step_are_unknown() {
    for name in ["collectives", "forced-network"] {
        let facts =
            facts(step(name, vec![measurement("all_reduce", 8, 1e9, 0)], StepOutcome::Skipped("no torch".to_owned())));
        let expected = format!("? the step {name} was skipped: no torch");
        let keys: &[&key::Definition] = match name {
            "collectives" => KEYS,
            _ => key::definitions![RUN_FORCED_ERROR, RUN_FORCED_TRANSPORTS, RUN_FORCED_MB_S],
        };
        for key in keys {
            assert_eq!(shown(&facts, key), expected, "{}", key.name);
        }
    }
    let mut nothing = Facts::default();
    produce(&Recording::default(), &mut nothing);
    for key in key::definitions![RUN_NCCL_WORKS, RUN_FORCED_ERROR, RUN_ISOLATED, RUN_WHAT_IF] {
        assert_eq!(shown(&nothing, key), "-");
    }
}

#[test]
fn ranks_and_mapped_copies_of_nccl() {
    let setup = json!({"kind": "setup", "world_size": 8, "backend": "nccl"});
    let mapped =
        json!({"kind": "libraries", "paths": ["/a/libnccl.so.2", "/b/libnccl.so", "/libnccl.so/x", "/libnccl-net.so"]});
    let facts = facts(step("collectives", vec![setup, mapped], done()));
    assert_eq!(shown(&facts, &key::RUN_NCCL_RANKS), "8");
    assert_eq!(shown(&facts, &key::RUN_NCCL_PATHS), "/a/libnccl.so.2, /b/libnccl.so");
    let none = self::facts(step("collectives", vec![], done()));
    assert_eq!(shown(&none, &key::RUN_NCCL_RANKS), "-");
    assert_eq!(shown(&none, &key::RUN_NCCL_PATHS), "-");
}

const LOGGED: &[&key::Definition] = key::definitions![
    RUN_NCCL_VERSION,
    RUN_NCCL_NODES,
    RUN_NCCL_TRANSPORTS,
    RUN_NCCL_NETWORK,
    RUN_NCCL_INTERFACES,
    RUN_NCCL_WARNINGS,
    RUN_NCCL_PLUGIN_ERRORS,
];

#[test]
fn without_debug_output_of_nccl_its_facts_are_unknown() {
    for (backend, expected) in [(json!("nccl"), "? NCCL wrote no debug output"), (json!("gloo"), "-")] {
        let setup = json!({"kind": "setup", "backend": backend});
        let facts = facts(step("collectives", vec![setup], done()));
        for key in LOGGED {
            assert_eq!(shown(&facts, key), expected, "{}", key.name);
        }
    }
    let silent = facts(step("collectives", vec![], done()));
    assert_eq!(shown(&silent, &key::RUN_NCCL_NODES), "? NCCL wrote no debug output");
}

#[test]
fn a_missing_line_is_absent_in_a_complete_log_and_unknown_in_a_shortened_one() {
    let with = |left_out: Option<u64>| {
        let mut step = step("collectives", vec![], done());
        step.log = said(&["vm:53:53 [0] NCCL INFO something new", "vm:53:53 [0] NCCL WARN odd"]);
        step.log[1].left_out = left_out;
        facts(step)
    };
    for (left_out, expected) in [
        (None, "-"),
        (Some(0), "-"),
        (Some(1), "? 1 lines of NCCL's debug output were left out"),
        (Some(3), "? 3 lines of NCCL's debug output were left out"),
    ] {
        let facts = with(left_out);
        assert_eq!(shown(&facts, &key::RUN_NCCL_NETWORK), expected);
        assert_eq!(shown(&facts, &key::RUN_NCCL_VERSION), expected);
        assert_eq!(shown(&facts, &key::RUN_NCCL_WARNINGS), "odd");
    }
}

#[test]
fn only_the_first_run_of_a_step_counts() {
    let mut step = step("collectives", vec![], done());
    step.log = said(&["vm:53:53 [0] NCCL WARN first", "vm:53:53 [0] NCCL WARN second"]);
    step.log[0].left_out = Some(2);
    step.log[1].run = 1;
    step.log[1].left_out = Some(3);
    let log = log(&step);
    assert_eq!(log.warnings.keys().collect::<Vec<_>>(), ["first"]);
    assert_eq!(log.left_out, 5);
}

#[test]
fn the_run_over_the_network_only() {
    let parts = || vec![measurement("all_reduce", 8, 1e6, 0), measurement("all_reduce", 256 << 20, 4_069_155_285.0, 0)];
    for (outcome, error) in [
        (done(), "-"),
        (failed("exception", Some("E"), "no\n  space"), "no space"),
        (StepOutcome::Open, "? the step did not end"),
    ] {
        let facts = facts(step("forced-network", parts(), outcome));
        assert_eq!(shown(&facts, &key::RUN_FORCED_ERROR), error);
        assert_eq!(shown(&facts, &key::RUN_FORCED_MB_S), "4069");
        assert_eq!(shown(&facts, &key::RUN_FORCED_TRANSPORTS), "-");
    }
    assert_eq!(shown(&facts(step("forced-network", vec![], done())), &key::RUN_FORCED_MB_S), "-");
}

fn found(name: &str, found: Json) -> StepRecord {
    step(name, vec![], StepOutcome::Done { body: body(found), unclean_exit: None })
}

#[test]
fn arrangements_are_compared_with_one_container() {
    let rows = json!([
        {"arrangement": "one container", "all_reduce_bytes_per_second": 200e9, "transports": ["P2P/CUMEM", "SHM"]},
        {"arrangement": "slow", "all_reduce_bytes_per_second": 51e9, "transports": [], "warning": "odd"},
        {"arrangement": "broken", "error": "no\n such device", "warning": "odd"},
        {"arrangement": "silent", "error": "it did not end", "warning": null},
    ]);
    let facts_of = |body: Json| facts(found("isolated", body));
    let Fact::Seen { value: model::Value::List(records), .. } =
        facts_of(json!({"rows": rows})).view(&key::RUN_ISOLATED).clone()
    else {
        panic!("no list")
    };
    let records: Vec<_> = records.iter().map(ToString::to_string).collect();
    assert_eq!(
        records,
        [
            "arrangement=one container, gb_s=200.0, percent=100, transports=P2P/CUMEM, SHM",
            "arrangement=slow, gb_s=51.0, percent=26",
            "arrangement=broken, error=no such device; odd",
            "arrangement=silent, error=it did not end",
        ]
    );
    assert_eq!(shown(&facts_of(json!({"rows": []})), &key::RUN_ISOLATED), "-");
    let lost = facts(step("isolated", vec![], StepOutcome::Open));
    assert_eq!(shown(&lost, &key::RUN_ISOLATED), "? the step isolated did not end");
}

#[test]
fn a_variant_differs_if_its_samples_do_not_overlap_those_of_the_base() {
    let size = |bytes: u64, median: f64, samples: [f64; 2]| json!({"bytes": bytes, "median_seconds": median, "samples": samples});
    let variants = json!([
        {"env": {}, "sizes": [size(8, 4.0, [3.0, 5.0]), size(64, 4.0, [3.0, 5.0]), {"bytes": 1}]},
        {"env": {"A": "1", "B": "2"}, "sizes": [size(8, 2.0, [1.0, 2.0]), size(64, 8.0, [6.0, 9.0])]},
        {"env": {"C": "1"}, "sizes": [size(8, 4.0, [5.0, 6.0]), size(64, 3.0, [1.0, 3.0]), size(512, 1.0, [1.0, 1.0])]},
        {"env": {"D": "1"}, "failed": {"how": "exit", "message": "no such algorithm"}, "sizes": [size(8, 1.0, [1.0, 1.0])]},
        {"env": {"F": "1"}, "failed": "no object", "sizes": [size(8, 1.0, [1.0, 1.0])]},
        {"env": {"E": "1"}, "sizes": [size(1, 1.0, [1.0, 1.0]), {"bytes": 8}, size(64, 4.0, [4.0, 4.0])]},
    ]);
    let facts_of = |variants: Json| facts(found("what-if", json!({"variants": variants})));
    let facts = facts_of(variants);
    let Fact::Seen { value: model::Value::List(records), .. } = facts.view(&key::RUN_WHAT_IF) else {
        panic!("no list")
    };
    let mut records: Vec<_> = records.iter().map(ToString::to_string).collect();
    let unread = records.remove(5);
    assert!(unread.starts_with("error=") && unread.ends_with("variables=F=1"), "{unread}");
    assert_eq!(
        records,
        [
            "differs=yes, ratio=2.00, size=8, variables=A=1 B=2",
            "differs=yes, ratio=0.50, size=64, variables=A=1 B=2",
            "differs=no, ratio=1.00, size=8, variables=C=1",
            "differs=no, ratio=1.33, size=64, variables=C=1",
            "error=no such algorithm, variables=D=1",
            "differs=no, ratio=1.00, size=64, variables=E=1",
        ]
    );
    assert_eq!(shown(&facts_of(json!([{"env": {}, "sizes": [size(8, 1.0, [1.0, 1.0])]}])), &key::RUN_WHAT_IF), "-");
    let lost = self::facts(step("what-if", vec![], failed("exit", None, "status 1")));
    assert_eq!(shown(&lost, &key::RUN_WHAT_IF), "? the step what-if failed: status 1");
}
