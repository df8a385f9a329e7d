//! Built-in data: the folder `rules`, embedded in the program.

use include_dir::{Dir, File, include_dir};
use serde::de::DeserializeOwned;

use super::Document;

static DATA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/rules");

/// Folder of profiles. Like the folder of tables, it is a sibling of the rule areas and holds no rules.
const PROFILES: &str = "profiles";
const TABLES: &str = "tables";

/// Returns the built-in rules as pairs of ID (`AREA/NAME`) and text.
pub(crate) fn rules() -> impl Iterator<Item = (String, &'static str)> {
    let areas = DATA.dirs().filter(|folder| [PROFILES, TABLES].iter().all(|name| !folder.path().ends_with(name)));
    areas.flat_map(files)
}

/// Returns the text of a built-in rule.
pub(crate) fn rule(id: &str) -> Option<&'static str> {
    rules().find_map(|(known, text)| (known == id).then_some(text))
}

/// Returns the built-in profiles as pairs of name and text.
pub(crate) fn profiles() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = DATA.get_dir(PROFILES).into_iter().flat_map(Dir::files);
    files.filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
}

/// Parses `rules/tables/NAME.yaml`.
///
/// # Panics
///
/// Panics if there is no such table, or if it is not of this type. Each table's reader has a test that parses it.
#[expect(clippy::expect_used, reason = "constant documents, each read by a test")]
pub(crate) fn table<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{TABLES}/{name}.yaml");
    let text = DATA.get_file(&path).and_then(File::contents_utf8).expect("a built-in table");
    Document { name: &format!("rules/{path}"), text }.parse().expect("a valid table")
}

/// Returns the YAML files of an area as pairs of path without extension and text.
fn files(area: &'static Dir<'static>) -> impl Iterator<Item = (String, &'static str)> {
    let is_rule = |file: &&File<'_>| file.path().extension().is_some_and(|extension| extension == "yaml");
    area.files().filter(is_rule).filter_map(|file| {
        let id = file.path().with_extension("").to_string_lossy().into_owned();
        Some((id, file.contents_utf8()?))
    })
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
