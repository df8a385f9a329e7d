//! The imports that run whenever a file does: not those in functions, in branches whose condition is unknown, or in a
//! `try` that goes on without them.

use super::PythonLines;
use super::condition::{Known, Names};

/// What the import of a module raises that is not installed.
const ABSENCE: &str = "ModuleNotFoundError";

/// Exceptions that no import of a library raises because the library cannot be mapped.
const OTHERS: &str = "ModuleNotFoundError AttributeError IndexError KeyError NameError TypeError ValueError";

/// When a block runs: the variable that must not be set, empty if there is none; `None` if that is unknown.
type Reach = Option<String>;

/// What installs modules, finds or replaces them in other ways, or ends the program: what is imported after it need not be there.
const DOUBTS: &[&str] = &[
    "exit(",
    "exec(",
    "os.exec",
    "subprocess",
    "os.system",
    "sys.modules",
    "meta_path",
    "path_hooks",
    "install_import_hook",
];

/// Modules whose import does so.
const DOUBTFUL_MODULES: &[&str] = &["rootutils", "autoroot", "pyximport"];

/// Reads the statements of a file.
#[derive(Default)]
pub(super) struct Statements {
    found: Vec<String>,
    names: Names,
    blocks: Vec<Block>,
    /// True once code came behind which an import may find other modules.
    is_doubtful: bool,
}

/// A block of statements below a header.
struct Block {
    indent: usize,
    reach: Reach,
    /// When the `else` of the header's `if` runs.
    otherwise: Reach,
    /// The `try` that the block belongs to.
    attempt: Option<Attempt>,
    /// For a handler: true if it catches what a library raises that cannot be mapped.
    catches: bool,
    /// For a handler: true if it catches what a module raises that is not installed.
    catches_absence: bool,
    /// True if the last statement, directly in the block, raises an exception.
    raises: bool,
    /// The indentation of its statements.
    inner: Option<usize>,
}

/// The imports in the body of a `try`.
#[derive(Clone, Copy)]
struct Attempt {
    start: usize,
    end: Option<usize>,
    /// True if a handler goes on without them.
    is_optional: bool,
    /// True if a handler goes on where a module is not installed.
    may_be_absent: bool,
}

impl Statements {
    /// The certain imports: `CONDITION?MODULE NAMES`, with `@LINE` behind those without which the program ends.
    pub(super) fn read(text: &[u8]) -> Vec<String> {
        let mut statements = Self::default();
        let mut lines = PythonLines::new(text);
        while let Some((indent, line)) = lines.next_line() {
            let line = line.to_owned();
            statements.line(indent, &line, lines.number());
        }
        while let Some(block) = statements.blocks.pop() {
            statements.close(&block);
        }
        statements.found
    }

    fn line(&mut self, indent: usize, line: &str, number: usize) {
        let word = line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let is_clause = matches!(word, "elif" | "else" | "except" | "finally");
        let mut continued = None;
        while let Some(block) = self.blocks.pop_if(|block| indent <= block.indent) {
            if block.indent == indent && is_clause {
                continued = Some(block);
                break;
            }
            self.close(&block);
        }
        if let Some(block) = self.blocks.last_mut() {
            let inner = *block.inner.get_or_insert(indent);
            if inner == indent {
                block.raises = word == "raise";
            }
        }
        let reach = self.blocks.last().map_or_else(|| Some(String::new()), |block| block.reach.clone());
        self.is_doubtful |= is_doubtful(word, line) || (word == "raise" && reach.as_deref() == Some(""));
        let header = line.strip_suffix(':').map(|header| (header, "")).or_else(|| compound(word, line));
        if let Some((header, body)) = header {
            let block = self.header(indent, word, header, reach, continued);
            self.blocks.push(block);
            if !body.is_empty() {
                self.line(indent + 1, body, number);
            }
            return;
        }
        match word {
            "import" | "from" => {
                if let Some(condition) = reach {
                    self.import(&condition, line, number);
                }
            }
            _ => {
                self.assign(line, reach.as_deref() == Some(""));
                if let (Some(condition), Some(library)) = (reach, opened(line)) {
                    self.found.push(marked(&condition, &format!("={library}")));
                }
            }
        }
    }

    /// The block below a header.
    fn header(&mut self, indent: usize, word: &str, header: &str, parent: Reach, continued: Option<Block>) -> Block {
        let mut block = Block {
            indent,
            reach: None,
            otherwise: None,
            attempt: None,
            catches: false,
            catches_absence: false,
            raises: false,
            inner: None,
        };
        let condition = header.get(word.len()..).unwrap_or_default();
        match (word, continued) {
            ("if", _) => (block.reach, block.otherwise) = self.branches(condition, parent),
            ("elif", Some(before)) => (block.reach, block.otherwise) = self.branches(condition, before.otherwise),
            ("try", _) => {
                block.reach = parent;
                block.attempt =
                    Some(Attempt { start: self.found.len(), end: None, is_optional: false, may_be_absent: false });
            }
            ("with", _) => {
                block.reach = parent.filter(|_| !["suppress", "raises"].iter().any(|name| header.contains(name)));
                // A context manager may catch what an import raises.
                let is_plain = !header.contains('(') || header.contains("catch_warnings(");
                let start = self.found.len();
                block.attempt =
                    (!is_plain).then_some(Attempt { start, end: None, is_optional: false, may_be_absent: true });
            }
            ("except", Some(before)) => {
                block.attempt = self.after(&before);
                block.catches = catches(condition, is_other);
                block.catches_absence = catches(condition, |name| is_other(name) && name != ABSENCE);
            }
            // The body of a `try` that fails has no `else`.
            ("else", Some(before)) if before.attempt.is_some() => block.attempt = self.after(&before),
            ("else", Some(before)) => block.reach = before.otherwise,
            ("finally", Some(before)) => {
                block.attempt = self.after(&before);
                block.reach = parent;
            }
            _ => {}
        }
        block
    }

    /// When the two branches of a condition run.
    fn branches(&self, condition: &str, parent: Reach) -> (Reach, Reach) {
        let Some(known) = Known::of(condition, &self.names) else { return (None, None) };
        let both = parent.and_then(|parent| match (parent.is_empty(), known.unless.is_empty()) {
            (_, true) => Some(parent),
            (true, false) => Some(known.unless.clone()),
            (false, false) => (parent == known.unless).then_some(parent),
        });
        if known.is_true() { (both, None) } else { (None, both) }
    }

    /// The `try` that goes on behind one of its blocks.
    fn after(&self, block: &Block) -> Option<Attempt> {
        let attempt = block.attempt?;
        let end = Some(attempt.end.unwrap_or(self.found.len()));
        let is_optional = attempt.is_optional || (block.catches && !block.raises);
        let may_be_absent = attempt.may_be_absent || (block.catches_absence && !block.raises);
        Some(Attempt { end, is_optional, may_be_absent, ..attempt })
    }

    /// Removes the imports that a `try` goes on without.
    fn close(&mut self, block: &Block) {
        let Some(Attempt { start, end: Some(end), is_optional, may_be_absent }) = self.after(block) else { return };
        if is_optional {
            self.found.drain(start..end);
        } else if may_be_absent {
            for statement in self.found.get_mut(start..end).unwrap_or_default() {
                statement.truncate(statement.find('@').unwrap_or(statement.len()));
            }
        }
    }

    fn import(&mut self, condition: &str, line: &str, number: usize) {
        let place = if self.is_doubtful { String::new() } else { format!("@{number}") };
        for statement in line.split(';').map(str::trim) {
            let modules: Vec<String> = if let Some(rest) = statement.strip_prefix("from ") {
                let Some((module, names)) = rest.split_once(" import") else { continue };
                let names = names.trim().trim_start_matches('(').trim_end_matches(')').split(',');
                let names: Vec<_> = names.filter_map(|name| name.split_whitespace().next()).collect();
                vec![format!("{} {}", module.trim(), names.join(" "))]
            } else if let Some(rest) = statement.strip_prefix("import ") {
                rest.split(',').filter_map(|module| module.split_whitespace().next()).map(ToOwned::to_owned).collect()
            } else {
                continue;
            };
            let is_name = |text: &String| text.chars().all(|c| c.is_alphanumeric() || "._* ".contains(c));
            self.found.extend(
                modules.iter().filter(|module| is_name(module)).map(|module| marked(condition, module) + &place),
            );
        }
    }

    /// Notes the value of a name, for conditions.
    fn assign(&mut self, line: &str, is_certain: bool) {
        let Some((name, value)) = line.split_once('=') else { return };
        let name = name.split(':').next().unwrap_or_default().trim();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return;
        }
        match Known::of(value, &self.names).filter(|_| is_certain) {
            Some(known) => _ = self.names.insert(name.to_owned(), known),
            None => _ = self.names.remove(name),
        }
    }
}

/// Returns true for a line behind which an import may find other modules.
fn is_doubtful(word: &str, line: &str) -> bool {
    let runs_pip = || {
        let mut words = line.split(|c: char| !c.is_alphanumeric());
        words.any(|word| {
            word.strip_prefix("pip")
                .is_some_and(|rest| rest == "main" || rest.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    DOUBTFUL_MODULES.iter().any(|name| line.contains(name))
        || (!matches!(word, "import" | "from") && (DOUBTS.iter().any(|part| line.contains(part)) || runs_pip()))
}

/// The header and the body of a compound statement in one line: `except ImportError: x = None`.
fn compound<'l>(word: &str, line: &'l str) -> Option<(&'l str, &'l str)> {
    const WORDS: &str = "if elif else try except finally with for while def class async";
    super::super::is_among(word, WORDS).then_some(())?;
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    let end = line.find(|c| {
        match quote {
            _ if std::mem::take(&mut is_escaped) => {}
            Some(open) => {
                is_escaped = c == '\\';
                quote = Some(open).filter(|open| c != *open);
            }
            None => match c {
                '"' | '\'' => quote = Some(c),
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                ':' => return depth == 0,
                _ => {}
            },
        }
        false
    })?;
    let (header, body) = line.split_at_checked(end)?;
    Some((header, body.get(1..)?.trim()))
}

/// A statement with the variable that must not be set for it.
fn marked(condition: &str, statement: &str) -> String {
    if condition.is_empty() { statement.to_owned() } else { format!("{condition}?{statement}") }
}

/// The library that a line opens by a literal name: `ctypes.CDLL("libcudart.so")`.
fn opened(line: &str) -> Option<&str> {
    let (_, argument) = line.split_once("CDLL(").or_else(|| line.split_once("LoadLibrary("))?;
    let quote = argument.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let name = argument.get(1..)?.split(quote).next()?;
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c));
    (is_plain && name.starts_with("lib") && name.contains(".so")).then_some(name)
}

/// True if `except NAMES as NAME` catches other exceptions than those that are selected.
fn catches(exceptions: &str, is_selected: impl Fn(&str) -> bool) -> bool {
    let names = exceptions.split(" as ").next().unwrap_or_default().split(['(', ')', ',', ' ']);
    let mut names = names.filter(|name| !name.is_empty()).peekable();
    names.peek().is_none() || names.any(|name| !is_selected(name))
}

fn is_other(exception: &str) -> bool {
    super::super::is_among(exception, OTHERS)
}
