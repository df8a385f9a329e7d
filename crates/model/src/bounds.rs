//! Access to slices whose bounds an invariant holds.
//!
//! A bound that does not hold is a defect of ncclcheck. A debug build panics at the place; a release build returns
//! [`BoundsError`], which the caller reports as damage. No byte is ever made up for one that is missing.

use std::io;
use std::slice::SliceIndex;

/// A slice is shorter than an invariant says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes were accessed out of bounds: this is a defect of ncclcheck")]
pub struct BoundsError(());

impl BoundsError {
    /// The error, and a panic in debug builds.
    #[cold]
    #[track_caller]
    fn new() -> Self {
        let error = Self(());
        debug_assert!(false, "{error}");
        error
    }
}

impl From<BoundsError> for io::Error {
    fn from(error: BoundsError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

impl From<BoundsError> for String {
    /// For parsers, whose errors are texts that name what is damaged.
    fn from(error: BoundsError) -> Self {
        error.to_string()
    }
}

/// Returns `data[range]`.
#[track_caller]
pub fn part<T, I: SliceIndex<[T]>>(data: &[T], range: I) -> Result<&I::Output, BoundsError> {
    let Some(part) = data.get(range) else { return Err(BoundsError::new()) };
    Ok(part)
}

/// Returns `&mut data[range]`.
#[track_caller]
pub fn part_mut<T, I: SliceIndex<[T]>>(data: &mut [T], range: I) -> Result<&mut I::Output, BoundsError> {
    let Some(part) = data.get_mut(range) else { return Err(BoundsError::new()) };
    Ok(part)
}

/// Returns a number that was compared with the length of a slice, as its index.
#[track_caller]
pub fn index(number: u64) -> Result<usize, BoundsError> {
    let Ok(index) = usize::try_from(number) else { return Err(BoundsError::new()) };
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_inside_the_bounds_are_those_of_the_slice() {
        let mut data = [1, 2, 3];
        part_mut(&mut data, 1..2).unwrap().fill(5);
        assert_eq!(part(&data, 1..), Ok(&[5, 3][..]));
        assert_eq!(index(7), Ok(7));
    }

    #[test]
    fn parts_outside_the_bounds_fail() {
        let accesses: [fn() -> bool; 2] = [|| part(&[1, 2], 1..3).is_err(), || part_mut(&mut [1, 2], 3..).is_err()];
        for access in accesses {
            let is_refused = match std::panic::catch_unwind(access) {
                Ok(is_error) => is_error && !cfg!(debug_assertions),
                Err(_panic) => cfg!(debug_assertions),
            };
            assert!(is_refused);
        }
    }

    #[test]
    fn a_reader_reports_it_as_damage() {
        let error = io::Error::from(BoundsError(()));
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().ends_with("this is a defect of ncclcheck"), "{error}");
    }
}
