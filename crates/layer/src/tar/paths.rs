//! Bounds of the paths of a layer together. Compression makes a long path cheap, and memory keeps each of them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

use model::{ImagePath, Limits, OverLimit};

/// Bytes of paths and link targets that each entry may have on average. Three layers measured have 75.
const AVERAGE: u64 = 256;

/// The paths of a layer so far.
#[derive(Debug, Default)]
pub struct LayerPaths {
    bytes: u64,
    entries: u64,
    previous: ImagePath,
    /// Hashes of the folders that some entry has needed, and that the entry before has not created.
    implied: HashSet<u64>,
    /// Hashes of the paths of the folders whose names are counted.
    counted: HashSet<u64>,
}

impl LayerPaths {
    /// Counts the path of an entry, with the bytes of its link target.
    pub fn count(&mut self, path: &ImagePath, target: usize, limits: &Limits) -> Result<(), OverLimit> {
        self.count_bytes(path, target, limits)?;
        self.count_folders(path, limits)
    }

    /// Counts the same for a tree, in which each folder is an entry.
    pub fn count_bytes(&mut self, path: &ImagePath, target: usize, limits: &Limits) -> Result<(), OverLimit> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add((path.as_bytes().len() + target) as u64);
        let beyond = self.bytes.saturating_sub(self.entries.saturating_mul(AVERAGE));
        if beyond > limits.paths {
            let what =
                format!("paths of {} bytes in {} entries, {AVERAGE} are free for each", self.bytes, self.entries);
            return Err(OverLimit::new(what, "paths", limits.paths));
        }
        Ok(())
    }

    fn count_folders(&mut self, path: &ImagePath, limits: &Limits) -> Result<(), OverLimit> {
        let previous = std::mem::replace(&mut self.previous, path.clone());
        let folder = parent(path.as_bytes());
        if is_at_or_above(folder, previous.as_bytes()) || !self.counted.insert(hash(folder)) {
            return Ok(());
        }
        let shared = shared_folders(previous.as_bytes(), path.as_bytes());
        let mut hasher = DefaultHasher::new();
        for (depth, name) in folders(path.as_bytes()).enumerate() {
            hasher.write(name);
            hasher.write_u8(b'/');
            if depth >= shared {
                self.implied.insert(hasher.finish());
            }
            if self.implied.len() > limits.implied_folders {
                let what = format!("{} folders that only the paths of their files name", self.implied.len());
                return Err(OverLimit::new(what, "implied_folders", limits.implied_folders as u64));
            }
        }
        Ok(())
    }
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(path);
    hasher.finish()
}

fn parent(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    path.get(..end).unwrap_or_default()
}

fn is_at_or_above(folder: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first().is_none_or(|byte| *byte == b'/'))
}

/// The names of the folders above the last name.
fn folders(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    parent(path).split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

/// The number of leading folders of `path` that the entry before has created: its folders, and itself.
fn shared_folders(previous: &[u8], path: &[u8]) -> usize {
    let before = previous.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    before.zip(folders(path)).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(paths: impl IntoIterator<Item = String>, limits: &Limits) -> Result<(), String> {
        let mut all = LayerPaths::default();
        paths
            .into_iter()
            .try_for_each(|path| all.count(&ImagePath::from(path.as_str()), 0, limits))
            .map_err(|over| over.to_string())
    }

    #[test]
    fn long_paths_use_a_budget_that_ordinary_ones_do_not() {
        let limits = Limits { paths: 10_000, ..Limits::default() };
        let paths = |length: usize| (0..1_000).map(move |number| format!("{number:0length$}"));
        count(paths(256), &limits).unwrap();
        let error = count(paths(3_000), &limits).unwrap_err();
        let expected = "paths of 12000 bytes in 4 entries, 256 are free for each, the limit is 10000 (raise it with --limit paths=N)";
        assert_eq!(error, expected);
    }

    #[test]
    fn only_folders_without_an_entry_count() {
        let limits = Limits { implied_folders: 3, ..Limits::default() };
        // Each folder comes before its content, as builders write it.
        let walked = ["a", "a/b", "a/b/c", "a/b/c/f", "a/d", "a/d/f", "e", "e/g", "e/g/h"].map(ToOwned::to_owned);
        count(walked, &limits).unwrap();
        count((0..9).map(|number| format!("a/b/c/{number}")), &limits).unwrap();
        // The same three folders, in turn with others that exist.
        count((0..9).flat_map(|number| [format!("a/b/c/{number}"), "x".to_owned()]), &limits).unwrap();
        // Folders that an entry has created do not count, nor does a folder twice.
        let twice = ["a", "a/b/f", "a/c/f", "x", "a/b/g", "a/c/g", "a", "a/d/f"].map(ToOwned::to_owned);
        count(twice, &limits).unwrap();
        let error = count((0..2).map(|number| format!("{number}/b/f")), &limits).unwrap_err();
        assert!(error.starts_with("4 folders that only the paths of their files name, the limit is 3"), "{error}");
    }
}
