//! What a condition costs at most: loops in loops multiply what a list holds, and CEL has no bound of its own.

use std::collections::BTreeMap;

use cel::common::ast::{ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators as op};

use facts::Facts;
use model::Value;

use super::condition::{entry, fact, operands, path};

/// Steps that a condition may take. The built-in rules take at most 495 for an image with torch 2.9.0.
pub(super) const STEPS: u64 = 5_000_000;

/// Bytes of text that are a step.
const BYTES: usize = 64;

/// A bound for a value.
#[derive(Clone, Copy, Debug, Default)]
struct ValueSize {
    /// Items of a list or a map.
    count: u64,
    /// Steps that copying the largest item takes.
    item: u64,
    /// Steps that copying all of it takes.
    whole: u64,
}

impl ValueSize {
    const ONE: Self = Self { count: 0, item: 0, whole: 1 };

    fn of_text(text: &str) -> Self {
        Self { whole: (text.len() / BYTES) as u64 + 1, ..Self::ONE }
    }

    fn of_items(items: impl IntoIterator<Item = Self>) -> Self {
        items.into_iter().fold(Self::ONE, |all, item| Self {
            count: all.count + 1,
            item: all.item.max(item.whole),
            whole: all.whole.saturating_add(item.whole),
        })
    }

    fn of_value(value: &Value) -> Self {
        match value {
            Value::Bool(_) | Value::Int(_) | Value::Version(_) => Self::ONE,
            Value::Text(text) => Self::of_text(text),
            Value::List(items) => Self::of_items(items.iter().map(Self::of_value)),
            Value::Map(entries) => Self::of_items(
                entries.iter().map(|(name, value)| Self::of_items([Self::of_text(name), Self::of_value(value)])),
            ),
        }
    }

    /// One of the items, which may be a list itself.
    fn one(self) -> Self {
        Self { count: self.item, item: self.item, whole: self.item }
    }

    /// Both, one after the other.
    fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            item: self.item.max(other.item),
            whole: self.whole.saturating_add(other.whole),
        }
    }
}

/// The loop variables in reach.
type Variables<'e> = BTreeMap<&'e str, ValueSize>;

/// Returns true if an expression has a loop. Others take no more steps than they have parts.
pub(super) fn has_loop(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Comprehension(_) => true,
        Expr::Call(call) => operands(call).any(has_loop),
        Expr::List(list) => list.elements.iter().any(has_loop),
        Expr::Map(map) => map.entries.iter().filter_map(entry).any(|(key, value)| has_loop(key) || has_loop(value)),
        Expr::Select(select) => has_loop(&select.operand),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => false,
    }
}

/// The steps that an expression takes at most with the facts of an image.
pub(super) fn steps(expression: &IdedExpr, facts: &Facts) -> u64 {
    Costing { facts }.of(expression, &Variables::new()).1
}

struct Costing<'f> {
    facts: &'f Facts,
}

impl Costing<'_> {
    /// The value's size, and the steps that computing it takes.
    fn of(&self, expression: &IdedExpr, variables: &Variables<'_>) -> (ValueSize, u64) {
        match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => (ValueSize::of_text(text.inner()), 1),
            Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => (ValueSize::ONE, 1),
            Expr::Ident(_) | Expr::Select(_) => match (path(expression), &expression.expr) {
                ((Some(root), parts), _) => (self.of_name(root, &parts, variables), 1),
                (_, Expr::Select(select)) => {
                    let (operand, steps) = self.of(&select.operand, variables);
                    (operand.one(), steps.saturating_add(1))
                }
                _ => (ValueSize::ONE, 1),
            },
            Expr::Call(call) => {
                let parts = operands(call).map(|part| self.of(part, variables));
                let (all, steps) = sum(parts);
                let made = match call.func_name.as_str() {
                    op::INDEX => all.one(),
                    _ => all,
                };
                (made, steps.saturating_add(all.whole))
            }
            Expr::List(list) => self.of_parts(list.elements.iter(), variables),
            Expr::Map(map) => {
                let parts = map.entries.iter().filter_map(entry).flat_map(|(key, value)| [key, value]);
                self.of_parts(parts, variables)
            }
            Expr::Comprehension(each) => self.of_loop(each, variables),
        }
    }

    /// A loop variable or a fact, or a part of one.
    fn of_name(&self, root: &str, parts: &[&str], variables: &Variables<'_>) -> ValueSize {
        match variables.get(root) {
            Some(variable) if parts.is_empty() => *variable,
            Some(variable) => variable.one(),
            None => {
                let Some((key, _)) = fact(root, parts) else { return ValueSize::ONE };
                self.facts.certain(key).value().map_or(ValueSize::ONE, ValueSize::of_value)
            }
        }
    }

    fn of_parts<'e>(&self, parts: impl Iterator<Item = &'e IdedExpr>, variables: &Variables<'_>) -> (ValueSize, u64) {
        let parts: Vec<_> = parts.map(|part| self.of(part, variables)).collect();
        let steps = parts.iter().fold(1, |all: u64, (_, steps)| all.saturating_add(*steps));
        let made = ValueSize::of_items(parts.into_iter().map(|(size, _)| size));
        (made, steps.saturating_add(made.whole))
    }

    fn of_loop(&self, each: &ComprehensionExpr, variables: &Variables<'_>) -> (ValueSize, u64) {
        let (range, before) = self.of(&each.iter_range, variables);
        let mut inner = variables.clone();
        inner.insert(&each.iter_var, range.one());
        // What a turn adds does not depend on what the turns before it have made.
        inner.insert(&each.accu_var, ValueSize::default());
        let (added, steps) = self.of(&each.loop_step, &inner);
        let (_, condition) = self.of(&each.loop_cond, &inner);
        let turn = steps.saturating_add(condition).saturating_add(added.whole).saturating_add(1);
        let made = ValueSize {
            count: range.count.saturating_mul(added.count.max(1)),
            item: added.item.max(added.whole),
            whole: range.count.saturating_mul(added.whole).saturating_add(1),
        };
        inner.insert(&each.accu_var, made);
        let (result, after) = self.of(&each.result, &inner);
        let turns = range.count.saturating_mul(turn);
        (result, before.saturating_add(turns).saturating_add(after))
    }
}

/// The values of a call's operands together, and the steps for all.
fn sum(parts: impl Iterator<Item = (ValueSize, u64)>) -> (ValueSize, u64) {
    parts.fold((ValueSize::default(), 1), |(all, steps), (size, more)| (all.and(size), steps.saturating_add(more)))
}

#[cfg(test)]
mod tests {
    use super::super::condition::Condition;
    use super::*;
    use facts::key;
    use model::Fact;

    #[test]
    fn loops_multiply() {
        let mut facts = Facts::default();
        let archs: Vec<String> = (0..100).map(|number| format!("sm_{number}")).collect();
        facts.insert(key::TORCH_ARCH_LIST, Fact::known(archs));
        let steps = |condition: &str| steps(Condition::compile(condition).unwrap().root(), &facts);
        let once = steps("torch.arch_list.all(a, a != 'x')");
        assert!((100..2_000).contains(&once), "{once}");
        let twice = steps("torch.arch_list.all(a, torch.arch_list.exists(b, a == b))");
        assert!((10_000..400_000).contains(&twice), "{twice}");
        for endless in [
            "torch.arch_list.all(a, torch.arch_list.all(b, torch.arch_list.all(c, torch.arch_list.all(d, a + b != c + d))))",
            "[1].map(a, [a, a]).map(b, [b, b, b, b, b, b, b, b, b, b]).map(c, [c, c, c, c, c, c, c, c, c, c]) == [] && \
             [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, torch.arch_list.all(b, torch.arch_list.all(c, \
             torch.arch_list.all(d, b != c && c != d))))",
        ] {
            assert!(steps(endless) > STEPS, "{endless}");
        }
        let doubled = |times: usize| steps(&format!("torch.arch_list{}.size() > 0", ".map(a, a + a)".repeat(times)));
        assert!(doubled(3) < STEPS && doubled(40) > STEPS, "{} {}", doubled(3), doubled(40));
    }
}
