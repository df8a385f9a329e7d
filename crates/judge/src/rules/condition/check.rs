//! Checks the names, types and functions of a condition. A condition that passes is true or false whenever all its
//! facts are present.

use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue};
use regex::Regex;

use facts::key::{ENV_EFFECTIVE, IMAGE_ENV, KEYS};
use facts::{is_judged, is_shown};
use model::{Version, suggestion};

use super::ConditionError;
use super::functions::{FUNCTIONS, Function};
use super::kind::ValueKind;
use super::names::{entry, fact, operands, path};
use super::places::Places;

/// Checks that an expression is a valid condition.
pub(super) fn check(root: &IdedExpr, places: &Places) -> Result<(), ConditionError> {
    let mut checker = Checker { places, bound: Vec::new() };
    match checker.kind(root)? {
        ValueKind::Bool => Ok(()),
        kind => Err(checker.mistake(root, format!("its value is {kind}, but a condition must be true or false"))),
    }
}

struct Checker<'s> {
    places: &'s Places,
    /// Variables of the comprehensions (`exists`, `all` …) around the current expression.
    bound: Vec<(String, ValueKind)>,
}

impl Checker<'_> {
    fn kind(&mut self, expression: &IdedExpr) -> Result<ValueKind, ConditionError> {
        match &expression.expr {
            Expr::Literal(literal) => Ok(match literal {
                LiteralValue::Boolean(_) => ValueKind::Bool,
                LiteralValue::Int(_) | LiteralValue::UInt(_) => ValueKind::Int,
                LiteralValue::Double(_) => ValueKind::Double,
                LiteralValue::String(_) => ValueKind::Text,
                _ => {
                    return Err(
                        self.mistake(expression, "no fact has this value; use has() to test for an absent fact")
                    );
                }
            }),
            Expr::Ident(_) => self.name(expression),
            Expr::Select(_) if path(expression).0.is_some() => self.name(expression),
            Expr::Select(select) => {
                let kind = entry_of(&self.kind(&select.operand)?, &select.field)
                    .map_err(|(what, help)| ConditionError { help, ..self.mistake(expression, what) })?;
                Ok(if select.test { ValueKind::Bool } else { kind })
            }
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                let mut of = ValueKind::Any;
                for element in &list.elements {
                    let kind = self.kind(element)?;
                    if !of.meets(&kind) {
                        return Err(self
                            .mistake(element, format!("this element is {kind}, but the elements before it are {of}")));
                    }
                    of = of.or(kind);
                }
                Ok(ValueKind::List(Box::new(of)))
            }
            Expr::Map(map) => {
                let mut of = ValueKind::Any;
                for (key, value) in map.entries.iter().filter_map(entry) {
                    self.kind(key)?;
                    of = of.or(self.kind(value)?);
                }
                Ok(ValueKind::Map(Box::new(of)))
            }
            Expr::Comprehension(each) => self.each(each),
            Expr::Struct(_) | Expr::Unspecified => {
                Err(self.mistake(expression, "structures are not allowed in a condition"))
            }
        }
    }

    /// The type of `a.b.c`: a fact, or a part of the value of a fact or a variable.
    fn name(&mut self, expression: &IdedExpr) -> Result<ValueKind, ConditionError> {
        let (root, parts) = path(expression);
        let root = root.unwrap_or_default();
        let variable = self.bound.iter().rev().find(|(name, _)| name == root).map(|(_, kind)| kind.clone());
        let (mut kind, own) = match variable {
            Some(kind) => (kind, 0),
            None => match fact(root, &parts) {
                Some((key, own)) => {
                    match parts.get(own) {
                        Some(name) if *key == *IMAGE_ENV => self.shown(expression, name)?,
                        Some(name) if *key == *ENV_EFFECTIVE => self.effective(expression, name)?,
                        _ => {}
                    }
                    (ValueKind::of(key), own)
                }
                None => return Err(self.no_fact(expression, root, &parts)),
            },
        };
        let rest = parts.get(own..).unwrap_or_default();
        for (index, part) in rest.iter().enumerate() {
            kind = entry_of(&kind, part).map_err(|(what, help)| {
                let whole = [&[root], parts.get(..own + index + 1).unwrap_or_default()].concat().join(".");
                ConditionError { help, ..self.unknown_name(expression, &whole, what) }
            })?;
        }
        let is_test = matches!(&expression.expr, Expr::Select(select) if select.test);
        Ok(if is_test { ValueKind::Bool } else { kind })
    }

    /// Refuses environment variables whose values are never kept: a condition would take them for unset.
    fn shown(&self, expression: &IdedExpr, name: &str) -> Result<(), ConditionError> {
        if is_shown(name) {
            return Ok(());
        }
        let what = format!(
            "{} does not contain {name}: values of variables that do not concern this check are not read",
            IMAGE_ENV.name
        );
        let help = Some(format!("test whether it is set: '{name}' in image.other_env"));
        Err(ConditionError { help, ..self.mistake(expression, what) })
    }

    /// Refuses variables that the effective settings never hold: a condition would take them for unset.
    fn effective(&self, expression: &IdedExpr, name: &str) -> Result<(), ConditionError> {
        if is_judged(name) {
            return Ok(());
        }
        let what =
            format!("{} holds the variables of NCCL, PyTorch and the process only, not {name}", ENV_EFFECTIVE.name);
        Err(ConditionError { help: Some(format!("use image.env.{name}")), ..self.mistake(expression, what) })
    }

    /// Like [`Self::shown`], for a quoted name. A computed name cannot be checked before evaluation, so it is refused.
    fn variable(&self, name: &IdedExpr) -> Result<(), ConditionError> {
        match &name.expr {
            Expr::Literal(LiteralValue::String(text)) => self.shown(name, text.inner()),
            _ => Err(self.mistake(name, format!("{} needs the name of a variable in quotes", IMAGE_ENV.name))),
        }
    }

    fn no_fact(&self, expression: &IdedExpr, root: &str, parts: &[&str]) -> ConditionError {
        let whole = [&[root], parts].concat().join(".");
        let near = (1..=parts.len()).rev().find_map(|length| {
            let name = [&[root], parts.get(..length)?].concat().join(".");
            suggestion(&name, KEYS.iter().map(|key| key.name))
        });
        let area: Vec<_> =
            KEYS.iter().map(|key| key.name).filter(|name| name.starts_with(&format!("{whole}."))).collect();
        let help = near.or_else(|| (!area.is_empty()).then(|| format!("facts of '{whole}': {}", area.join(", "))));
        let all = || Some("`ncclcheck rules schema facts` lists all facts".to_owned());
        ConditionError {
            help: help.or_else(all),
            ..self.unknown_name(expression, &whole, format!("there is no fact '{whole}'"))
        }
    }

    fn call(&mut self, expression: &IdedExpr, call: &CallExpr) -> Result<ValueKind, ConditionError> {
        if call.func_name.starts_with(char::is_alphabetic) && Function::find(&call.func_name).is_none() {
            let known: Vec<_> = FUNCTIONS.iter().map(|function| function.name).collect();
            let what = match FUNCTIONS.iter().find(|function| function.name == call.func_name) {
                Some(function) => format!("write {} as in {}", function.name, function.form),
                None => format!("there is no function '{}'; available: {}", call.func_name, known.join(", ")),
            };
            let known: Vec<_> = known.into_iter().filter(|name| *name != call.func_name).collect();
            let help = suggestion(&call.func_name, known.into_iter());
            return Err(ConditionError { help, ..self.mistake(expression, what) });
        }
        let arguments: Vec<_> = operands(call).collect();
        let kinds = arguments.iter().map(|part| self.kind(part)).collect::<Result<Vec<_>, _>>()?;
        match (call.func_name.as_str(), arguments.as_slice(), kinds.as_slice()) {
            (op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT | op::NOT_STRICTLY_FALSE, ..) => {
                match arguments.iter().zip(&kinds).find(|(_, kind)| !matches!(kind, ValueKind::Bool)) {
                    Some((part, kind)) => Err(self.mistake(part, format!("this is {kind}, not true or false"))),
                    None => Ok(ValueKind::Bool),
                }
            }
            (op::CONDITIONAL, [condition, ..], [ValueKind::Bool, yes, no]) => {
                if yes.meets(no) {
                    Ok(yes.clone().or(no.clone()))
                } else {
                    Err(self.mistake(condition, format!("the two results have different types: {yes} and {no}")))
                }
            }
            (op::EQUALS | op::NOT_EQUALS, [left, right], [one, other]) => {
                self.comparable(expression, (left, one), (right, other))
            }
            (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right], [one, other]) => {
                self.ordered((left, one), (right, other))
            }
            (op::IN, [_, right], [one, ValueKind::List(of)]) => {
                if one.meets(of) {
                    Ok(ValueKind::Bool)
                } else {
                    Err(self.mistake(right, format!("the list contains {of}, never {one}")))
                }
            }
            (op::IN, [name, map], _) if is_environment(map) => self.variable(name).map(|()| ValueKind::Bool),
            (op::INDEX, [map, name], _) if is_environment(map) => self.variable(name).map(|()| ValueKind::Text),
            (op::IN, _, [one, ValueKind::Map(_) | ValueKind::Record(_)]) if one.is_text() => Ok(ValueKind::Bool),
            (op::IN, [_, right], [_, kind]) => {
                let help = kind.is_text().then(|| "use text.contains(part)".to_owned());
                Err(ConditionError {
                    help,
                    ..self.mistake(right, format!("`in` needs a list or a map, but this is {kind}"))
                })
            }
            (op::INDEX, _, [ValueKind::List(of), ValueKind::Int]) => Ok((**of).clone()),
            (op::INDEX, _, [ValueKind::Map(of), key]) if key.is_text() => Ok((**of).clone()),
            (op::INDEX, [of, key], [record @ ValueKind::Record(_), kind]) if kind.is_text() => match &key.expr {
                Expr::Literal(LiteralValue::String(name)) => entry_of(record, name.inner())
                    .map_err(|(what, help)| ConditionError { help, ..self.mistake(key, what) }),
                _ => Err(self.mistake(of, "a record needs the name of a field in quotes")),
            },
            (op::ADD, _, [ValueKind::List(one), ValueKind::List(other)]) if one.meets(other) => {
                Ok(ValueKind::List(Box::new((**one).clone().or((**other).clone()))))
            }
            (op::ADD, _, [one, other]) if one.is_text() && other.is_text() => Ok(ValueKind::Text),
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, _, [one, other])
                if one == other && one.is_number() =>
            {
                Ok(one.clone())
            }
            (op::NEGATE, _, [one]) if one.is_number() => Ok(one.clone()),
            (name, ..) => self.function(expression, name, &arguments, &kinds),
        }
    }

    fn comparable(
        &self,
        expression: &IdedExpr,
        (left, one): (&IdedExpr, &ValueKind),
        (right, other): (&IdedExpr, &ValueKind),
    ) -> Result<ValueKind, ConditionError> {
        if one.meets(other) {
            return Ok(ValueKind::Bool);
        }
        let what = format!("{one} is never equal to {other}");
        Err(ConditionError { help: self.as_version((left, one), (right, other)), ..self.mistake(expression, what) })
    }

    /// The type of `<`, `<=`, `>` or `>=`, which compare numbers, or results of `version()`.
    fn ordered(
        &self,
        left: (&IdedExpr, &ValueKind),
        right: (&IdedExpr, &ValueKind),
    ) -> Result<ValueKind, ConditionError> {
        let one = left.1;
        let other = right.1;
        if one.is_number() && other.is_number() || (one, other) == (&ValueKind::Version, &ValueKind::Version) {
            return Ok(ValueKind::Bool);
        }
        let help = self.as_version(left, right);
        let odd = if one.is_number() || *one == ValueKind::Version { right } else { left };
        let what = if one.is_text() && other.is_text() {
            "text compares by character: '2.10' is less than '2.9'".to_owned()
        } else {
            format!("cannot order {one} and {other}")
        };
        Err(ConditionError { help, ..self.mistake(odd.0, what) })
    }

    /// Suggests how to compare two values as versions, if one of them is a version.
    fn as_version(&self, left: (&IdedExpr, &ValueKind), right: (&IdedExpr, &ValueKind)) -> Option<String> {
        let is_version = |kind: &ValueKind| matches!(kind, ValueKind::Version | ValueKind::VersionText);
        if !is_version(left.1) && !is_version(right.1) {
            return None;
        }
        let written = |(part, kind): (&IdedExpr, &ValueKind)| {
            let text = match &part.expr {
                Expr::Ident(_) | Expr::Select(_) => {
                    let (root, parts) = path(part);
                    [&[root?], &*parts].concat().join(".")
                }
                _ => self.places.text(part).to_owned(),
            };
            match kind {
                ValueKind::Version => None,
                ValueKind::Text | ValueKind::VersionText => Some(format!("version({text})")),
                _ => Some(format!("version('{text}')")),
            }
        };
        let words: Vec<_> = [written(left), written(right)].into_iter().flatten().collect();
        Some(format!("write {}", words.join(" and ")))
    }

    fn function(
        &self,
        expression: &IdedExpr,
        name: &str,
        arguments: &[&IdedExpr],
        kinds: &[ValueKind],
    ) -> Result<ValueKind, ConditionError> {
        let Some(function) = Function::find(name) else {
            let what = match kinds {
                [one, other] => format!("this operator is not defined for {one} and {other}"),
                _ => "this operator is not defined here".to_owned(),
            };
            return Err(self.mistake(expression, what));
        };
        if let Expr::Call(call) = &expression.expr
            && !function.is_written_so(call.target.is_some())
        {
            return Err(self.mistake(expression, format!("write {name} as in {}", function.form)));
        }
        let kind = function.apply(kinds).map_err(|(index, what)| {
            self.mistake(index.and_then(|index| arguments.get(index).copied()).unwrap_or(expression), what)
        })?;
        let literal = |index: usize| match &arguments.get(index)?.expr {
            Expr::Literal(LiteralValue::String(text)) => Some((*arguments.get(index)?, text.inner().to_owned())),
            _ => None,
        };
        match (name, literal(0), literal(1)) {
            ("version" | "major", Some((part, text)), _) if Version::parse(&text).is_none() => {
                Err(self.mistake(part, format!("'{text}' is not a version: it does not start with a number")))
            }
            ("matches", _, Some((part, text))) => match Regex::new(&text) {
                Ok(_) => Ok(kind),
                Err(error) => {
                    let why = error.to_string();
                    let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                    Err(self.mistake(part, format!("invalid regular expression: {why}")))
                }
            },
            _ => Ok(kind),
        }
    }

    /// The type of a macro such as `exists`, `all` or `filter`, which the parser has expanded into a loop.
    fn each(&mut self, each: &ComprehensionExpr) -> Result<ValueKind, ConditionError> {
        let element = match self.kind(&each.iter_range)? {
            ValueKind::List(of) => *of,
            ValueKind::Map(_) | ValueKind::Record(_) => ValueKind::Text,
            ValueKind::Any => ValueKind::Any,
            kind => return Err(self.mistake(&each.iter_range, format!("this is {kind}, not a list or a map"))),
        };
        let start = self.kind(&each.accu_init)?;
        let depth = self.bound.len();
        self.bound.extend([(each.iter_var.clone(), element), (each.accu_var.clone(), start.clone())]);
        let step = self.kind(&each.loop_step);
        self.bound.truncate(depth);
        self.bound.push((each.accu_var.clone(), start.or(step?)));
        let result = self.kind(&each.result);
        self.bound.truncate(depth);
        result
    }

    fn mistake(&self, expression: &IdedExpr, what: impl Into<String>) -> ConditionError {
        ConditionError { part: self.places.part(expression), what: what.into(), help: None }
    }

    /// A mistake in a dotted name; `whole` is the part of the name to mark.
    fn unknown_name(&self, expression: &IdedExpr, whole: &str, what: String) -> ConditionError {
        let mut at = expression;
        while let Expr::Select(select) = &at.expr {
            at = &select.operand;
        }
        let start = self.places.part(at).start;
        ConditionError { part: start..start + whole.len(), what, help: None }
    }
}

/// The type of `value.name`.
fn entry_of(kind: &ValueKind, name: &str) -> Result<ValueKind, (String, Option<String>)> {
    match kind {
        ValueKind::Map(of) => Ok((**of).clone()),
        ValueKind::Any => Ok(ValueKind::Any),
        ValueKind::Record(key) => {
            let fields = key.kind.fields();
            if fields.contains(&name) {
                return Ok(ValueKind::Text);
            }
            let what = format!("records of {} have no field '{name}'; available: {}", key.name, fields.join(", "));
            Err((what, suggestion(name, fields.iter().copied())))
        }
        kind => Err((format!("{kind} has no field '{name}'"), None)),
    }
}

/// Returns true if an expression is the fact that holds the environment variables.
fn is_environment(expression: &IdedExpr) -> bool {
    let (root, parts) = path(expression);
    root.and_then(|root| fact(root, &parts)).is_some_and(|(key, own)| *key == *IMAGE_ENV && own == parts.len())
}
