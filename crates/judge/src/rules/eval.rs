//! Evaluates conditions over facts that may be unknown, in Kleene's three-valued logic: an unknown fact makes the
//! result unknown only if the result depends on it.

use std::collections::BTreeMap;
use std::ops::Not;
use std::sync::Arc;

use cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, operators as op};
use cel::objects::{Key as CelKey, Map};
use cel::{Context, Value as Cel};

use facts::Facts;
use facts::key;
use model::{Fact, Gap, Value};

use super::condition::{self, Condition, facts_of, used};
use super::cost;

/// Value of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConditionTruth {
    True,
    False,
    /// The value depends on these gaps.
    Unknown(Vec<Gap>),
}

impl From<bool> for ConditionTruth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

impl Not for ConditionTruth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            unknown @ Self::Unknown(_) => unknown,
        }
    }
}

/// The facts of one image as CEL sees them: each dotted name is a field of nested maps. An absent fact is a missing
/// field, which `has()` detects.
pub(super) struct Scope<'f> {
    facts: &'f Facts,
    context: Context<'static, 'static>,
}

impl<'f> Scope<'f> {
    pub(super) fn new(facts: &'f Facts) -> Self {
        let mut root = ConditionTree::default();
        for key in key::KEYS {
            root.insert(key.name, facts.certain(key).value());
        }
        let mut context = condition::context();
        for (name, tree) in root.children {
            context.add_variable_from_value(name, tree.into_cel());
        }
        Self { facts, context }
    }

    pub(super) const fn facts(&self) -> &'f Facts {
        self.facts
    }

    pub(super) fn eval(&self, condition: &Condition) -> ConditionTruth {
        if let Some((test, decides)) = condition.beginning() {
            let truth = self.truth(&test, &self.context);
            if decides.iter().any(|&value| truth == value.into()) {
                return truth;
            }
        }
        self.truth_of(condition.root())
    }

    pub(super) fn truth_of(&self, expression: &IdedExpr) -> ConditionTruth {
        if cost::has_loop(expression) && cost::steps(expression, self.facts) > cost::STEPS {
            let why = format!("the rule's condition may take more than {} steps with these facts", cost::STEPS);
            return ConditionTruth::Unknown(vec![Gap::new(why).settled_by("write it with fewer loops in loops")]);
        }
        self.truth(expression, &self.context)
    }

    fn truth(&self, expression: &IdedExpr, context: &Context<'_, '_>) -> ConditionTruth {
        match &expression.expr {
            Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
                (op::LOGICAL_AND, [left, right]) => {
                    return both(self.truth(left, context), &ConditionTruth::False, || self.truth(right, context));
                }
                (op::LOGICAL_OR, [left, right]) => {
                    return both(self.truth(left, context), &ConditionTruth::True, || self.truth(right, context));
                }
                (op::LOGICAL_NOT, [operand]) => return !self.truth(operand, context),
                (op::CONDITIONAL, [condition, yes, no]) => {
                    return match self.truth(condition, context) {
                        ConditionTruth::True => self.truth(yes, context),
                        ConditionTruth::False => self.truth(no, context),
                        unknown @ ConditionTruth::Unknown(_) => unknown,
                    };
                }
                _ => {}
            },
            // An absent fact has no entries.
            Expr::Select(select) if select.test && self.is_absent(&select.operand) => return ConditionTruth::False,
            Expr::Comprehension(each) if !self.gaps(&each.loop_step).is_empty() => {
                if let Some(truth) = self.each(each, context) {
                    return truth;
                }
            }
            _ => {}
        }
        self.leaf(expression, context)
    }

    /// Evaluates `exists` or `all` whose predicate uses an unknown fact: one element may decide without it. Returns
    /// `None` for other loops, and for an unknown list.
    fn each(&self, each: &ComprehensionExpr, context: &Context<'_, '_>) -> Option<ConditionTruth> {
        let Expr::Call(step) = &each.loop_step.expr else { return None };
        let decides = match step.func_name.as_str() {
            op::LOGICAL_AND => ConditionTruth::False,
            op::LOGICAL_OR => ConditionTruth::True,
            _ => return None,
        };
        let question = step.args.get(1)?;
        if !self.gaps(&each.iter_range).is_empty() {
            return None;
        }
        let elements = match context.resolve(&each.iter_range).ok()? {
            Cel::List(elements) => elements.iter().cloned().collect(),
            Cel::Map(map) => map.map.keys().map(|key| Cel::from(key.clone())).collect::<Vec<_>>(),
            _ => return None,
        };
        let neutral = !decides.clone();
        Some(elements.into_iter().fold(neutral, |truth, element| {
            both(truth, &decides, || {
                let mut inner = context.new_inner_scope();
                inner.add_variable_from_value(each.iter_var.as_str(), element);
                self.truth(question, &inner)
            })
        }))
    }

    fn is_absent(&self, expression: &IdedExpr) -> bool {
        matches!(*facts_of(expression), [key] if matches!(self.facts.view(key), Fact::Absent))
    }

    /// The gaps of the unknown facts that an expression uses, each once.
    fn gaps(&self, expression: &IdedExpr) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = Vec::new();
        for (key, entry) in used(expression) {
            if let Some(gap) = self.facts.gap(key, entry)
                && !gaps.contains(gap)
            {
                gaps.push(gap.clone());
            }
        }
        gaps
    }

    fn leaf(&self, expression: &IdedExpr, context: &Context<'_, '_>) -> ConditionTruth {
        let gaps = self.gaps(expression);
        if !gaps.is_empty() {
            return ConditionTruth::Unknown(gaps);
        }
        let error = match context.resolve(expression) {
            Ok(Cel::Bool(value)) => return value.into(),
            Ok(other) => format!("its value is of type {:?}, not true or false", other.type_of()),
            Err(error) => error.to_string(),
        };
        let absent = facts_of(expression).into_iter().find(|key| matches!(self.facts.view(key), Fact::Absent));
        ConditionTruth::Unknown(vec![match absent {
            Some(key) => Gap::new(format!("the rule uses the value of {}, which is absent", key.name))
                .settled_by(format!("test has({}) first in the rule's condition", key.name)),
            None => Gap::new(format!("the rule's condition cannot be evaluated: {error}"))
                .settled_by("fix the rule, or the value that it uses"),
        }])
    }
}

/// Evaluates `&&` or `||`: the value `decides` on either side decides alone; otherwise the gaps of both sides add up.
fn both(first: ConditionTruth, decides: &ConditionTruth, second: impl FnOnce() -> ConditionTruth) -> ConditionTruth {
    if first == *decides {
        return first;
    }
    match (first, second()) {
        (_, second) if second == *decides => second,
        (ConditionTruth::Unknown(mut gaps), ConditionTruth::Unknown(more)) => {
            gaps.extend(more.into_iter().filter(|gap| !gaps.contains(gap)).collect::<Vec<_>>());
            ConditionTruth::Unknown(gaps)
        }
        (unknown @ ConditionTruth::Unknown(_), _) | (_, unknown) => unknown,
    }
}

/// Facts as a tree, by the parts of their dotted names.
#[derive(Default)]
struct ConditionTree {
    value: Option<Cel>,
    children: BTreeMap<String, ConditionTree>,
}

impl ConditionTree {
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
