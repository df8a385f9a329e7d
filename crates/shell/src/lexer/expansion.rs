//! Expansions within words (POSIX, "Word Expansions"), which are read and not yet carried out.

use super::super::word::{Parameter, ParameterForm, Piece, Word};
use super::Lexer;
use super::words::is_blank;

impl Lexer {
    /// Reads an expansion, whose first character was read.
    pub(super) fn expansion(&mut self, first: char, word: &mut Word, depth: usize, is_quoted: bool) {
        let line = self.line;
        let piece = match (first, self.peek(0)) {
            ('`', _) => Piece::Command { script: self.backquoted(is_quoted), line, is_quoted },
            (_, Some('(')) if self.peek(1) == Some('(') => {
                self.bump();
                let text = self.balanced('(', ')');
                match depth.checked_sub(1) {
                    Some(depth) => {
                        let expression = Self::new(&text, line, self.kind).word_until(depth, true, |_| false);
                        Piece::Arithmetic { expression, is_quoted }
                    }
                    None => Piece::Computed,
                }
            }
            (_, Some('(')) => {
                self.bump();
                Piece::Command { script: self.balanced('(', ')'), line, is_quoted }
            }
            (_, Some('{')) => {
                self.bump();
                self.braces(depth, is_quoted)
            }
            (_, Some(c)) if c.is_ascii_alphabetic() || c == '_' => plain(self.name(), is_quoted),
            (_, Some(c)) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.bump();
                plain(c.to_string(), is_quoted)
            }
            _ => return word.push(first, is_quoted),
        };
        word.pieces.push(piece);
    }

    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek(0).filter(|&c| c.is_ascii_alphanumeric() || c == '_') {
            self.bump();
            name.push(c);
        }
        name
    }

    fn backquoted(&mut self, is_quoted: bool) -> String {
        let mut script = String::new();
        while let Some(c) = self.bump().filter(|&c| c != '`') {
            match self.peek(0) {
                Some(next) if c == '\\' && (matches!(next, '$' | '`' | '\\') || (is_quoted && next == '"')) => {
                    self.bump();
                    script.push(next);
                }
                _ => script.push(c),
            }
        }
        script
    }

    /// Reads to the bracket that closes an expansion, which is dropped.
    pub(super) fn balanced(&mut self, open: char, close: char) -> String {
        let start = self.at;
        let mut depth = 1_usize;
        let mut quote = None;
        // The depths of `case` commands, whose patterns end in a parenthesis that none opens.
        let mut cases: Vec<usize> = Vec::new();
        let mut word = String::new();
        while let Some(c) = self.bump() {
            if quote.is_none() && (is_blank(c) || ";&|()".contains(c)) {
                match std::mem::take(&mut word).as_str() {
                    "case" => cases.push(depth),
                    "esac" => _ = cases.pop(),
                    _ => {}
                }
            } else {
                word.push(c);
            }
            match (quote, c) {
                (None, ')') if close == ')' && cases.last() == Some(&depth) => {}
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (None | Some('"'), '\\') => _ = self.bump(),
                (None, '\'' | '"') => quote = Some(c),
                (None, '#') if self.begins_comment() => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                (None, c) if c == close => depth -= 1,
                (None, c) if c == open => depth += 1,
                _ => {}
            }
            if depth == 0 {
                return self.text.get(start..self.at - 1).unwrap_or_default().iter().collect();
            }
        }
        self.text.get(start..).unwrap_or_default().iter().collect()
    }

    /// True if the character that was read last begins a word.
    fn begins_comment(&self) -> bool {
        let before = self.at.checked_sub(2).and_then(|at| self.text.get(at));
        before.is_none_or(|c| is_blank(*c) || ";&|(".contains(*c))
    }

    /// Reads `${…}` after its first brace.
    fn braces(&mut self, depth: usize, is_quoted: bool) -> Piece {
        let start = self.at;
        self.parameter(depth, is_quoted).unwrap_or_else(|| {
            while self.at > start {
                self.at -= 1;
                self.line -= usize::from(self.peek(0) == Some('\n'));
            }
            self.balanced('{', '}');
            Piece::Computed
        })
    }

    fn parameter(&mut self, depth: usize, is_quoted: bool) -> Option<Piece> {
        let depth = depth.checked_sub(1)?;
        let is_length = self.peek(0) == Some('#') && self.peek(1) != Some('}');
        self.skip(usize::from(is_length));
        let is_name = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_indirect = self.peek(0) == Some('!') && self.peek(1).is_some_and(is_name);
        self.skip(usize::from(is_indirect));
        let name = match self.peek(0)? {
            c if c.is_ascii_alphabetic() || c == '_' => self.name(),
            c if c.is_ascii_digit() => self.name(),
            c if "@*#?$!-".contains(c) => self.bump()?.to_string(),
            _ => return None,
        };
        let mut index = None;
        if self.peek(0) == Some('[') {
            self.bump();
            index = Some(self.balanced('[', ']'));
        }
        let form = match self.peek(0)? {
            '}' if is_length => ParameterForm::Length,
            '}' if is_indirect && index.is_none() => ParameterForm::Indirect,
            _ if is_length || is_indirect => return None,
            '}' => ParameterForm::Plain,
            first => self.form(first, depth, is_quoted)?,
        };
        (self.bump() == Some('}')).then_some(())?;
        Some(Piece::Parameter { parameter: Parameter { name, index, form }, is_quoted })
    }

    /// Reads what is computed of a parameter, up to its last brace; `first` comes next.
    fn form(&mut self, first: char, depth: usize, is_quoted: bool) -> Option<ParameterForm> {
        let is_brace = |c: char| c == '}';
        self.bump();
        // A sign that is written twice.
        let is_doubled = |this: &mut Self| {
            let is_doubled = this.peek(0) == Some(first);
            this.skip(usize::from(is_doubled));
            is_doubled
        };
        Some(match first {
            '#' | '%' => {
                let is_longest = is_doubled(self);
                // The pattern's own quotes count, also within double quotes.
                let pattern = self.word_until(depth, false, is_brace);
                ParameterForm::Removal { is_suffix: first == '%', is_longest, pattern }
            }
            '^' | ',' => ParameterForm::Letters { is_upper: first == '^', is_global: is_doubled(self) },
            '/' => {
                let is_global = is_doubled(self);
                let pattern = self.word_until(depth, false, |c| c == '/' || c == '}');
                let has_word = self.peek(0) == Some('/');
                self.skip(usize::from(has_word));
                let word = if has_word { self.word_until(depth, is_quoted, is_brace) } else { Word::default() };
                ParameterForm::Replacement { is_global, pattern, word }
            }
            ':' if !self.peek(0).is_some_and(|c| "-=+?".contains(c)) => {
                let offset = self.word_until(depth, true, |c| c == ':' || c == '}');
                let has_length = self.peek(0) == Some(':');
                self.skip(usize::from(has_length));
                let length = has_length.then(|| self.word_until(depth, true, is_brace));
                ParameterForm::Substring { offset, length }
            }
            _ => {
                let has_colon = first == ':';
                let sign = if has_colon { self.bump()? } else { first };
                "-=+?".contains(sign).then_some(())?;
                let word = self.word_until(depth, is_quoted, is_brace);
                ParameterForm::Conditional { sign, has_colon, word }
            }
        })
    }
}

fn plain(name: String, is_quoted: bool) -> Piece {
    Piece::Parameter { parameter: Parameter { name, index: None, form: ParameterForm::Plain }, is_quoted }
}
