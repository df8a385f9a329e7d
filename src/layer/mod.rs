//! One layer of an image: its tar ([`tar`]) or squashfs image ([`squashfs`]), the findings of a scan in it ([`scan`]), and
//! the cache of scans ([`cache`]). A scan is a function of the layer's bytes alone, whatever image the layer belongs to.

pub mod cache;
pub mod scan;
pub mod squashfs;
pub mod tar;
