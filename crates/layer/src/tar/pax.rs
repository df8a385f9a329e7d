//! Extended headers: PAX records and GNU long names, as Go's `archive/tar` reads them.

use std::collections::BTreeMap;

use super::header::until_nul;
use super::sparse::{Map, MapError};

/// Prefix of the records that hold extended attributes.
const ATTRIBUTE: &[u8] = b"SCHILY.xattr.";

/// Contents of the extended headers of the next member.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    /// The records of the last PAX header; `None` without one.
    pax: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

/// Formats of PAX sparse files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaxSparse {
    /// 0.0 and 0.1: the map is in the records.
    InRecords,
    /// 1.0: the map precedes the data.
    BeforeData,
}

impl Records {
    /// Reads records of the form `LENGTH KEY=VALUE\n` (POSIX.1-2017, pax Extended Header). They replace those of an
    /// earlier header. The first malformed record is an error.
    pub(super) fn set_pax(&mut self, mut data: &[u8]) -> Result<(), String> {
        let mut records = BTreeMap::new();
        // Records of sparse format 0.0 repeat: offset and length in turn.
        let mut pairs: Vec<&[u8]> = Vec::new();
        while !data.is_empty() {
            let (key, value, rest) = record(data).ok_or("a PAX record is malformed")?;
            data = rest;
            if matches!(key, b"GNU.sparse.offset" | b"GNU.sparse.numbytes") {
                let expected: &[u8] =
                    if pairs.len().is_multiple_of(2) { b"GNU.sparse.offset" } else { b"GNU.sparse.numbytes" };
                if key != expected || value.contains(&b',') {
                    return Err("a PAX record is malformed: the sparse map is out of order".to_owned());
                }
                pairs.push(value);
            } else {
                records.insert(key.to_vec(), value.to_vec());
            }
        }
        if !pairs.is_empty() {
            records.insert(b"GNU.sparse.map".to_vec(), pairs.join(&b','));
        }
        self.pax = Some(records);
        Ok(())
    }

    pub(super) fn set_long_name(&mut self, data: &[u8]) {
        self.long_name = Some(until_nul(data).to_vec()).filter(|name| !name.is_empty());
    }

    pub(super) fn set_long_link(&mut self, data: &[u8]) {
        self.long_link = Some(until_nul(data).to_vec()).filter(|name| !name.is_empty());
    }

    /// Verifies the records that engines parse: a layer with other values is refused.
    pub(super) fn verify(&self) -> Result<(), String> {
        for key in ["uid", "gid", "size"] {
            self.number(key)?;
        }
        match ["atime", "mtime", "ctime"].iter().find(|key| self.get(key).is_some_and(|value| !is_time(value))) {
            Some(key) => Err(format!("the PAX record '{key}' is not a time")),
            None => Ok(()),
        }
    }

    /// A record. An empty value is as good as none.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.pax.as_ref()?.get(key.as_bytes()).map(Vec::as_slice).filter(|value| !value.is_empty())
    }

    /// Name and value of each extended attribute.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let records = self.pax.iter().flat_map(|records| records.range(ATTRIBUTE.to_vec()..));
        records.map_while(|(key, value)| Some((key.strip_prefix(ATTRIBUTE)?, value.as_slice())))
    }

    /// The member's name from an extended header. A GNU long name overrides a PAX record, as in Go.
    pub(super) fn name(&self) -> Option<&[u8]> {
        self.long_name.as_deref().or_else(|| self.get("path"))
    }

    pub(super) fn link(&self) -> Option<&[u8]> {
        self.long_link.as_deref().or_else(|| self.get("linkpath"))
    }

    /// Parses a decimal record.
    pub(super) fn number(&self, key: &str) -> Result<Option<i64>, String> {
        self.get(key)
            .map(|value| parse(value).ok_or_else(|| format!("the PAX record '{key}' is not a number")))
            .transpose()
    }

    /// The format of a sparse file; `None` for any other file. An unknown version is not sparse.
    pub(super) fn sparse(&self) -> Option<PaxSparse> {
        match (self.get("GNU.sparse.major"), self.get("GNU.sparse.minor")) {
            (Some(b"0"), Some(b"0" | b"1")) => Some(PaxSparse::InRecords),
            (Some(b"1"), Some(b"0")) => Some(PaxSparse::BeforeData),
            (None, None) => self.get("GNU.sparse.map").map(|_| PaxSparse::InRecords),
            _ => None,
        }
    }

    /// The real name of a sparse file; its `path` record names a placeholder.
    pub(super) fn sparse_name(&self) -> Option<&[u8]> {
        self.get("GNU.sparse.name")
    }

    /// The real size of a sparse file; the stored size without a record.
    pub(super) fn sparse_real_size(&self, stored: u64) -> Result<u64, String> {
        let key = if self.get("GNU.sparse.size").is_some() { "GNU.sparse.size" } else { "GNU.sparse.realsize" };
        match self.number(key)? {
            Some(size) => u64::try_from(size).map_err(|_negative| format!("the PAX record '{key}' is negative")),
            None => Ok(stored),
        }
    }

    /// The sparse map of formats 0.0 and 0.1.
    pub(super) fn sparse_map(&self, limit: usize) -> Result<Map, MapError> {
        let text = self.get("GNU.sparse.map").unwrap_or_default();
        let numbers: Vec<&[u8]> = if text.is_empty() { Vec::new() } else { text.split(|&b| b == b',').collect() };
        let count = self.number("GNU.sparse.numblocks").map_err(MapError::malformed)?;
        if count.and_then(|count| usize::try_from(count).ok()?.checked_mul(2)) != Some(numbers.len()) {
            return Err(MapError::malformed("the sparse map is malformed: its length is not GNU.sparse.numblocks"));
        }
        let mut map = Map::new(limit);
        for pair in numbers.chunks(2) {
            let number = |index: usize| pair.get(index).and_then(|text| u64::try_from(parse(text)?).ok());
            let (Some(offset), Some(length)) = (number(0), number(1)) else {
                return Err(MapError::malformed("the sparse map is malformed"));
            };
            map.push(offset, length)?;
        }
        Ok(map)
    }
}

/// Key and value of the first record, and what follows it.
fn record(data: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = data.iter().position(|&b| b == b' ')?;
    let length: usize = std::str::from_utf8(data.get(..space)?).ok()?.parse().ok()?;
    let (record, rest) = data.split_at_checked(length)?;
    let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&b| b == b'=').filter(|equals| *equals > 0)?;
    let key = record.get(..equals)?;
    let value = record.get(equals + 1..)?;
    // Engines use these values as C strings; the others may be binary.
    let text = if matches!(key, b"path" | b"linkpath" | b"uname" | b"gname") { value } else { key };
    (!text.contains(&0)).then_some((key, value, rest))
}

/// Returns true for seconds with an optional decimal fraction.
fn is_time(text: &[u8]) -> bool {
    let mut parts = text.splitn(2, |&b| b == b'.');
    parts.next().and_then(parse).is_some() && parts.next().is_none_or(|part| part.iter().all(u8::is_ascii_digit))
}

fn parse(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
