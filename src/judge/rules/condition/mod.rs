//! Conditions: CEL over facts, checked when a rule is read. Which facts there are and of which type is the contract of
//! [`crate::facts::key`]; what can be asked of them is [`FUNCTIONS`].

mod check;
mod functions;
mod kind;
mod names;
mod places;
mod version;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::parser::Parser;
use cel::{Context, Env};
use regex::Regex;

use places::bytes;

pub use functions::{FUNCTIONS, Function};
pub(super) use names::{fact, facts_of, operands, path};
pub(super) use places::Places;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(version::environment()));

/// Where conditions are evaluated: it has the functions, and no facts yet.
pub(super) fn context() -> Context<'static, 'static> {
    Context::with_env(ENVIRONMENT.clone())
}

/// A condition that comes to true or false for all facts.
#[derive(Debug)]
pub(super) struct Condition {
    root: IdedExpr,
    places: Places,
}

/// What is wrong in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// Where: bytes of the condition.
    pub part: Range<usize>,
    /// What.
    pub what: String,
    /// What to write instead, where that is near.
    pub help: Option<String>,
}

impl Condition {
    /// Reads and checks a condition.
    pub(super) fn compile(source: &str) -> Result<Self, ConditionError> {
        bounded(source)?;
        // cel's errors count columns, by characters of a line; its expressions count characters from the beginning.
        let (root, info) = Parser::default().parse_with_source_info(source).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            let (line, column) = first.as_ref().map_or((1, 1), |error| error.pos);
            let at = |number: isize| usize::try_from(number).unwrap_or(0).saturating_sub(1);
            let before: usize = source.split_inclusive('\n').take(at(line)).map(str::len).sum();
            let start = before + bytes(source.get(before..).unwrap_or_default(), at(column));
            let what = first.map_or_else(String::new, |error| error.msg);
            ConditionError { part: start..start, what: format!("this is no CEL: {}", plain(&what)), help: slip(source) }
        })?;
        let places = Places::new(info);
        check::check(&root, &places)?;
        Ok(Self { root, places })
    }

    pub(super) const fn root(&self) -> &IdedExpr {
        &self.root
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        self.places.all()
    }

    pub(super) const fn places(&self) -> &Places {
        &self.places
    }
}

/// Conditions are walked by functions that call themselves: what no person writes must not exhaust their stack.
fn bounded(source: &str) -> Result<(), ConditionError> {
    const LENGTH: usize = 4000;
    const DEPTH: usize = 30;
    if source.len() > LENGTH {
        let what = format!("the condition has {} bytes, and {LENGTH} are the most that are read", source.len());
        return Err(ConditionError { part: 0..1, what, help: Some("make several rules of it".to_owned()) });
    }
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in source.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            let what = format!("more than {DEPTH} brackets are open here");
            return Err(ConditionError { part: at..at + 1, what, help: None });
        }
    }
    Ok(())
}

/// What somebody may have meant who knows other languages.
fn slip(source: &str) -> Option<String> {
    static SLIPS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let slips = [
            (r"[^=!<>]=[^=]", "== compares"),
            (r"\band\b|[^&]&[^&]", "&& joins two conditions"),
            (r"\bor\b|[^|]\|[^|]", "|| is true where one of two is"),
            (r"\bnot\b", "! turns a condition into its opposite: !(x in list)"),
            (r"[\u{201c}\u{201d}\u{2018}\u{2019}]", "quotes are ' or \""),
            (r"\\[^nrt'\x22\\]", "a text with backslashes is written r'…', which leaves them as they are"),
            (r"[0-9]\.[0-9]+\.[0-9]", "a version is written version('2.6.1')"),
        ];
        slips.into_iter().filter_map(|(form, help)| Some((Regex::new(form).ok()?, help))).collect()
    });
    SLIPS.iter().find(|(form, _)| form.is_match(source)).map(|(_, help)| (*help).to_owned())
}

/// The parser's message without the names of its tokens.
fn plain(message: &str) -> String {
    let end = message.find(" expecting").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).replace("Syntax error: ", "").replace("<EOF>", "the end")
}
