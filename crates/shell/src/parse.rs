//! Parses a script command by command, as a shell does: what follows `exec` need not be shell.

mod compound;

use std::iter::Peekable;

use super::kind::ShellKind;
use super::lexer::{Lexer, Redirection, ShellToken};
use super::syntax::{AndOr, CommandList, Construct, Pipeline, Redirected};
use super::word::{Word, name_length};

/// Depth of commands in commands that is parsed.
const DEPTH: usize = 60;

/// A part of a script, or the line where it is not a command.
type Parsed<T> = Result<T, usize>;

/// The commands of a script.
pub(super) struct Parser {
    tokens: Peekable<Numbered>,
    kind: ShellKind,
    /// Line of the end.
    end: usize,
    depth: usize,
}

/// Tokens with the lines where they end.
struct Numbered(Lexer);

impl Iterator for Numbered {
    type Item = (ShellToken, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let Self(lexer) = self;
        let token = lexer.find(|token| !matches!(token, ShellToken::Comment(_) | ShellToken::Document(..)))?;
        let line = if let ShellToken::Word(word) = &token { word.line } else { lexer.line };
        Some((token, line))
    }
}

impl Parser {
    pub(super) fn new(text: &str, line: usize, kind: ShellKind) -> Self {
        let end = line + text.matches('\n').count();
        Self { tokens: Numbered(Lexer::new(text, line, kind)).peekable(), kind, end, depth: 0 }
    }

    /// True if a shell of this kind reads a text, which begins at `line`, beyond another line.
    pub(super) fn reads(text: &str, line: usize, kind: ShellKind, beyond: usize) -> bool {
        let mut parser = Self::new(text, line, kind);
        let failed = std::iter::from_fn(|| parser.command()).find_map(Result::err);
        failed.is_none_or(|line| line > beyond)
    }

    /// The next complete command; `None` at the end.
    pub(super) fn command(&mut self) -> Option<Parsed<AndOr>> {
        self.newlines();
        self.tokens.peek()?;
        Some(self.and_or())
    }

    fn line(&mut self) -> usize {
        self.tokens.peek().map_or(self.end, |(_, line)| *line)
    }

    fn fail<T>(&mut self) -> Parsed<T> {
        Err(self.line())
    }

    fn operator(&mut self) -> Option<&'static str> {
        match self.tokens.peek() {
            Some((ShellToken::Operator(operator), _)) => Some(operator),
            _ => None,
        }
    }

    fn take_operator(&mut self, wanted: &str) -> bool {
        let is_it = self.operator() == Some(wanted);
        if is_it {
            self.tokens.next();
        }
        is_it
    }

    /// The reserved word that comes next, or a word that may be one.
    fn bare(&mut self) -> Option<&str> {
        match self.tokens.peek() {
            Some((ShellToken::Word(word), _)) => word.bare(),
            _ => None,
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_it = self.bare() == Some(wanted);
        if is_it {
            self.tokens.next();
        }
        is_it
    }

    fn expect(&mut self, wanted: &str) -> Parsed<()> {
        if self.take(wanted) { Ok(()) } else { self.fail() }
    }

    fn word(&mut self) -> Parsed<Word> {
        match self.tokens.next_if(|(token, _)| matches!(token, ShellToken::Word(_))) {
            Some((ShellToken::Word(word), _)) => Ok(word),
            _ => self.fail(),
        }
    }

    fn newlines(&mut self) {
        while self.tokens.next_if(|(token, _)| *token == ShellToken::Newline).is_some() {}
    }

    /// Reads commands up to one of these reserved words or an operator that cannot begin a command.
    fn list(&mut self, ends: &[&str]) -> Parsed<CommandList> {
        self.depth += 1;
        if self.depth > DEPTH {
            return self.fail();
        }
        let mut list = Vec::new();
        loop {
            self.newlines();
            let is_end = self.bare().is_some_and(|word| ends.contains(&word));
            if is_end || self.tokens.peek().is_none() || matches!(self.operator(), Some(")" | ";;" | ";&" | ";;&")) {
                self.depth -= 1;
                return Ok(list);
            }
            list.push(self.and_or()?);
        }
    }

    fn and_or(&mut self) -> Parsed<AndOr> {
        let line = self.line();
        let mut and_or = AndOr { first: self.pipeline()?, rest: Vec::new(), is_background: false, line };
        loop {
            match self.operator() {
                Some(operator @ ("&&" | "||")) => {
                    self.tokens.next();
                    self.newlines();
                    and_or.rest.push((operator == "&&", self.pipeline()?));
                }
                Some(end @ (";" | "&")) => {
                    self.tokens.next();
                    and_or.is_background = end == "&";
                    return Ok(and_or);
                }
                Some(")" | ";;" | ";&" | ";;&") => return Ok(and_or),
                Some(_) => return self.fail(),
                None => {
                    return match self.tokens.peek() {
                        // A word is `then`, `do` or `}` behind a compound command.
                        None | Some((ShellToken::Newline | ShellToken::Word(_), _)) => Ok(and_or),
                        Some(_) => self.fail(),
                    };
                }
            }
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let mut pipeline = Pipeline { is_negated: false, commands: Vec::new() };
        while (self.kind.is_bash() && self.take("time")) || self.bare() == Some("!") {
            if self.take("!") {
                pipeline.is_negated = !pipeline.is_negated;
            } else {
                self.take("-p");
            }
        }
        loop {
            pipeline.commands.push(self.redirected()?);
            if !self.take_operator("|") {
                return Ok(pipeline);
            }
            // `|&` is `2>&1 |`.
            if self.kind.is_bash() {
                self.take_operator("&");
            }
            self.newlines();
        }
    }

    fn redirected(&mut self) -> Parsed<Redirected> {
        let line = self.line();
        let mut redirections = Vec::new();
        let command = match self.compound()? {
            Some(command) => {
                while let Some(redirection) = self.redirection() {
                    redirections.push(redirection);
                }
                command
            }
            None => self.simple(&mut redirections)?,
        };
        Ok(Redirected { command, redirections, line })
    }

    fn redirection(&mut self) -> Option<Redirection> {
        match self.tokens.next_if(|(token, _)| matches!(token, ShellToken::Redirection(_))) {
            Some((ShellToken::Redirection(redirection), _)) => Some(redirection),
            _ => None,
        }
    }

    fn simple(&mut self, redirections: &mut Vec<Redirection>) -> Parsed<Construct> {
        let mut words: Vec<Word> = Vec::new();
        loop {
            if let Some(redirection) = self.redirection() {
                redirections.push(redirection);
            } else if matches!(self.tokens.peek(), Some((ShellToken::Word(_), _))) {
                words.push(self.word()?);
            } else {
                break;
            }
        }
        if words.is_empty() && redirections.is_empty() {
            return self.fail();
        }
        if let ([name], Some("(")) = (words.as_slice(), self.operator())
            && let Some(name) = name.bare().map(str::to_owned)
        {
            // dash names a function as a variable.
            if self.kind == ShellKind::Dash && name_length(&name) != name.len() {
                return self.fail();
            }
            self.tokens.next();
            return self.function(name);
        }
        if self.operator() == Some("(") {
            return self.fail();
        }
        Ok(Construct::Simple(words))
    }
}
