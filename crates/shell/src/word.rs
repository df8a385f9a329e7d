//! Words of a command and their pieces.

/// A word before its expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Its parts, in order.
    pub pieces: Vec<Piece>,
    /// Line where it begins, from 1.
    pub line: usize,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A text that is not expanded.
    Text {
        /// The text, without quotes.
        text: String,
        /// True inside quotes, as for the other pieces.
        is_quoted: bool,
    },
    /// `$NAME` or `${…}`.
    Parameter {
        /// What is expanded.
        parameter: Parameter,
        /// True inside quotes: the value is one word.
        is_quoted: bool,
    },
    /// `$(…)` or backquotes: the script whose output replaces it.
    Command {
        /// The script.
        script: String,
        /// Its line, from 1.
        line: usize,
        /// True inside quotes: the output is one word.
        is_quoted: bool,
    },
    /// `$((…))`: the expression, of which only expansions are special.
    Arithmetic {
        /// The expression.
        expression: Word,
        /// True inside quotes.
        is_quoted: bool,
    },
    /// `(…)` behind `NAME=`: the elements of an array.
    Array(Vec<Word>),
    /// Any other expansion, whose value is never computed.
    Computed,
}

impl Piece {
    /// The text of a piece that is not expanded.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// `$NAME` or `${…}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name of a variable, a number, or a sign such as `@`.
    pub name: String,
    /// `[…]` behind the name.
    pub index: Option<String>,
    /// What is computed of it.
    pub form: ParameterForm,
}

/// What is computed of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterForm {
    /// Its value.
    Plain,
    /// `${#NAME}`.
    Length,
    /// `${NAME-WORD}`, `${NAME=WORD}`, `${NAME+WORD}`, `${NAME?WORD}`, and with a colon, which treats empty as unset.
    Conditional {
        /// `-`, `=`, `+` or `?`.
        sign: char,
        /// True with a colon.
        has_colon: bool,
        /// What stands in for the value.
        word: Word,
    },
    /// `${NAME#PATTERN}`, `${NAME%PATTERN}`, and doubled, which removes the longest match.
    Removal {
        /// True for `%`: the end is removed, not the beginning.
        is_suffix: bool,
        /// True for a doubled sign.
        is_longest: bool,
        /// What is removed.
        pattern: Word,
    },
    /// `${NAME:OFFSET}` and `${NAME:OFFSET:LENGTH}` of bash.
    Substring {
        /// An expression: from the end if it is negative.
        offset: Word,
        /// An expression; `None` for all that follows.
        length: Option<Word>,
    },
    /// `${NAME/PATTERN/WORD}` of bash, and `${NAME//PATTERN/WORD}` for all matches.
    Replacement {
        /// True for all matches.
        is_global: bool,
        /// What is replaced.
        pattern: Word,
        /// What replaces it.
        word: Word,
    },
    /// `${NAME^^}` and `${NAME,,}` of bash, and with one sign for the first letter.
    Letters {
        /// True for `^`.
        is_upper: bool,
        /// True for all letters.
        is_global: bool,
    },
    /// `${!NAME}` of bash: the value of the variable that the value names.
    Indirect,
}

impl Word {
    /// The word, if it has no expansion.
    pub fn plain(&self) -> Option<String> {
        self.pieces.iter().map(Piece::text).collect()
    }

    /// The word, if it has neither quotes nor an expansion: only such a word is a reserved one.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, is_quoted: false }] => Some(text),
            _ => None,
        }
    }

    /// Parses `NAME=WORD`.
    pub fn assignment(&self) -> Option<(&str, Self)> {
        self.split_assignment().filter(|(_, is_appended, _)| !is_appended).map(|(name, _, value)| (name, value))
    }

    /// Parses `NAME=WORD` and `NAME+=WORD`; the second part is true for the latter.
    pub(super) fn split_assignment(&self) -> Option<(&str, bool, Self)> {
        let Some((Piece::Text { text, is_quoted: false }, rest)) = self.pieces.split_first() else { return None };
        let (name, value) = text.split_once('=')?;
        let (name, is_appended) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        if name.is_empty() || name_length(name) != name.len() {
            return None;
        }
        let first = (!value.is_empty()).then(|| Piece::Text { text: value.to_owned(), is_quoted: false });
        Some((name, is_appended, Self { pieces: first.into_iter().chain(rest.iter().cloned()).collect(), ..*self }))
    }

    /// Appends a character.
    pub(super) fn push(&mut self, c: char, quoted: bool) {
        match self.pieces.last_mut() {
            Some(Piece::Text { text, is_quoted }) if *is_quoted == quoted => text.push(c),
            _ => self.pieces.push(Piece::Text { text: c.to_string(), is_quoted: quoted }),
        }
    }
}

/// Length of the variable's name at the beginning of a text, in bytes.
pub fn name_length(text: &str) -> usize {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if is_digit { 0 } else { end }
}

/// True if a word is one of those in a list that blanks separate.
pub(super) fn is_among(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|one| one == word)
}
