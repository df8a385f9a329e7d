//! Decodes gzip and zstd on many threads, in bounded memory, from sources that cannot seek.
//!
//! - [`inflate`] decodes gzip: [`Gunzip`](inflate::Gunzip).
//! - [`unzstd`] decodes zstd: [`Unzstd`](unzstd::Unzstd).
//! - [`pipe`] carries the compressed bytes from the thread that reads them to the decoder.
//! - [`pool`] provides the threads. One [`Pool`](pool::Pool) serves any number of streams at once, and bounds their total
//!   memory.
//!
//! # Example
//!
//! ```
//! use std::io::{Read as _, Write as _};
//! use std::num::NonZeroUsize;
//!
//! use unpack::inflate::Gunzip;
//! use unpack::pipe::{Cancel, with_pipe};
//! use unpack::pool::Pool;
//!
//! # let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
//! # encoder.write_all(&[7; 100_000])?;
//! # let compressed = encoder.finish()?;
//! let source = &compressed[..]; // a socket, a file: anything that is `Read + Send`
//! let pool = Pool::new(NonZeroUsize::new(4).unwrap());
//! let mut content = Vec::new();
//! with_pipe(source, |_bytes_read| {}, &Cancel::default(), |mut pipe| {
//!     Gunzip::new(&mut pipe, Some(&pool)).read_to_end(&mut content)
//! })?;
//! assert_eq!(content, [7; 100_000]);
//! # Ok::<_, std::io::Error>(())
//! ```
//!
//! # Errors
//!
//! The decoders implement [`BufRead`](std::io::BufRead), so their errors are [`std::io::Error`]. [`UnpackError::from_io`] returns
//! the error inside: the error of the source, unchanged, or a [`DecodeError`]. An error of the source comes after all bytes that
//! the source returned before. All content before the damage may have been returned already, because a checksum follows the data
//! that it covers.

mod bounds;
mod error;
pub mod inflate;
pub mod pipe;
pub mod pool;
pub mod unzstd;

pub use error::{DecodeError, UnpackError};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
