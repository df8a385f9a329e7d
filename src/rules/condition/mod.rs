//! Conditions: CEL over facts, checked when a rule is read. Which facts there are and of which type is the contract of
//! [`crate::facts::key`]; what can be asked of them is [`FUNCTIONS`].

mod check;
mod functions;
mod kind;
mod names;
mod version;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use cel::common::ast::IdedExpr;
use cel::parser::Parser;
use cel::{Context, Env};

pub use functions::{FUNCTIONS, Function};
pub(super) use names::facts_of;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(version::environment()));

/// Where conditions are evaluated: it has the functions, and no facts yet.
pub(super) fn context() -> Context<'static, 'static> {
    Context::with_env(ENVIRONMENT.clone())
}

/// A condition that comes to true or false for all facts.
#[derive(Debug)]
pub(super) struct Condition {
    root: IdedExpr,
}

/// What is wrong in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Where: bytes of the condition.
    pub(super) part: Range<usize>,
    pub(super) what: String,
    pub(super) help: Option<String>,
}

impl Condition {
    /// Reads and checks a condition.
    pub(super) fn compile(source: &str) -> Result<Self, Wrong> {
        // cel's errors count columns, by characters of a line; its expressions count characters from the beginning.
        let (root, info) = Parser::default().parse_with_source_info(source).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            let (line, column) = first.as_ref().map_or((1, 1), |error| error.pos);
            let at = |number: isize| usize::try_from(number).unwrap_or(0).saturating_sub(1);
            let before: usize = source.split_inclusive('\n').take(at(line)).map(str::len).sum();
            let start = before + bytes(source.get(before..).unwrap_or_default(), at(column));
            let what = first.map_or_else(String::new, |error| error.msg);
            Wrong { part: start..start, what: format!("this is no CEL: {}", plain(&what)), help: None }
        })?;
        check::check(&root, source, &info)?;
        Ok(Self { root })
    }

    pub(super) const fn root(&self) -> &IdedExpr {
        &self.root
    }
}

/// How many bytes the first characters of a text have.
fn bytes(text: &str, characters: usize) -> usize {
    text.chars().take(characters).map(char::len_utf8).sum()
}

/// The parser's message without the names of its tokens.
fn plain(message: &str) -> String {
    let end = message.find(" expecting").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).replace("Syntax error: ", "").replace("<EOF>", "the end")
}
