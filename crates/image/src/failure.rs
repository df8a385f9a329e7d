//! Classes of failures: whether another attempt may succeed.

use std::io;

use crate::source::{SourceError, SourceErrorKind};
use layer::scan::ScanError;

use super::ImageError;

/// What another attempt would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The failure may pass: a timeout, a lost connection, too many requests, no temporary space.
    Transient,
    /// The image, or a part of it, is not there.
    NotFound,
    /// Access is denied.
    Denied,
    /// The image is damaged, or of a kind that is not supported.
    Invalid,
    /// What is there is not an image.
    NotAnImage,
    /// The run was cancelled.
    Cancelled,
}

impl ImageError {
    /// The class of this failure.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Source(error) => error.class(),
            // The first place is the likeliest to have the image.
            Self::Nowhere { places, .. } => places.first().map_or(FailureClass::NotFound, |(_, error)| error.class()),
            Self::Layer { error: ScanError::Read(error), .. } => of_io(error),
            Self::Layer { .. } => FailureClass::Invalid,
            Self::Of { error, .. } => error.class(),
            Self::Cancelled => FailureClass::Cancelled,
        }
    }
}

impl SourceError {
    fn class(&self) -> FailureClass {
        match self.kind {
            SourceErrorKind::NotFound | SourceErrorKind::Missing => FailureClass::NotFound,
            SourceErrorKind::Unreachable | SourceErrorKind::Busy => FailureClass::Transient,
            SourceErrorKind::Denied => FailureClass::Denied,
            SourceErrorKind::Invalid => FailureClass::Invalid,
            SourceErrorKind::Artifact => FailureClass::NotAnImage,
            SourceErrorKind::Io => self.cause.as_ref().map_or(FailureClass::Transient, of_io),
        }
    }
}

fn of_io(error: &io::Error) -> FailureClass {
    // A reader passes the error of its source on.
    if let Some(source) = error.get_ref().and_then(|inner| inner.downcast_ref::<SourceError>()) {
        return source.class();
    }
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FailureClass::NotFound,
        io::ErrorKind::PermissionDenied => FailureClass::Denied,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => FailureClass::Invalid,
        _ => FailureClass::Transient,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_failures() {
        let source = |error| ImageError::Source(error);
        let busy = SourceError::new(SourceErrorKind::Busy, String::new());
        let layer = |error| ImageError::Layer { layer: String::new(), error };
        for (error, class) in [
            (source(busy), FailureClass::Transient),
            (source(SourceError::not_found(String::new())).of("a"), FailureClass::NotFound),
            (source(SourceError::io("a", io::ErrorKind::TimedOut.into())), FailureClass::Transient),
            (source(SourceError::io("a", io::ErrorKind::PermissionDenied.into())), FailureClass::Denied),
            (layer(ScanError::Read(io::ErrorKind::InvalidData.into())), FailureClass::Invalid),
            (layer(ScanError::Read(io::ErrorKind::ConnectionReset.into())), FailureClass::Transient),
            (layer(ScanError::Panicked), FailureClass::Invalid),
        ] {
            assert_eq!(error.class(), class, "{error}");
        }
    }
}
