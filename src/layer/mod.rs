//! One layer of an image: its tar ([`tar`]), what a scan finds in it ([`scan`]), and the scans that are kept ([`cache`]). A scan
//! is a function of the layer's bytes alone, whatever image the layer belongs to.

pub mod cache;
pub mod scan;
pub mod tar;
