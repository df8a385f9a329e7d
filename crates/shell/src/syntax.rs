//! The grammar of a script (POSIX, "Shell Grammar").

use std::rc::Rc;

use super::lexer::Redirection;
use super::word::Word;

/// Commands in order.
pub(super) type CommandList = Vec<AndOr>;

/// Pipelines joined by `&&` and `||`.
#[derive(Clone, Debug)]
pub(super) struct AndOr {
    pub(super) first: Pipeline,
    /// Each with true for `&&`.
    pub(super) rest: Vec<(bool, Pipeline)>,
    pub(super) is_background: bool,
    /// Line where it begins.
    pub(super) line: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    pub(super) is_negated: bool,
    pub(super) commands: Vec<Redirected>,
}

/// A command and its redirections.
#[derive(Clone, Debug)]
pub(super) struct Redirected {
    pub(super) command: Construct,
    pub(super) redirections: Vec<Redirection>,
    pub(super) line: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Construct {
    Simple(Vec<Word>),
    Group(CommandList),
    Subshell(CommandList),
    If {
        arms: Vec<(CommandList, CommandList)>,
        otherwise: CommandList,
    },
    Loop {
        is_until: bool,
        condition: CommandList,
        body: CommandList,
    },
    /// Without words, the arguments.
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: CommandList,
    },
    Case {
        word: Word,
        arms: Vec<CaseArm>,
    },
    Function {
        name: String,
        body: Rc<Redirected>,
    },
    /// `[[ … ]]`.
    Test(Vec<TestPart>),
    /// `((…))`.
    Arithmetic(Word),
    /// `for ((…; …; …))`: what runs first, the condition, and what runs after each turn; each may be empty.
    Count {
        parts: [Word; 3],
        body: CommandList,
    },
}

#[derive(Clone, Debug)]
pub(super) struct CaseArm {
    pub(super) patterns: Vec<Word>,
    pub(super) body: CommandList,
    /// True if the arm ends in `;&` or `;;&`, after which others may run.
    pub(super) falls_through: bool,
}

/// A part of `[[ … ]]`.
#[derive(Clone, Debug)]
pub(super) enum TestPart {
    Word(Word),
    Operator(String),
}
