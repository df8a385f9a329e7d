//! Decodes gzip and zstd streams on many threads, in bounded memory, from sources that cannot seek.

pub mod inflate;
pub mod pipe;
pub mod pool;
pub mod unzstd;
