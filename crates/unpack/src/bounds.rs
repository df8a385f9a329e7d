//! Access to slices whose bounds an invariant of the decoder guarantees.
//!
//! A violated bound is a defect. A debug build panics at the caller; a release build returns [`BoundsError`], which ends the
//! stream as damaged. Missing bytes are never replaced by invented ones.

#![allow(clippy::inline_always, reason = "the inner loop must have no calls in it")]

use std::slice::SliceIndex;

/// A decoder accessed its own buffer out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundsError;

impl BoundsError {
    /// What a stream that ends with it says.
    pub(crate) const TEXT: &str = "the decoder accessed a buffer out of bounds";

    /// Returns the error; panics in debug builds. Inlined, since even a call that is never made would cost the inner loop
    /// registers.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn new() -> Self {
        debug_assert!(false, "{}", Self::TEXT);
        Self
    }
}

/// `data[range]`.
#[inline(always)]
#[track_caller]
pub(crate) fn part<T, I: SliceIndex<[T]>>(data: &[T], range: I) -> Result<&I::Output, BoundsError> {
    let Some(part) = data.get(range) else { return Err(BoundsError::new()) };
    Ok(part)
}

/// `&mut data[range]`.
#[inline(always)]
#[track_caller]
pub(crate) fn part_mut<T, I: SliceIndex<[T]>>(data: &mut [T], range: I) -> Result<&mut I::Output, BoundsError> {
    let Some(part) = data.get_mut(range) else { return Err(BoundsError::new()) };
    Ok(part)
}

/// `data[at..at + N]`.
#[inline(always)]
#[track_caller]
pub(crate) fn array<T, const N: usize>(data: &[T], at: usize) -> Result<&[T; N], BoundsError> {
    let Some(array) = data.get(at..).and_then(|rest| rest.first_chunk()) else { return Err(BoundsError::new()) };
    Ok(array)
}

/// Copies all of `source` to `target[at..]`.
#[track_caller]
pub(crate) fn copy<T: Copy>(target: &mut [T], at: usize, source: &[T]) -> Result<(), BoundsError> {
    part_mut(target, at..at.saturating_add(source.len()))?.copy_from_slice(source);
    Ok(())
}

#[cfg(test)]
mod tests;
