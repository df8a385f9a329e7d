//! Conditions: CEL over facts, type-checked when a rule is read. [`facts::key`] defines the facts and their
//! types; [`FUNCTIONS`] defines the functions.

mod check;
mod functions;
mod kind;
mod names;
mod places;
mod version;

use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators as op};
use cel::parser::Parser;
use cel::{Context, Env};
use regex::Regex;

use places::bytes;

pub use functions::{FUNCTIONS, Function};
pub(super) use names::{entry, fact, facts_of, operands, path, used};
pub(super) use places::Places;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(version::environment()));

/// An evaluation context with the functions and no facts.
pub(super) fn context() -> Context<'static, 'static> {
    Context::with_env(ENVIRONMENT.clone())
}

/// A checked condition: its value is true or false for all facts.
#[derive(Debug)]
pub(super) struct Condition {
    text: String,
    /// Made when it is first needed: most runs need half of the built-in rules.
    parsed: OnceLock<ParsedCondition>,
}

#[derive(Debug)]
struct ParsedCondition {
    root: IdedExpr,
    places: Places,
}

/// A mistake in a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// Byte range of the mistake in the condition.
    pub part: Range<usize>,
    /// Description of the mistake.
    pub what: String,
    /// A suggestion, if there is one.
    pub help: Option<String>,
}

impl Condition {
    /// Parses and checks a condition.
    pub(super) fn compile(source: &str) -> Result<Self, ConditionError> {
        bounded(source)?;
        let parsed = ParsedCondition::parse(source)?;
        check::check(&parsed.root, &parsed.places)?;
        Ok(Self { text: source.to_owned(), parsed: parsed.into() })
    }

    /// A condition of a built-in rule, which the tests compile.
    pub(super) const fn trusted(text: String) -> Self {
        Self { text, parsed: OnceLock::new() }
    }

    #[expect(
        clippy::expect_used,
        reason = "only a built-in condition is not parsed yet, and every test compiles those"
    )]
    fn parsed(&self) -> &ParsedCondition {
        self.parsed.get_or_init(|| ParsedCondition::parse(&self.text).expect("a valid condition"))
    }

    /// The test with which the condition begins, `has(NAME)` or `!has(NAME)`, and its values that decide the whole condition. Most
    /// conditions are decided so, and parsing them would take most of the time of a judgement.
    pub(super) fn beginning(&self) -> Option<(IdedExpr, &'static [bool])> {
        let (not, test) = self.text.strip_prefix('!').map_or((false, &*self.text), |test| (true, test));
        let (name, rest) = test.strip_prefix("has(")?.split_once(')')?;
        let decides: &[bool] = match rest.trim_start() {
            "" => &[false, true],
            // `||` binds less than `&&`, and `?` less than both.
            rest if rest.contains('?') => return None,
            rest if rest.starts_with("||") => &[true],
            rest if rest.starts_with("&&") && !rest.contains("||") => &[false],
            _ => return None,
        };
        let test = names::has(name)?;
        let negated = |test| CallExpr { func_name: op::LOGICAL_NOT.to_owned(), target: None, args: vec![test] };
        Some((if not { IdedExpr { id: 0, expr: Expr::Call(negated(test)) } } else { test }, decides))
    }

    pub(super) fn root(&self) -> &IdedExpr {
        &self.parsed().root
    }

    /// The source text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn places(&self) -> &Places {
        &self.parsed().places
    }
}

impl ParsedCondition {
    fn parse(source: &str) -> Result<Self, ConditionError> {
        // Errors of cel count lines and columns in characters; its expressions count characters from the start of the
        // text.
        let (root, info) = Parser::default().parse_with_source_info(source).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            let (line, column) = first.as_ref().map_or((1, 1), |error| error.pos);
            let at = |number: isize| usize::try_from(number).unwrap_or(0).saturating_sub(1);
            let before: usize = source.split_inclusive('\n').take(at(line)).map(str::len).sum();
            let start = before + bytes(source.get(before..).unwrap_or_default(), at(column));
            let what = first.map_or_else(String::new, |error| error.msg);
            ConditionError { part: start..start, what: format!("invalid CEL: {}", plain(&what)), help: slip(source) }
        })?;
        Ok(Self { root, places: Places::new(info) })
    }
}

/// Bounds a condition's length and depth: recursive functions walk it, and an absurd condition must not exhaust their
/// stack.
fn bounded(source: &str) -> Result<(), ConditionError> {
    const LENGTH: usize = 4000;
    const DEPTH: usize = 30;
    if source.len() > LENGTH {
        let what = format!("the condition is too long: {} bytes, at most {LENGTH} are allowed", source.len());
        return Err(ConditionError { part: 0..1, what, help: Some("split it into several rules".to_owned()) });
    }
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, character) in source.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            let what = format!("brackets are nested more than {DEPTH} deep");
            return Err(ConditionError { part: at..at + 1, what, help: None });
        }
    }
    Ok(())
}

/// Suggests the CEL for syntax of other languages.
fn slip(source: &str) -> Option<String> {
    static SLIPS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let slips = [
            (r"[^=!<>]=[^=]", "use == to compare"),
            (r"\band\b|[^&]&[^&]", "use && for 'and'"),
            (r"\bor\b|[^|]\|[^|]", "use || for 'or'"),
            (r"\bnot\b", "use ! for 'not': !(x in list)"),
            (r"[\u{201c}\u{201d}\u{2018}\u{2019}]", "use straight quotes: ' or \""),
            (r"\\[^nrt'\x22\\]", "write text with backslashes as a raw string: r'…'"),
            (r"[0-9]\.[0-9]+\.[0-9]", "write a version as version('2.6.1')"),
        ];
        slips.into_iter().filter_map(|(form, help)| Some((Regex::new(form).ok()?, help))).collect()
    });
    SLIPS.iter().find(|(form, _)| form.is_match(source)).map(|(_, help)| (*help).to_owned())
}

/// The parser's message without the list of expected tokens.
fn plain(message: &str) -> String {
    let end = message.find(" expecting").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).replace("Syntax error: ", "").replace("<EOF>", "the end")
}
