//! Compound commands (POSIX, "Compound Commands"; bash, "Conditional Constructs").

use std::rc::Rc;

use super::super::lexer::{Lexer, Redirection, ShellToken};
use super::super::syntax::{CaseArm, CommandList, Construct, TestPart};
use super::super::word::{Word, name_length};
use super::{Parsed, Parser};

impl Parser {
    /// Reads a function after its name and its opening parenthesis.
    pub(super) fn function(&mut self, name: String) -> Parsed<Construct> {
        if !self.take_operator(")") {
            return self.fail();
        }
        self.newlines();
        let body = Rc::new(self.redirected()?);
        Ok(Construct::Function { name, body })
    }

    /// Reads a compound command, if one comes next.
    pub(super) fn compound(&mut self) -> Parsed<Option<Construct>> {
        if let Some((text, line)) = self.arithmetic() {
            return Ok(Some(Construct::Arithmetic(Lexer::quoted(&text, line))));
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
            "[[" if self.kind.is_like_bash() => self.test()?,
            "function" if self.kind.is_like_bash() => {
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
        let mut arms = Vec::new();
        let mut otherwise = Vec::new();
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
        if let Some((text, line)) = self.arithmetic() {
            return self.count(&text, line);
        }
        let name = self.word()?.plain().filter(|name| name_length(name) == name.len() && !name.is_empty());
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

    /// Reads `((…))`, if it comes next.
    fn arithmetic(&mut self) -> Option<(String, usize)> {
        match self.tokens.next_if(|(token, _)| matches!(token, ShellToken::Arithmetic(..))) {
            Some((ShellToken::Arithmetic(text, line), _)) => Some((text, line)),
            _ => None,
        }
    }

    /// Reads the body of `for ((…; …; …))`.
    fn count(&mut self, text: &str, line: usize) -> Parsed<Construct> {
        let parts: Vec<Word> = text.split(';').map(|part| Lexer::quoted(part, line)).collect();
        let Ok(parts) = <[Word; 3]>::try_from(parts) else { return self.fail() };
        self.take_operator(";");
        self.newlines();
        Ok(Construct::Count { parts, body: self.body()? })
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
                Some((ShellToken::Comment(_) | ShellToken::Document(..) | ShellToken::Arithmetic(..), _)) | None => {
                    return self.fail();
                }
            }
        }
    }
}
