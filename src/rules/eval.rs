//! Conditions over facts that may be unknown: three-valued logic (Kleene's), so that what is not known counts exactly
//! where the answer depends on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::common::ast::{Expr, IdedExpr};
use cel::objects::{Key as CelKey, Map};
use cel::{Context, ExecutionError, Value as Cel};

use crate::facts::Facts;
use crate::facts::key;
use crate::model::{Fact, Gap, Value, Version};

use super::expression::{Expression, facts_of};

/// What a condition comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    /// It depends on these gaps.
    Unknown(Vec<Gap>),
}

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// The facts of one image, as CEL sees them: each dotted name a field of nested maps. An absent fact is a field that is
/// not there, which `has()` tells.
pub(super) struct Scope<'f> {
    facts: &'f Facts,
    context: Context<'static, 'static>,
}

impl<'f> Scope<'f> {
    pub(super) fn new(facts: &'f Facts) -> Self {
        let mut root = Tree::default();
        for key in key::KEYS {
            root.insert(key.name, facts.get(key.name).value());
        }
        let mut context = Context::default();
        // Whether the first version is older than the second. A name that is taken twice would be a defect of ours.
        let _ = context.add_function("older", older);
        for (name, tree) in root.children {
            context.add_variable_from_value(name, tree.into_cel());
        }
        Self { facts, context }
    }

    pub(super) const fn facts(&self) -> &'f Facts {
        self.facts
    }

    pub(super) fn eval(&self, expression: &Expression) -> Truth {
        self.truth(expression.root())
    }

    fn truth(&self, expression: &IdedExpr) -> Truth {
        if let Expr::Call(call) = &expression.expr {
            match (call.func_name.as_str(), call.args.as_slice()) {
                ("_&&_", [left, right]) => return self.both(left, right, &Truth::False),
                ("_||_", [left, right]) => return self.both(left, right, &Truth::True),
                ("!_", [operand]) => {
                    return match self.truth(operand) {
                        Truth::True => Truth::False,
                        Truth::False => Truth::True,
                        unknown @ Truth::Unknown(_) => unknown,
                    };
                }
                ("_?_:_", [condition, yes, no]) => {
                    return match self.truth(condition) {
                        Truth::True => self.truth(yes),
                        Truth::False => self.truth(no),
                        unknown @ Truth::Unknown(_) => unknown,
                    };
                }
                _ => {}
            }
        }
        self.leaf(expression)
    }

    /// `&&` and `||`: one side may decide alone; else what is unknown on either side counts.
    fn both(&self, left: &IdedExpr, right: &IdedExpr, decides: &Truth) -> Truth {
        let first = self.truth(left);
        if first == *decides {
            return first;
        }
        match (first, self.truth(right)) {
            (_, second) if second == *decides => second,
            (Truth::Unknown(mut gaps), Truth::Unknown(more)) => {
                gaps.extend(more.into_iter().filter(|gap| !gaps.contains(gap)).collect::<Vec<_>>());
                Truth::Unknown(gaps)
            }
            (unknown @ Truth::Unknown(_), _) | (_, unknown) => unknown,
        }
    }

    fn leaf(&self, expression: &IdedExpr) -> Truth {
        let mut gaps: Vec<Gap> = Vec::new();
        for key in facts_of(expression).unwrap_or_default() {
            if let Fact::Unknown(gap) = self.facts.get(key.name)
                && !gaps.contains(gap)
            {
                gaps.push(gap.clone());
            }
        }
        if !gaps.is_empty() {
            return Truth::Unknown(gaps);
        }
        match self.context.resolve(expression) {
            Ok(Cel::Bool(value)) => value.into(),
            Ok(other) => defect(&format!("it comes to {:?}, which is neither true nor false", other.type_of())),
            Err(error) => defect(&error.to_string()),
        }
    }
}

/// Compares versions, which CEL knows as text.
#[expect(clippy::needless_pass_by_value, reason = "CEL hands them over so")]
fn older(one: Arc<String>, other: Arc<String>) -> Result<bool, ExecutionError> {
    let version = |text: &String| {
        Version::parse(text).ok_or_else(|| ExecutionError::function_error("older", format!("'{text}' is no version")))
    };
    Ok(version(&one)? < version(&other)?)
}

/// A condition that cannot be evaluated says nothing of the image.
fn defect(why: &str) -> Truth {
    Truth::Unknown(vec![
        Gap::new(format!("the rule's condition cannot be evaluated: {why}")).settled_by("this is a defect of the rule"),
    ])
}

/// Facts by the parts of their names.
#[derive(Default)]
struct Tree {
    value: Option<Cel>,
    children: BTreeMap<String, Tree>,
}

impl Tree {
    fn insert(&mut self, name: &str, value: Option<&Value>) {
        let mut parts: Vec<&str> = name.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let parent = parts.into_iter().fold(self, |tree, part| tree.children.entry(part.to_owned()).or_default());
        if let Some(value) = value {
            parent.children.insert(last.to_owned(), Self { value: Some(cel(value)), children: BTreeMap::new() });
        }
    }

    fn into_cel(self) -> Cel {
        self.value.unwrap_or_else(|| map(self.children.into_iter().map(|(name, tree)| (name, tree.into_cel()))))
    }
}

fn cel(value: &Value) -> Cel {
    match value {
        Value::Bool(value) => Cel::Bool(*value),
        Value::Int(value) => Cel::Int(*value),
        Value::Text(value) => Cel::String(value.clone().into()),
        Value::Version(value) => Cel::String(value.to_string().into()),
        Value::List(values) => Cel::List(values.iter().map(cel).collect::<Vec<_>>().into()),
        Value::Map(values) => map(values.iter().map(|(name, value)| (name.clone(), cel(value)))),
    }
}

fn map(entries: impl Iterator<Item = (String, Cel)>) -> Cel {
    let entries: Vec<(CelKey, Cel)> = entries.map(|(name, value)| (CelKey::from(name), value)).collect();
    Cel::Map(Map { map: Arc::new(entries.into_iter().collect()) })
}
