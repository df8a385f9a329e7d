//! Types of the values in conditions.

use std::fmt;

use facts::key::{Definition, Type};

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Bool,
    Int,
    Double,
    Text,
    /// A version fact: text that must not be compared as text.
    VersionText,
    /// The result of `version()`.
    Version,
    List(Box<ValueKind>),
    /// Values by name.
    Map(Box<ValueKind>),
    /// A record of this fact: texts by field name.
    Record(&'static Definition),
    /// The element type of an empty list.
    Any,
}

impl ValueKind {
    /// The type of a fact.
    pub(super) fn of(key: &'static Definition) -> Self {
        let list = |of| Self::List(Box::new(of));
        let map = |of| Self::Map(Box::new(of));
        match key.kind {
            Type::Bool => Self::Bool,
            Type::Text => Self::Text,
            Type::Version => Self::VersionText,
            Type::Texts => list(Self::Text),
            Type::Numbers => list(Self::Int),
            Type::Map => map(Self::Text),
            Type::Records(_) => list(Self::Record(key)),
            Type::Groups => map(map(list(Self::Text))),
            Type::Number => Self::Int,
        }
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::VersionText | Self::Any)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double | Self::Any)
    }

    /// Returns true if values of both types can be equal.
    pub(super) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::List(one), Self::List(other)) | (Self::Map(one), Self::Map(other)) => one.meets(other),
            _ => self == other || self.is_text() && other.is_text() || self.is_number() && other.is_number(),
        }
    }

    /// The element type of a list that holds values of both types.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::List(one), Self::List(other)) => Self::List(Box::new(one.or(*other))),
            (Self::Any, kind) | (kind, _) => kind,
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Int => f.write_str("a whole number"),
            Self::Double => f.write_str("a number"),
            Self::Text | Self::VersionText => f.write_str("text"),
            Self::Version => f.write_str("a version"),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) | Self::Record(_) => f.write_str("a map"),
            Self::Any => f.write_str("an empty list's element"),
        }
    }
}
