//! Why a test between nodes failed, by what its nodes answered.

use probe::wire::between_nodes::{TestAnswer, TestFailure};
use probe::wire::events::RankState;

/// Why a test of these nodes failed; none if it did not.
pub(super) fn failure(nodes: &[(&str, Option<&TestAnswer>)]) -> Option<String> {
    let failed = || nodes.iter().filter_map(|(name, answer)| Some((*name, answer.as_ref()?.failed.value()?)));
    let has_ended = |how: &str| matches!(how, "signal" | "exit");
    let of_kind = |is_kind: &dyn Fn(&str) -> bool| {
        let (name, failure) = failed().find(|(_, failure)| failure.how.text().is_some_and(is_kind))?;
        Some(format!("{name}: {}", failure.message.text().unwrap_or_default()))
    };
    if let Some((name, _)) = nodes.iter().find(|(_, answer)| answer.is_none()) {
        return Some(format!("{name} did not answer"));
    }
    // A rank that lost its peer fails by an exception, and so does one whose peer died.
    let wrong = nodes.iter().filter_map(|(_, answer)| answer.as_ref()?.wrong.copied()).max().unwrap_or_default();
    of_kind(&has_ended)
        .or_else(|| of_kind(&|how| how == "exception"))
        .or_else(|| failed().next().map(|_| hang(&failed().collect::<Vec<_>>())))
        .or_else(|| (wrong > 0).then(|| format!("{} arrived wrong", model::counted(wrong, "element", "elements"))))
}

/// Which rank holds up the others, by the phases of all.
fn hang(nodes: &[(&str, &TestFailure)]) -> String {
    let number = |rank: &RankState| rank.number.copied().unwrap_or_default();
    let ranks: Vec<_> =
        nodes.iter().flat_map(|(name, failure)| failure.ranks.list().iter().map(move |rank| (*name, rank))).collect();
    let Some((_, furthest)) = ranks.iter().max_by_key(|(_, rank)| number(rank)) else { return "it hung".to_owned() };
    let behind = ranks.iter().filter(|(_, rank)| number(rank) < number(furthest));
    let phase = |rank: &RankState| rank.phase.text().unwrap_or_default().to_owned();
    let behind: Vec<_> = behind
        .map(|(name, rank)| {
            let number = rank.rank.copied().unwrap_or_default();
            format!("rank {number} on {name} did not come to '{}' (it is in '{}')", phase(furthest), phase(rank))
        })
        .collect();
    match &*behind {
        [] => format!("it hung: all ranks are in '{}'", phase(furthest)),
        late => format!("it hung: {}", late.join("; ")),
    }
}
