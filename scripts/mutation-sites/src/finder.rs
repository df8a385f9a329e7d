//! The walk through a file.

use std::ops::Range;

use proc_macro2::Span;
use serde_json::{Value, json};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ItemFn, Lit, Stmt, UnOp};

use crate::{bodies, swaps};

/// The form in which a mutant is inserted into the code.
#[derive(Clone, Copy)]
enum Form {
    /// The range is an expression, which the code replaces.
    Expression,
    /// The range is a statement, which is skipped.
    Statement,
    /// The range is the guard of a match arm, or empty after the pattern if the arm has no guard. The arm never matches.
    Arm,
    /// The range is empty, at the start of a body, which returns the code's value at once.
    Body,
}

/// One change of the program.
pub(crate) struct Mutant {
    form: Form,
    start: usize,
    end: usize,
    /// The line of the source, from 1.
    line: usize,
    /// The function that contains it.
    function: String,
    code: String,
    /// The change, for people.
    what: String,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Expression => "expression",
            Self::Statement => "statement",
            Self::Arm => "arm",
            Self::Body => "body",
        }
    }
}

impl Mutant {
    pub(crate) fn json(&self) -> Value {
        json!({
            "form": self.form.name(), "start": self.start, "end": self.end, "line": self.line,
            "function": self.function, "code": self.code, "what": self.what,
        })
    }
}

/// Offset of the first item of a file.
pub(crate) fn first_item(file: &syn::File) -> usize {
    file.items.first().map_or(0, |item| item.span().byte_range().start)
}

/// Every mutant of a file, in the order of the walk.
pub(crate) fn mutants(text: &str, file: &syn::File) -> Vec<Mutant> {
    let mut finder = Finder { text, function: String::new(), mutants: Vec::new() };
    finder.visit_file(file);
    finder.mutants
}

struct Finder<'t> {
    text: &'t str,
    function: String,
    mutants: Vec<Mutant>,
}

impl Finder<'_> {
    fn source(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn add(&mut self, form: Form, range: Range<usize>, line: usize, code: String, what: String) {
        let function = self.function.clone();
        self.mutants.push(Mutant { form, start: range.start, end: range.end, line, function, code, what });
    }

    /// Replaces an expression. `change` describes the mutant for people.
    fn replace(&mut self, whole: &Expr, code: String, change: &str) {
        let span = whole.span();
        let what = format!("`{}` {change}", one_line(self.source(span)));
        self.add(Form::Expression, span.byte_range(), span.start().line, code, what);
    }

    /// The source of an expression with one part replaced.
    fn with(&self, whole: &Expr, part: Span, other: &str) -> String {
        let (whole, part) = (whole.span().byte_range(), part.byte_range());
        format!("{}{other}{}", &self.text[whole.start..part.start], &self.text[part.end..whole.end])
    }

    fn condition(&mut self, condition: &Expr, values: &[&str]) {
        if !has_let(condition) {
            for value in values {
                self.replace(condition, (*value).to_owned(), &format!("as a condition -> {value}"));
            }
        }
    }

    fn binary(&mut self, whole: &Expr, binary: &syn::ExprBinary) {
        if has_let(whole) {
            return;
        }
        for other in swaps::operators(&binary.op) {
            let code = self.with(whole, binary.op.span(), other);
            self.replace(whole, code, &format!("-> {other}"));
        }
    }

    fn method(&mut self, whole: &Expr, call: &syn::ExprMethodCall) {
        if let Some(other) = swaps::method(&call.method.to_string()) {
            let code = self.with(whole, call.method.span(), other);
            self.replace(whole, code, &format!("{} -> {other}", call.method));
        }
    }

    fn literal(&mut self, whole: &Expr, literal: &Lit) {
        match literal {
            Lit::Bool(value) => self.replace(whole, (!value.value).to_string(), "inverted"),
            Lit::Int(value) => {
                let Ok(number) = value.base10_parse::<u128>() else { return };
                let others = [number.checked_add(1), number.checked_sub(1)];
                for other in others.into_iter().flatten() {
                    self.replace(whole, format!("{other}{}", value.suffix()), &format!("-> {other}"));
                }
            }
            _ => {}
        }
    }

    /// The bounds of a range, except literals, which other mutants change.
    fn range(&mut self, range: &syn::ExprRange) {
        for (bound, change) in [(&range.start, "+ 1"), (&range.end, "- 1")] {
            let Some(bound) = bound.as_deref().filter(|bound| !matches!(bound, Expr::Lit(_))) else { continue };
            let code = format!("({}) {change}", self.source(bound.span()));
            self.replace(bound, code, &format!("as a bound {change}"));
        }
    }

    fn arms(&mut self, arms: &[syn::Arm]) {
        let Some((last, others)) = arms.split_last() else { return };
        for arm in others.iter().filter(|arm| arm.guard.is_some() || takes_all(&last.pat) || has_literal(&arm.pat)) {
            let pattern = arm.pat.span();
            let range = match &arm.guard {
                Some((_, guard)) if has_let(guard) => continue,
                Some((_, guard)) => guard.span().byte_range(),
                None => pattern.byte_range().end..pattern.byte_range().end,
            };
            let what = format!("arm `{}` deleted", one_line(self.source(pattern)));
            self.add(Form::Arm, range, pattern.start().line, String::new(), what);
            if let Some((_, guard)) = &arm.guard {
                self.condition(guard, &["true"]);
            }
        }
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let start = block.brace_token.span.open().byte_range().end;
        let line = signature.span().start().line;
        for value in bodies::values(&signature.output) {
            let what = format!("body -> {}", if value.is_empty() { "nothing" } else { &value });
            self.add(Form::Body, start..start, line, value, what);
        }
    }

    fn function(&mut self, attributes: &[Attribute], signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() || is_test(attributes) {
            return;
        }
        let outer = std::mem::replace(&mut self.function, signature.ident.to_string());
        self.body(signature, block);
        self.visit_block(block);
        self.function = outer;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.attrs, &item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(_, Some(_)) = statement {
            let span = statement.span();
            let what = format!("statement `{}` deleted", one_line(self.source(span)));
            self.add(Form::Statement, span.byte_range(), span.start().line, String::new(), what);
        }
        visit::visit_stmt(self, statement);
    }

    /// The block after `else` must diverge, so its last statement stays.
    fn visit_local_init(&mut self, init: &'ast syn::LocalInit) {
        self.visit_expr(&init.expr);
        let Some((_, Expr::Block(otherwise))) = &init.diverge.as_ref().map(|(token, block)| (token, &**block)) else {
            return;
        };
        if let Some((last, others)) = otherwise.block.stmts.split_last() {
            others.iter().for_each(|statement| self.visit_stmt(statement));
            visit::visit_stmt(self, last);
        }
    }

    fn visit_expr(&mut self, whole: &'ast Expr) {
        match whole {
            Expr::Binary(binary) => self.binary(whole, binary),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                let code = self.source(unary.expr.span()).to_owned();
                self.replace(whole, code, "without !");
            }
            Expr::MethodCall(call) => self.method(whole, call),
            Expr::Lit(literal) => self.literal(whole, &literal.lit),
            Expr::Range(range) => self.range(range),
            Expr::If(branch) => self.condition(&branch.cond, &["true", "false"]),
            Expr::While(cycle) => self.condition(&cycle.cond, &["false"]),
            Expr::Match(choice) => self.arms(&choice.arms),
            _ => {}
        }
        visit::visit_expr(self, whole);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
}

/// Returns true if a condition binds names, so that no other expression can replace it.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// Returns true if a pattern matches every value.
fn takes_all(pattern: &syn::Pat) -> bool {
    match pattern {
        syn::Pat::Wild(_) => true,
        // A name in capitals is a constant.
        syn::Pat::Ident(name) => name.subpat.is_none() && !name.ident.to_string().starts_with(char::is_uppercase),
        syn::Pat::Tuple(tuple) => tuple.elems.iter().all(takes_all),
        _ => false,
    }
}

/// Returns true if a pattern matches single values, so that the match most likely has another arm for all other values.
fn has_literal(pattern: &syn::Pat) -> bool {
    struct Literals(bool);
    impl<'ast> Visit<'ast> for Literals {
        fn visit_lit(&mut self, literal: &'ast Lit) {
            self.0 |= !matches!(literal, Lit::Bool(_));
        }
    }
    let mut literals = Literals(false);
    literals.visit_pat(pattern);
    literals.0
}

/// Returns true if an item is only for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::NameValue(_) => false,
    })
}

fn one_line(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}
