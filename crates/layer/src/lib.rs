//! One layer of an image: its tar ([`tar`]) or squashfs image ([`squashfs`]), the findings of a scan in it ([`scan`]), and
//! the cache of scans ([`cache`]), which may lie in a shared [`store`]. A scan is a function of the layer's bytes alone, whatever image the layer belongs to.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

pub mod cache;
pub mod scan;
pub mod squashfs;
pub mod store;
pub mod tar;
