//! The logs of a job's ranks: NCCL's debug output, and what PyTorch, launchers and plugins print beside it. [`NcclLog`] is what
//! NCCL's lines show, [`Job`] the story of a job and the cause of its failure, and [`find_symptoms`] explains one message.
//!
//! The tables have the data: `patterns.yaml` the forms of NCCL's lines, `failures.yaml` what ends a job, `symptoms.yaml` the
//! meaning of messages.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod failure;
mod forms;
mod job;
mod log;
mod origin;
mod symptoms;
mod table;
mod text;

pub use failure::{Failure, failure_kinds};
pub use forms::{LineForm, line_form};
pub use job::{HostStory, Job, JobReader, is_local, ranks};
pub use log::NcclLog;
pub use symptoms::{Symptom, all_symptoms, find_symptoms};
pub use table::{ReplaceTable, tables};
pub use text::TextError;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
