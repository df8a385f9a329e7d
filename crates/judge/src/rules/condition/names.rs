//! Resolves the names in conditions to facts.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, SelectExpr};

use facts::key::{self, Definition};

/// A fact that an expression uses, and the entry of a map if it uses only that.
type UsedFact<'e> = (&'static Definition, Option<&'e str>);

/// The facts that an expression of a checked condition uses.
pub(in crate::rules) fn facts_of(expression: &IdedExpr) -> Vec<&'static Definition> {
    used(expression).into_iter().map(|(key, _)| key).collect()
}

/// The facts and entries that an expression of a checked condition uses.
pub(in crate::rules) fn used(expression: &IdedExpr) -> Vec<UsedFact<'_>> {
    let mut found = Vec::new();
    gather(expression, &mut Vec::new(), &mut found);
    found
}

fn gather<'e>(expression: &'e IdedExpr, bound: &mut Vec<&'e str>, found: &mut Vec<UsedFact<'e>>) {
    match &expression.expr {
        Expr::Ident(_) | Expr::Select(_) => match path(expression) {
            (Some(root), _) if bound.contains(&root) => {}
            (Some(root), parts) => {
                found.extend(fact(root, &parts).map(|(key, own)| (key, parts.get(own).copied())));
            }
            (None, _) => {
                if let Expr::Select(select) = &expression.expr {
                    gather(&select.operand, bound, found);
                }
            }
        },
        Expr::Call(call) => operands(call).for_each(|part| gather(part, bound, found)),
        Expr::List(list) => list.elements.iter().for_each(|part| gather(part, bound, found)),
        Expr::Map(map) => map.entries.iter().filter_map(entry).for_each(|(key, value)| {
            gather(key, bound, found);
            gather(value, bound, found);
        }),
        Expr::Comprehension(each) => {
            gather(&each.iter_range, bound, found);
            bound.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
            gather(&each.loop_step, bound, found);
            bound.truncate(bound.len() - 2);
        }
        Expr::Struct(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

/// The expression `has(a.b.c)`.
pub(super) fn has(name: &str) -> Option<IdedExpr> {
    let (rest, field) = name.rsplit_once('.')?;
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut parts = name.split('.').all(is_name).then(|| rest.split('.'))?;
    let expression = |expr| Box::new(IdedExpr { id: 0, expr });
    let select = |operand, field: &str, test| Expr::Select(SelectExpr { operand, field: field.to_owned(), test });
    let root = expression(Expr::Ident(parts.next()?.to_owned()));
    let operand = parts.fold(root, |operand, part| expression(select(operand, part, false)));
    Some(IdedExpr { id: 0, expr: select(operand, field, true) })
}

/// Splits `a.b.c` into its root, if that is a name, and the parts after it.
pub(in crate::rules) fn path(expression: &IdedExpr) -> (Option<&str>, Vec<&str>) {
    let mut parts = Vec::new();
    let mut at = expression;
    loop {
        match &at.expr {
            Expr::Select(select) => {
                parts.push(select.field.as_str());
                at = &select.operand;
            }
            Expr::Ident(root) => {
                parts.reverse();
                return (Some(root), parts);
            }
            _ => return (None, Vec::new()),
        }
    }
}

/// The fact at the start of a path, and the number of parts after the root that belong to the fact's name.
pub(in crate::rules) fn fact(root: &str, parts: &[&str]) -> Option<(&'static Definition, usize)> {
    let mut name = root.to_owned();
    let alone = key::find(&name).map(|key| (key, 0));
    alone.or_else(|| {
        parts.iter().enumerate().find_map(|(index, part)| {
            name = format!("{name}.{part}");
            key::find(&name).map(|key| (key, index + 1))
        })
    })
}

/// The operands of an operator, or the receiver and the arguments of a function.
pub(in crate::rules) fn operands(call: &CallExpr) -> impl Iterator<Item = &IdedExpr> {
    call.target.iter().map(|target| &**target).chain(&call.args)
}

/// Key and value of a map entry.
pub(in crate::rules) fn entry(entry: &IdedEntryExpr) -> Option<(&IdedExpr, &IdedExpr)> {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => Some((&entry.key, &entry.value)),
        EntryExpr::StructField(_) => None,
    }
}
