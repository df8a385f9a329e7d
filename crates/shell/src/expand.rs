//! Expands words (POSIX, "Word Expansions"): parameters, command substitutions, field splitting and path names.

mod parameter;
mod paths;
mod transform;

use super::evaluate::{Evaluator, Surroundings};
use super::gap::ShellGap;
use super::pattern::is_magic;
use super::state::{Field, ShellState, ShellValue, UnknownField};
use super::word::{Piece, Word};

pub(super) use parameter::is_of_shell;

/// Characters, each with whether it is quoted.
type Quoted = Vec<(char, bool)>;

/// Length of a command's words from which on they are unknown: Linux takes 2 MiB with the environment.
const LONGEST: usize = 1 << 20;

/// What a word adds to that length. Linux adds a pointer.
const WORD: usize = 64;

/// Words in the making.
struct WordDraft {
    done: Vec<Result<Quoted, UnknownField>>,
    current: Option<Quoted>,
    /// Why the rest of the current word is unknown.
    gap: Option<ShellGap>,
    /// True if unquoted values are split into words.
    splits: bool,
    /// Length of all words of the command.
    length: usize,
}

/// The value of a parameter.
enum Expanded {
    Unset,
    Text(String),
    /// `$@` and `${NAME[@]}`.
    Many(Vec<Field>),
}

impl WordDraft {
    fn new(splits: bool) -> Self {
        Self { done: Vec::new(), current: None, gap: None, splits, length: 0 }
    }

    fn push(&mut self, text: &str, is_quoted: bool) {
        self.grow(text.len());
        if self.gap.is_none() {
            self.current.get_or_insert_default().extend(text.chars().map(|c| (c, is_quoted)));
        }
    }

    /// Appends the value of an unquoted expansion. A separator that is not a blank ends a word even if that is empty.
    fn push_split(&mut self, text: &str, separators: &str) {
        for c in text.chars() {
            if self.gap.is_none() && self.splits && separators.contains(c) {
                if !c.is_ascii_whitespace() {
                    self.current.get_or_insert_default();
                }
                self.end();
            } else {
                self.push(c.encode_utf8(&mut [0; 4]), false);
            }
        }
    }

    fn fail(&mut self, gap: ShellGap) {
        self.current.get_or_insert_default();
        self.gap.get_or_insert(gap);
    }

    fn grow(&mut self, bytes: usize) {
        self.length += bytes;
        if self.length > LONGEST {
            self.fail(ShellGap::new(format!("the words of a command have more than {LONGEST} bytes")));
        }
    }

    /// Ends the current word.
    fn end(&mut self) {
        if self.current.is_some() {
            self.grow(WORD);
        }
        let current = self.current.take();
        let gap = self.gap.take();
        // An unknown word stands for any number of them.
        if self.length > LONGEST && matches!(self.done.last(), Some(Err(_))) {
            return;
        }
        match gap {
            Some(gap) => self.done.push(Err(UnknownField { prefix: unquoted(&current.unwrap_or_default()), gap })),
            None => self.done.extend(current.map(Ok)),
        }
    }
}

fn unquoted(text: &[(char, bool)]) -> String {
    text.iter().map(|(c, _)| *c).collect()
}

impl<S: Surroundings> Evaluator<'_, S> {
    /// The words of a command.
    pub(super) fn fields(&mut self, state: &mut ShellState, words: &[Word]) -> Vec<Field> {
        let mut fields = Vec::new();
        let mut length = 0;
        for word in words {
            let mut draft = WordDraft { length, ..WordDraft::new(true) };
            if state.kind.is_bash() && has_braces(word) {
                draft.push(&known_prefix(word), false);
                draft.fail(self.gap(word.line, "only a shell can determine what a word with braces becomes"));
            } else {
                self.pieces(state, word, &mut draft);
            }
            draft.end();
            self.spend_on_text(draft.length - length);
            length = draft.length;
            for field in draft.done {
                match field {
                    Ok(text) if is_magic(&text) && !state.options.expands_no_paths => {
                        fields.extend(self.path_names(state, &text, word.line));
                    }
                    Ok(text) => fields.push(Ok(unquoted(&text))),
                    Err(unknown) => fields.push(Err(unknown)),
                }
            }
            // The last word is unknown, and stands for the others.
            if length > LONGEST {
                break;
            }
        }
        fields
    }

    /// The value of a word that is not split, such as that of an assignment.
    pub(super) fn value(&mut self, state: &mut ShellState, word: &Word) -> Result<String, ShellGap> {
        Ok(unquoted(&self.pattern(state, word)?))
    }

    /// The word as a pattern.
    pub(super) fn pattern(&mut self, state: &mut ShellState, word: &Word) -> Result<Quoted, ShellGap> {
        let mut draft = WordDraft::new(false);
        self.pieces(state, word, &mut draft);
        draft.end();
        self.spend_on_text(draft.length);
        let mut all = Quoted::new();
        for field in draft.done {
            all.extend(field.map_err(|unknown| unknown.gap)?);
        }
        Ok(all)
    }

    /// The elements of an array.
    pub(super) fn array(&mut self, state: &mut ShellState, words: &[Word]) -> Result<Vec<String>, ShellGap> {
        self.fields(state, words).into_iter().map(|field| field.map_err(|unknown| unknown.gap)).collect()
    }

    fn pieces(&mut self, state: &mut ShellState, word: &Word, draft: &mut WordDraft) {
        for (index, piece) in word.pieces.iter().enumerate() {
            if draft.length > LONGEST {
                return;
            }
            match piece {
                Piece::Text { text, is_quoted: false } if index == 0 && text.starts_with('~') => {
                    self.tilde(state, text, word.line, draft);
                }
                Piece::Text { text, is_quoted } => draft.push(text, *is_quoted),
                Piece::Parameter { parameter, is_quoted } => {
                    self.parameter(state, parameter, *is_quoted, word.line, draft);
                }
                Piece::Command { script, line, is_quoted } => match self.substitute(state, script, *line) {
                    Ok(text) => self.splice(state, &text, *is_quoted, draft),
                    Err(gap) => draft.fail(gap),
                },
                Piece::Arithmetic { expression, is_quoted } => match self.arithmetic(state, expression, word.line) {
                    Ok(value) => self.splice(state, &value.to_string(), *is_quoted, draft),
                    Err(gap) => draft.fail(gap),
                },
                Piece::Array(_) | Piece::Computed => {
                    draft.fail(self.gap(word.line, "only a shell can determine the value of a word"));
                }
            }
        }
    }

    fn tilde(&self, state: &ShellState, text: &str, line: usize, draft: &mut WordDraft) {
        let (name, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
        match state.text("HOME") {
            Ok(home) if name == "~" && !home.is_empty() => {
                draft.push(&home, true);
                draft.push(rest, false);
            }
            Err(gap) if name == "~" => draft.fail(gap),
            _ => draft.fail(self.gap(line, &format!("the home directory {name} is not looked up"))),
        }
    }

    /// Appends a value as an unquoted or a quoted expansion does.
    fn splice(&self, state: &ShellState, text: &str, is_quoted: bool, draft: &mut WordDraft) {
        if is_quoted {
            return draft.push(text, true);
        }
        match state.variable("IFS") {
            Ok(None) => draft.push_split(text, " \t\n"),
            // Blanks around another separator belong to it, which is not followed.
            Ok(Some(ShellValue::Text(separators)))
                if separators.len() == 1 || separators.chars().all(|c| matches!(c, ' ' | '\t' | '\n')) =>
            {
                draft.push_split(text, separators);
            }
            Ok(Some(ShellValue::Text(separators))) if separators.is_empty() => {
                if !text.is_empty() {
                    draft.push(text, false);
                }
            }
            Ok(Some(_)) if draft.splits => {
                draft.fail(self.gap(0, "a word is split by a separator of the script's own"));
            }
            Ok(Some(_)) => draft.push(text, false),
            Err(gap) => draft.fail(gap.clone()),
        }
    }

    /// Expands the word of `${NAME:-WORD}`.
    fn replacement(&mut self, state: &mut ShellState, word: &Word, is_quoted: bool, draft: &mut WordDraft) {
        if is_quoted {
            draft.push("", true);
        }
        for piece in &word.pieces {
            // Text of an unquoted expansion is split.
            if let Piece::Text { text, is_quoted: false } = piece {
                self.splice(state, text, false, draft);
            } else {
                self.pieces(state, &Word { pieces: vec![piece.clone()], line: word.line }, draft);
            }
        }
    }

    fn insert(&self, state: &ShellState, value: Expanded, is_quoted: bool, draft: &mut WordDraft) {
        match value {
            Expanded::Unset => self.splice(state, "", is_quoted, draft),
            Expanded::Text(text) => self.splice(state, &text, is_quoted, draft),
            Expanded::Many(fields) => {
                if fields.is_empty() && draft.current.as_ref().is_some_and(Vec::is_empty) && draft.gap.is_none() {
                    draft.current = None;
                }
                for (index, field) in fields.into_iter().enumerate() {
                    if index > 0 && draft.splits {
                        draft.end();
                    } else if index > 0 {
                        draft.push(" ", true);
                    }
                    match field {
                        Ok(text) => self.splice(state, &text, is_quoted, draft),
                        Err(unknown) => {
                            draft.push(&unknown.prefix, is_quoted);
                            draft.fail(unknown.gap);
                        }
                    }
                }
            }
        }
    }
}

/// True if bash may expand braces in a word.
fn has_braces(word: &Word) -> bool {
    let open: String = word
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text { text, is_quoted: false } => text.as_str(),
            _ => "",
        })
        .collect();
    open.find('{').is_some_and(|at| {
        let rest = open.get(at..).unwrap_or_default();
        rest.contains('}') && (rest.contains(',') || rest.contains(".."))
    })
}

/// The text of a word before its first brace or expansion.
fn known_prefix(word: &Word) -> String {
    let mut prefix = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text { text, is_quoted } => {
                let known = if *is_quoted { text } else { text.split('{').next().unwrap_or_default() };
                prefix.push_str(known);
                if known.len() != text.len() {
                    break;
                }
            }
            _ => break,
        }
    }
    prefix
}
