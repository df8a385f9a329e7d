//! Splits a script into tokens (POSIX, "Token Recognition").

use super::word::{Parameter, ParameterForm, Piece, Word, name_length};

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
    /// `((…))`, without its parentheses.
    Arithmetic(String),
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
    /// Line of the next character, from 1.
    pub(super) line: usize,
    /// Delimiters of the here-documents that begin after this line, and whether leading tabs are stripped (`<<-`).
    waiting: Vec<(String, bool)>,
    documents_due: bool,
}

impl Lexer {
    /// `line` is the line where the text begins.
    pub(super) fn new(text: &str, line: usize) -> Self {
        Self { text: text.chars().collect(), at: 0, line, waiting: Vec::new(), documents_due: false }
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
                Some(c) if c != '\n' && c.is_whitespace() => self.skip(1),
                _ => return,
            }
        }
    }

    /// Reads a word, whose first character is neither a blank nor an operator.
    fn word(&mut self, depth: usize) -> Word {
        self.word_until(depth, false, |c| c.is_whitespace() || ";&|()<>".contains(c))
    }

    /// Reads a word up to a character that ends it, outside quotes; `quoted` is true within double quotes.
    fn word_until(&mut self, depth: usize, quoted: bool, is_end: fn(char) -> bool) -> Word {
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
                '$' if self.peek(0) == Some('\'') && !quoted => {
                    self.skip(1);
                    self.until_quote();
                    word.pieces.push(Piece::Computed);
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
                Some(c) if c.is_whitespace() || ";&|(<>".contains(c) => _ = self.bump(),
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

    fn until_quote(&mut self) {
        while let Some(c) = self.bump().filter(|&c| c != '\'') {
            if c == '\\' {
                self.bump();
            }
        }
    }

    /// Reads an expansion, whose first character was read.
    fn expansion(&mut self, first: char, word: &mut Word, depth: usize, is_quoted: bool) {
        let line = self.line;
        let piece = match (first, self.peek(0)) {
            ('`', _) => Piece::Command { script: self.backquoted(is_quoted), line, is_quoted },
            (_, Some('(')) if self.peek(1) == Some('(') => {
                self.bump();
                self.balanced('(', ')');
                Piece::Computed
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
    fn balanced(&mut self, open: char, close: char) -> String {
        let start = self.at;
        let mut depth = 1_usize;
        let mut quote = None;
        // The depths of `case` commands, whose patterns end in a parenthesis that none opens.
        let mut cases: Vec<usize> = Vec::new();
        let mut word = String::new();
        while let Some(c) = self.bump() {
            if quote.is_none() && (c.is_whitespace() || ";&|()".contains(c)) {
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
        before.is_none_or(|c| c.is_whitespace() || ";&|(".contains(*c))
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
        let form = match (is_length, self.peek(0)?) {
            (true, '}') => ParameterForm::Length,
            (true, _) => return None,
            (false, '}') => ParameterForm::Plain,
            (false, sign @ ('#' | '%')) => {
                self.bump();
                let is_longest = self.peek(0) == Some(sign);
                self.skip(usize::from(is_longest));
                // The pattern's own quotes count, also within double quotes.
                let pattern = self.word_until(depth, false, |c| c == '}');
                ParameterForm::Removal { is_suffix: sign == '%', is_longest, pattern }
            }
            (false, c) => {
                let has_colon = c == ':';
                self.skip(usize::from(has_colon));
                let sign = self.bump().filter(|sign| "-=+?".contains(*sign))?;
                let word = self.word_until(depth, is_quoted, |c| c == '}');
                ParameterForm::Conditional { sign, has_colon, word }
            }
        };
        (self.bump() == Some('}')).then_some(())?;
        Some(Piece::Parameter { parameter: Parameter { name, index, form }, is_quoted })
    }

    /// Reads a redirection, whose operator comes next.
    fn redirection(&mut self, descriptor: Option<u32>) -> Option<ShellToken> {
        let operator = REDIRECTIONS.iter().find(|operator| self.begins(operator))?;
        self.skip(operator.len());
        self.blanks();
        let target = self.word(DEPTH);
        if matches!(*operator, "<<" | "<<-") {
            let text = target.pieces.iter().map(|piece| if let Piece::Text { text, .. } = piece { text } else { "" });
            self.waiting.push((text.collect(), *operator == "<<-"));
        }
        Some(ShellToken::Redirection(Redirection { descriptor, operator: (*operator).to_owned(), target }))
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
        let (start, line) = (self.at, self.line);
        self.skip(2);
        let text = self.balanced('(', ')');
        if self.peek(0) == Some(')') {
            self.bump();
            return Some(ShellToken::Arithmetic(text));
        }
        (self.at, self.line) = (start, line);
        None
    }
}

fn plain(name: String, is_quoted: bool) -> Piece {
    Piece::Parameter { parameter: Parameter { name, index: None, form: ParameterForm::Plain }, is_quoted }
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
        if matches!(c, '<' | '>') && self.peek(1) == Some('(') {
            let line = self.line;
            self.skip(2);
            self.balanced('(', ')');
            return Some(ShellToken::Word(Word { pieces: vec![Piece::Computed], line }));
        }
        let descriptor = self.descriptor();
        if let Some(token) = self.redirection(descriptor) {
            return Some(token);
        }
        if self.begins("((")
            && let Some(token) = self.arithmetic()
        {
            return Some(token);
        }
        if let Some(operator) = OPERATORS.iter().find(|operator| self.begins(operator)) {
            self.skip(operator.len());
            return Some(ShellToken::Operator(operator));
        }
        Some(ShellToken::Word(self.word(DEPTH)))
    }
}
