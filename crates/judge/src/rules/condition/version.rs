//! The CEL functions `version(text)`, whose value compares by version numbers, and `major(text)`, its first number.

use std::any::Any;
use std::cmp::Ordering;

use cel::common::traits::Comparer;
use cel::common::types::{CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{Env, ExecutionError};

use model::Version;

static VERSION: Type = Type::new_unspecified_type("version");

/// CEL with our functions. Registration fails only for a duplicate name, a bug that any test of a condition would
/// reveal.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    let _ = env.add_type(VERSION.to_owned());
    let _ = cel::add_overload!(env, fn major: (CelString<'_>) -> Result<CelInt>);
    let _ = cel::add_overload!(env, fn version: (CelString<'_>) -> Result<Comparable>);
    env
}

fn version(text: &CelString<'_>) -> Result<Comparable, ExecutionError> {
    parsed("version", text).map(Comparable)
}

fn major(text: &CelString<'_>) -> Result<CelInt, ExecutionError> {
    Ok(CelInt::from(i64::try_from(parsed("major", text)?.major()).unwrap_or(i64::MAX)))
}

fn parsed(function: &str, text: &CelString<'_>) -> Result<Version, ExecutionError> {
    Version::parse(text.inner()).ok_or_else(|| {
        ExecutionError::function_error(
            function,
            format!("'{}' is not a version: it does not start with a number", text.inner()),
        )
    })
}

#[derive(Clone, Debug)]
struct Comparable(Version);

impl Val for Comparable {
    fn get_type(&self) -> &Type {
        &VERSION
    }

    fn cel_type() -> &'static Type {
        &VERSION
    }

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self.0.cmp_release(&other.0).is_eq())
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Comparable {}

impl Comparer for Comparable {
    fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
        let other = other.downcast_ref::<Self>();
        other
            .map(|other| self.0.cmp_release(&other.0))
            .ok_or_else(|| ExecutionError::function_error("version", "not a version"))
    }
}
