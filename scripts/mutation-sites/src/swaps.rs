//! Operators and methods that are replaced by a similar one.

use syn::BinOp;

/// The operators that replace this one.
pub(crate) fn operators(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["<=", ">"],
        BinOp::Le(_) => &["<", ">="],
        BinOp::Gt(_) => &[">=", "<"],
        BinOp::Ge(_) => &[">", "<="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) | BinOp::Rem(_) => &["/"],
        BinOp::Div(_) => &["*"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["/="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        _ => &[],
    }
}

/// Pairs of methods that replace each other.
const METHODS: &[(&str, &str)] = &[
    ("any", "all"),
    ("checked_add", "checked_sub"),
    ("ends_with", "starts_with"),
    ("first", "last"),
    ("first_mut", "last_mut"),
    ("is_err", "is_ok"),
    ("is_none", "is_some"),
    ("is_none_or", "is_some_and"),
    ("max", "min"),
    ("max_by", "min_by"),
    ("max_by_key", "min_by_key"),
    ("next", "next_back"),
    ("position", "rposition"),
    ("pop_back", "pop_front"),
    ("push_back", "push_front"),
    ("rsplit_once", "split_once"),
    ("saturating_add", "saturating_sub"),
    ("skip", "take"),
    ("skip_while", "take_while"),
    ("strip_prefix", "strip_suffix"),
    ("to_ascii_lowercase", "to_ascii_uppercase"),
    ("trim_end", "trim_start"),
    ("wrapping_add", "wrapping_sub"),
];

/// The method that replaces this one; `None` if there is no similar one.
pub(crate) fn method(name: &str) -> Option<&'static str> {
    METHODS.iter().find_map(|(one, other)| match name {
        _ if name == *one => Some(*other),
        _ if name == *other => Some(*one),
        _ => None,
    })
}
