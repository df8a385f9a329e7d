//! Policies that are not files: those of options, and of comments in a Dockerfile.

use regex::Regex;
use serde_json::{Value, json};

use super::PolicyText;

/// The policy of `--only` and `--ignore`, whose words are rules, `AREA/*`, or several of them with commas between; `None` without
/// words.
pub fn of_options(only: &[String], ignore: &[String]) -> Option<PolicyText> {
    let patterns =
        |words: &[String]| words.iter().flat_map(|words| words.split(',')).map(str::to_owned).collect::<Vec<_>>();
    let off = patterns(ignore).into_iter().map(|pattern| (pattern, Value::from("off")));
    let policy = json!({"rules": {"only": patterns(only), "severity": off.collect::<serde_json::Map<_, _>>()}});
    let option = |name, words: &[String]| words.iter().map(|word| format!("--{name} {word}")).collect::<Vec<_>>();
    let name = [option("only", only), option("ignore", ignore)].concat().join(" ");
    (!name.is_empty()).then(|| PolicyText::derived(&name, policy.to_string()))
}

/// The policy of a Dockerfile: each comment `# ncclcheck ignore=RULE[,RULE...] REASON` is a waiver of these rules that does not
/// expire; `None` without such comments. The waivers have the lines of the comments, so that messages name them.
#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
pub fn of_dockerfile(name: &str, dockerfile: &str) -> Option<PolicyText> {
    let comment = Regex::new(r"^\s*#\s*ncclcheck\s+ignore=(\S*)\s*(.*)$").expect("a pattern that parses");
    let waivers = |line: &str| {
        let words = comment.captures(line)?;
        let waiver = |rule| format!("{},", json!({"rule": rule, "reason": words[2].trim_end(), "expires": "never"}));
        Some(words[1].split(',').map(waiver).collect::<String>())
    };
    let lines: Vec<_> = dockerfile.lines().map(|line| waivers(line).unwrap_or_default()).collect();
    let has_waivers = lines.iter().any(|line| !line.is_empty());
    has_waivers.then(|| PolicyText::derived(name, format!("{{waivers: [{}\n]}}", lines.join("\n"))))
}
