//! `NCCL_ALGO` and `NCCL_PROTO` (`parseList` and `ncclTopoTuneModel` in `src/graph/tuning.cc`). Since 2.24 they hold lists
//! by function, a word that NCCL does not know is refused, and so is a list that leaves a function nothing. Before, a
//! value was one list for all functions.

use serde::Deserialize;

use crate::table;
use model::{Table, Version};

use super::Misreading;

/// The table `algorithms.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SelectionTable {
    algorithms: Vec<Algorithm>,
    protocols: Vec<String>,
    functions: Vec<Collective>,
}

/// An algorithm, and the first and last release that know its name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Algorithm {
    name: String,
    since: String,
    until: Option<String>,
}

/// A function and the algorithms that implement it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Collective {
    function: String,
    of: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

pub(crate) static TABLE: Table<SelectionTable> = table!("algorithms");

/// What a value selects from.
struct Choices<'t> {
    /// One of them, as messages call it.
    kind: &'static str,
    /// The words that this release knows.
    words: Vec<&'t str>,
    /// The words that each function can use.
    of_functions: Vec<(&'t str, Vec<&'t str>)>,
}

pub(super) fn algorithms(value: &str, version: &Version) -> Option<Misreading> {
    let is_known = |row: &&Algorithm| {
        let until = row.until.as_deref().and_then(Version::parse);
        Version::parse(&row.since).is_some_and(|since| *version >= since) && until.is_none_or(|until| *version <= until)
    };
    let words: Vec<_> = TABLE.algorithms.iter().filter(is_known).map(|row| row.name.as_str()).collect();
    let of_functions =
        TABLE.functions.iter().map(|row| (row.function.as_str(), row.of.iter().map(String::as_str).collect()));
    let choices = Choices { kind: "algorithm", words, of_functions: of_functions.collect() };
    if is_by_function(version) {
        return choices.refused(value);
    }
    let (unknown, left) = choices.plain(value);
    let ignored = || format!("NCCL {version} ignores {}", listed(&unknown));
    match (unknown.is_empty(), left.is_empty()) {
        (true, false) => None,
        (false, false) => Some(Misreading::ignored(ignored())),
        (true, true) => Some(Misreading::ignored("it leaves no algorithm, so NCCL uses Ring and Tree")),
        (false, true) => Some(Misreading::ignored(format!("{} and uses Ring and Tree", ignored()))),
    }
}

pub(super) fn protocols(value: &str, version: &Version) -> Option<Misreading> {
    let words: Vec<_> = TABLE.protocols.iter().map(String::as_str).collect();
    let of_functions = TABLE.functions.iter().map(|row| (row.function.as_str(), words.clone())).collect();
    let choices = Choices { kind: "protocol", words, of_functions };
    if is_by_function(version) {
        return choices.refused(value);
    }
    let (unknown, left) = choices.plain(value);
    if left.is_empty() {
        return Some(Misreading::stops("no protocol is left"));
    }
    (!unknown.is_empty()).then(|| Misreading::ignored(format!("NCCL {version} ignores {}", listed(&unknown))))
}

fn is_by_function(version: &Version) -> bool {
    Version::parse("2.24").is_some_and(|first| *version >= first)
}

fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    quoted.join(" and ")
}

fn is_among(words: &[&str], word: &str) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// A list of words, or of those to leave out.
struct WordList<'v> {
    excludes: bool,
    words: Vec<&'v str>,
}

impl<'v> WordList<'v> {
    fn parse(text: &'v str) -> Self {
        let (excludes, text) = text.strip_prefix('^').map_or((false, text), |text| (true, text));
        Self { excludes, words: text.split(',').filter(|word| !word.is_empty()).collect() }
    }

    fn selects(&self, word: &str) -> bool {
        is_among(&self.words, word) != self.excludes
    }
}

impl<'t> Choices<'t> {
    /// The unknown words of one list for all functions, and the known words that it selects.
    fn plain<'v>(&self, value: &'v str) -> (Vec<&'v str>, Vec<&'t str>) {
        let list = WordList::parse(value);
        let left = self.words.iter().copied().filter(|word| list.selects(word)).collect();
        (list.words.into_iter().filter(|word| !is_among(&self.words, word)).collect(), left)
    }

    /// The reasons for which NCCL refuses lists by function.
    fn refused(&self, value: &str) -> Option<Misreading> {
        let mut reasons = Vec::new();
        let mut left = self.of_functions.clone();
        // strtok_r skips leading separators, so that the first entry of `;Ring` is not at the start.
        for (index, entry) in value.split(';').enumerate().filter(|(_, entry)| !entry.is_empty()) {
            let mut parts = entry.split(':').filter(|part| !part.is_empty());
            let (function, list) = match (parts.next(), parts.next()) {
                (Some(function), Some(list)) => (Some(function), list),
                (Some(list), None) if index == 0 => (None, list),
                _ => {
                    reasons.push(format!("'{entry}' names no function"));
                    continue;
                }
            };
            let list = WordList::parse(list);
            let strange = list.words.iter().filter(|word| !is_among(&self.words, word));
            reasons.extend(strange.map(|word| format!("'{word}' is not {} {}", article(self.kind), self.kind)));
            let mut is_function = false;
            for ((known, left), (_, own)) in left.iter_mut().zip(&self.of_functions) {
                if function.is_none_or(|function| function.eq_ignore_ascii_case(known)) {
                    is_function = true;
                    *left = own.iter().copied().filter(|word| list.selects(word)).collect();
                }
            }
            if let (Some(function), false) = (function, is_function) {
                reasons.push(format!("'{function}' is not a function"));
            }
        }
        let is_partial = reasons.is_empty() && left.iter().any(|(_, words)| !words.is_empty());
        let bare = left.iter().filter(|(_, words)| words.is_empty());
        reasons.extend(bare.map(|(function, _)| format!("no {} is left for {function}", self.kind)));
        (!reasons.is_empty()).then(|| Misreading { is_partial, ..Misreading::stops(reasons.join(", ")) })
    }
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with('a') { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn the_table_is_sound() {
        for (index, function) in TABLE.functions.iter().enumerate() {
            let is_first = TABLE.functions.iter().position(|other| other.function == function.function) == Some(index);
            assert!(is_first && !function.of.is_empty() && function.source.starts_with("src/"), "{function:?}");
            let is_known = |name: &String| TABLE.algorithms.iter().any(|row| row.name == *name);
            assert!(function.of.iter().all(is_known), "{function:?}");
        }
        assert!(TABLE.algorithms.iter().all(|row| Version::parse(&row.since).is_some()));
    }

    #[test]
    fn refused_values_are_explained() {
        let none_for = |functions: &[&str]| -> Vec<String> {
            functions.iter().map(|function| format!("no algorithm is left for {function}")).collect()
        };
        let all = ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"];
        for (value, expected) in [
            ("", vec![]),
            ("Ring", vec![]),
            ("tree,ring", vec![]),
            ("^tree", vec![]),
            ("^NVLS,NVLSTree", vec![]),
            ("allreduce:tree", vec![]),
            ("ring;allreduce:tree,nvls", vec![]),
            ("Tree", none_for(&["Broadcast", "Reduce", "AllGather", "ReduceScatter"])),
            ("^ring", none_for(&["Broadcast", "Reduce"])),
            ("NVLS", none_for(&["Broadcast", "Reduce"])),
            ("tree;broadcast:ring;reduce:ring", none_for(&["AllGather", "ReduceScatter"])),
            ("AllReduce:PAT", none_for(&["AllReduce"])),
            ("broadcast:^ring", none_for(&["Broadcast"])),
            ("ring,Collnet", vec!["'Collnet' is not an algorithm".to_owned()]),
            ("ring;tree", vec!["'tree' names no function".to_owned()]),
            (";ring", vec!["'ring' names no function".to_owned()]),
            ("alltoall:ring", vec!["'alltoall' is not a function".to_owned()]),
            ("ring;", vec![]),
            (";allreduce:tree", vec![]),
            ("allgather:^ring,pat", vec![]),
            ("ring;reduce:^tree", vec![]),
            ("AllReduce:CollNetChain", vec![]),
            ("allreduce:tree:none", vec![]),
            ("^ring,tree,nvls,nvlstree,pat,collnetdirect,collnetchain", none_for(&all)),
            ("none", vec!["'none' is not an algorithm".to_owned()].into_iter().chain(none_for(&all)).collect()),
            (
                "allreduce:",
                vec!["'allreduce' is not an algorithm".to_owned()].into_iter().chain(none_for(&all)).collect(),
            ),
            ("broadcast:ring;ring", vec!["'ring' names no function".to_owned()]),
        ] {
            let found = algorithms(value, &version("2.27.5"));
            assert_eq!(found.as_ref().map_or("", |found| &found.what), expected.join(", "), "{value}");
            assert!(found.is_none_or(|found| found.stops), "{value}");
        }
    }

    #[test]
    fn one_list_before_2_24() {
        for (value, release, expected) in [
            ("Tree", "2.23.4", "-"),
            ("^ring", "2.18.3", "-"),
            ("PAT", "2.23.4", "-"),
            ("Ring,PAT", "2.22.3", "NCCL 2.22.3 ignores 'PAT'"),
            ("PAT", "2.22.3", "NCCL 2.22.3 ignores 'PAT' and uses Ring and Tree"),
            ("allreduce:tree", "2.21.5", "NCCL 2.21.5 ignores 'allreduce:tree' and uses Ring and Tree"),
            ("NVLSTree", "2.17.1", "NCCL 2.17.1 ignores 'NVLSTree' and uses Ring and Tree"),
            ("", "2.23.4", "it leaves no algorithm, so NCCL uses Ring and Tree"),
        ] {
            let found = algorithms(value, &version(release));
            assert_eq!(found.as_ref().map_or("-", |found| &found.what), expected, "{value}");
            assert!(found.is_none_or(|found| !found.stops), "{value}");
        }
    }

    #[test]
    fn protocols_of_all_releases() {
        for (value, release, expected) in [
            ("LL", "2.27.5", None),
            ("^ll128", "2.27.5", None),
            ("", "2.27.5", None),
            ("Simple;allreduce:LL,Simple", "2.27.5", None),
            ("LL,LL64", "2.27.5", Some(("'LL64' is not a protocol", true))),
            ("allgather:^LL,LL128,Simple", "2.27.5", Some(("no protocol is left for AllGather", true))),
            ("simple", "2.18.3", None),
            ("LL,LL64", "2.18.3", Some(("NCCL 2.18.3 ignores 'LL64'", false))),
            ("LL64", "2.18.3", Some(("no protocol is left", true))),
            ("", "2.23.4", Some(("no protocol is left", true))),
        ] {
            let found = protocols(value, &version(release));
            assert_eq!(found.as_ref().map(|found| (found.what.as_str(), found.stops)), expected, "{value}");
        }
    }
}
