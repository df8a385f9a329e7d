//! Shell scripts, taken apart as far as their assignments go (POSIX, "Shell Command Language"). Nothing is expanded: a word
//! that has a `$` or a backquote in it is computed, and only what stands before that is known.

use std::iter::Peekable;
use std::str::Chars;

use super::Assignment;

/// Scripts inside scripts: `bash -c '…'` and the like.
pub(super) const NESTING: usize = 6;

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// Its characters, quotes taken away, up to the first that is computed.
    pub(super) text: String,
    /// Whether more follows that only a shell can tell.
    pub(super) computed: bool,
    /// Line where it begins, from 1.
    pub(super) line: usize,
}

impl ShellWord {
    /// The word, if all of it is known.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.computed).then_some(&self.text)
    }

    /// `NAME=VALUE`, and whether the value is known.
    pub(super) fn assignment(&self) -> Option<Assignment> {
        let (name, value) = self.text.split_once('=')?;
        let value = (!self.computed).then(|| value.to_owned());
        super::lines::is_name(name).then(|| Assignment { name: name.to_owned(), value, line: Some(self.line) })
    }
}

/// One simple command, and the text that is fed to it.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<ShellWord>,
    /// Here-document: its text, and the line where it begins.
    pub(super) input: Option<(String, usize)>,
}

/// Takes a script apart.
pub(super) struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    /// Delimiters of the here-documents that begin behind this line, and whether leading tabs are taken away (`<<-`).
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

    /// One word; the first character is no blank and no operator.
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

    /// What follows a `$` or a backquote: passed over, since only a shell can tell what it comes to.
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

    /// `>file`, `2>&1`, `<<EOF`: the word behind it is no argument.
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

    /// The here-documents that begin on this line, joined.
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
                    // In `cat <<EOF | bash` the document belongs to all that stands on the line.
                    if !command.words.is_empty() && self.waiting.is_empty() {
                        return Some(command);
                    }
                }
                Some('<' | '>') => self.redirection(),
                Some('#') => command.words.extend(self.comment()),
                Some(c) if c.is_whitespace() => _ = self.bump(),
                Some('\\') => {
                    // A line that goes on.
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
    /// A comment is nothing, unless it is a directive of Slurm's: `#SBATCH --export=…`.
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
