//! Determines if distributed PyTorch training in a container image will use NCCL, NVLink and RDMA, from the bytes of
//! the image and by running it.
//!
//! ```text
//! image ──► layer ──► rootfs ──► facts ──► judge ──► report
//! (open)    (scan)    (fold)       ▲
//!                                probe
//!                            (the image, running)
//! ```
//!
//! - [`image`] opens an image from any source and returns its verified documents and blobs.
//! - [`layer`] turns one layer into a [`layer::scan::LayerScan`]: its entries, and what extractors found in its files.
//!   A scan is a pure function of the layer's bytes, and [`layer::cache`] stores it.
//! - [`rootfs`] merges the layers into the file system of a container, and searches it as the dynamic loader does.
//! - [`facts`] are typed values with dotted names and the sites where they were read. A fact that could not be
//!   determined is [`model::Fact::Unknown`] and never counts as an answer.
//! - [`judge`] evaluates rules (YAML with CEL conditions) over facts, applies a policy, and reaches a verdict.
//! - [`report`] renders the judgements.
//! - [`probe`] runs the image on this host's GPUs and adds facts.
//! - [`machine`] describes a machine, and [`launch`] reads the variables that a job's launch files set.
//! - [`sandbox`] gives up the rights of a process that reading images does not need.
//! - [`doctor`] examines what a machine offers.
//! - [`check`] is the application: it judges one image for any number of hosts with a rule book and a baseline. The
//!   command line is built on it.
//! - [`cluster`] runs the probe on all nodes of a job and compares them; [`nodes`] judges them too.
//! - [`job`] reads the logs of a job, and makes facts of what they show.
//! - [`audit`] judges thousands of images with many workers, which share a [`store`].
//!
//! # Example
//!
//! Judge an image by a policy, for a described host:
//!
//! ```
//! use std::path::Path;
//! use ncclcheck::{Cancel, check::Check, image, judge::{PolicyText, Rulebook, Verdict}, machine::Host, model::NoProgress};
//!
//! let request = image::Request::new("oci-archive:fixtures/images/no-nccl.oci.tar")?;
//! let policy = PolicyText::read(Path::new("fixtures/policies/ci/ncclcheck.yaml"))?;
//! let rulebook = Rulebook::new(ncclcheck::shipped(), None, [&policy])?;
//! let hosts = ["driver=580.95,gpu=h100x8,rdma=mlx5".parse::<Host>()?.into()];
//! for image in image::load(&request, &NoProgress, &Cancel::default())? {
//!     for assessment in Check::new(&rulebook).hosts(&hosts).run(&image) {
//!         assert_eq!(assessment.verdict(), Some(Verdict::Fail));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod archive;
pub mod audit;
pub mod check;
#[doc(hidden)]
pub mod cli;
pub mod doctor;
pub mod job;
pub mod nodes;
pub mod sandbox;
mod shipped;

pub use facts::{launch, machine};
pub use layer::store;
pub use shipped::shipped;
pub use unpack::pipe::Cancel;
pub use {cluster, facts, image, judge, layer, model, nccllog, probe, report, rootfs};
