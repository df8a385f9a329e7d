//! Pages about rules and facts in Markdown, for the repository and for `explain`.

use std::fmt::Write as _;

use super::fix_text::{self, one_line};
use crate::facts::key::Definition;
use crate::judge::rules::{Example, FUNCTIONS, Rule, RuleSet};

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
    let examples = &rule.examples;
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
        for rule in asking {
            let _ = writeln!(page, "- {}: {}", rule.id, rule.title);
        }
    }
    page
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
    for (name, value) in example.said() {
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
