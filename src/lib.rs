//! Tells, from the bytes of a container image and from running it, whether distributed PyTorch training in it will use NCCL,
//! NVLink and RDMA.
//!
//! The pipeline, a module for each stage:
//!
//! ```text
//! source ──► scan ──► rootfs ──► facts ──► rules ──► report
//! (bytes)   (map)     (fold)       ▲
//!                                probe
//!                           (the image, running)
//! ```
//!
//! - [`source`] opens an image wherever it is and hands out its documents and blobs; [`tarball`] reads tar streams.
//! - A [`pipe`] carries the bytes of a blob from thread to thread. [`inflate`] unpacks gzip and [`unzstd`] zstd, on many
//!   processors at once by the threads of a [`pool`].
//! - [`scan`] turns one layer blob into a [`scan::LayerScan`]: its entries, and what extractors found in the files that they
//!   asked for. One forward pass, a pure function of the blob; of a layer with a table of contents, only what is needed.
//! - [`cache`] keeps such scans by the digests of their bytes, so that nobody scans the same layer twice.
//! - [`rootfs`] folds the layers into the file system that a container would see, and knows how the dynamic loader searches
//!   in it.
//! - [`facts`] are typed answers with dotted names, and the places where they were read. What could not be determined is
//!   [`model::Fact::Unknown`], and is never taken for an answer.
//! - [`rules`] are YAML documents with CEL conditions over facts; each yields exactly one judgement.
//! - [`policy`] is what an organisation makes of the rules: severities, requirements, waivers.
//! - [`report`] renders judgements and decides nothing.
//! - [`probe`] runs the image on this host's GPUs, by an engine or in place, and adds facts; rules do not care where a fact
//!   came from. What runs inside is a Python program, `src/probe/payload`.
//! - [`document`] reads the YAML that people write, and tells their mistakes with their places.
//! - [`host`] reads what a machine says of itself, here or in a record of another.
//! - [`launch`] reads the variables that a job's launch files set.
//! - [`pipeline`] puts the first three together; [`cli`] is the program.
//!
//! ```no_run
//! use ncclcheck::{facts::{Facts, World}, model::NoProgress, pipe::Cancel, pipeline, rules::{RuleSet, judge}};
//!
//! fn outcomes(request: &pipeline::Request) -> Result<(), Box<dyn std::error::Error>> {
//!     let rules = RuleSet::builtin()?;
//!     for image in pipeline::load(request, &NoProgress, &Cancel::default())? {
//!         let facts = Facts::collect(&World { rootfs: &image.rootfs, config: image.config.as_ref(), launch: &[] });
//!         for judgement in judge(&rules, &facts) {
//!             println!("{}: {:?}", judgement.rule.id, judgement.outcome);
//!         }
//!     }
//!     Ok(())
//! }
//! ```

pub mod check;
pub mod cli;
pub mod document;
pub mod facts;
pub mod host;
pub mod image;
pub mod judge;
pub mod launch;
pub mod layer;
pub mod model;
pub mod probe;
pub mod report;
pub mod rootfs;
