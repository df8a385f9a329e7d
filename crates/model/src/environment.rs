//! Environment of this process, read once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Environment variables of this process at its start. Clones share them: each image of a run has one.
#[derive(Clone, Default)]
pub struct Environment(Arc<BTreeMap<String, String>>);

impl Environment {
    /// Returns a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns the variables whose names begin with `prefix`, with their values.
    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        let first = self.0.range(prefix.to_owned()..);
        first.map(|(name, value)| (&**name, &**value)).take_while(move |(name, _)| name.starts_with(prefix))
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        Self(Arc::new(variables.into_iter().collect()))
    }
}

impl fmt::Debug for Environment {
    /// Prints only the number of variables: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}
