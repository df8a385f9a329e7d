//! Pages about rules, facts and variables in Markdown, for the repository and for `explain`.

mod search;

use std::fmt::Write as _;

use super::fix_text::{self, one_line};
use facts::VariableDescription;
use facts::key::Definition;
use judge::rules::{Example, FUNCTIONS, Rule, RuleSet};
use nccllog::Symptom;

/// The page of a rule.
pub fn rule(rule: &Rule) -> String {
    let mut page = format!("# {}\n\n{}\n\n", rule.id, sentence(&rule.title));
    let since = if rule.since.is_empty() { String::new() } else { format!(" Since {}.", rule.since) };
    let _ = writeln!(page, "Severity: **{}**. Owner: **{}**.{since}\n", rule.severity.name(), rule.owner.name());
    let _ = writeln!(page, "## Why\n\n{}\n\n## Fix\n\n{}\n", one_line(&rule.why), fix_text::markdown(&rule.fix));
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
    if !rule.references.is_empty() {
        page.push_str("\n## References\n\n");
        for reference in &rule.references {
            let _ = writeln!(page, "- <{reference}>");
        }
    }
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

/// The pages of messages: their meaning, the rules that find the cause, and the fix.
pub fn symptoms(symptoms: &[Symptom], rules: &RuleSet) -> String {
    let pages = symptoms.iter().map(|symptom| {
        let mut page = format!("# {}\n\n", symptom.message);
        let found: Vec<_> = symptom.rules.iter().filter_map(|id| rules.get(id)).collect();
        let meaning = symptom.meaning.or(found.first().map(|rule| &*rule.title)).unwrap_or_default();
        let _ = writeln!(page, "{}", sentence(meaning));
        if !found.is_empty() {
            page.push_str("\nRules that find the cause, the most likely first:\n\n");
            list(&mut page, &found);
        }
        let fix = symptom.fix.or(found.first().map(|rule| &*rule.fix)).unwrap_or_default();
        let _ = writeln!(page, "\n## Fix\n\n{}", fix_text::markdown(fix));
        page
    });
    pages.collect::<Vec<_>>().join("\n")
}

/// The rules, facts and variables of a topic; `None` if there are none. `variables` are those of the topic.
pub fn topic(topic: &str, rules: &RuleSet, keys: &[&Definition], variables: &[&str]) -> Option<String> {
    if !topic.contains(char::is_alphanumeric) {
        return None;
    }
    let rules = search::rules(rules, topic);
    let keys = search::facts(keys, topic);
    if rules.is_empty() && keys.is_empty() && variables.is_empty() {
        return None;
    }
    let mut page = format!("# {topic}\n");
    if !rules.is_empty() {
        page.push_str("\n## Rules\n\n");
        list(&mut page, &rules);
    }
    if !keys.is_empty() {
        page.push_str("\n## Facts\n\n");
        for key in keys {
            let _ = writeln!(page, "- {}: {}", key.name, sentence(key.about));
        }
    }
    if !variables.is_empty() {
        page.push_str("\n## Variables\n\n");
        for name in variables {
            let _ = writeln!(page, "- {name}");
        }
    }
    Some(page)
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
