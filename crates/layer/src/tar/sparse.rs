//! Maps of sparse files: they list the stored parts (GNU tar manual, "Storing Sparse Files").

use std::collections::VecDeque;

use model::OverLimit;

use super::BLOCK;

/// One stored part of a sparse file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// Reason to refuse a map.
#[derive(Debug)]
pub(super) enum MapError {
    /// The map is invalid.
    Malformed(String),
    /// The map has too many extents.
    Limit(OverLimit),
}

impl MapError {
    pub(super) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }
}

/// A map under construction: ascending extents without overlap.
#[derive(Debug)]
pub(super) struct Map {
    extents: VecDeque<Extent>,
    limit: usize,
}

impl Map {
    pub(super) const fn new(limit: usize) -> Self {
        Self { extents: VecDeque::new(), limit }
    }

    pub(super) fn push(&mut self, offset: u64, length: u64) -> Result<(), MapError> {
        if self.extents.len() >= self.limit {
            let what = format!("a sparse file of more than {} extents", self.limit);
            return Err(MapError::Limit(OverLimit::new(what, "sparse_extents", self.limit as u64)));
        }
        let free = self.extents.back().map_or(0, |last| last.offset + last.length);
        if offset < free || offset.checked_add(length).is_none() {
            return Err(MapError::malformed(format!("the sparse map goes backwards at offset {offset}")));
        }
        self.extents.push_back(Extent { offset, length });
        Ok(())
    }

    /// Returns the extents, after checking them against the file's real size and the number of stored bytes.
    pub(super) fn finish(self, size: u64, stored: u64) -> Result<VecDeque<Extent>, MapError> {
        let end = self.extents.back().map_or(0, |last| last.offset + last.length);
        let mapped: u64 = self.extents.iter().map(|extent| extent.length).sum();
        if end > size || mapped != stored {
            let what = format!(
                "the sparse map covers {mapped} bytes up to {end}; {stored} are stored and the file has {size}"
            );
            return Err(MapError::malformed(what));
        }
        Ok(self.extents)
    }
}

/// Parser of the map in PAX format 1.0: decimal numbers, one a line, padded to whole blocks. Their count comes first,
/// then offsets and lengths.
#[derive(Debug)]
pub(super) struct TextMap {
    map: Map,
    digits: Vec<u8>,
    /// Numbers left to read; `None` before the count is known.
    left: Option<u64>,
    offset: Option<u64>,
}

impl TextMap {
    pub(super) const fn new(limit: usize) -> Self {
        Self { map: Map::new(limit), digits: Vec::new(), left: None, offset: None }
    }

    /// Adds a block; returns true when it was the last one.
    pub(super) fn feed(&mut self, block: &[u8; BLOCK]) -> Result<bool, MapError> {
        for &byte in block {
            if self.left == Some(0) {
                return Ok(true);
            }
            match byte {
                b'0'..=b'9' if self.digits.len() < 20 => self.digits.push(byte),
                b'\n' => self.number()?,
                _ => return Err(MapError::malformed("the sparse map is malformed")),
            }
        }
        Ok(self.left == Some(0))
    }

    fn number(&mut self) -> Result<(), MapError> {
        let text = String::from_utf8_lossy(&self.digits).into_owned();
        let number: u64 =
            text.parse().map_err(|_number| MapError::malformed(format!("the sparse map holds '{text}'")))?;
        self.digits.clear();
        match (&mut self.left, self.offset.take()) {
            (None, _) => self.left = Some(number.saturating_mul(2)),
            (Some(left), None) => {
                self.offset = Some(number);
                *left -= 1;
            }
            (Some(left), Some(offset)) => {
                self.map.push(offset, number)?;
                *left -= 1;
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Map {
        self.map
    }
}
