//! Searches rules and facts by words.

use facts::key::Definition;
use judge::rules::{Rule, RuleSet};

/// The rules that mention a name, such as that of a variable: in their texts or in their conditions.
pub(super) fn rules_that_name<'r>(rules: &'r RuleSet, name: &str) -> Vec<&'r Rule> {
    let mentions = |rule: &&Rule| {
        let (applies, check) = rule.conditions();
        let texts = [&*rule.title, &*rule.why, &*rule.fix, applies.unwrap_or_default(), check];
        texts.into_iter().any(|text| has_word(text, name))
    };
    rules.iter().filter(mentions).collect()
}

/// The rules with a topic in their ID or title. A topic of several words can also be in the reason or in the fix.
pub(super) fn rules<'r>(rules: &'r RuleSet, topic: &str) -> Vec<&'r Rule> {
    let topic = topic.trim().to_lowercase();
    let is_phrase = topic.contains(char::is_whitespace);
    let matches = |rule: &&Rule| {
        let body = if is_phrase { [&*rule.why, &*rule.fix] } else { [""; 2] };
        [&*rule.id, &*rule.title].into_iter().chain(body).any(|text| has_word(&text.to_lowercase(), &topic))
    };
    rules.iter().filter(matches).collect()
}

/// The facts with a topic in their name or description.
pub(super) fn facts<'k>(keys: &[&'k Definition], topic: &str) -> Vec<&'k Definition> {
    let topic = topic.trim().to_lowercase();
    let matches = |key: &&Definition| [key.name, key.about].iter().any(|text| has_word(&text.to_lowercase(), &topic));
    keys.iter().copied().filter(matches).collect()
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
    fn words() {
        for text in ["NCCL_NET", "unset NCCL_NET.", "NCCL_NET_GDR_LEVEL and NCCL_NET", "(`NCCL_NET=IB`)"] {
            assert!(has_word(text, "NCCL_NET"), "{text}");
        }
        for text in ["", "NCCL_NET_GDR_LEVEL", "MY_NCCL_NET", "NCCL_NETS"] {
            assert!(!has_word(text, "NCCL_NET"), "{text}");
        }
        assert!(!has_word("text", ""));
    }
}
