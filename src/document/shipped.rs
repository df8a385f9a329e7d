//! Built-in data: the folder `rules`, embedded in the program.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use super::{Document, Texts};

static DATA: LazyLock<Texts> = LazyLock::new(|| Texts::unpack(include_bytes!(concat!(env!("OUT_DIR"), "/rules"))));

/// Folder of profiles. Like the folder of tables, it is a sibling of the rule areas and holds no rules.
const PROFILES: &str = "profiles";
const TABLES: &str = "tables";

const EXTENSION: &str = ".yaml";

/// Returns the built-in rules as pairs of ID (`AREA/NAME`) and text.
pub(crate) fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_rule = |(path, _): &(&str, _)| [PROFILES, TABLES].iter().all(|folder| folder_of(path) != *folder);
    DATA.iter().filter(is_rule).filter_map(|(path, text)| Some((path.strip_suffix(EXTENSION)?, text)))
}

/// Returns the text of a built-in rule.
pub(crate) fn rule(id: &str) -> Option<&'static str> {
    rules().find_map(|(known, text)| (known == id).then_some(text))
}

/// Returns the built-in profiles as pairs of name and text.
pub(crate) fn profiles() -> impl Iterator<Item = (&'static str, &'static str)> {
    let name = |path: &'static str| path.strip_prefix(PROFILES)?.strip_prefix('/')?.strip_suffix(EXTENSION);
    DATA.iter().filter_map(move |(path, text)| Some((name(path)?, text)))
}

/// Parses `rules/tables/NAME.yaml`.
///
/// # Panics
///
/// Panics if there is no such table, or if it is not of this type. Each table's reader has a test that parses it.
#[expect(clippy::expect_used, reason = "constant documents, each read by a test")]
pub(crate) fn table<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{TABLES}/{name}{EXTENSION}");
    let text = DATA.get(&path).expect("a built-in table");
    Document { name: &format!("rules/{path}"), text }.parse().expect("a valid table")
}

/// Returns the first part of a path.
fn folder_of(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_and_tables_are_not_rules() {
        assert!(rules().count() > 180 && rules().all(|(id, text)| text.contains(&format!("id: {id}\n"))));
        assert!(rule("env/net-socket").is_some());
        for other in ["profiles/ci", "tables/faults", "tables/README", "env/net-socket.yaml", ""] {
            assert_eq!(rule(other), None, "{other}");
        }
        assert!(profiles().any(|(name, _)| name == "ci"));
    }
}
