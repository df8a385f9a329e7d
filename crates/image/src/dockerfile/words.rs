//! Words of an instruction that may run over several lines (Dockerfile reference, "Format" and "ENV").

use std::ops::Range;

/// One assignment of an `ENV` instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EnvPair {
    pub(super) name: String,
    /// The value without its quotes and escapes. Variables in it are as written.
    pub(super) value: String,
    /// Where the assignment is written.
    pub(super) span: Range<usize>,
}

/// A word without its quotes and escapes.
struct EnvWord {
    text: String,
    span: Range<usize>,
}

/// The characters of an instruction with their offsets, without line continuations and the comment lines between them.
fn joined(raw: &str, escape: char) -> Vec<(usize, char)> {
    let mut characters = Vec::with_capacity(raw.len());
    let mut offset = 0;
    for (index, line) in raw.split_inclusive('\n').enumerate() {
        let start = offset;
        offset += line.len();
        let text = line.trim();
        if index > 0 && (text.is_empty() || text.starts_with('#')) {
            continue;
        }
        let line = line.trim_end_matches(['\r', '\n']);
        let line = line.trim_end().strip_suffix(escape).unwrap_or(line);
        characters.extend(line.char_indices().map(|(index, character)| (start + index, character)));
    }
    characters
}

/// The instruction on one line, with single spaces.
pub(super) fn collapse(raw: &str, escape: char) -> String {
    let text: String = joined(raw, escape).into_iter().map(|(_, character)| character).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The assignments of an `ENV`: `A=1 B="2 3"`, or the old form `A 1`.
pub(super) fn pairs(raw: &str, escape: char) -> Vec<EnvPair> {
    let words = split(&joined(raw, escape), escape);
    match words.as_slice() {
        [first, rest @ ..] if !first.text.contains('=') => {
            let end = rest.last().map_or(first.span.end, |last| last.span.end);
            let value = rest.iter().map(|word| &*word.text).collect::<Vec<_>>().join(" ");
            vec![EnvPair { name: first.text.clone(), value, span: first.span.start..end }]
        }
        words => words
            .iter()
            .filter_map(|word| {
                let (name, value) = word.text.split_once('=')?;
                Some(EnvPair { name: name.to_owned(), value: value.to_owned(), span: word.span.clone() })
            })
            .collect(),
    }
}

/// Splits into words and removes the quotes.
fn split(characters: &[(usize, char)], escape: char) -> Vec<EnvWord> {
    let mut words: Vec<EnvWord> = Vec::new();
    let mut quote: Option<char> = None;
    let mut inside = false;
    let mut characters = characters.iter();
    while let Some(&(offset, character)) = characters.next() {
        if quote.is_none() && character.is_whitespace() {
            inside = false;
            continue;
        }
        if !inside {
            words.push(EnvWord { text: String::new(), span: offset..offset });
            inside = true;
        }
        let Some(word) = words.last_mut() else { continue };
        word.span.end = offset + character.len_utf8();
        if quote == Some(character) {
            quote = None;
        } else if quote.is_none() && matches!(character, '"' | '\'') {
            quote = Some(character);
        } else if character == escape && quote != Some('\'') {
            if let Some(&(offset, escaped)) = characters.next() {
                word.text.push(escaped);
                word.span.end = offset + escaped.len_utf8();
            }
        } else {
            word.text.push(character);
        }
    }
    words
}
