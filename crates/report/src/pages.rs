//! Pages about rules, facts and variables in Markdown, for the repository and for `explain`.

mod search;
mod terminal;

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::fix_text::{self, one_line};
use super::human::page::cut;
use facts::key::Definition;
use facts::{VariableDescription, describe_variable, variable_names};
use judge::rules::{Example, FUNCTIONS, Rule, RuleSet};
use nccllog::{Symptom, all_symptoms};

pub use search::Topic;
pub use terminal::for_terminal;

/// Topics that an answer names.
const NAMED: usize = 20;
/// Columns of a topic's name: that of a message may be long.
const LONGEST_NAME: usize = 72;
/// Messages of one text that are explained in full.
const EXPLAINED: usize = 3;

/// The page of a rule for people who have its finding: without its condition.
pub fn rule_in_words(rule: &Rule) -> String {
    let mut page = rule_head(rule, &in_words(&rule.fix));
    references(rule, &mut page);
    let _ = writeln!(page, "\n`ncclcheck rules show {}` prints its condition and its examples.", rule.id);
    page
}

fn rule_head(rule: &Rule, fix: &str) -> String {
    let mut page = format!("# {}\n\n{}\n\n", rule.id, sentence(&rule.title));
    let since = if rule.since.is_empty() { String::new() } else { format!(" Since {}.", rule.since) };
    let _ = writeln!(page, "Severity: **{}**. Owner: **{}**.{since}\n", rule.severity.name(), rule.owner.name());
    let _ = writeln!(page, "## Why\n\n{}\n\n## Fix\n\n{}\n", one_line(&rule.why), fix_text::markdown(fix));
    page
}

fn references(rule: &Rule, page: &mut String) {
    if !rule.references.is_empty() {
        page.push_str("\n## References\n\n");
        for reference in &rule.references {
            let _ = writeln!(page, "- <{reference}>");
        }
    }
}

/// A fix for people without an image: steps that depend on the image say so, and a fact is a word in capitals.
fn in_words(fix: &str) -> String {
    #[expect(clippy::expect_used, reason = "constant patterns, which a test compiles")]
    static PLACES: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        [r"(?<other>Otherwise: )?Where `[^`]*`: ", r"\{(?:[a-z_]+\.)*(?<name>[a-z_]+\.\w+)(?:\|(?<part>[a-z]+))?\}"]
            .map(|pattern| Regex::new(pattern).expect("a pattern that parses"))
    });
    let [guard, fact] = &*PLACES;
    let choice = |found: &Captures<'_>| {
        if found.name("other").is_some() { "\nFor others: " } else { "\nFor some images: " }.to_owned()
    };
    let text = guard.replace_all(fix, choice);
    let word = |found: &Captures<'_>| {
        let part = found.name("part").filter(|part| !["first", "word", "public", "major"].contains(&part.as_str()));
        part.or(found.name("name")).map_or("", |word| word.as_str()).to_uppercase().replace('.', "_")
    };
    let filled = fact.replace_all(&text, word);
    let is_general = filled != fix;
    let note = "\n\n`ncclcheck check IMAGE` shows the steps of one image, with its versions and paths.";
    filled.into_owned() + if is_general { note } else { "" }
}

/// The page of a rule.
pub fn rule(rule: &Rule) -> String {
    let mut page = rule_head(rule, &rule.fix);
    let (applies, check) = rule.conditions();
    page.push_str("## Condition\n\n");
    if let Some(applies) = applies {
        let _ = writeln!(page, "The rule applies if\n\n```cel\n{}\n```\n\nand passes if\n", applies.trim());
    } else {
        page.push_str("The rule passes if\n\n");
    }
    let _ = writeln!(page, "```cel\n{}\n```\n", check.trim());
    for key in rule.asks() {
        let _ = writeln!(page, "- `{}`: {}", key.name, sentence(key.about));
    }
    let examples = rule.examples();
    if let Some(example) = examples.fail.first() {
        let _ = writeln!(page, "\n## Example of a failure\n\n```yaml\n{}```", facts(&example.value));
        if let Some(message) = &example.value.message {
            let _ = writeln!(page, "\n> {message}");
        }
    }
    references(rule, &mut page);
    page
}

/// An index of all rules, by area.
pub fn index(rules: &RuleSet) -> String {
    let mut page = "# Rules\n".to_owned();
    let mut area = "";
    for rule in rules.iter() {
        let (own, name) = rule.id.split_once('/').unwrap_or(("", &rule.id));
        if own != area {
            area = own;
            let _ = writeln!(page, "\n## {area}\n\n| rule | severity | problem |\n|---|---|---|");
        }
        let _ = writeln!(
            page,
            "| [{name}]({}.md) | {} | {} |",
            rule.id,
            rule.severity.name(),
            rule.title.replace('|', "\\|")
        );
    }
    page
}

/// The page of a fact.
pub fn fact(key: &Definition, rules: &RuleSet) -> String {
    let mut page = format!("# {}\n\n{}\n\nType: {}.\n", key.name, sentence(key.about), key.kind);
    let asking: Vec<_> = rules.iter().filter(|rule| rule.asks().iter().any(|asked| asked.name == key.name)).collect();
    if !asking.is_empty() {
        page.push_str("\nRules that use it:\n\n");
        list(&mut page, &asking);
    }
    page
}

/// The page of a variable: its effect, its format, and the rules about it.
pub fn variable(variable: &VariableDescription, rules: &RuleSet) -> String {
    let mut page = format!("# {}\n\n", variable.name);
    if let Some(effect) = variable.effect {
        let _ = writeln!(page, "{}\n", sentence(effect));
    }
    let releases = if variable.releases.is_empty() { "" } else { ", releases " };
    let _ = writeln!(page, "- Read by: {}{releases}{}", variable.reader, variable.releases.join(" and "));
    if let Some(value) = &variable.value {
        let default = variable.default.map(|default| format!(" (default {default})")).unwrap_or_default();
        let _ = writeln!(page, "- Value: {value}{default}");
    }
    if let Some(cost) = &variable.cost {
        let _ = writeln!(page, "- {}", sentence(cost));
    }
    if let Some(instead) = variable.instead {
        let _ = writeln!(page, "- Use {instead} instead.");
    }
    let about = search::rules_that_name(rules, variable.name);
    if !about.is_empty() {
        page.push_str("\nRules about it:\n\n");
        list(&mut page, &about);
    }
    page
}

/// The pages of messages: their meaning, the rules that find the cause, and the fix. Of many, the first are explained, and the
/// others have a line.
pub fn symptoms(symptoms: &[Symptom], rules: &RuleSet) -> String {
    let (explained, named) = symptoms.split_at(if symptoms.len() > EXPLAINED { 1 } else { symptoms.len() });
    let mut pages: Vec<_> = explained.iter().map(|explained| symptom(explained, rules)).collect();
    if !named.is_empty() {
        let mut page = "## Also\n\n".to_owned();
        for symptom in named.iter().take(NAMED) {
            let _ = writeln!(page, "- {}: {}", symptom.message, meaning(symptom, rules));
        }
        pages.push(page);
    }
    pages.join("\n")
}

fn symptom(symptom: &Symptom, rules: &RuleSet) -> String {
    let mut page = format!("# {}\n\n", symptom.message);
    let found: Vec<_> = symptom.rules.iter().filter_map(|id| rules.get(id)).collect();
    let _ = writeln!(page, "{}", sentence(&meaning(symptom, rules)));
    if !found.is_empty() {
        page.push_str("\nRules that find the cause, the most likely first:\n\n");
        list(&mut page, &found);
    }
    let fix = symptom.fix.clone().or(found.first().map(|rule| in_words(&rule.fix))).unwrap_or_default();
    if !fix.is_empty() {
        let _ = writeln!(page, "\n## Fix\n\n{}", fix_text::markdown(&fix));
    }
    page
}

fn meaning(symptom: &Symptom, rules: &RuleSet) -> String {
    let first = || symptom.rules.first().and_then(|id| rules.get(id)).map(|rule| rule.title.clone());
    symptom.meaning.clone().or_else(first).unwrap_or_default()
}

/// The answer to a question that is one of the phrases with which people ask about a topic.
pub fn named(question: &str, rules: &RuleSet, keys: &[&Definition], topics: &[Topic]) -> Option<String> {
    if search::is_phrase(topics, question) { answer(question, rules, keys, topics) } else { None }
}

/// The answer to a question: the page of the likeliest topic, if it has one, and the topics with the words of the question, the likeliest
/// first; `None` if there are none. `topics` are others than rules, facts, variables and messages.
pub fn answer(question: &str, rules: &RuleSet, keys: &[&Definition], topics: &[Topic]) -> Option<String> {
    // A line of a healthy job is found by itself.
    let known: Vec<_> = all_symptoms().filter(|known| !known.rules.is_empty() || known.fix.is_some()).collect();
    let messages = known.iter().map(|known| Topic {
        // What people ask about is found by their words and has no name.
        name: if known.asked.is_some() { String::new() } else { known.message.clone() },
        about: meaning(known, rules),
        text: known.fix.clone().unwrap_or_default(),
        asked: known.asked.unwrap_or_default().to_owned(),
        page: match known.asked {
            Some(_) => symptom(&Symptom { message: question.to_owned(), ..known.clone() }, rules),
            None => String::new(),
        },
    });
    let rule = |rule: &Rule| Topic {
        name: rule.id.clone(),
        about: rule.title.clone(),
        text: one_line(&rule.why),
        ..Topic::default()
    };
    let fact = |key: &&Definition| Topic { name: key.name.to_owned(), about: key.about.to_owned(), ..Topic::default() };
    let variables = variable_names("").into_iter().map(|name| Topic {
        name: name.to_owned(),
        about: describe_variable(name).and_then(|variable| variable.effect).unwrap_or_default().to_owned(),
        ..Topic::default()
    });
    let all: Vec<_> = topics
        .iter()
        .cloned()
        .chain(rules.iter().map(rule))
        .chain(messages)
        .chain(keys.iter().map(fact))
        .chain(variables)
        .collect();
    let found = search::find(&all, question);
    let first = found.first()?;
    let mut page = if first.page.is_empty() { format!("# {question}\n") } else { first.page.clone() };
    let shown = usize::from(!first.page.is_empty());
    let named: Vec<_> = found.iter().skip(shown).filter(|topic| !topic.name.is_empty()).collect();
    if !named.is_empty() {
        page.push_str("\n## Topics with these words, the likeliest first\n\n");
    }
    for topic in named.iter().take(NAMED) {
        let about = if topic.about.is_empty() { "a variable" } else { &topic.about };
        let _ = writeln!(page, "- {}: {about}", cut(&topic.name, LONGEST_NAME));
    }
    if named.len() > NAMED {
        let _ = writeln!(page, "- and {} more: more words select fewer", named.len() - NAMED);
    }
    Some(page)
}

/// The list of the topics that have a page.
pub fn topics(topics: &[Topic]) -> String {
    let mut page = "# Topics\n\n".to_owned();
    for topic in topics.iter().filter(|topic| !topic.page.is_empty()) {
        let _ = writeln!(page, "- {}: {}", topic.name, topic.about);
    }
    page
}

/// The variables with a beginning of their names.
pub fn variables(prefix: &str) -> Option<String> {
    let names = variable_names(prefix);
    let mut page = format!("# {prefix}\n\n");
    for name in &names {
        let effect = describe_variable(name).and_then(|variable| variable.effect).map(sentence);
        let _ = writeln!(page, "- {name}{}", effect.map(|effect| format!(": {effect}")).unwrap_or_default());
    }
    (!names.is_empty()).then_some(page)
}

fn list(page: &mut String, rules: &[&Rule]) {
    for rule in rules {
        let _ = writeln!(page, "- {}: {}", rule.id, rule.title);
    }
}

/// A page with all facts and their types, and the functions of conditions.
pub fn contract(keys: &[&Definition]) -> String {
    let mut page = String::from("# Facts\n\n");
    for key in keys {
        let _ = writeln!(page, "- `{}` ({}): {}", key.name, key.kind, sentence(key.about));
    }
    page.push_str("\n# Functions of conditions\n\nIn addition to CEL's operators:\n\n");
    for function in FUNCTIONS {
        let _ = writeln!(page, "- `{}`: {}.", function.form, function.about);
    }
    page
}

fn facts(example: &Example) -> String {
    let mut text = String::new();
    for (name, value) in example.known() {
        let _ = writeln!(text, "{name}: {value}");
    }
    for name in example.unknown() {
        let _ = writeln!(text, "{name}: # unknown");
    }
    text
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixes_are_words() {
        let note = "\n\n`ncclcheck check IMAGE` shows the steps of one image, with its versions and paths.";
        for (fix, expected) in [
            ("Remove {nccl.loaded.path|folder}.", "Remove FOLDER."),
            ("RUN pip install torch=={torch.version|public}", "RUN pip install torch==TORCH_VERSION"),
            ("A.\nWhere `has(torch.path)`: B.", "A.\n\nFor some images: B."),
            ("Otherwise: Where `a == 'b'`: B.", "\nFor others: B."),
        ] {
            assert_eq!(in_words(fix), format!("{expected}{note}"));
        }
        assert_eq!(in_words("awk '{print}' {\"a\": {\"b\": true}}"), "awk '{print}' {\"a\": {\"b\": true}}");
    }
}
