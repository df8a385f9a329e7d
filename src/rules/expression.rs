//! A CEL condition and the facts that it asks for.

use std::collections::BTreeSet;

use cel::Program;
use cel::common::ast::{EntryExpr, Expr, IdedExpr};

use crate::facts::key::{self, Key};

/// A compiled condition.
#[derive(Debug)]
pub(super) struct Expression {
    program: Program,
}

impl Expression {
    /// Compiles a condition, and makes sure that every fact in it exists.
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        let program = Program::compile(source).map_err(|errors| errors.to_string())?;
        facts_of(program.expression())?;
        Ok(Self { program })
    }

    pub(super) fn root(&self) -> &IdedExpr {
        self.program.expression()
    }
}

/// The facts that a part of a condition asks for.
pub(super) fn facts_of(expression: &IdedExpr) -> Result<Vec<&'static Key>, String> {
    let mut walk = Walk { keys: Vec::new(), bound: BTreeSet::new() };
    walk.visit(expression)?;
    Ok(walk.keys)
}

struct Walk {
    keys: Vec<&'static Key>,
    /// Variables of comprehensions (`exists`, `all` …) around the place.
    bound: BTreeSet<String>,
}

impl Walk {
    fn visit(&mut self, expression: &IdedExpr) -> Result<(), String> {
        match &expression.expr {
            Expr::Ident(_) | Expr::Select(_) => self.name(expression),
            Expr::Call(call) => {
                call.target.iter().map(|target| &**target).chain(&call.args).try_for_each(|part| self.visit(part))
            }
            Expr::List(list) => list.elements.iter().try_for_each(|part| self.visit(part)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => self.visit(&entry.key).and_then(|()| self.visit(&entry.value)),
                EntryExpr::StructField(field) => self.visit(&field.value),
            }),
            Expr::Comprehension(comprehension) => {
                self.visit(&comprehension.iter_range)?;
                self.visit(&comprehension.accu_init)?;
                let names =
                    [Some(&comprehension.iter_var), comprehension.iter_var2.as_ref(), Some(&comprehension.accu_var)];
                let new: Vec<_> =
                    names.into_iter().flatten().filter(|name| self.bound.insert((*name).clone())).collect();
                let inner = [&comprehension.loop_cond, &comprehension.loop_step, &comprehension.result];
                let result = inner.into_iter().try_for_each(|part| self.visit(part));
                for name in new {
                    self.bound.remove(name);
                }
                result
            }
            Expr::Struct(_) => Err("a condition makes no structures".to_owned()),
            Expr::Literal(_) | Expr::Unspecified => Ok(()),
        }
    }

    /// `a.b.c`: a fact, or something inside a fact's value, or of a comprehension's variable.
    fn name(&mut self, expression: &IdedExpr) -> Result<(), String> {
        let mut parts = Vec::new();
        let mut at = expression;
        let root = loop {
            match &at.expr {
                Expr::Select(select) => {
                    parts.push(select.field.as_str());
                    at = &select.operand;
                }
                Expr::Ident(root) => break root,
                _ => return self.visit(at),
            }
        };
        if self.bound.contains(root) {
            return Ok(());
        }
        parts.push(root);
        parts.reverse();
        let known = (1..=parts.len()).find_map(|length| key::find(&parts.get(..length)?.join(".")));
        let key = known.ok_or_else(|| format!("there is no fact '{}'", parts.join(".")))?;
        self.keys.push(key);
        Ok(())
    }
}
