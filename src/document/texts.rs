//! Texts that `build.rs` compressed into the program.

use std::io::Read as _;

use flate2::bufread::DeflateDecoder;

/// Texts and their paths in a folder of the sources.
#[derive(Debug)]
pub(crate) struct Texts(Vec<(&'static str, &'static str)>);

impl Texts {
    /// Unpacks what `build.rs` wrote. The texts stay in memory until the program ends.
    ///
    /// # Panics
    ///
    /// Panics if the data are damaged. Each user has a test that reads its texts.
    #[expect(clippy::expect_used, clippy::disallowed_methods, reason = "constant data, each read by a test")]
    pub(crate) fn unpack(packed: &[u8]) -> Self {
        let mut all = String::new();
        DeflateDecoder::new(packed).read_to_string(&mut all).expect("texts that build.rs compressed");
        let mut parts = all.leak().split_terminator('\0');
        let mut texts = Vec::new();
        while let (Some(path), Some(text)) = (parts.next(), parts.next()) {
            texts.push((path, text));
        }
        Self(texts)
    }

    /// Returns the text at a path.
    pub(crate) fn get(&self, path: &str) -> Option<&'static str> {
        self.iter().find_map(|(known, text)| (known == path).then_some(text))
    }

    /// Returns all paths and texts, sorted by path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.0.iter().copied()
    }
}
