//! Where the parts of a condition stand in its text.

use std::ops::Range;

use cel::common::ast::{Expr, IdedExpr, SourceInfo};

use super::names::operands;

/// The text of a condition, and the places that the parser noted.
#[derive(Debug)]
pub(in crate::judge::rules) struct Places(SourceInfo);

impl Places {
    pub(super) const fn new(info: SourceInfo) -> Self {
        Self(info)
    }

    /// The whole text.
    pub(super) fn all(&self) -> &str {
        &self.0.source
    }

    /// The text of a part.
    pub(in crate::judge::rules) fn text(&self, expression: &IdedExpr) -> &str {
        self.0.source.get(self.part(expression)).unwrap_or_default()
    }

    /// Bytes of the text. The parser counts characters, and marks operators and the dots and parentheses of names and calls
    /// rather than the whole.
    pub(super) fn part(&self, expression: &IdedExpr) -> Range<usize> {
        let source = &self.0.source;
        if let Expr::Select(select) = &expression.expr {
            let operand = self.part(&select.operand);
            return operand.start..(operand.end + 1 + select.field.len()).min(source.len());
        }
        let Some((start, stop)) = self.0.offset_for(expression.id) else {
            // What a macro was taken apart into has no place: the first of its operands has.
            return match &expression.expr {
                Expr::Call(call) => operands(call).next().map_or(0..0, |first| self.part(first)),
                Expr::Comprehension(each) => self.part(&each.iter_range),
                _ => 0..0,
            };
        };
        let place = |number: u32| bytes(source, usize::try_from(number).unwrap_or_default());
        let (start, stop) = (place(start), place(stop.saturating_add(1)));
        match &expression.expr {
            Expr::Call(call) if source.get(..start).is_some_and(|before| before.ends_with(&call.func_name)) => {
                start - call.func_name.len()..stop
            }
            _ => start..stop,
        }
    }

    /// Bytes of an operator with its operands.
    pub(in crate::judge::rules) fn whole(&self, expression: &IdedExpr) -> Range<usize> {
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
        // The parenthesis that closes a call is no part of any operand.
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
    pub(in crate::judge::rules) fn source(&self, part: Range<usize>) -> &str {
        self.0.source.get(part).unwrap_or_default()
    }
}

/// How many bytes the first characters of a text have.
pub(super) fn bytes(text: &str, characters: usize) -> usize {
    text.chars().take(characters).map(char::len_utf8).sum()
}
