//! `NCCL_ALGO` as NCCL reads it from 2.24 on (`parseList` and `ncclTopoTuneModel` in `src/graph/tuning.cc`): lists of
//! algorithms by function, without a silent fallback to the ring.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::document::shipped;

/// A function and the algorithms that implement it: a row of the table `algorithms.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Collective {
    function: String,
    of: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

static FUNCTIONS: LazyLock<Vec<Collective>> = LazyLock::new(|| shipped::table("algorithms"));

/// Parts of a value that NCCL 2.24 and later reject: unknown words, and functions left without an algorithm.
pub(super) fn refused(value: &str) -> Vec<String> {
    let mut refused = Vec::new();
    let mut left: Vec<(&Collective, Vec<&str>)> =
        FUNCTIONS.iter().map(|function| (function, function.of.iter().map(String::as_str).collect())).collect();
    let algorithms: Vec<&str> = left.iter().flat_map(|(_, own)| own).copied().collect();
    for (index, entry) in value.split(';').filter(|entry| !entry.is_empty()).enumerate() {
        let mut parts = entry.split(':').filter(|part| !part.is_empty());
        let (function, list) = match (parts.next(), parts.next()) {
            (Some(function), Some(list)) => (Some(function), list),
            (Some(list), None) if index == 0 => (None, list),
            _ => {
                refused.push(format!("'{entry}' names no function"));
                continue;
            }
        };
        let (excludes, list) = list.strip_prefix('^').map_or((false, list), |list| (true, list));
        let words: Vec<&str> = list.split(',').filter(|word| !word.is_empty()).collect();
        let is_among = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let strange = words.iter().filter(|word| !is_among(&algorithms, word));
        refused.extend(strange.map(|word| format!("'{word}' is not an algorithm")));
        let mut is_known = false;
        for (known, left) in &mut left {
            if function.is_none_or(|function| function.eq_ignore_ascii_case(&known.function)) {
                is_known = true;
                let own = known.of.iter().map(String::as_str);
                *left = own.filter(|algorithm| is_among(&words, algorithm) != excludes).collect();
            }
        }
        if let (Some(function), false) = (function, is_known) {
            refused.push(format!("'{function}' is not a function"));
        }
    }
    let bare = left.iter().filter(|(_, algorithms)| algorithms.is_empty());
    refused.extend(bare.map(|(known, _)| format!("no algorithm is left for {}", known.function)));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for (index, function) in FUNCTIONS.iter().enumerate() {
            let is_first = FUNCTIONS.iter().position(|other| other.function == function.function) == Some(index);
            assert!(is_first && !function.of.is_empty() && function.source.starts_with("src/"), "{function:?}");
        }
    }

    #[test]
    fn refused_values_are_explained() {
        const ALL: [&str; 5] = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"];
        let none_for = |functions: &[&str]| -> Vec<String> {
            functions.iter().map(|function| format!("no algorithm is left for {function}")).collect()
        };
        for (value, expected) in [
            ("", vec![]),
            ("Ring", vec![]),
            ("tree,ring", vec![]),
            ("^tree", vec![]),
            ("^NVLS,NVLSTree", vec![]),
            ("allreduce:tree", vec![]),
            ("ring;allreduce:tree,nvls", vec![]),
            (";ring,;", vec![]),
            ("Tree", none_for(&["Broadcast", "Reduce", "AllGather", "ReduceScatter"])),
            ("^ring", none_for(&["Broadcast", "Reduce"])),
            ("NVLS", none_for(&["Broadcast", "Reduce"])),
            ("tree;broadcast:ring;reduce:ring", none_for(&["AllGather", "ReduceScatter"])),
            ("AllReduce:PAT", none_for(&["AllReduce"])),
            ("broadcast:^ring", none_for(&["Broadcast"])),
            ("ring,Collnet", vec!["'Collnet' is not an algorithm".to_owned()]),
            ("ring;tree", vec!["'tree' names no function".to_owned()]),
            ("alltoall:ring", vec!["'alltoall' is not a function".to_owned()]),
            ("ring;", vec![]),
            (";ring;allreduce:tree", vec![]),
            ("allgather:^ring,pat", vec![]),
            ("ring;reduce:^tree", vec![]),
            ("AllReduce:CollNetChain", vec![]),
            ("allreduce:tree:none", vec![]),
            ("^ring,tree,nvls,nvlstree,pat,collnetdirect,collnetchain", none_for(&ALL)),
            ("none", vec!["'none' is not an algorithm".to_owned()].into_iter().chain(none_for(&ALL)).collect()),
            ("broadcast:ring;ring", vec!["'ring' names no function".to_owned()]),
        ] {
            assert_eq!(refused(value), expected, "{value}");
        }
    }
}
