//! Shell scripts, read without running them (POSIX, "Shell Command Language", and what scripts of images use of bash).
//!
//! [`commands`] splits a text into simple commands without regard to what controls them. [`Evaluator`] computes what a
//! script does to variables, arguments and the working directory, and which programs it starts. What a script does is
//! often known only in part: a variable, a branch or a status may be unknown, each with its reason.

mod arithmetic;
mod builtin;
mod condition;
mod evaluate;
mod expand;
mod fault;
mod flat;
mod gap;
mod kind;
mod lexer;
mod merge;
mod parse;
mod pattern;
mod state;
mod syntax;
mod word;

pub use evaluate::{Evaluator, FileKind, ProgramCall, ShellSource, Surroundings};
pub use fault::{ScriptCause, ScriptFault};
pub use flat::{FlatCommand, commands};
pub use gap::ShellGap;
pub use kind::ShellKind;
pub use state::{Field, ShellState, ShellValue, ShellVariable, StartMark, UnknownField};
pub use word::{Parameter, ParameterForm, Piece, Word, name_length};

#[cfg(test)]
mod tests;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
