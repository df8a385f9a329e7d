//! Compares the emulator with the processor: compiles libraries, calls their functions natively, and compares the results with the
//! emulator's results for the same bytes.
//!
//! AArch64 is cross-compiled and run by QEMU. Tests without their toolchain print to stderr that they are skipped.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod arithmetic;
mod maps;
mod refusals;
mod toolchain;
