//! `NCCL_ALGO` as NCCL takes it from 2.24 on (`parseList` and `ncclTopoTuneModel` in `src/graph/tuning.cc`): lists of
//! algorithms by function, without a silent way back to the ring.

const ALGORITHMS: [&str; 7] = ["Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"];

/// The functions, and the algorithms that each has code for.
const FUNCTIONS: [(&str, &[&str]); 5] = [
    ("Broadcast", &["Ring"]),
    ("Reduce", &["Ring"]),
    ("AllGather", &["Ring", "CollNetDirect", "NVLS", "PAT"]),
    ("ReduceScatter", &["Ring", "CollNetDirect", "NVLS", "PAT"]),
    ("AllReduce", &["Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree"]),
];

/// What such an NCCL refuses of a value: words that it does not know, and functions that are left without an algorithm.
pub(super) fn refused(value: &str) -> Vec<String> {
    let mut refused = Vec::new();
    let mut left = FUNCTIONS.map(|(function, own)| (function, own.to_vec()));
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
        let strange = words.iter().filter(|word| !is_among(&ALGORITHMS, word));
        refused.extend(strange.map(|word| format!("'{word}' is no algorithm")));
        let mut is_known = false;
        for ((name, algorithms), (_, own)) in left.iter_mut().zip(FUNCTIONS) {
            if function.is_none_or(|function| function.eq_ignore_ascii_case(name)) {
                is_known = true;
                *algorithms = own.iter().copied().filter(|algorithm| is_among(&words, algorithm) != excludes).collect();
            }
        }
        if let (Some(function), false) = (function, is_known) {
            refused.push(format!("'{function}' is no function"));
        }
    }
    let bare = left.iter().filter(|(_, algorithms)| algorithms.is_empty());
    refused.extend(bare.map(|(function, _)| format!("no algorithm is left for {function}")));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused() {
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
            ("ring,Collnet", vec!["'Collnet' is no algorithm".to_owned()]),
            ("ring;tree", vec!["'tree' names no function".to_owned()]),
            ("alltoall:ring", vec!["'alltoall' is no function".to_owned()]),
        ] {
            assert_eq!(refused(value), expected, "{value}");
        }
    }
}
