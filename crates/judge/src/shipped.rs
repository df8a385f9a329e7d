//! The rules and profiles of a program.

use std::sync::LazyLock;

use model::document::{Document, DocumentError};

use super::in_force::PolicyInForce;
use super::policy::Profile;
use super::rules::Rule;

/// Folder of profiles. Like the folder of tables, it is a sibling of the rule areas and holds no rules.
const PROFILES: &str = "profiles/";

const EXTENSION: &str = ".yaml";

/// The path of a rule or a profile, `AREA/NAME.yaml` or `profiles/NAME.yaml`, and its text.
pub type ShippedFile = (&'static str, &'static str);

/// The rules and profiles that a program contains. This crate has none of its own, so that a changed rule rebuilds only the program.
pub struct Shipped {
    json: Vec<ShippedFile>,
    yaml: LazyLock<Vec<ShippedFile>, Box<dyn FnOnce() -> Vec<ShippedFile> + Send>>,
    /// The archive that replaces the rules of the program.
    pub(crate) archive: Option<PolicyInForce>,
}

impl std::fmt::Debug for Shipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shipped").field("archive", &self.archive).finish_non_exhaustive()
    }
}

impl Shipped {
    /// Files as JSON, in which no rule has examples, and as people wrote them, which are made when they are first needed.
    pub fn new(json: Vec<ShippedFile>, yaml: fn() -> Vec<ShippedFile>) -> Self {
        Self { json, yaml: LazyLock::new(Box::new(yaml)), archive: None }
    }

    /// Checks the files of an archive, which take the place of the program's.
    ///
    /// # Errors
    /// A file is not a rule or a profile for this program.
    pub fn of_archive(archive: PolicyInForce, files: Vec<ShippedFile>) -> Result<Self, DocumentError> {
        let mut json = Vec::new();
        for &(path, text) in &files {
            let document = Document { name: path, text };
            if path.starts_with(PROFILES) {
                Profile::check(document)?;
            } else {
                Rule::parse(path.strip_suffix(EXTENSION).unwrap_or(path), document)?;
                json.push((path, without_examples(document)?));
            }
        }
        Ok(Self { json, yaml: LazyLock::new(Box::new(|| files)), archive: Some(archive) })
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

/// A rule as JSON, which stays in memory until the program ends.
fn without_examples(document: Document<'_>) -> Result<&'static str, DocumentError> {
    let mut rule: serde_json::Value = document.parse()?;
    if let Some(rule) = rule.as_object_mut() {
        rule.remove("examples");
    }
    Ok(rule.to_string().leak())
}

/// The rules of this repository.
#[cfg(test)]
pub(crate) fn shipped() -> &'static Shipped {
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
        (name, without_examples(Document { name, text }).unwrap())
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
