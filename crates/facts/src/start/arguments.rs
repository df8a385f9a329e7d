//! Options of programs that start another program, in the words of a command.

use shell::{Field, ShellGap};

use super::runner::SETTLE;
use super::wrapper::Wrapper;

/// The words of a command that are still to be read.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    rest: &'a [Field],
    /// Letters of options that are written together and still to be read.
    letters: String,
    /// Whose words they are, for messages.
    program: String,
}

/// An option and its value.
pub(super) struct GivenOption {
    /// The name as the table has it.
    pub(super) name: String,
    pub(super) value: Option<Field>,
}

impl<'a> Words<'a> {
    pub(super) const fn new(rest: &'a [Field]) -> Self {
        Self { rest, letters: String::new(), program: String::new() }
    }

    /// The words behind the name of a program that is called at a place.
    pub(super) fn of(program: String, rest: &'a [Field]) -> Self {
        Self { program, ..Self::new(rest) }
    }

    pub(super) const fn rest(&self) -> &'a [Field] {
        self.rest
    }

    /// The next word; an error if it is unknown.
    pub(super) fn next(&mut self) -> Option<Result<&'a str, ShellGap>> {
        let first = self.take()?;
        Some(first.as_deref().map_err(|unknown| unknown.gap.clone()))
    }

    /// The next word if it is known, which is not taken.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.rest.first()?.as_deref().ok()
    }

    fn take(&mut self) -> Option<&'a Field> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next option, up to the first other word; `--` is taken. An option that the table lacks is an error, since its
    /// value may be the next word.
    pub(super) fn option(&mut self, table: &Wrapper) -> Result<Option<GivenOption>, ShellGap> {
        let text = if self.letters.is_empty() {
            match self.rest.first() {
                Some(Ok(text)) if text.starts_with('-') && text != "-" => {
                    self.take();
                    text.clone()
                }
                Some(Ok(_)) | None => return Ok(None),
                Some(Err(unknown)) => {
                    // `--nproc_per_node=$N`: a known option whose value is unknown.
                    let Some((name, _)) = unknown.prefix.split_once('=').filter(|(name, _)| name.starts_with('-'))
                    else {
                        return Err(unknown.gap.clone());
                    };
                    let (name, _) = table.option(name).ok_or_else(|| self.unknown(&unknown.prefix))?;
                    return Ok(Some(GivenOption { name, value: self.take().cloned() }));
                }
            }
        } else {
            format!("-{}", std::mem::take(&mut self.letters))
        };
        if text == "--" {
            return Ok(None);
        }
        if let Some((name, has_value)) = table.option(&text) {
            return Ok(Some(GivenOption { name, value: if has_value { self.take().cloned() } else { None } }));
        }
        if let Some((name, value)) = text.split_once('=')
            && let Some((name, _)) = table.option(name)
        {
            return Ok(Some(GivenOption { name, value: Some(Ok(value.to_owned())) }));
        }
        let (letter, attached) = text.split_at_checked(2).unwrap_or((&text, ""));
        match table.option(letter).filter(|_| table.reads_letters()) {
            Some((name, true)) => Ok(Some(GivenOption { name, value: Some(Ok(attached.to_owned())) })),
            Some((name, false)) => {
                attached.clone_into(&mut self.letters);
                Ok(Some(GivenOption { name, value: None }))
            }
            None => Err(self.unknown(&text)),
        }
    }

    fn unknown(&self, option: &str) -> ShellGap {
        ShellGap::new(format!("{}the option {option} is not known", self.program)).settled_by(SETTLE)
    }
}

/// A known value.
pub(super) fn known(value: Option<Field>) -> Result<Option<String>, ShellGap> {
    value.transpose().map_err(|unknown| unknown.gap)
}

/// The name and the value of a word NAME=VALUE; `None` for another word.
pub(super) fn assignment(word: &Field) -> Option<(&str, Result<String, ShellGap>)> {
    match word {
        Ok(text) => text.split_once('=').map(|(name, value)| (name, Ok(value.to_owned()))),
        Err(unknown) => unknown.prefix.split_once('=').map(|(name, _)| (name, Err(unknown.gap.clone()))),
    }
}
