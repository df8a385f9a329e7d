//! The blocks of a program: which of them run.

use std::ops::Range;
use std::rc::Rc;

use model::ImagePath;

use super::super::source::{PythonSource, first_word};
use super::names::rows;
use super::{DEPTH, ProgramRun};

/// Most statements that are run.
const MOST: usize = 40_000;

impl ProgramRun<'_, '_> {
    /// Runs statements. Returns true if what follows may not run.
    pub(super) fn block(&mut self, source: &Rc<PythonSource>, range: Range<usize>) -> bool {
        self.depth += 1;
        let ends = self.statements(source, range);
        self.depth -= 1;
        ends
    }

    fn statements(&mut self, source: &Rc<PythonSource>, range: Range<usize>) -> bool {
        let doubtful = self.path.is_doubtful;
        let mut ends = false;
        let mut otherwise = Some(false);
        let mut at = range.start;
        while let Some(statement) = source.statements.get(at).filter(|_| at < range.end) {
            self.steps += 1;
            let is_paid = self.path.files.budget.spend_on_text(statement.text.len());
            if !is_paid || self.depth > DEPTH || self.steps > MOST {
                let file = source.file.clone().unwrap_or_else(ImagePath::root);
                self.path.leave_unread(&file);
                return true;
            }
            self.path.at = (source.file.clone(), statement.line);
            let body = at + 1..statement.end.min(range.end);
            at = body.end.max(at + 1);
            let word = first_word(&statement.text);
            let condition = statement.text.get(word.len()..).unwrap_or_default();
            match word {
                "if" | "elif" | "else" | "except" | "finally" | "while" | "match" | "case" => {
                    let before = if word == "if" { Some(true) } else { otherwise };
                    let known = match word {
                        "if" | "elif" => self.condition(condition),
                        "else" | "finally" => Some(true),
                        _ => None,
                    };
                    let runs = match (before, known) {
                        (Some(false), _) | (_, Some(false)) => Some(false),
                        (Some(true), known) => known,
                        (None, _) => None,
                    };
                    otherwise = match (before, known) {
                        (Some(false), _) | (Some(true), Some(true)) => Some(false),
                        (before, Some(false)) => before,
                        _ => None,
                    };
                    let runs = match word {
                        "except" | "while" | "match" | "case" => None,
                        "finally" => Some(true),
                        _ => runs,
                    };
                    if runs != Some(false) {
                        self.path.is_doubtful |= runs.is_none();
                        let returns = self.block(source, body.clone()) && (word != "while" || returns(source, body));
                        self.path.is_doubtful = doubtful || ends;
                        if returns && runs == Some(true) {
                            return true;
                        }
                        ends |= returns;
                    }
                }
                "try" => {
                    let is_caught = source.statements.get(at).is_some_and(|next| first_word(&next.text) == "except");
                    ends |= self.attempt(source, body, is_caught);
                    otherwise = (!self.path.is_doubtful).then_some(true);
                }
                "with" => {
                    self.path.is_doubtful |= condition.contains("suppress(");
                    ends |= self.block(source, body);
                }
                "for" => {
                    self.repeat(source, condition, body.clone());
                    ends |= returns(source, body);
                }
                "async" if condition.trim_start().starts_with("def ") => self.define(source, statement, body),
                "def" | "class" => self.define(source, statement, body),
                "return" | "break" | "continue" => {
                    self.simple(condition.trim());
                    self.path.is_doubtful = doubtful;
                    return true;
                }
                _ => self.simple(&statement.text),
            }
            self.path.is_doubtful = doubtful || ends;
        }
        self.path.is_doubtful = doubtful;
        ends
    }

    /// Runs the body of a `try`. Behind a statement that may raise what a handler catches, it is unknown what runs.
    fn attempt(&mut self, source: &Rc<PythonSource>, body: Range<usize>, is_caught: bool) -> bool {
        let mut ends = false;
        let mut at = body.start;
        while let Some(statement) = source.statements.get(at).filter(|_| at < body.end) {
            let clauses = ["elif", "else", "except", "finally"];
            let mut end = statement.end.min(body.end);
            while let Some(next) = source.statements.get(end).filter(|_| end < body.end)
                && clauses.contains(&first_word(&next.text))
            {
                end = next.end.min(body.end);
            }
            ends |= self.block(source, at..end);
            self.path.is_doubtful |= is_caught && !statement.text.starts_with("os.environ[");
            at = end.max(at + 1);
        }
        ends
    }

    /// Runs a loop: for each string of a list, or once in doubt.
    fn repeat(&mut self, source: &Rc<PythonSource>, header: &str, body: Range<usize>) {
        let Some((targets, list)) = header.split_once(" in ") else { return };
        let targets: Vec<_> = targets.split(',').map(|name| name.trim().to_owned()).collect();
        let list = self.written(list);
        let rows = self.scoped(|scope| rows(&list, targets.len(), scope));
        let doubtful = self.path.is_doubtful;
        self.path.is_doubtful |= rows.is_none();
        for row in rows.unwrap_or_else(|| vec![vec![None; targets.len()]]) {
            for (target, value) in targets.iter().zip(row) {
                self.give(target, value);
            }
            self.block(source, body.clone());
        }
        self.path.is_doubtful = doubtful;
        for target in &targets {
            self.give(target, None);
        }
    }
}

/// Returns true if a block may end the function that it is in.
fn returns(source: &PythonSource, body: Range<usize>) -> bool {
    source.statements.get(body).unwrap_or_default().iter().any(|statement| first_word(&statement.text) == "return")
}
