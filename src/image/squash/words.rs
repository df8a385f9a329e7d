//! Splits a shell script into commands and words (POSIX, "Shell Command Language").

use std::iter::Peekable;
use std::str::Chars;

/// A simple command.
#[derive(Clone, Debug)]
pub(super) struct ShellLine {
    pub(super) words: Vec<ShellText>,
    /// Line where it begins, from 1.
    pub(super) number: usize,
    /// Its text, for messages.
    pub(super) text: String,
    /// True if it has a pipe, a redirection, a list or parentheses.
    pub(super) is_compound: bool,
}

/// A word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellText {
    pub(super) pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Plain(String),
    /// `$NAME`, `${NAME}` or `${NAME:-WORD}`.
    Variable {
        name: String,
        otherwise: Option<ShellText>,
    },
    /// Any other expansion.
    Computed,
}

impl ShellText {
    /// The word, if it has no expansion.
    pub(super) fn plain(&self) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| if let Piece::Plain(text) = piece { Some(text.as_str()) } else { None })
            .collect()
    }

    /// Parses `NAME=WORD`.
    pub(super) fn assignment(&self) -> Option<(&str, Self)> {
        let Some((Piece::Plain(first), rest)) = self.pieces.split_first() else { return None };
        let (name, value) = first.split_once('=')?;
        if name.is_empty() || name_length(name) != name.len() {
            return None;
        }
        let value = std::iter::once(Piece::Plain(value.to_owned())).chain(rest.iter().cloned());
        Some((name, Self { pieces: value.collect() }))
    }

    fn push(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Plain(text)) => text.push(c),
            _ => self.pieces.push(Piece::Plain(c.to_string())),
        }
    }
}

/// Length of the variable's name at the beginning of a text, in bytes.
pub(super) fn name_length(text: &str) -> usize {
    let is_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    if is_digit { 0 } else { end }
}

/// The commands of a script.
pub(super) fn lines(text: &str) -> Vec<ShellLine> {
    let mut reader = ShellReader { rest: text.chars().peekable(), number: 1, seen: String::new() };
    std::iter::from_fn(|| reader.line()).filter(|line| !line.words.is_empty() || line.is_compound).collect()
}

struct ShellReader<'a> {
    rest: Peekable<Chars<'a>>,
    number: usize,
    /// Text of the current command.
    seen: String,
}

/// Depth of words in words (`${A:-${B:-x}}`) that are parsed.
const DEPTH: usize = 8;

impl ShellReader<'_> {
    fn bump(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        self.number += usize::from(next == '\n');
        self.seen.push(next);
        Some(next)
    }

    /// Reads the next command; `None` at the end.
    fn line(&mut self) -> Option<ShellLine> {
        self.rest.peek()?;
        self.seen.clear();
        let mut line = ShellLine { words: Vec::new(), number: self.number, text: String::new(), is_compound: false };
        while let Some(&c) = self.rest.peek() {
            match c {
                '\n' | ';' => {
                    self.bump();
                    if c == '\n' && line.words.is_empty() {
                        line.number = self.number;
                        self.seen.clear();
                        continue;
                    }
                    break;
                }
                '#' => {
                    while self.rest.peek().is_some_and(|&c| c != '\n') {
                        self.rest.next();
                    }
                }
                '|' | '&' | '(' | ')' | '<' | '>' => {
                    line.is_compound = true;
                    self.bump();
                }
                c if c.is_whitespace() => _ = self.bump(),
                _ => {
                    let word = self.word(DEPTH, |c| c.is_whitespace() || ";|&()<>".contains(c));
                    // A continued line may have no word.
                    if let Some(word) = word {
                        line.words.push(word);
                    }
                }
            }
        }
        line.text = self.seen.trim().trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" ");
        Some(line)
    }

    /// Reads a word up to a character that ends it, outside quotes; `None` if nothing but a line continuation is there.
    fn word(&mut self, depth: usize, is_end: fn(char) -> bool) -> Option<ShellText> {
        let mut word = ShellText::default();
        let mut is_there = false;
        while let Some(&c) = self.rest.peek() {
            if is_end(c) {
                break;
            }
            self.bump();
            match c {
                '\'' => {
                    word.pieces.push(Piece::Plain(String::new()));
                    while let Some(c) = self.bump().filter(|&c| c != '\'') {
                        word.push(c);
                    }
                }
                '"' => {
                    word.pieces.push(Piece::Plain(String::new()));
                    while let Some(c) = self.bump().filter(|&c| c != '"') {
                        self.quoted(c, &mut word, depth);
                    }
                }
                '\\' => match self.bump() {
                    None | Some('\n') => continue,
                    Some(c) => word.push(c),
                },
                '$' | '`' => self.expansion(c, &mut word, depth),
                c => word.push(c),
            }
            is_there = true;
        }
        // Joins the parts of `A="x"`, so that a name and its value are found.
        let mut joined: Vec<Piece> = Vec::new();
        for piece in word.pieces {
            match (joined.last_mut(), piece) {
                (Some(Piece::Plain(before)), Piece::Plain(text)) => before.push_str(&text),
                (_, piece) => joined.push(piece),
            }
        }
        is_there.then_some(ShellText { pieces: joined })
    }

    /// A character in double quotes.
    fn quoted(&mut self, c: char, word: &mut ShellText, depth: usize) {
        match c {
            '\\' => match self.bump() {
                None | Some('\n') => {}
                Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                Some(c) => {
                    word.push('\\');
                    word.push(c);
                }
            },
            '$' | '`' => self.expansion(c, word, depth),
            _ => word.push(c),
        }
    }

    /// An expansion, whose first character was read.
    fn expansion(&mut self, first: char, word: &mut ShellText, depth: usize) {
        let piece = match (first, self.rest.peek()) {
            ('$', Some(c)) if c.is_ascii_alphabetic() || *c == '_' => {
                Piece::Variable { name: self.name(), otherwise: None }
            }
            ('$', Some('{')) => {
                self.bump();
                self.braces(depth)
            }
            ('$', Some('(')) => self.skip('(', ')'),
            ('`', _) => self.skip('`', '`'),
            ('$', Some(c)) if c.is_ascii_digit() || "@*#?$!-".contains(*c) => {
                self.bump();
                Piece::Computed
            }
            _ => return word.push(first),
        };
        word.pieces.push(piece);
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(&c) = self.rest.peek()
            && (c.is_ascii_alphanumeric() || c == '_')
        {
            self.bump();
            name.push(c);
        }
        name
    }

    /// `${…}` after its first brace.
    fn braces(&mut self, depth: usize) -> Piece {
        let name = self.name();
        let mut operator = String::new();
        while let Some(&c) = self.rest.peek()
            && ":-".contains(c)
        {
            self.bump();
            operator.push(c);
        }
        let is_end = self.rest.peek() == Some(&'}');
        if is_end && operator.is_empty() && !name.is_empty() {
            self.bump();
            return Piece::Variable { name, otherwise: None };
        }
        if operator != ":-" || name.is_empty() || depth == 0 {
            return self.skip('{', '}');
        }
        let otherwise = self.word(depth - 1, |c| c == '}').unwrap_or_default();
        self.bump();
        Piece::Variable { name, otherwise: Some(otherwise) }
    }

    /// Skips to the end of an expansion.
    fn skip(&mut self, open: char, close: char) -> Piece {
        let mut depth = 1_usize;
        if open == '(' {
            self.bump();
        }
        while let Some(c) = self.bump() {
            match c {
                '\\' => _ = self.bump(),
                c if c == close => depth -= 1,
                c if c == open => depth += 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        Piece::Computed
    }
}
