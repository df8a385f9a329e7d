//! `-:@1`: an image of an archive on standard input, which the parser of options would take for the option `-:`.

use std::convert::Infallible;
use std::ffi::OsString;

/// Marks an image in front of its hyphen. No argument of a process contains this character.
const MARK: char = '\0';

/// Marks the words that begin with `-:` or `-@`, so that they are not options.
pub(in crate::cli) fn mark(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_image = |word: &OsString| {
        let text = word.as_encoded_bytes();
        text.starts_with(b"-:") || text.starts_with(b"-@")
    };
    let marked = |word: OsString| {
        let mut marked = OsString::from(MARK.to_string());
        marked.push(word);
        marked
    };
    words.map(|word| if is_image(&word) { marked(word) } else { word }).collect()
}

/// The text of an image without the mark.
#[expect(clippy::unnecessary_wraps, reason = "parses a value, as clap requires")]
pub(super) fn image(text: &str) -> Result<String, Infallible> {
    Ok(text.trim_start_matches(MARK).to_owned())
}
