//! Options of programs that start another program, in the words of a command.

use model::is_among;
use shell::{Field, ShellGap};

/// The words of a command that are still to be read.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    rest: &'a [Field],
}

/// The options of a program, separated by blanks: which of them take the next word as their value.
pub(super) enum OptionTable {
    /// These, with their dashes.
    Valued(&'static str),
    /// All but these.
    Flags(&'static str),
}

impl OptionTable {
    fn has_value(&self, option: &str) -> bool {
        match self {
            Self::Valued(names) => is_among(option, names),
            Self::Flags(names) => !is_among(option, names),
        }
    }

    /// True if the value is written behind a letter: `-n4`.
    fn has_attached_value(&self, option: &str) -> bool {
        match (self, option.get(..2)) {
            (Self::Valued(names), Some(short)) => {
                !option.starts_with("--") && option.len() > 2 && is_among(short, names)
            }
            _ => false,
        }
    }
}

/// An option and its value.
pub(super) struct GivenOption<'a> {
    pub(super) name: &'a str,
    pub(super) value: Option<Field>,
}

impl<'a> Words<'a> {
    pub(super) const fn new(rest: &'a [Field]) -> Self {
        Self { rest }
    }

    pub(super) const fn rest(&self) -> &'a [Field] {
        self.rest
    }

    /// The next word; an error if it is unknown.
    pub(super) fn next(&mut self) -> Option<Result<&'a str, ShellGap>> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first.as_deref().map_err(|unknown| unknown.gap.clone()))
    }

    /// The next word if it is known, which is not taken.
    pub(super) fn peek(&self) -> Option<&'a str> {
        self.rest.first()?.as_deref().ok()
    }

    /// The next option, up to the first word that is none; `--` is taken.
    pub(super) fn option(&mut self, table: &OptionTable) -> Result<Option<GivenOption<'a>>, ShellGap> {
        let Some((first, rest)) = self.rest.split_first() else { return Ok(None) };
        let text = match first {
            Ok(text) => text.as_str(),
            // `--nproc_per_node=$N`: an option whose value is unknown.
            Err(unknown) => match unknown.prefix.split_once('=') {
                Some((name, _)) if name.starts_with('-') => {
                    self.rest = rest;
                    return Ok(Some(GivenOption { name: "", value: Some(first.clone()) }));
                }
                _ => return Err(unknown.gap.clone()),
            },
        };
        if !text.starts_with('-') || text == "-" {
            return Ok(None);
        }
        self.rest = rest;
        if text == "--" {
            return Ok(None);
        }
        if let Some((name, value)) = text.split_once('=') {
            return Ok(Some(GivenOption { name, value: Some(Ok(value.to_owned())) }));
        }
        if !table.has_value(text) && table.has_attached_value(text) {
            let (name, value) = text.split_at(2);
            return Ok(Some(GivenOption { name, value: Some(Ok(value.to_owned())) }));
        }
        let value = if table.has_value(text) {
            let (value, rest) =
                self.rest.split_first().map_or((None, self.rest), |(value, rest)| (Some(value.clone()), rest));
            self.rest = rest;
            value
        } else {
            None
        };
        Ok(Some(GivenOption { name: text, value }))
    }

    /// Skips all options.
    pub(super) fn skip_options(&mut self, table: &OptionTable) -> Result<(), ShellGap> {
        while self.option(table)?.is_some() {}
        Ok(())
    }
}

/// A known value.
pub(super) fn known(value: Option<Field>) -> Result<Option<String>, ShellGap> {
    value.transpose().map_err(|unknown| unknown.gap)
}
