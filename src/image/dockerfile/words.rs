//! Words of an instruction that may run over several lines (Dockerfile reference, "Format" and "ENV").

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

/// Names that `ENV` sets, with their offsets: `A=1 B="2 3"`, or the old form `A 1`.
pub(super) fn names(raw: &str, escape: char) -> Vec<(String, usize)> {
    let words = split(&joined(raw, escape), escape);
    let name = |(word, start): &(String, usize)| {
        let (name, _) = word.split_once('=')?;
        Some((name.to_owned(), *start))
    };
    match words.first() {
        Some((word, start)) if !word.contains('=') => vec![(word.clone(), *start)],
        _ => words.iter().filter_map(name).collect(),
    }
}

/// Splits into words and removes the quotes.
fn split(characters: &[(usize, char)], escape: char) -> Vec<(String, usize)> {
    let mut words: Vec<(String, usize)> = Vec::new();
    let mut quote: Option<char> = None;
    let mut inside = false;
    let mut characters = characters.iter();
    while let Some(&(offset, character)) = characters.next() {
        if quote.is_none() && character.is_whitespace() {
            inside = false;
            continue;
        }
        if !inside {
            words.push((String::new(), offset));
            inside = true;
        }
        let Some((word, _)) = words.last_mut() else { continue };
        if quote == Some(character) {
            quote = None;
        } else if quote.is_none() && matches!(character, '"' | '\'') {
            quote = Some(character);
        } else if character == escape && quote != Some('\'') {
            word.extend(characters.next().map(|(_, escaped)| *escaped));
        } else {
            word.push(character);
        }
    }
    words
}
