//! The rules and profiles of a program.

/// Folder of profiles. Like the folder of tables, it is a sibling of the rule areas and holds no rules.
const PROFILES: &str = "profiles/";

const EXTENSION: &str = ".yaml";

/// The rules and profiles that a program contains, by path: `AREA/NAME.yaml` and `profiles/NAME.yaml`. This crate has none of its own,
/// so that a changed rule rebuilds only the program.
#[derive(Debug)]
pub struct Shipped(Vec<(&'static str, &'static str)>);

impl Shipped {
    /// The rules and profiles with these paths and texts.
    pub const fn new(texts: Vec<(&'static str, &'static str)>) -> Self {
        Self(texts)
    }

    /// Returns the rules as pairs of ID (`AREA/NAME`) and text.
    pub fn rules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let rules = self.0.iter().filter(|(path, _)| !path.starts_with(PROFILES));
        rules.filter_map(|&(path, text)| Some((path.strip_suffix(EXTENSION)?, text)))
    }

    /// Returns the text of a rule.
    pub fn rule(&self, id: &str) -> Option<&'static str> {
        self.rules().find_map(|(known, text)| (known == id).then_some(text))
    }

    /// Returns the profiles as pairs of name and text.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let name = |path: &'static str| path.strip_prefix(PROFILES)?.strip_suffix(EXTENSION);
        self.0.iter().filter_map(move |&(path, text)| Some((name(path)?, text)))
    }
}

/// The rules of this repository.
#[cfg(test)]
pub(crate) fn shipped() -> &'static Shipped {
    use std::fs;
    use std::path::Path;
    use std::sync::LazyLock;

    static SHIPPED: LazyLock<Shipped> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules");
        let mut texts = Vec::new();
        for folder in fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            for file in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let path = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned().leak();
                if path.ends_with(EXTENSION) && !path.starts_with("tables/") {
                    texts.push((&*path, &*fs::read_to_string(&file).unwrap().leak()));
                }
            }
        }
        texts.sort_unstable();
        Shipped::new(texts)
    });
    &SHIPPED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_not_rules() {
        let all = shipped();
        assert!(all.rules().count() > 180 && all.rules().all(|(id, text)| text.contains(&format!("id: {id}\n"))));
        assert!(all.rule("env/net-socket").is_some());
        for other in ["profiles/ci", "env/net-socket.yaml", ""] {
            assert_eq!(all.rule(other), None, "{other}");
        }
        assert!(all.profiles().any(|(name, _)| name == "ci"));
    }
}
