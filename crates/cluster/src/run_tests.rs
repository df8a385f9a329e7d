use super::*;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A run of stand-ins, named for what they do, which waits `patience` for those that do not end.
fn of(nodes: &[&str], budget: Duration, patience: Duration) -> Vec<(String, Fate)> {
    let recording = format!("{ROOT}/fixtures/probe/h100-x2/tmp-full.jsonl");
    // A name has a number where two nodes do the same.
    let command = format!("n={{node}}; '{ROOT}/tests/cluster/agent' \"${{n%-*}}\" '{recording}'");
    run_steps(
        &["limits", "storage"],
        nodes,
        command,
        RunLimits { budget, patience, endings: [Duration::from_millis(100); 2] },
    )
}

fn run_steps(steps: &[&str], nodes: &[&str], command: String, limits: RunLimits) -> Vec<(String, Fate)> {
    let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
    let launch = Launch { nodes, way: LaunchWay::Each(command), python: "python3".to_owned() };
    let steps: Vec<_> = steps.iter().map(|&step| step.to_owned()).collect();
    let plan = ProbePlan::new(&steps).unwrap();
    let run = run(&launch, plan, Network::default(), &limits, &Stopper::default(), &mut |_| {}).unwrap();
    run.nodes.into_iter().map(|node| (node.name, node.fate)).collect()
}

const LONG: Duration = Duration::from_mins(10);

fn why(fate: &Fate) -> &str {
    match fate {
        Fate::Ended => "",
        Fate::Failed(why) | Fate::Absent(why) => why,
    }
}

#[test]
fn each_node_ends_as_what_it_is_and_holds_up_no_other() {
    let nodes = ["sound-1", "sound-2", "sound-3", "absent-1", "dead-1", "cut-1"];
    let fates = of(&nodes, LONG, LONG);
    assert!(fates[..3].iter().all(|(_, fate)| *fate == Fate::Ended), "{fates:?}");
    let [.., (_, absent), (_, dead), (_, cut)] = &*fates else { panic!("{fates:?}") };
    assert!(matches!(absent, Fate::Absent(_)) && matches!(dead, Fate::Failed(_)) && matches!(cut, Fate::Failed(_)));
    assert!(why(absent).contains("exit status: 7") && why(absent).ends_with("\nno such container"), "{absent:?}");
    assert!(
        why(dead).starts_with("its program began the step limits, and then its command ended with exit status: 3"),
        "{dead:?}"
    );
    assert!(why(dead).ends_with("\nBus error"), "{dead:?}");
    assert!(why(cut).starts_with("its program started, and then"), "{cut:?}");
}

#[test]
fn a_node_that_does_not_end_is_late_when_most_have_ended() {
    let fates = of(&["sound-1", "sound-2", "hang-1"], LONG, Duration::from_millis(10));
    assert!(fates[..2].iter().all(|(_, fate)| *fate == Fate::Ended), "{fates:?}");
    assert!(why(&fates[2].1).starts_with("its program began the step limits, and did not end within"), "{fates:?}");
}

#[test]
fn the_budget_ends_a_run_in_which_no_node_ends() {
    let fates = of(&["silent-1", "flood-1"], Duration::from_secs(2), LONG);
    assert!(matches!(&fates[0].1, Fate::Absent(why) if why == "nothing came from it within 2 s"), "{fates:?}");
    assert!(matches!(&fates[1].1, Fate::Failed(_)), "{fates:?}");
}

#[test]
fn what_a_node_may_not_say_is_refused() {
    let fates = of(&["lying-1"], LONG, LONG);
    let refused = "3 lines of its output cannot be of the probe's program, the first: line 1: only ncclcheck itself writes this event";
    assert_eq!(fates[0].1, Fate::Failed(refused.to_owned()));
    let fates = of(&["stranger-1"], LONG, LONG);
    assert!(
        matches!(&fates[0].1, Fate::Failed(why) if why.starts_with("its task says that it runs on n9")),
        "{fates:?}"
    );
}

#[test]
fn a_program_that_is_stopped_in_a_test_is_named() {
    let torch = format!("{ROOT}/tests/probe/program/stand_ins/python");
    let command = format!("n={{node}}; exec env PYTHONPATH='{torch}' TORCH_FAULT=\"$n every 1\"");
    let limits = RunLimits { endings: [Duration::from_millis(100); 2], ..RunLimits::default() };
    let fates = run_steps(&["between-nodes"], &["sound", "freeze"], command, limits);
    assert_eq!(fates[0].1, Fate::Ended);
    assert_eq!(fates[1].1, Fate::Failed("nothing came from it for 12 s while it was tested".to_owned()));
}
