//! Lines of a launch file that no report may show.

use std::collections::BTreeSet;

use model::document::{YamlNode, YamlValue};
use model::{conceal, conceal_words, shown_value};

use super::Source;
use super::keys::parsed;

/// Returns the lines with a secret, from 1: of a variable whose name says so, of a Secret of Kubernetes, or a token by its
/// form. A value reaches to the next one.
pub fn secret_lines(text: &str) -> BTreeSet<usize> {
    let source = Source::new(text);
    let is_secret = |line: &usize| {
        let own = source.line(*line);
        // In a script, another file may stand: `name: HF_TOKEN`, and `value:` below it.
        let above = source.line(line.saturating_sub(1)).trim_start_matches([' ', '-']);
        let name = above.strip_prefix("name:").map_or("", |name| name.trim_matches([' ', '"', '\'']));
        conceal(own) != own || own.trim_start().starts_with("value:") && shown_value(name, own) != own
    };
    let mut lines: BTreeSet<usize> = (1..=text.lines().count()).filter(is_secret).collect();
    let mut values = Vec::new();
    // A script may be YAML as well: one text.
    let documents = parsed::<YamlNode>(text).unwrap_or_default();
    for document in documents.iter().filter(|document| document.as_str().is_none()) {
        collect(document, None, false, &mut values);
    }
    values.sort_unstable();
    for (start, _) in values.iter().filter(|(_, is_secret)| *is_secret) {
        let next = values.iter().map(|(line, _)| *line).find(|line| line > start);
        lines.extend(*start..next.unwrap_or(text.lines().count() + 1));
    }
    lines
}

/// Collects the lines where values begin, and whether each is a secret. `is_data` is true in the data of a Secret.
fn collect(node: &YamlNode, name: Option<&str>, is_data: bool, values: &mut Vec<(usize, bool)>) {
    match &node.value {
        YamlValue::Scalar(text) => {
            let shown = name.map_or_else(|| conceal(text), |name| shown_value(name, text));
            values.push((node.line, is_data || shown != *text));
        }
        YamlValue::List(items) => {
            let words: Vec<String> = items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect();
            let shown = conceal_words(&words);
            for (index, (item, word)) in items.iter().zip(&words).enumerate() {
                let is_word = shown.len() != words.len() || shown.get(index) != Some(word);
                collect(item, name, is_data || is_word, values);
            }
        }
        YamlValue::Map(entries) => {
            let variable = node.text("name").filter(|_| node.get("value").is_some());
            let is_secret = node.text("kind") == Some("Secret");
            for (key, value) in entries {
                let name = variable.filter(|_| key == "value").unwrap_or(key);
                let is_data = is_data || is_secret && matches!(key.as_str(), "data" | "stringData");
                collect(value, Some(name), is_data, values);
            }
        }
        YamlValue::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_secret_are_found_by_its_name_and_its_place() {
        for (text, expected) in [
            ("env:\n- name: HF_TOKEN\n  value: a\n- name: A\n  value: a\n", vec![3]),
            ("env:\n- value: >-\n    a\n\n    b\n  name: API_KEY\n", vec![3, 4, 5]),
            ("env: [{name: A, value: b},\n  {name: HF_TOKEN, value: a}]\nx: y\n", vec![2]),
            ("environment:\n  WANDB_API_KEY: a\n  A: true\n", vec![2]),
            ("args:\n- --api-key\n- a\n- b\n", vec![3]),
            ("kind: Secret\nmetadata: {name: a}\nstringData:\n  a: b\n---\nkind: Pod\n", vec![4, 5]),
            ("kind: Secret\ndata: {a: b}\n", vec![2]),
            ("export A=b\nexport HF_TOKEN=a\n", vec![2]),
            ("cat <<E\n- name: HF_TOKEN\n  value: a\n- name: A\n  value: a\nE\n", vec![3]),
            ("env:\n- {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}\n", vec![]),
        ] {
            assert_eq!(secret_lines(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
