//! The emulator against the processor: libraries are compiled, their functions are called for real, and what they return is
//! compared with what the emulator returns of the same bytes.
//!
//! AArch64 is cross-compiled and run by QEMU. Where a toolchain is missing, its tests say on stderr that they are skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod arithmetic;
mod maps;
mod refusals;
mod toolchain;
