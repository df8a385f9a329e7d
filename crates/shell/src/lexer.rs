//! Splits a script into tokens (POSIX, "Token Recognition").

mod expansion;
mod words;

use super::kind::ShellKind;
use super::word::{Piece, Word};

/// Depth of words in words (`${A:-${B:-x}}`) that are parsed.
const DEPTH: usize = 8;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShellToken {
    Word(Word),
    Operator(&'static str),
    Newline,
    Redirection(Redirection),
    /// The here-documents that begin on the line before, joined, and the line where they begin.
    Document(String, usize),
    Comment(String),
    /// `((…))`, without its parentheses, and the line where it begins.
    Arithmetic(String, usize),
}

/// A redirection: `>file`, `2>&1`, `<<EOF`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirection {
    /// The descriptor, if it is written.
    pub(super) descriptor: Option<u32>,
    pub(super) operator: String,
    pub(super) target: Word,
}

/// Operators, longer ones first.
const OPERATORS: &[&str] = &[";;&", "&&", "||", ";;", ";&", ";", "&", "|", "(", ")"];
const REDIRECTIONS: &[&str] = &["<<<", "<<-", "&>>", "<<", "<&", "<>", ">>", ">&", ">|", "&>", "<", ">"];

/// The tokens of a script.
pub(super) struct Lexer {
    text: Vec<char>,
    at: usize,
    kind: ShellKind,
    /// Line of the next character, from 1.
    pub(super) line: usize,
    /// Delimiters of the here-documents that begin after this line, and whether leading tabs are stripped (`<<-`).
    waiting: Vec<(String, bool)>,
    documents_due: bool,
}

impl Lexer {
    /// `line` is the line where the text begins.
    pub(super) fn new(text: &str, line: usize, kind: ShellKind) -> Self {
        Self { text: text.chars().collect(), at: 0, kind, line, waiting: Vec::new(), documents_due: false }
    }

    /// A text in which only expansions are special, such as an arithmetic expression.
    pub(super) fn quoted(text: &str, line: usize) -> Word {
        Self::new(text, line, ShellKind::Bash).word_until(DEPTH, true, |_| false)
    }

    /// True while a here-document of the current line has not begun.
    pub(super) fn awaits_document(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn begins(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(index, c)| self.peek(index) == Some(c))
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    fn blanks(&mut self) {
        loop {
            match self.peek(0) {
                Some('\\') if self.peek(1) == Some('\n') => self.skip(2),
                Some(' ' | '\t') => self.skip(1),
                _ => return,
            }
        }
    }

    /// Reads a redirection, whose operator comes next.
    fn redirection(&mut self, descriptor: Option<u32>) -> Option<ShellToken> {
        let is_known = |operator: &&&str| self.kind.is_like_bash() || !operator.starts_with('&');
        let operator = REDIRECTIONS.iter().filter(is_known).find(|operator| self.begins(operator))?;
        self.skip(operator.len());
        if *operator == "<<<" && !self.kind.is_bash() {
            return Some(ShellToken::Operator(operator));
        }
        self.blanks();
        let target = self.process().unwrap_or_else(|| self.word(DEPTH));
        if matches!(*operator, "<<" | "<<-") {
            let text = target.pieces.iter().map(|piece| if let Piece::Text { text, .. } = piece { text } else { "" });
            self.waiting.push((text.collect(), *operator == "<<-"));
        }
        Some(ShellToken::Redirection(Redirection { descriptor, operator: (*operator).to_owned(), target }))
    }

    /// Reads `<(…)` or `>(…)`, if one comes next: the name of a pipe.
    fn process(&mut self) -> Option<Word> {
        if !self.kind.is_like_bash() || !matches!(self.peek(0), Some('<' | '>')) || self.peek(1) != Some('(') {
            return None;
        }
        let line = self.line;
        self.skip(2);
        self.balanced('(', ')');
        Some(Word { pieces: vec![Piece::Computed], line })
    }

    /// Reads the here-documents that begin on this line, joined.
    fn documents(&mut self) -> Option<ShellToken> {
        let start = self.line;
        let mut text = String::new();
        for (delimiter, strips) in std::mem::take(&mut self.waiting) {
            loop {
                let mut line = String::new();
                let mut ended = false;
                while let Some(c) = self.bump() {
                    if c == '\n' {
                        ended = true;
                        break;
                    }
                    line.push(c);
                }
                let shown = if strips { line.trim_start_matches('\t') } else { &line };
                if shown == delimiter || (line.is_empty() && !ended) {
                    break;
                }
                text.push_str(shown);
                text.push('\n');
            }
        }
        (!text.is_empty()).then_some(ShellToken::Document(text, start))
    }

    /// A descriptor before a redirection.
    fn descriptor(&mut self) -> Option<u32> {
        let mut digits = 0;
        while self.peek(digits).is_some_and(|c| c.is_ascii_digit()) {
            digits += 1;
        }
        if digits == 0 || !matches!(self.peek(digits), Some('<' | '>')) {
            return None;
        }
        let number: String = (0..digits).filter_map(|ahead| self.peek(ahead)).collect();
        self.skip(digits);
        number.parse().ok()
    }

    /// Reads `((…))`, whose first parenthesis comes next, if its parentheses close together.
    fn arithmetic(&mut self) -> Option<ShellToken> {
        let start = self.at;
        let line = self.line;
        self.skip(2);
        let text = self.balanced('(', ')');
        if self.peek(0) == Some(')') {
            self.bump();
            return Some(ShellToken::Arithmetic(text, line));
        }
        (self.at, self.line) = (start, line);
        None
    }
}

impl Iterator for Lexer {
    type Item = ShellToken;

    fn next(&mut self) -> Option<ShellToken> {
        if std::mem::take(&mut self.documents_due)
            && let Some(document) = self.documents()
        {
            return Some(document);
        }
        self.blanks();
        let c = self.peek(0)?;
        if c == '\n' {
            self.bump();
            self.documents_due = true;
            return Some(ShellToken::Newline);
        }
        if c == '#' {
            let mut text = String::new();
            while let Some(c) = self.peek(0).filter(|&c| c != '\n') {
                self.bump();
                text.push(c);
            }
            return Some(ShellToken::Comment(text));
        }
        if let Some(process) = self.process() {
            return Some(ShellToken::Word(process));
        }
        let descriptor = self.descriptor();
        if let Some(token) = self.redirection(descriptor) {
            return Some(token);
        }
        if self.kind.is_bash()
            && self.begins("((")
            && let Some(token) = self.arithmetic()
        {
            return Some(token);
        }
        let is_known = |operator: &&&str| self.kind.is_bash() || !matches!(**operator, ";&" | ";;&");
        if let Some(operator) = OPERATORS.iter().filter(is_known).find(|operator| self.begins(operator)) {
            self.skip(operator.len());
            return Some(ShellToken::Operator(operator));
        }
        Some(ShellToken::Word(self.word(DEPTH)))
    }
}
