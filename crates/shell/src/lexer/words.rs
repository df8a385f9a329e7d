//! Words and their quotes (POSIX, "Quoting").

use super::super::kind::ShellKind;
use super::super::word::{Piece, Word, name_length};
use super::Lexer;

/// True for what separates words.
pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n')
}

impl Lexer {
    /// Reads a word, whose first character is neither a blank nor an operator.
    pub(super) fn word(&mut self, depth: usize) -> Word {
        self.word_until(depth, false, |c| is_blank(c) || ";&|()<>".contains(c))
    }

    /// Reads a word up to a character that ends it, outside quotes; `quoted` is true within double quotes.
    pub(super) fn word_until(&mut self, depth: usize, quoted: bool, is_end: fn(char) -> bool) -> Word {
        let mut word = Word { line: self.line, ..Word::default() };
        while let Some(c) = self.peek(0) {
            if c == '(' && !quoted && self.group(&mut word, depth) {
                continue;
            }
            if is_end(c) {
                break;
            }
            self.bump();
            match c {
                '\'' if !quoted => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word, depth),
                '\\' if quoted => self.escape_in_quotes(&mut word),
                '\\' => match self.bump() {
                    None | Some('\n') => {}
                    Some(c) => word.push(c, true),
                },
                '$' if self.peek(0) == Some('\'') && !quoted && self.kind != ShellKind::Dash => {
                    self.skip(1);
                    self.until_quote(&mut word);
                }
                '$' | '`' => self.expansion(c, &mut word, depth, quoted),
                _ => word.push(c, quoted),
            }
        }
        word
    }

    /// Reads parentheses that belong to a word: the elements of an array, and a pattern such as `@(a|b)`.
    fn group(&mut self, word: &mut Word, depth: usize) -> bool {
        let Some(Piece::Text { text, is_quoted: false }) = word.pieces.last() else { return false };
        if !self.kind.is_bash() {
            return false;
        }
        if word.pieces.len() == 1
            && text.strip_suffix('=').is_some_and(|name| name_length(name.trim_end_matches('+')) > 0)
        {
            self.skip(1);
            let elements = self.elements(depth);
            word.pieces.push(Piece::Array(elements));
            return true;
        }
        if !text.ends_with(['@', '?', '*', '+', '!']) {
            return false;
        }
        let mut depth = 0_usize;
        while let Some(c) = self.peek(0).filter(|&c| c != '\n') {
            self.bump();
            word.push(c, false);
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => break,
                ')' => depth -= 1,
                _ => {}
            }
        }
        true
    }

    fn elements(&mut self, depth: usize) -> Vec<Word> {
        let mut words = Vec::new();
        if depth == 0 {
            return words;
        }
        loop {
            match self.peek(0) {
                None => return words,
                Some(')') => {
                    self.bump();
                    return words;
                }
                Some('#') => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                Some(c) if is_blank(c) || ";&|(<>".contains(c) => _ = self.bump(),
                Some(_) => words.push(self.word(depth - 1)),
            }
        }
    }

    fn single_quoted(&mut self, word: &mut Word) {
        word.pieces.push(Piece::Text { text: String::new(), is_quoted: true });
        while let Some(c) = self.bump().filter(|&c| c != '\'') {
            word.push(c, true);
        }
    }

    fn double_quoted(&mut self, word: &mut Word, depth: usize) {
        word.pieces.push(Piece::Text { text: String::new(), is_quoted: true });
        while let Some(c) = self.bump().filter(|&c| c != '"') {
            match c {
                '\\' => self.escape_in_quotes(word),
                '$' | '`' => self.expansion(c, word, depth, true),
                _ => word.push(c, true),
            }
        }
    }

    fn escape_in_quotes(&mut self, word: &mut Word) {
        match self.bump() {
            None | Some('\n') => {}
            Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c, true),
            Some(c) => {
                word.push('\\', true);
                word.push(c, true);
            }
        }
    }

    /// Reads the rest of `$'…'`.
    fn until_quote(&mut self, word: &mut Word) {
        word.pieces.push(Piece::Text { text: String::new(), is_quoted: true });
        while let Some(c) = self.bump().filter(|&c| c != '\'') {
            match if c == '\\' { self.bump() } else { None } {
                None => word.push(c, true),
                Some('n') => word.push('\n', true),
                Some('t') => word.push('\t', true),
                Some(c @ ('\\' | '\'' | '"')) => word.push(c, true),
                Some(_) => word.pieces.push(Piece::Computed),
            }
        }
    }
}
