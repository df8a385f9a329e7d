//! Archives on disk that contain an image or a layout: indexed once by their headers, then read at random.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use layer::tar::TarReader;
use model::{EntryKind, ImagePath, Limits, open_regular};

use crate::layout::{LayoutFiles, OpenedFile};
use crate::source::SourceError;

use super::tar_message;

/// A tar archive on disk.
#[derive(Clone, Debug)]
pub(super) struct IndexedArchive {
    path: PathBuf,
    members: BTreeMap<ImagePath, IndexedMember>,
}

#[derive(Clone, Debug)]
enum IndexedMember {
    File { offset: u64, size: u64 },
    Link(ImagePath),
}

impl IndexedArchive {
    /// Reads the headers of all members. The archive must not be compressed.
    pub(super) fn read(path: &Path, limits: &Limits) -> Result<Self, SourceError> {
        let io = |error| SourceError::io(format!("reading {}", path.display()), error);
        let mut file = open_regular(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut members = BTreeMap::new();
        let mut at = 0;
        loop {
            file.seek(SeekFrom::Start(at)).map_err(io)?;
            // A small buffer, because the content between two headers is skipped.
            let mut reader = TarReader::new(BufReader::with_capacity(4096, &file), limits);
            let entry = reader
                .next_member()
                .map_err(|error| SourceError::invalid(tar_message(&path.display().to_string(), at, &error)))?;
            let Some(entry) = entry else { break };
            let offset = at + reader.offset();
            let end = offset.saturating_add(if entry.kind == EntryKind::File { entry.size } else { 0 });
            if end > length {
                let what = format!(
                    "{} is truncated: {} ends at byte {end}, the file has {length} bytes",
                    path.display(),
                    entry.path
                );
                return Err(SourceError::invalid(what));
            }
            let member = match entry.kind {
                EntryKind::File => Some(IndexedMember::File { offset, size: entry.size }),
                EntryKind::Symlink(target) => Some(IndexedMember::Link(entry.path.parent().join(&target))),
                EntryKind::Hardlink(target) => Some(IndexedMember::Link(target)),
                _ => None,
            };
            members.extend(member.map(|member| (entry.path, member)));
            // The end lies within the file, so this cannot overflow.
            at = end.next_multiple_of(512);
        }
        Ok(Self { path: path.to_owned(), members })
    }

    /// Returns true if the archive has this member.
    pub(super) fn contains(&self, path: &str) -> bool {
        self.members.contains_key(&ImagePath::from(path))
    }
}

impl IndexedArchive {
    /// The byte range of a member.
    fn find(&self, path: &ImagePath) -> Result<Option<Range<u64>>, SourceError> {
        let mut member = self.members.get(path);
        // `docker save` links equal layers to each other, one step deep.
        for _ in 0..8 {
            match member {
                Some(IndexedMember::Link(target)) => member = self.members.get(target),
                // The end lies within the archive.
                Some(IndexedMember::File { offset, size }) => return Ok(Some(*offset..*offset + *size)),
                None => return Ok(None),
            }
        }
        Err(SourceError::invalid(format!("{}: the links of {path} form a loop", self.path.display())))
    }

    fn reader(&self, range: Range<u64>) -> Result<Box<dyn Read + Send>, SourceError> {
        let open = || -> io::Result<io::Take<File>> {
            let mut file = open_regular(&self.path)?;
            file.seek(SeekFrom::Start(range.start))?;
            Ok(file.take(range.end.saturating_sub(range.start)))
        };
        let file = open().map_err(|error| SourceError::io(format!("reading {}", self.path.display()), error))?;
        Ok(Box::new(file))
    }
}

impl LayoutFiles for IndexedArchive {
    fn open(&self, path: &ImagePath) -> Result<Option<OpenedFile<'_>>, SourceError> {
        let Some(member) = self.find(path)? else { return Ok(None) };
        Ok(Some((self.reader(member.clone())?, member.end - member.start)))
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn reference(&self) -> Option<String> {
        Some(format!("oci-archive:{}", self.path.display()))
    }
}
