//! Extended headers: PAX records and GNU long names.

use std::collections::BTreeMap;

use super::sparse::{Map, MapError};

/// Contents of the extended headers of the next member, or of the global headers of all following members.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pax: BTreeMap<Vec<u8>, Vec<u8>>,
    /// `GNU.sparse.offset` and `GNU.sparse.numbytes` of PAX sparse format 0.0, the only records that repeat.
    sparse_pairs: Vec<Vec<u8>>,
    long_name: Option<Vec<u8>>,
    long_link: Option<Vec<u8>>,
}

impl Records {
    /// Adds records of the form `LENGTH KEY=VALUE\n` (POSIX.1-2017, pax Extended Header). The tar crate's parser is not
    /// used, because it stops silently at a malformed record.
    pub(super) fn add_pax(&mut self, mut data: &[u8]) -> Result<(), String> {
        while data.first().is_some_and(|&b| b != 0) {
            let malformed = || "a PAX record is malformed".to_owned();
            let space = data.iter().position(|&b| b == b' ').ok_or_else(malformed)?;
            let length: usize = data
                .get(..space)
                .and_then(|digits| std::str::from_utf8(digits).ok())
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(malformed)?;
            let (record, rest) = data.split_at_checked(length).ok_or_else(malformed)?;
            let record = record.get(space + 1..).and_then(|record| record.strip_suffix(b"\n")).ok_or_else(malformed)?;
            let mut parts = record.splitn(2, |&b| b == b'=');
            let (Some(key), Some(value)) = (parts.next(), parts.next()) else { return Err(malformed()) };
            if matches!(key, b"GNU.sparse.offset" | b"GNU.sparse.numbytes") {
                self.sparse_pairs.push(value.to_vec());
            } else {
                self.pax.insert(key.to_vec(), value.to_vec());
            }
            data = rest;
        }
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "same signature as add_pax")]
    pub(super) fn set_long_name(&mut self, data: &[u8]) -> Result<(), String> {
        self.long_name = Some(until_nul(data));
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "same signature as add_pax")]
    pub(super) fn set_long_link(&mut self, data: &[u8]) -> Result<(), String> {
        self.long_link = Some(until_nul(data));
        Ok(())
    }

    /// Adds global records that the member does not override; an empty value deletes a record (POSIX.1-2017, pax).
    pub(super) fn inherit(&mut self, global: &Self) {
        for (key, value) in &global.pax {
            self.pax.entry(key.clone()).or_insert_with(|| value.clone());
        }
        self.pax.retain(|_, value| !value.is_empty());
    }

    fn get(&self, key: &str) -> Option<&[u8]> {
        self.pax.get(key.as_bytes()).map(Vec::as_slice)
    }

    /// The member's name from an extended header. A PAX record overrides a GNU long name, as in GNU tar.
    pub(super) fn name(&self) -> Option<&[u8]> {
        self.get("path").or(self.long_name.as_deref())
    }

    pub(super) fn link(&self) -> Option<&[u8]> {
        self.get("linkpath").or(self.long_link.as_deref())
    }

    /// Parses a decimal record.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, String> {
        self.get(key)
            .map(|value| parse(value).ok_or_else(|| format!("the PAX record '{key}' is not a number")))
            .transpose()
    }

    /// Version of the PAX sparse format, if a record names it: 0.1 and 1.0 do.
    pub(super) fn sparse_version(&self) -> Option<(u64, u64)> {
        Some((parse(self.get("GNU.sparse.major")?)?, parse(self.get("GNU.sparse.minor")?)?))
    }

    /// The real name of a sparse file; its `path` record names a placeholder.
    pub(super) fn sparse_name(&self) -> Option<&[u8]> {
        self.get("GNU.sparse.name")
    }

    pub(super) fn sparse_real_size(&self) -> Result<u64, String> {
        let size = match self.number("GNU.sparse.realsize")? {
            Some(size) => Some(size),
            None => self.number("GNU.sparse.size")?,
        };
        size.ok_or_else(|| "a sparse file without its real size".to_owned())
    }

    /// The sparse map of formats 0.0 (repeated records) and 0.1 (one comma-separated record); `None` if the file is not
    /// sparse.
    pub(super) fn sparse_map(&self, limit: usize) -> Result<Option<Map>, MapError> {
        let numbers: Vec<&[u8]> = if let Some(map) = self.get("GNU.sparse.map") {
            map.split(|&b| b == b',').filter(|part| !part.is_empty()).collect()
        } else if self.get("GNU.sparse.size").is_some() || !self.sparse_pairs.is_empty() {
            self.sparse_pairs.iter().map(Vec::as_slice).collect()
        } else {
            return Ok(None);
        };
        let mut map = Map::new(limit);
        for pair in numbers.chunks(2) {
            let number = |index: usize| pair.get(index).and_then(|text| parse(text));
            let (Some(offset), Some(length)) = (number(0), number(1)) else {
                return Err(MapError::malformed("the sparse map is malformed"));
            };
            map.push(offset, length)?;
        }
        Ok(Some(map))
    }
}

fn until_nul(data: &[u8]) -> Vec<u8> {
    data.split(|&b| b == 0).next().unwrap_or_default().to_vec()
}

fn parse(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
