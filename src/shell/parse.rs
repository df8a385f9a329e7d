//! Parses a script command by command, as a shell does: what follows `exec` need not be shell.

use std::iter::Peekable;
use std::rc::Rc;

use super::lexer::{Lexer, Redirection, ShellToken};
use super::syntax::{AndOr, CaseArm, CommandList, Construct, Pipeline, Redirected, TestPart};
use super::word::{Word, name_length};

/// Depth of commands in commands that is parsed.
const DEPTH: usize = 60;

/// What is no command, by its line.
#[derive(Debug)]
pub(super) struct NoCommand {
    pub(super) line: usize,
}

type Parsed<T> = Result<T, NoCommand>;

/// The commands of a script.
pub(super) struct Parser {
    tokens: Peekable<Numbered>,
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
    pub(super) fn new(text: &str, line: usize) -> Self {
        Self { tokens: Numbered(Lexer::new(text, line)).peekable(), depth: 0 }
    }

    /// The next complete command; `None` at the end.
    pub(super) fn command(&mut self) -> Option<Parsed<AndOr>> {
        self.newlines();
        self.tokens.peek()?;
        Some(self.and_or())
    }

    fn line(&mut self) -> usize {
        self.tokens.peek().map_or(0, |(_, line)| *line)
    }

    fn fail<T>(&mut self) -> Parsed<T> {
        Err(NoCommand { line: self.line() })
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
        while self.take("time") || self.bare() == Some("!") {
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
            self.take_operator("&");
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
            self.tokens.next();
            return self.function(name);
        }
        if self.operator() == Some("(") {
            return self.fail();
        }
        Ok(Construct::Simple(words))
    }

    /// Reads a function after its name and its opening parenthesis.
    fn function(&mut self, name: String) -> Parsed<Construct> {
        if !self.take_operator(")") {
            return self.fail();
        }
        self.newlines();
        let body = Rc::new(self.redirected()?);
        Ok(Construct::Function { name, body })
    }

    /// Reads a compound command, if one comes next.
    fn compound(&mut self) -> Parsed<Option<Construct>> {
        if let Some((ShellToken::Arithmetic(text), _)) =
            self.tokens.next_if(|(token, _)| matches!(token, ShellToken::Arithmetic(_)))
        {
            return Ok(Some(Construct::Arithmetic(text)));
        }
        if self.take_operator("(") {
            let list = self.list(&[])?;
            return if self.take_operator(")") { Ok(Some(Construct::Subshell(list))) } else { self.fail() };
        }
        let Some(word) = self.bare().map(str::to_owned) else { return Ok(None) };
        let command = match word.as_str() {
            "{" => {
                self.tokens.next();
                let list = self.list(&["}"])?;
                self.expect("}")?;
                Construct::Group(list)
            }
            "if" => self.conditional()?,
            "while" | "until" => {
                self.tokens.next();
                let condition = self.list(&["do"])?;
                Construct::Loop { is_until: word == "until", condition, body: self.body()? }
            }
            "for" => self.for_loop()?,
            "case" => self.case()?,
            "[[" => self.test()?,
            "function" => {
                self.tokens.next();
                let name = self.word()?.plain().unwrap_or_default();
                if self.take_operator("(") {
                    self.function(name)?
                } else {
                    self.newlines();
                    Construct::Function { name, body: Rc::new(self.redirected()?) }
                }
            }
            "then" | "do" | "else" | "elif" | "fi" | "done" | "esac" | "}" | "in" | "select" | "coproc" => {
                return self.fail();
            }
            _ => return Ok(None),
        };
        Ok(Some(command))
    }

    fn conditional(&mut self) -> Parsed<Construct> {
        let (mut arms, mut otherwise) = (Vec::new(), Vec::new());
        while self.take("if") && arms.is_empty() || self.take("elif") {
            let condition = self.list(&["then"])?;
            self.expect("then")?;
            arms.push((condition, self.list(&["elif", "else", "fi"])?));
        }
        if self.take("else") {
            otherwise = self.list(&["fi"])?;
        }
        self.expect("fi")?;
        Ok(Construct::If { arms, otherwise })
    }

    fn body(&mut self) -> Parsed<CommandList> {
        self.expect("do")?;
        let body = self.list(&["done"])?;
        self.expect("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Parsed<Construct> {
        self.tokens.next();
        let name = self.word()?.plain().filter(|name| name_length(name) == name.len() && !name.is_empty());
        // `for ((…))` is not parsed.
        let Some(name) = name else { return self.fail() };
        self.newlines();
        let mut words = None;
        if self.take("in") {
            let mut list = Vec::new();
            while matches!(self.tokens.peek(), Some((ShellToken::Word(_), _))) {
                list.push(self.word()?);
            }
            words = Some(list);
        }
        self.take_operator(";");
        self.newlines();
        Ok(Construct::For { name, words, body: self.body()? })
    }

    fn case(&mut self) -> Parsed<Construct> {
        self.tokens.next();
        let word = self.word()?;
        self.newlines();
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.take("esac") {
                return Ok(Construct::Case { word, arms });
            }
            self.take_operator("(");
            let mut patterns = vec![self.word()?];
            while self.take_operator("|") {
                patterns.push(self.word()?);
            }
            if !self.take_operator(")") {
                return self.fail();
            }
            let body = self.list(&["esac"])?;
            let falls_through = matches!(self.operator(), Some(";&" | ";;&"));
            if falls_through || self.operator() == Some(";;") {
                self.tokens.next();
            }
            arms.push(CaseArm { patterns, body, falls_through });
        }
    }

    fn test(&mut self) -> Parsed<Construct> {
        self.tokens.next();
        let mut parts = Vec::new();
        loop {
            if self.take("]]") {
                return Ok(Construct::Test(parts));
            }
            match self.tokens.next() {
                Some((ShellToken::Word(word), _)) => parts.push(TestPart::Word(word)),
                Some((ShellToken::Operator(operator), _)) => parts.push(TestPart::Operator(operator.to_owned())),
                Some((ShellToken::Redirection(Redirection { operator, target, .. }), _)) => {
                    parts.push(TestPart::Operator(operator));
                    parts.push(TestPart::Word(target));
                }
                Some((ShellToken::Newline, _)) => {}
                Some((ShellToken::Comment(_) | ShellToken::Document(..) | ShellToken::Arithmetic(_), _)) | None => {
                    return self.fail();
                }
            }
        }
    }
}
