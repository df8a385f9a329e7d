//! The rules and profiles of a program.

use std::sync::LazyLock;

/// Folder of profiles. Like the folder of tables, it is a sibling of the rule areas and holds no rules.
const PROFILES: &str = "profiles/";

const EXTENSION: &str = ".yaml";

/// The path of a rule or a profile, `AREA/NAME.yaml` or `profiles/NAME.yaml`, and its text.
pub type ShippedFile = (&'static str, &'static str);

/// The rules and profiles that a program contains. This crate has none of its own, so that a changed rule rebuilds only the program.
#[derive(Debug)]
pub struct Shipped {
    json: Vec<ShippedFile>,
    yaml: LazyLock<Vec<ShippedFile>>,
}

impl Shipped {
    /// Files as JSON, in which no rule has examples, and as people wrote them, which are made when they are first needed.
    pub const fn new(json: Vec<ShippedFile>, yaml: fn() -> Vec<ShippedFile>) -> Self {
        Self { json, yaml: LazyLock::new(yaml) }
    }

    /// Returns the rules as pairs of ID (`AREA/NAME`) and JSON.
    pub fn rules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let rules = self.json.iter().filter(|(path, _)| !path.starts_with(PROFILES));
        rules.filter_map(|&(path, text)| Some((path.strip_suffix(EXTENSION)?, text)))
    }

    /// Returns the text of a rule.
    pub fn rule(&self, id: &str) -> Option<&'static str> {
        let is_wanted = |path: &str| path.strip_suffix(EXTENSION) == Some(id) && !path.starts_with(PROFILES);
        self.yaml.iter().find_map(|&(path, text)| is_wanted(path).then_some(text))
    }

    /// Returns the profiles as pairs of name and text.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let name = |path: &'static str| path.strip_prefix(PROFILES)?.strip_suffix(EXTENSION);
        self.yaml.iter().filter_map(move |&(path, text)| Some((name(path)?, text)))
    }
}

/// The rules of this repository.
#[cfg(test)]
pub(crate) fn shipped() -> &'static Shipped {
    use model::document::Document;

    fn yaml() -> Vec<ShippedFile> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules");
        let mut texts = Vec::new();
        let list = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for file in list(&root).filter(|path| path.is_dir()).flat_map(|folder| list(&folder)) {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned().leak();
            if path.ends_with(EXTENSION) && !path.starts_with("tables/") {
                texts.push((&*path, &*std::fs::read_to_string(&file).unwrap().leak()));
            }
        }
        texts.sort_unstable();
        texts
    }
    fn json((name, text): ShippedFile) -> ShippedFile {
        let mut rule: serde_json::Value = Document { name, text }.parse().unwrap();
        rule.as_object_mut().unwrap().remove("examples");
        (name, rule.to_string().leak())
    }
    static SHIPPED: LazyLock<Shipped> = LazyLock::new(|| Shipped::new(yaml().into_iter().map(json).collect(), yaml));
    &SHIPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_not_rules() {
        let all = shipped();
        assert!(
            all.rules().count() > 180
                && all.rules().all(|(id, _)| all.rule(id).unwrap().contains(&format!("id: {id}\n")))
        );
        assert!(all.rule("env/net-socket").is_some());
        for other in ["profiles/ci", "env/net-socket.yaml", ""] {
            assert_eq!(all.rule(other), None, "{other}");
        }
        assert!(all.profiles().any(|(name, _)| name == "ci"));
    }
}
