//! Arithmetic (POSIX, "Arithmetic Expansion"; bash, "Shell Arithmetic"), with the assignments that it makes.

use super::evaluate::{Evaluator, Surroundings};
use super::expand::is_of_shell;
use super::gap::ShellGap;
use super::state::{ShellState, ShellValue};
use super::word::{Word, name_length};

/// Depth of parentheses that is read.
const DEPTH: usize = 40;

/// Signs, longer ones first.
const SIGNS: &[&str] = &[
    "<<=", ">>=", "**", "++", "--", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "+=", "-=", "*=", "/=", "%=", "&=",
    "^=", "|=", "+", "-", "*", "/", "%", "<", ">", "=", "!", "~", "&", "|", "^", "?", ":", ",", "(", ")",
];

/// Binary operators by level, the loosest first.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", "<=", ">", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Number(i64),
    Name(String),
    Sign(&'static str),
}

impl<S: Surroundings> Evaluator<'_, S> {
    /// The value of an expression before its expansions. If it is unknown, so are the variables that it may set.
    pub(super) fn arithmetic(
        &mut self,
        state: &mut ShellState,
        expression: &Word,
        line: usize,
    ) -> Result<i64, ShellGap> {
        match self.value(state, expression) {
            Ok(text) => self.compute(state, &text, line),
            Err(gap) => {
                // What an expansion leaves unknown may be an assignment.
                let names = expression.pieces.iter().filter_map(super::word::Piece::text);
                names.for_each(|text| doubt_assigned(state, text, &gap));
                Err(gap)
            }
        }
    }

    /// The value of an expression after its expansions.
    pub(super) fn compute(&mut self, state: &mut ShellState, text: &str, line: usize) -> Result<i64, ShellGap> {
        let unknown = self.gap(line, "only a shell can determine the value of an expression");
        let at = self.place(line);
        let Some(tokens) = tokens(text).filter(|tokens| state.kind.is_bash() || !tokens.iter().any(is_of_bash)) else {
            doubt_assigned(state, text, &unknown);
            return Err(unknown);
        };
        let mut assigned = Vec::new();
        let mut calculator = Calculator { state, tokens: &tokens, at: 0, depth: 0, assigned: &mut assigned, gap: None };
        let value = if tokens.is_empty() { Some(0) } else { calculator.sequence(true) };
        let value = value.filter(|_| calculator.at == tokens.len());
        let gap = calculator.gap.take().unwrap_or(unknown);
        let Some(value) = value else {
            doubt_assigned(state, text, &gap);
            return Err(gap);
        };
        for (name, value) in assigned {
            state.assign(&name, Ok(ShellValue::Text(value.to_string())), at.clone());
        }
        Ok(value)
    }
}

/// Makes the names in an expression unknown that it may assign.
fn doubt_assigned(state: &mut ShellState, text: &str, gap: &ShellGap) {
    if !text.contains(['=', '+', '-']) {
        return;
    }
    for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        if !name.is_empty() && name_length(name) == name.len() {
            state.doubt(name, gap);
        }
    }
}

/// Splits an expression; `None` if it has something that is not understood, such as a number with a base.
fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            tokens.push(Token::Number(number(rest.get(..end)?)?));
            end
        } else if name_length(rest) > 0 {
            let end = name_length(rest);
            tokens.push(Token::Name(rest.get(..end)?.to_owned()));
            end
        } else {
            let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign))?;
            tokens.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest.get(length..)?.trim_start();
    }
    Some(tokens)
}

/// True for what dash refuses.
fn is_of_bash(token: &Token) -> bool {
    matches!(token, Token::Sign("," | "++" | "--" | "**"))
}

/// A constant of C: decimal, octal with a zero, hexadecimal.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => i64::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

/// Computes an expression from left to right. `None` if it is not understood, or a value is unknown.
struct Calculator<'c> {
    state: &'c ShellState,
    tokens: &'c [Token],
    at: usize,
    depth: usize,
    /// Variables and their new values, in order.
    assigned: &'c mut Vec<(String, i64)>,
    /// Why a variable is unknown.
    gap: Option<ShellGap>,
}

impl Calculator<'_> {
    fn sign(&self) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) => Some(sign),
            _ => None,
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_it = self.sign() == Some(wanted);
        self.at += usize::from(is_it);
        is_it
    }

    /// Expressions with commas between them. `is_live` is false for a branch that is not taken.
    fn sequence(&mut self, is_live: bool) -> Option<i64> {
        let mut value = self.assignment(is_live)?;
        while self.take(",") {
            value = self.assignment(is_live)?;
        }
        Some(value)
    }

    fn assignment(&mut self, is_live: bool) -> Option<i64> {
        if let (Some(Token::Name(name)), Some(Token::Sign(sign))) =
            (self.tokens.get(self.at), self.tokens.get(self.at + 1))
            && let Some(operator) = sign.strip_suffix('=')
            && !matches!(*sign, "==" | "!=" | "<=" | ">=")
        {
            self.at += 2;
            let right = self.assignment(is_live)?;
            let value = match operator {
                "" => right,
                _ => binary(operator, self.variable(name, is_live)?, right, is_live)?,
            };
            return Some(self.assign(name, value, is_live));
        }
        self.conditional(is_live)
    }

    fn conditional(&mut self, is_live: bool) -> Option<i64> {
        let condition = self.level(0, is_live)?;
        if !self.take("?") {
            return Some(condition);
        }
        let yes = self.assignment(is_live && condition != 0)?;
        if !self.take(":") {
            return None;
        }
        let no = self.assignment(is_live && condition == 0)?;
        Some(if condition == 0 { no } else { yes })
    }

    fn level(&mut self, level: usize, is_live: bool) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else { return self.power(is_live) };
        let mut left = self.level(level + 1, is_live)?;
        while let Some(operator) = self.sign().filter(|sign| operators.contains(sign)) {
            self.at += 1;
            let decides = match operator {
                "&&" => left == 0,
                "||" => left != 0,
                _ => false,
            };
            let right = self.level(level + 1, is_live && !decides)?;
            left = binary(operator, left, right, is_live && !decides)?;
        }
        Some(left)
    }

    fn power(&mut self, is_live: bool) -> Option<i64> {
        let base = self.unary(is_live)?;
        if !self.take("**") {
            return Some(base);
        }
        let exponent = self.power(is_live)?;
        base.checked_pow(u32::try_from(exponent).ok()?)
    }

    fn unary(&mut self, is_live: bool) -> Option<i64> {
        let Some(sign) = self.sign() else { return self.primary(is_live) };
        self.depth += 1;
        if self.depth > DEPTH {
            return None;
        }
        self.at += 1;
        let value = match sign {
            "!" => self.unary(is_live).map(|value| i64::from(value == 0)),
            "~" => self.unary(is_live).map(|value| !value),
            "-" => self.unary(is_live)?.checked_neg(),
            "+" => self.unary(is_live),
            "++" | "--" => {
                let Some(Token::Name(name)) = self.tokens.get(self.at) else { return None };
                self.at += 1;
                let value = self.variable(name, is_live)?.checked_add(if sign == "++" { 1 } else { -1 })?;
                Some(self.assign(name, value, is_live))
            }
            "(" => self.sequence(is_live).filter(|_| self.take(")")),
            _ => None,
        };
        self.depth -= 1;
        value
    }

    fn primary(&mut self, is_live: bool) -> Option<i64> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token {
            Token::Number(number) => Some(*number),
            Token::Sign(_) => None,
            Token::Name(name) => {
                let value = self.variable(name, is_live)?;
                let change = match self.sign() {
                    Some("++") => 1,
                    Some("--") => -1,
                    _ => return Some(value),
                };
                self.at += 1;
                self.assign(name, value.checked_add(change)?, is_live);
                Some(value)
            }
        }
    }

    /// The value of a variable, which must be a number; an empty one counts as 0.
    fn variable(&mut self, name: &str, is_live: bool) -> Option<i64> {
        if !is_live {
            return Some(0);
        }
        if let Some((_, value)) = self.assigned.iter().rev().find(|(known, _)| known == name) {
            return Some(*value);
        }
        match self.state.variable(name) {
            Ok(None) if is_of_shell(name, self.state.kind) || self.state.options.refuses_unset => None,
            Ok(None) => Some(0),
            Ok(Some(ShellValue::Text(text))) if text.trim().is_empty() => Some(0),
            Ok(Some(ShellValue::Text(text))) => match text.trim().strip_prefix('-') {
                Some(digits) => number(digits)?.checked_neg(),
                None => number(text.trim()),
            },
            Ok(Some(ShellValue::List(_))) => None,
            Err(gap) => {
                self.gap.get_or_insert_with(|| gap.clone());
                None
            }
        }
    }

    fn assign(&mut self, name: &str, value: i64, is_live: bool) -> i64 {
        if is_live {
            self.assigned.push((name.to_owned(), value));
        }
        value
    }
}

/// The value of a binary operation. What is not computed cannot fail.
fn binary(operator: &str, left: i64, right: i64, is_live: bool) -> Option<i64> {
    let truth = |holds: bool| Some(i64::from(holds));
    match operator {
        "||" => truth(left != 0 || right != 0),
        "&&" => truth(left != 0 && right != 0),
        _ if !is_live => Some(0),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        "&" => Some(left & right),
        "==" => truth(left == right),
        "!=" => truth(left != right),
        "<" => truth(left < right),
        "<=" => truth(left <= right),
        ">" => truth(left > right),
        ">=" => truth(left >= right),
        "<<" => left.checked_shl(u32::try_from(right).ok()?),
        ">>" => left.checked_shr(u32::try_from(right).ok()?),
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        _ => None,
    }
}
