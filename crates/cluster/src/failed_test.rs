//! Why a test between nodes failed, by what its nodes answered.

use probe::wire::between_nodes::{TestAnswer, TestFailure};
use probe::wire::events::RankState;

/// Why a test failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestError {
    /// The reason.
    pub(super) why: String,
    /// Which of the nodes is at fault, if the answers show it.
    pub(super) culprit: Option<usize>,
}

/// Why a test of these nodes failed; none if it did not.
pub(super) fn failure(nodes: &[(&str, Option<&TestAnswer>)]) -> Option<TestError> {
    let answers = || nodes.iter().enumerate().filter_map(|(place, (name, answer))| Some((place, *name, (*answer)?)));
    let failed: Vec<_> =
        answers().filter_map(|(place, name, answer)| Some((place, name, answer.failed.value()?))).collect();
    let silent: Vec<_> = nodes.iter().enumerate().filter(|(_, (_, answer))| answer.is_none()).collect();
    if let [(place, (name, _)), rest @ ..] = &*silent {
        return Some(TestError { why: format!("{name} did not answer"), culprit: rest.is_empty().then_some(*place) });
    }
    let of_kind = |kinds: &[&str]| {
        let (place, name, failure) =
            failed.iter().find(|(_, _, failure)| failure.how.text().is_some_and(|how| kinds.contains(&how)))?;
        Some((*place, format!("{name}: {}", failure.message.text().unwrap_or_default())))
    };
    if let Some((place, why)) = of_kind(&["signal", "exit"]) {
        return Some(TestError { why, culprit: Some(place) });
    }
    // A rank that lost its peer fails by an exception, too.
    if let Some((_, why)) = of_kind(&["exception"]) {
        return Some(TestError { why, culprit: None });
    }
    if !failed.is_empty() {
        return Some(hang(&failed, nodes.len()));
    }
    let wrong = answers().filter_map(|(_, _, answer)| answer.wrong.copied()).max().filter(|wrong| *wrong > 0)?;
    Some(TestError { why: format!("{} arrived wrong", model::counted(wrong, "element", "elements")), culprit: None })
}

/// Which rank holds up the others: one that is stopped, or has not come as far as the others.
fn hang(failed: &[(usize, &str, &TestFailure)], nodes: usize) -> TestError {
    let ranks: Vec<_> = failed
        .iter()
        .flat_map(|(place, name, failure)| failure.ranks.list().iter().map(move |rank| (*place, *name, rank)))
        .collect();
    let number = |rank: &RankState| rank.number.copied().unwrap_or_default();
    let text = |(_, name, rank): &(usize, &str, &RankState), what: &str| {
        let phase = rank.phase.text().unwrap_or_default();
        format!("rank {} on {name} {what} in '{phase}'", rank.rank.copied().unwrap_or_default())
    };
    let furthest = ranks.iter().map(|(_, _, rank)| number(rank)).max().unwrap_or_default();
    let stopped: Vec<_> = ranks.iter().filter(|(_, _, rank)| rank.state.text() == Some("stopped")).collect();
    let behind: Vec<_> = ranks.iter().filter(|(_, _, rank)| number(rank) < furthest).collect();
    let (late, what) = if stopped.is_empty() { (behind, "stays") } else { (stopped, "is stopped") };
    let Some((place, ..)) = late.first() else {
        // Of two nodes, one may have come to the end.
        let culprit = failed.first().filter(|_| failed.len() == 1 && nodes > 1).map(|(place, ..)| *place);
        let phase = ranks.first().and_then(|(_, _, rank)| rank.phase.text()).unwrap_or_default();
        return TestError { why: format!("it hung in '{phase}'"), culprit };
    };
    let culprit = late.iter().all(|(other, ..)| other == place).then_some(*place);
    let late: Vec<_> = late.into_iter().map(|rank| text(rank, what)).collect();
    TestError { why: format!("it hung: {}", late.join("; ")), culprit }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Why a test of `a` and `b` failed, by the failures of both, and who is at fault.
    fn of(failed: [serde_json::Value; 2]) -> (String, Option<usize>) {
        let [a, b] = failed.map(|failed| {
            let serde_json::Value::Object(body) = json!({ "kind": "test", "failed": failed }) else { panic!() };
            probe::wire::read_part::<TestAnswer>(&body).unwrap()
        });
        let error = failure(&[("a", Some(&a)), ("b", Some(&b))]).unwrap();
        (error.why, error.culprit)
    }

    fn hung(number: u32, state: &str) -> serde_json::Value {
        let phase = ["start", "rendezvous", "communicator"][number as usize];
        json!({ "how": "deadline", "message": "it was stopped",
                "ranks": [{ "rank": 1, "phase": phase, "number": number, "state": state, "error": null }] })
    }

    #[test]
    fn a_dead_rank_is_at_fault_and_not_the_one_that_lost_it() {
        let dead = json!({ "how": "signal", "message": "rank 1: ended by signal SIGKILL", "ranks": [] });
        let lost = json!({ "how": "exception", "message": "rank 0: connection closed", "ranks": [] });
        assert_eq!(of([lost.clone(), dead]), ("b: rank 1: ended by signal SIGKILL".to_owned(), Some(1)));
        assert_eq!(of([lost, json!(null)]), ("a: rank 0: connection closed".to_owned(), None));
    }

    #[test]
    fn a_node_is_at_fault_for_silence_only_if_the_others_answer() {
        let answer = TestAnswer::default();
        let culprit = |a, b| failure(&[("a", a), ("b", b)]).unwrap().culprit;
        assert_eq!([culprit(Some(&answer), None), culprit(None, None)], [Some(1), None]);
    }

    #[test]
    fn a_hang_names_the_rank_that_is_missing() {
        let behind = "it hung: rank 1 on b stays in 'rendezvous'";
        assert_eq!(of([hung(2, "running"), hung(1, "running")]), (behind.to_owned(), Some(1)));
        let stopped = "it hung: rank 1 on a is stopped in 'communicator'";
        assert_eq!(of([hung(2, "stopped"), hung(2, "running")]), (stopped.to_owned(), Some(0)));
        assert_eq!(of([hung(2, "running"), hung(2, "running")]), ("it hung in 'communicator'".to_owned(), None));
        assert_eq!(of([json!(null), hung(2, "running")]), ("it hung in 'communicator'".to_owned(), Some(1)));
    }
}
