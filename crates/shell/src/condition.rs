//! Conditions: `[ … ]` and `[[ … ]]` (POSIX, "test"; bash, "Conditional Constructs").

use super::evaluate::{Evaluator, FileKind, Surroundings};
use super::gap::ShellGap;
use super::state::{Field, ShellState};
use super::syntax::TestPart;
use super::word::Word;

/// A condition that holds or not, or why that is unknown.
type Truth = Result<bool, ShellGap>;

/// Depth of conditions in conditions that is read.
const DEPTH: usize = 40;

fn and(one: Truth, two: impl FnOnce() -> Truth) -> Truth {
    match one {
        Ok(false) => Ok(false),
        Ok(true) => two(),
        // A false second part decides as well.
        Err(gap) => {
            if two() == Ok(false) {
                Ok(false)
            } else {
                Err(gap)
            }
        }
    }
}

fn not(truth: Truth) -> Truth {
    truth.map(|holds| !holds)
}

impl<S: Surroundings> Evaluator<'_, S> {
    /// The result of `[` for its words without the brackets.
    pub(super) fn test(&mut self, state: &ShellState, fields: &[Field], line: usize, depth: usize) -> Truth {
        let word = |at: usize| fields.get(at).and_then(|field| field.as_deref().ok());
        let deeper = depth + 1;
        if depth > DEPTH {
            return Err(self.gap(line, "a condition is nested too deeply"));
        }
        match fields {
            [] => Ok(false),
            [only] => known(only).map(|text| !text.is_empty()),
            [_, rest @ ..] if word(0) == Some("!") && fields.len() != 3 => not(self.test(state, rest, line, deeper)),
            [operator, operand] => self.unary(state, &known(operator)?, operand, line),
            [left, operator, right] if is_binary(word(1)) && !matches!(word(1), Some("-a" | "-o")) => {
                self.binary(state, left, &known(operator)?, right, line)
            }
            [_, rest @ ..] if word(0) == Some("!") => not(self.test(state, rest, line, deeper)),
            [_, inner @ .., _] if word(0) == Some("(") && word(fields.len() - 1) == Some(")") => {
                self.test(state, inner, line, deeper)
            }
            _ => {
                for operator in ["-o", "-a"] {
                    let Some(at) = (1..fields.len()).find(|&at| word(at) == Some(operator)) else { continue };
                    let left = fields.get(..at).unwrap_or_default();
                    let right = fields.get(at + 1..).unwrap_or_default();
                    let left = self.test(state, left, line, deeper);
                    return if operator == "-a" {
                        and(left, || self.test(state, right, line, deeper))
                    } else {
                        not(and(not(left), || not(self.test(state, right, line, deeper))))
                    };
                }
                Err(self.gap(line, "only a shell can determine whether a condition holds"))
            }
        }
    }

    fn unary(&mut self, state: &ShellState, operator: &str, operand: &Field, line: usize) -> Truth {
        match (operator, operand) {
            ("-n", Err(unknown)) if !unknown.prefix.is_empty() => return Ok(true),
            ("-z", Err(unknown)) if !unknown.prefix.is_empty() => return Ok(false),
            _ => {}
        }
        let operand = known(operand)?;
        match operator {
            "-n" => Ok(!operand.is_empty()),
            "-z" => Ok(operand.is_empty()),
            "-v" => match state.variable(&operand) {
                Ok(value) => Ok(value.is_some()),
                Err(gap) => Err(gap.clone()),
            },
            "-e" | "-a" | "-f" | "-d" | "-s" | "-x" | "-r" => {
                if operand.is_empty() {
                    return Ok(false);
                }
                let path = state.absolute(&operand)?;
                let kind = self.kind(state, &path, line)?;
                Ok(match (operator, kind) {
                    (_, None) => false,
                    ("-f", Some(kind)) => matches!(kind, FileKind::File { .. }),
                    ("-d", Some(kind)) => kind == FileKind::Directory,
                    ("-s", Some(FileKind::File { is_empty, .. })) => !is_empty,
                    ("-x", Some(FileKind::File { is_executable, .. })) => is_executable,
                    ("-e" | "-a" | "-r", Some(_)) | ("-s" | "-x", Some(FileKind::Directory | FileKind::Other)) => true,
                    _ => return Err(self.gap(line, "only a shell can determine whether a condition holds")),
                })
            }
            _ => Err(self.gap(line, "only a shell can determine whether a condition holds")),
        }
    }

    fn binary(&self, _: &ShellState, left: &Field, operator: &str, right: &Field, line: usize) -> Truth {
        let (left, right) = match (left, right) {
            (Ok(left), Ok(right)) => (left, right),
            // A known beginning that differs decides.
            (Err(unknown), Ok(whole)) | (Ok(whole), Err(unknown))
                if matches!(operator, "=" | "==" | "!=") && !whole.starts_with(&unknown.prefix) =>
            {
                return Ok(operator == "!=");
            }
            (Err(unknown), _) | (_, Err(unknown)) => return Err(unknown.gap.clone()),
        };
        if let "=" | "==" | "!=" = operator {
            return Ok((left == right) == (operator != "!="));
        }
        let number = |text: &str| text.trim().parse::<i64>();
        let (Ok(left), Ok(right)) = (number(left), number(right)) else {
            return Err(self.gap(line, "only a shell can determine whether a condition holds"));
        };
        match operator {
            "-eq" => Ok(left == right),
            "-ne" => Ok(left != right),
            "-lt" => Ok(left < right),
            "-le" => Ok(left <= right),
            "-gt" => Ok(left > right),
            "-ge" => Ok(left >= right),
            _ => Err(self.gap(line, "only a shell can determine whether a condition holds")),
        }
    }

    /// The result of `[[ … ]]`.
    pub(super) fn extended_test(&mut self, state: &mut ShellState, parts: &[TestPart], line: usize) -> Truth {
        let mut reader = TestReader { parts, at: 0, depth: 0 };
        let truth = self.alternatives(state, &mut reader, line);
        if reader.at == parts.len() {
            truth
        } else {
            Err(self.gap(line, "only a shell can determine whether a condition holds"))
        }
    }

    fn alternatives(&mut self, state: &mut ShellState, reader: &mut TestReader<'_>, line: usize) -> Truth {
        let mut truth = self.conjunction(state, reader, line);
        while reader.operator("||") {
            let next = self.conjunction(state, reader, line);
            truth = not(and(not(truth), || not(next)));
        }
        truth
    }

    fn conjunction(&mut self, state: &mut ShellState, reader: &mut TestReader<'_>, line: usize) -> Truth {
        let mut truth = self.primary(state, reader, line);
        while reader.operator("&&") {
            let next = self.primary(state, reader, line);
            truth = and(truth, || next);
        }
        truth
    }

    fn primary(&mut self, state: &mut ShellState, reader: &mut TestReader<'_>, line: usize) -> Truth {
        let unknown = |this: &Self| Err(this.gap(line, "only a shell can determine whether a condition holds"));
        reader.depth += 1;
        if reader.depth > DEPTH {
            return unknown(self);
        }
        if reader.operator("(") {
            let truth = self.alternatives(state, reader, line);
            return if reader.operator(")") { truth } else { unknown(self) };
        }
        let Some(first) = reader.word() else { return unknown(self) };
        if first.bare() == Some("!") {
            return not(self.primary(state, reader, line));
        }
        let is_unary = first.bare().is_some_and(|text| text.len() == 2 && text.starts_with('-'));
        if is_unary && reader.peek_word().is_some() && !reader.is_binary_next() {
            let operand = reader.word().cloned().unwrap_or_default();
            let operand = self.single(state, &operand);
            return self.unary(state, first.bare().unwrap_or_default(), &operand, line);
        }
        let Some(operator) = reader.binary() else {
            return self.value(state, first).map(|text| !text.is_empty());
        };
        let Some(right) = reader.word() else { return unknown(self) };
        match operator.as_str() {
            "=" | "==" | "!=" => {
                let left = self.value(state, first)?;
                let pattern = self.pattern(state, right)?;
                match self.is_matched(&pattern, &left) {
                    Some(is_match) => Ok(is_match == (operator != "!=")),
                    None => unknown(self),
                }
            }
            _ => {
                let left = self.single(state, first);
                let right = self.single(state, right);
                self.binary(state, &left, &operator, &right, line)
            }
        }
    }

    fn single(&mut self, state: &mut ShellState, word: &Word) -> Field {
        self.value(state, word).map_err(|gap| super::state::UnknownField { prefix: String::new(), gap })
    }
}

fn known(field: &Field) -> Result<String, ShellGap> {
    field.clone().map_err(|unknown| unknown.gap)
}

fn is_binary(word: Option<&str>) -> bool {
    const OPERATORS: &[&str] =
        &["=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef", "-a", "-o"];
    word.is_some_and(|word| OPERATORS.contains(&word))
}

/// Reads the parts of `[[ … ]]` in order.
struct TestReader<'a> {
    parts: &'a [TestPart],
    at: usize,
    depth: usize,
}

impl<'a> TestReader<'a> {
    fn operator(&mut self, wanted: &str) -> bool {
        let is_it = matches!(self.parts.get(self.at), Some(TestPart::Operator(operator)) if operator == wanted);
        self.at += usize::from(is_it);
        is_it
    }

    fn peek_word(&self) -> Option<&'a Word> {
        match self.parts.get(self.at) {
            Some(TestPart::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn word(&mut self) -> Option<&'a Word> {
        let word = self.peek_word()?;
        self.at += 1;
        Some(word)
    }

    fn is_binary_next(&self) -> bool {
        self.peek_word().is_some_and(|word| is_binary(word.bare()))
    }

    fn binary(&mut self) -> Option<String> {
        if self.is_binary_next() {
            return self.word()?.bare().map(str::to_owned);
        }
        match self.parts.get(self.at) {
            Some(TestPart::Operator(operator)) if matches!(operator.as_str(), "<" | ">") => {
                self.at += 1;
                Some(operator.clone())
            }
            _ => None,
        }
    }
}
