//! Lexer for shell scripts, sufficient to find assignments (POSIX, "Shell Command Language"). Nothing is expanded: a
//! word with a `$` or a backquote is computed, and only the text before that is known.

use std::iter::Peekable;
use std::str::Chars;

use super::Assignment;

/// Maximum depth of nested scripts, such as `bash -c '…'`.
pub(super) const NESTING: usize = 6;

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// Its text without quotes, up to the first expansion.
    pub(super) text: String,
    /// True if an expansion follows, whose value only a shell can determine.
    pub(super) computed: bool,
    /// Line where it begins, from 1.
    pub(super) line: usize,
}

impl ShellWord {
    /// Returns the word if all of it is known.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.computed).then_some(&self.text)
    }

    /// Parses `NAME=VALUE`; the value is `None` if it is computed.
    pub(super) fn assignment(&self) -> Option<Assignment> {
        let (name, value) = self.text.split_once('=')?;
        let value = (!self.computed).then(|| value.to_owned());
        super::lines::is_name(name).then(|| Assignment { name: name.to_owned(), value, line: Some(self.line) })
    }
}

/// A simple command and its here-document.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<ShellWord>,
    /// Text of the here-document, and the line where it begins.
    pub(super) input: Option<(String, usize)>,
}

/// Splits a script into simple commands.
pub(super) struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    /// Delimiters of the here-documents that begin after this line, and whether leading tabs are stripped (`<<-`).
    waiting: Vec<(String, bool)>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, line: usize) -> Self {
        Self { rest: text.chars().peekable(), line, waiting: Vec::new() }
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.rest.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_it = self.rest.peek() == Some(&wanted);
        if is_it {
            self.bump();
        }
        is_it
    }

    /// Reads a word, whose first character is neither a blank nor an operator.
    fn word(&mut self) -> ShellWord {
        let mut word = ShellWord { line: self.line, ..ShellWord::default() };
        while let Some(&c) = self.rest.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            self.bump();
            match c {
                '\'' => {
                    while let Some(c) = self.bump().filter(|&c| c != '\'') {
                        word.push(c);
                    }
                }
                '"' => self.quoted(&mut word),
                '\\' => match self.bump() {
                    None | Some('\n') => {}
                    Some(c) => word.push(c),
                },
                '$' | '`' => self.expansion(c, &mut word),
                _ => word.push(c),
            }
        }
        word
    }

    fn quoted(&mut self, word: &mut ShellWord) {
        while let Some(c) = self.bump().filter(|&c| c != '"') {
            match c {
                '\\' => match self.bump() {
                    None | Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                    Some(c) => {
                        word.push('\\');
                        word.push(c);
                    }
                },
                '$' | '`' => self.expansion(c, word),
                _ => word.push(c),
            }
        }
    }

    /// Skips an expansion, which begins with `$` or a backquote: only a shell can determine its value.
    fn expansion(&mut self, first: char, word: &mut ShellWord) {
        let close = match (first, self.rest.peek()) {
            ('`', _) => '`',
            (_, Some('(')) => ')',
            (_, Some('{')) => '}',
            (_, Some(c))
                if c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '*' | '#' | '?' | '$' | '!' | '-' | '\'') =>
            {
                word.computed = true;
                return;
            }
            _ => return word.push(first),
        };
        word.computed = true;
        let open = if close == '`' { None } else { self.bump() };
        let mut depth = 1_usize;
        while let Some(c) = self.bump() {
            match c {
                '\\' => _ = self.bump(),
                '\'' if close == ')' => while self.bump().is_some_and(|c| c != '\'') {},
                _ if c == close => depth -= 1,
                _ if Some(c) == open => depth += 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Skips a redirection (`>file`, `2>&1`, `<<EOF`) and its word, which is not an argument.
    fn redirection(&mut self) {
        let first = self.bump();
        let is_here = first == Some('<') && self.take('<');
        if is_here && self.take('<') {
            // `<<<`: a here-string, one word.
        } else if is_here {
            let strips = self.take('-');
            self.blanks();
            let delimiter = self.word();
            self.waiting.push((delimiter.text, strips));
            return;
        } else {
            while self.rest.next_if(|&c| matches!(c, '>' | '&' | '|')).is_some() {}
        }
        self.blanks();
        self.word();
    }

    fn blanks(&mut self) {
        while self.rest.next_if(|&c| matches!(c, ' ' | '\t')).is_some() {}
    }

    /// Reads the here-documents that begin on this line, joined.
    fn documents(&mut self) -> Option<(String, usize)> {
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
        (!text.is_empty()).then_some((text, start))
    }
}

impl ShellWord {
    fn push(&mut self, c: char) {
        if !self.computed {
            self.text.push(c);
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = ShellCommand;

    fn next(&mut self) -> Option<ShellCommand> {
        let mut command = ShellCommand::default();
        loop {
            match self.rest.peek() {
                None => return (!command.words.is_empty()).then_some(command),
                Some('\n') => {
                    self.bump();
                    command.input = self.documents();
                    if !command.words.is_empty() {
                        return Some(command);
                    }
                }
                Some(';' | '&' | '|' | '(' | ')') => {
                    self.bump();
                    // In `cat <<EOF | bash` the document belongs to the whole line.
                    if !command.words.is_empty() && self.waiting.is_empty() {
                        return Some(command);
                    }
                }
                Some('<' | '>') => self.redirection(),
                Some('#') => command.words.extend(self.comment()),
                Some(c) if c.is_whitespace() => _ = self.bump(),
                Some('\\') => {
                    // A line continuation.
                    let word = self.word();
                    if !word.text.is_empty() || word.computed {
                        command.words.push(word);
                    }
                }
                Some(_) => command.words.push(self.word()),
            }
        }
    }
}

impl Lexer<'_> {
    /// Skips a comment, unless it is a Slurm directive (`#SBATCH --export=…`), which is read as options of sbatch.
    fn comment(&mut self) -> Vec<ShellWord> {
        let line = self.line;
        let mut text = String::new();
        while let Some(c) = self.rest.next_if(|&c| c != '\n') {
            text.push(c);
        }
        let Some(options) = text.strip_prefix("#SBATCH ") else { return Vec::new() };
        let words = Lexer::new(options, line).next().map(|command| command.words).unwrap_or_default();
        std::iter::once(ShellWord { text: "sbatch".to_owned(), computed: false, line }).chain(words).collect()
    }
}
