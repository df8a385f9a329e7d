//! Mutations of a condition, to test whether a rule's examples detect them: each clause negated, `&&` and `||` swapped,
//! bounds moved by one, elements removed from lists.

use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::condition::{Condition, Places, facts_of};
use facts::key::Type;

/// A mutated condition.
pub(super) struct Mutant {
    /// Description of the change.
    pub(super) what: String,
    pub(super) root: IdedExpr,
}

/// All mutants of a condition.
pub(super) fn mutants(condition: &Condition) -> Vec<Mutant> {
    let mutation = Mutation { places: condition.places() };
    mutation.of(condition.root())
}

struct Mutation<'c> {
    places: &'c Places,
}

impl Mutation<'_> {
    fn of(&self, expression: &IdedExpr) -> Vec<Mutant> {
        let mut mutants = self.own(expression);
        let replaced = |part: Expr| IdedExpr { id: expression.id, expr: part };
        match &expression.expr {
            Expr::Call(call) => {
                for (index, argument) in call.args.iter().enumerate() {
                    mutants.extend(self.of(argument).into_iter().map(|mutant| {
                        let mut args = call.args.clone();
                        args.splice(index..=index, [mutant.root]);
                        Mutant { root: replaced(Expr::Call(CallExpr { args, ..call.clone() })), ..mutant }
                    }));
                }
                for mutant in call.target.iter().flat_map(|target| self.of(target)) {
                    let target = Some(Box::new(mutant.root));
                    mutants.push(Mutant { root: replaced(Expr::Call(CallExpr { target, ..call.clone() })), ..mutant });
                }
            }
            // A loop's predicate is the last argument in `result || predicate`, and the first in `predicate ? … :
            // result`.
            Expr::Comprehension(each) => {
                if let Expr::Call(step) = &each.loop_step.expr {
                    let index = if step.func_name == op::CONDITIONAL { 0 } else { step.args.len().saturating_sub(1) };
                    for mutant in step.args.get(index).into_iter().flat_map(|question| self.of(question)) {
                        let mut args = step.args.clone();
                        args.splice(index..=index, [mutant.root]);
                        let mut each = each.clone();
                        each.loop_step.expr = Expr::Call(CallExpr { args, ..step.clone() });
                        mutants.push(Mutant { root: replaced(Expr::Comprehension(each)), ..mutant });
                    }
                }
            }
            _ => {}
        }
        mutants
    }

    /// Mutations of the expression itself, not of its operands.
    fn own(&self, expression: &IdedExpr) -> Vec<Mutant> {
        let mut mutants = Vec::new();
        let part = self.places.source(self.places.whole(expression));
        let mut push = |what: String, expr: Expr| {
            mutants.push(Mutant { what, root: IdedExpr { id: expression.id, expr } });
        };
        match &expression.expr {
            Expr::Call(call) => {
                if let Some(other) = exchanged(&call.func_name) {
                    let name = |name: &str| name.trim_matches('_').to_owned();
                    let what = format!("`{}` instead of `{}` in `{part}`", name(other), name(&call.func_name));
                    push(what, Expr::Call(CallExpr { func_name: other.to_owned(), ..call.clone() }));
                }
            }
            Expr::List(list) if list.elements.len() > 1 => {
                for (index, element) in list.elements.iter().enumerate() {
                    let mut shorter = list.clone();
                    shorter.elements.remove(index);
                    push(format!("{} removed from a list", self.places.text(element)), Expr::List(shorter));
                }
            }
            Expr::Literal(LiteralValue::Int(number)) => {
                let moved = LiteralValue::Int(number.inner().wrapping_add(1).into());
                push(format!("{} + 1", number.inner()), Expr::Literal(moved));
            }
            _ => {}
        }
        // `!a` needs no mutant of its own: its negation, `a`, is the negation of the operand.
        if is_truth(expression) {
            let opposite =
                CallExpr { func_name: op::LOGICAL_NOT.to_owned(), target: None, args: vec![expression.clone()] };
            push(format!("the negation of `{part}`"), Expr::Call(opposite));
        }
        mutants
    }
}

fn exchanged(operator: &str) -> Option<&'static str> {
    Some(match operator {
        op::LOGICAL_AND => op::LOGICAL_OR,
        op::LOGICAL_OR => op::LOGICAL_AND,
        op::LESS => op::LESS_EQUALS,
        op::LESS_EQUALS => op::LESS,
        op::GREATER => op::GREATER_EQUALS,
        op::GREATER_EQUALS => op::GREATER,
        _ => return None,
    })
}

/// Returns true if an expression is a clause: a Boolean that contains no other clauses.
fn is_truth(expression: &IdedExpr) -> bool {
    const WORDS: [&str; 8] =
        [op::EQUALS, op::NOT_EQUALS, op::GREATER, op::GREATER_EQUALS, op::LESS, op::LESS_EQUALS, op::IN, "matches"];
    match &expression.expr {
        Expr::Call(call) => {
            WORDS.contains(&call.func_name.as_str())
                || matches!(call.func_name.as_str(), "contains" | "startsWith" | "endsWith")
        }
        Expr::Select(select) if select.test => true,
        Expr::Select(_) => matches!(*facts_of(expression), [key] if key.kind == Type::Bool),
        Expr::Comprehension(each) => {
            matches!(each.accu_init.expr, Expr::Literal(LiteralValue::Boolean(_) | LiteralValue::Int(_)))
        }
        _ => false,
    }
}
