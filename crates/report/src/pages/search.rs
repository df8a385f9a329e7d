//! Searches topics by words, in any order.

use std::collections::{BTreeMap, BTreeSet};

use judge::rules::{Rule, RuleSet};

/// Something that people ask about by words.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// Its name, by which `explain` or another command finds it.
    pub name: String,
    /// What it is, on one line.
    pub about: String,
    /// More of its text.
    pub text: String,
    /// Words with which people ask about it. Of a topic with a name, they are phrases with a comma between them, and they count if the
    /// question has all words of one of them.
    pub asked: String,
    /// Its page in Markdown, if it has one.
    pub page: String,
}

/// Words of a question that say nothing about its topic.
const IDLE: [&str; 63] = [
    "a", "about", "after", "all", "am", "an", "and", "any", "are", "as", "at", "be", "between", "but", "by", "can",
    "could", "do", "does", "enable", "error", "failed", "fails", "find", "for", "from", "get", "has", "have", "how",
    "i", "in", "is", "it", "its", "job", "me", "message", "my", "nccl", "not", "of", "on", "or", "run", "should", "so",
    "that", "the", "there", "this", "to", "use", "used", "using", "was", "what", "when", "where", "which", "why",
    "with", "you",
];

/// Share of a question that a topic must have, by weight of the words.
const SHARE: f64 = 0.6;

/// The topics of a question, the likeliest first: those with most of its words, of which rare ones weigh more.
pub(super) fn find<'t>(topics: &'t [Topic], question: &str) -> Vec<&'t Topic> {
    let wanted = wanted(question);
    let indexes: Vec<_> = topics.iter().map(|topic| topic.index(&wanted)).collect();
    let weights: BTreeMap<&str, f64> = wanted.iter().map(|word| (&**word, weight(word, &indexes))).collect();
    let whole: f64 = weights.values().sum();
    let score = |index: &BTreeMap<String, u8>| {
        let found = || weights.iter().filter_map(|(word, weight)| Some((*weight, index.get(*word)?)));
        let share = found().map(|(weight, _)| weight).sum::<f64>() / whole;
        (share >= SHARE).then(|| found().map(|(weight, place)| weight * f64::from(*place)).sum::<f64>())
    };
    let mut scored: Vec<_> =
        topics.iter().zip(&indexes).filter_map(|(topic, index)| Some((score(index)?, topic))).collect();
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    scored.into_iter().map(|(_, topic)| topic).collect()
}

/// Returns true if a question is a phrase with which people ask about one of the topics.
pub(super) fn is_phrase(topics: &[Topic], question: &str) -> bool {
    let wanted = wanted(question);
    topics.iter().flat_map(Topic::phrases).any(|phrase| phrase == wanted)
}

/// The words of a question that say what it is about; all of them if none does.
fn wanted(question: &str) -> BTreeSet<String> {
    let asked = words(question);
    let telling: BTreeSet<_> = asked.iter().filter(|word| !IDLE.contains(&&***word)).cloned().collect();
    if telling.is_empty() { asked } else { telling }
}

/// A word's weight: the rarer it is among the topics, the more it says.
#[expect(clippy::cast_precision_loss, reason = "numbers of topics, which are few")]
fn weight(word: &str, indexes: &[BTreeMap<String, u8>]) -> f64 {
    let having = indexes.iter().filter(|index| index.contains_key(word)).count();
    (1.0 + indexes.len() as f64 / (1 + having) as f64).ln()
}

impl Topic {
    /// The words of the topic for a question with these words, each with the weight of the place that has it.
    fn index(&self, wanted: &BTreeSet<String>) -> BTreeMap<String, u8> {
        let mut index = BTreeMap::new();
        let is_meant = self.name.is_empty() || self.phrases().any(|phrase| phrase.is_subset(wanted));
        let asked = if is_meant { words(&self.asked) } else { BTreeSet::new() };
        for (words, place) in [(words(&self.text), 1), (words(&self.about), 2), (words(&self.name), 3), (asked, 4)] {
            index.extend(words.into_iter().map(|word| (word, place)));
        }
        index
    }

    /// The words of each phrase with which people ask about a topic with a name.
    fn phrases(&self) -> impl Iterator<Item = BTreeSet<String>> {
        let phrases = if self.name.is_empty() { "" } else { &self.asked };
        phrases.split(',').filter(|phrase| !phrase.is_empty()).map(wanted)
    }
}

/// The words of a text without their endings. One with a hyphen, an underscore or a slash counts as a whole and in parts, so that
/// `all_reduce` is `allreduce` and a part of `all-reduce-slow`.
fn words(text: &str) -> BTreeSet<String> {
    let is_joint = |character: char| "-_/".contains(character);
    let text = text.to_lowercase();
    text.split(|character: char| !character.is_alphanumeric() && !is_joint(character))
        .flat_map(|word| {
            let whole = word.replace(is_joint, "");
            let parts = word.split(is_joint).map(str::to_owned).collect::<Vec<_>>();
            parts.into_iter().chain([whole])
        })
        .filter(|word| !word.is_empty())
        .map(|word| stem(&word))
        .collect()
}

/// A word without the ending of its plural or verb form.
fn stem(word: &str) -> String {
    let endings = ["ing", "ed", "es", "s"];
    let short = endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|short| short.len() > 2));
    short.unwrap_or(word).to_owned()
}

/// The rules that mention a name, such as that of a variable: in their texts or in their conditions.
pub(super) fn rules_that_name<'r>(rules: &'r RuleSet, name: &str) -> Vec<&'r Rule> {
    let mentions = |rule: &&Rule| {
        let (applies, check) = rule.conditions();
        let texts = [&*rule.title, &*rule.why, &*rule.fix, applies.unwrap_or_default(), check];
        texts.into_iter().any(|text| has_word(text, name))
    };
    rules.iter().filter(mentions).collect()
}

/// Returns true if `text` has `word` with no letter, digit or underscore beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let (before, rest) = text.split_at(at);
            let after = rest.strip_prefix(word).unwrap_or_default();
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_names() {
        for text in ["NCCL_NET", "unset NCCL_NET.", "NCCL_NET_GDR_LEVEL and NCCL_NET", "(`NCCL_NET=IB`)"] {
            assert!(has_word(text, "NCCL_NET"), "{text}");
        }
        for text in ["", "NCCL_NET_GDR_LEVEL", "MY_NCCL_NET", "NCCL_NETS"] {
            assert!(!has_word(text, "NCCL_NET"), "{text}");
        }
        assert!(!has_word("text", ""));
    }

    #[test]
    fn questions_are_found_by_their_words() {
        let topic = |name: &str, about: &str, asked: &str| Topic {
            name: name.to_owned(),
            about: about.to_owned(),
            text: String::new(),
            asked: asked.to_owned(),
            page: String::new(),
        };
        let topics = [
            topic("runtime/bandwidth-low", "all_reduce busbw below a third of the NVLink bandwidth", ""),
            topic("", "Collectives", "slow allreduce"),
            topic("slurm", "With Slurm", "srun, batch manager"),
        ];
        for (question, expected) in [
            ("why is my all_reduce slow?", Some("")),
            ("slow all-reduce", Some("")),
            ("NVLink bandwidth", Some("runtime/bandwidth-low")),
            ("SLURM", Some("slurm")),
            ("the manager", None),
            ("batch manager of SLURM", Some("slurm")),
            ("the weather of tomorrow", None),
            ("", None),
        ] {
            let found = find(&topics, question).first().map(|topic| &*topic.name);
            assert_eq!(found, expected, "{question}");
        }
    }
}
