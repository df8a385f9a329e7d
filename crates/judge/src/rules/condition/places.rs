//! Positions of expressions in the text of a condition.

use std::ops::Range;

use cel::common::ast::{Expr, IdedExpr, SourceInfo};

use super::names::operands;

/// The text of a condition, and the positions that the parser recorded.
#[derive(Debug)]
pub(in crate::rules) struct Places(SourceInfo);

impl Places {
    pub(super) const fn new(info: SourceInfo) -> Self {
        Self(info)
    }

    /// The text of an expression.
    pub(in crate::rules) fn text(&self, expression: &IdedExpr) -> &str {
        self.0.source.get(self.part(expression)).unwrap_or_default()
    }

    /// Byte range of an expression, for an operator that of its symbol alone. The parser counts characters, and marks
    /// only the operator, dot or parenthesis of an expression.
    pub(super) fn part(&self, expression: &IdedExpr) -> Range<usize> {
        let source = &self.0.source;
        if let Expr::Select(select) = &expression.expr {
            let operand = self.part(&select.operand);
            return operand.start..(operand.end + 1 + select.field.len()).min(source.len());
        }
        let Some((start, stop)) = self.0.offset_for(expression.id) else {
            // Expressions from an expanded macro have no position; their first operand does.
            return match &expression.expr {
                Expr::Call(call) => operands(call).next().map_or(0..0, |first| self.part(first)),
                Expr::Comprehension(each) => self.part(&each.iter_range),
                _ => 0..0,
            };
        };
        let place = |number: u32| bytes(source, usize::try_from(number).unwrap_or_default());
        let start = place(start);
        let stop = place(stop.saturating_add(1));
        match &expression.expr {
            Expr::Call(call) if source.get(..start).is_some_and(|before| before.ends_with(&call.func_name)) => {
                start - call.func_name.len()..stop
            }
            _ => start..stop,
        }
    }

    /// Byte range of an expression with all its operands.
    pub(in crate::rules) fn whole(&self, expression: &IdedExpr) -> Range<usize> {
        let own = self.part(expression);
        let join = |one: Range<usize>, other: Range<usize>| one.start.min(other.start)..one.end.max(other.end);
        let whole = match &expression.expr {
            Expr::Call(call) => operands(call).map(|part| self.whole(part)).fold(own, join),
            Expr::List(list) => list.elements.iter().map(|part| self.whole(part)).fold(own, join),
            Expr::Comprehension(each) => join(own, self.whole(&each.iter_range)),
            Expr::Select(select) if select.test && self.source(0..own.start).ends_with("has(") => {
                own.start - "has(".len()..own.end
            }
            _ => own,
        };
        // The closing parenthesis of a call belongs to no operand.
        let closing = |end: usize| {
            let text = self.source(whole.start..end);
            text.matches('(').count() > text.matches(')').count() && self.source(end..end + 1) == ")"
        };
        let mut end = whole.end;
        while closing(end) {
            end += 1;
        }
        whole.start..end
    }

    /// The text of a range.
    pub(in crate::rules) fn source(&self, part: Range<usize>) -> &str {
        self.0.source.get(part).unwrap_or_default()
    }
}

/// Length in bytes of the first `characters` characters of a text.
pub(super) fn bytes(text: &str, characters: usize) -> usize {
    text.chars().take(characters).map(char::len_utf8).sum()
}
