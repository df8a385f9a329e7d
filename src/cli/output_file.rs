//! Files that the user names. Every command writes them here.
//!
//! A regular file is replaced when its new content is complete, and keeps its mode and, where the system permits it, its
//! owner. Links stay, and what they lead to is replaced. Anything else is written in place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use model::{WriteTarget, was_opened};

use super::CliError;
use super::interrupt::PendingFile;

/// An open file that the user named.
#[derive(Debug)]
pub(super) struct OutputFile {
    /// The path that the user gave.
    name: PathBuf,
    state: OutputState,
}

#[derive(Debug)]
enum OutputState {
    /// A temporary file next to the target, and the target.
    Pending(PendingFile, PathBuf),
    /// The target. Its content from before this run is removed by the first write if `is_stale` is true.
    Target { file: File, is_stale: bool },
}

impl OutputFile {
    /// Opens a file that is complete when it is [kept](Self::keep). A folder that is missing is reported at once.
    pub(super) fn create(path: &Path) -> Result<Self, CliError> {
        Self::open(path, false)
    }

    /// Opens a file that has each line when it is written, for a run that may not come to its end.
    pub(super) fn in_place(path: &Path) -> Result<Self, CliError> {
        Self::open(path, true)
    }

    fn open(path: &Path, is_in_place: bool) -> Result<Self, CliError> {
        let opened = WriteTarget::of(path).and_then(|target| match &target {
            WriteTarget::Replaced(file) if is_in_place && fs::symlink_metadata(file).is_err() => {
                Ok(OutputState::Target { file: File::create_new(file)?, is_stale: false })
            }
            WriteTarget::Replaced(file) if !is_in_place => match pending(file) {
                Ok(pending) => Ok(OutputState::Pending(pending, file.clone())),
                // The folder can be another user's, and the file this user's.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    stale(&target).map_err(|_not_writable| error)
                }
                Err(error) => Err(error),
            },
            WriteTarget::Replaced(_) | WriteTarget::InPlace(_) | WriteTarget::Descriptor(_) => stale(&target),
        });
        let state = opened.map_err(|error| failure(&path.display().to_string(), error))?;
        let opened = Self { name: path.to_owned(), state };
        opened.spare_inputs()?;
        Ok(opened)
    }

    /// Returns an error if what will be replaced is a file that this run has opened by its name. Some are opened after the
    /// outputs, so this is also called before anything is replaced.
    fn spare_inputs(&self) -> Result<(), CliError> {
        let before = match &self.state {
            OutputState::Pending(_, target) => fs::metadata(target),
            OutputState::Target { file, is_stale: true } => file.metadata(),
            OutputState::Target { is_stale: false, .. } => return Ok(()),
        };
        if before.is_ok_and(|file| was_opened(&file)) { Err(taken(&self.name, "this file")) } else { Ok(()) }
    }

    /// The file that is replaced; `None` for one that is written in place.
    pub(super) fn replaced(&self) -> Option<&Path> {
        match &self.state {
            OutputState::Pending(_, target) => Some(target),
            OutputState::Target { .. } => None,
        }
    }

    /// Writes to the file. A reader that closes a pipe early (EPIPE) is not an error.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
        self.spare_inputs()?;
        match self.try_write(write) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| self.failure(error)),
        }
    }

    fn try_write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let file = match &mut self.state {
            OutputState::Pending(file, _) => file.file(),
            OutputState::Target { file, is_stale } => {
                if std::mem::take(is_stale) {
                    file.set_len(0)?;
                }
                file
            }
        };
        let mut buffered = io::BufWriter::new(file);
        write(&mut buffered).and_then(|()| buffered.flush())
    }

    /// Puts what was written in its place. Later writes append to it.
    pub(super) fn keep(mut self) -> Result<Self, CliError> {
        self.spare_inputs()?;
        if let OutputState::Pending(file, target) = self.state {
            let file = file.persist(&target).map_err(|error| failure(&self.name.display().to_string(), error))?;
            self.state = OutputState::Target { file, is_stale: false };
        } else {
            // An empty output replaces what the file had.
            self.write(|_| Ok(()))?;
        }
        Ok(self)
    }

    fn failure(&self, error: io::Error) -> CliError {
        failure(&self.name.display().to_string(), error)
    }
}

fn failure(what: &str, error: io::Error) -> CliError {
    CliError::Output { what: what.to_owned(), error }
}

/// Opens a target in place. A descriptor appends to what was written to it.
fn stale(target: &WriteTarget) -> io::Result<OutputState> {
    let file = target.open_in_place()?;
    let is_stale = !matches!(target, WriteTarget::Descriptor(_)) && file.metadata()?.is_file();
    Ok(OutputState::Target { file, is_stale })
}

/// Creates a temporary file next to the one that it will replace, with its mode and owner.
fn pending(target: &Path) -> io::Result<PendingFile> {
    let folder = target.parent().unwrap_or(Path::new("/"));
    let mut file = PendingFile::create(tempfile::Builder::new().prefix(".ncclcheck-"), folder)?;
    let Ok(before) = target.symlink_metadata() else { return Ok(file) };
    let new = file.file();
    let now = new.metadata()?;
    // Only root gives files away, and others only to their own groups. As `sed -i` and editors do, what cannot be kept is
    // not an error.
    if (now.uid(), now.gid()) != (before.uid(), before.gid())
        && fchown(&*new, Some(before.uid()), Some(before.gid())).is_err()
    {
        let _not_permitted = fchown(&*new, None, Some(before.gid()));
    }
    // After the owner, whose change clears bits of the mode.
    new.set_permissions(fs::Permissions::from_mode(before.mode() & 0o777))?;
    Ok(file)
}

/// Writes a file.
pub(super) fn file(path: &Path, text: &str) -> Result<(), CliError> {
    written(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a file, piece by piece.
pub(super) fn written(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let mut file = OutputFile::create(path)?;
    file.write(write)?;
    file.keep().map(drop)
}

/// Returns an error if an output would replace an image, or a file in a folder that is one. Everything is in the root folder,
/// and whoever writes an output there means to.
pub(super) fn spare_images<'p>(
    images: impl IntoIterator<Item = &'p Path>,
    outputs: impl IntoIterator<Item = &'p Path>,
) -> Result<(), CliError> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let root = identity(Path::new("/"));
    let images: Vec<_> = images.into_iter().filter_map(identity).filter(|image| Some(*image) != root).collect();
    for output in outputs {
        let Some(file) = output.canonicalize().ok().filter(|file| file.is_file()) else { continue };
        let is_image = |place: &&Path| identity(place).is_some_and(|place| images.contains(&place));
        if let Some(image) = file.ancestors().find(is_image) {
            return Err(taken(output, if image == file { "this file" } else { "the folder that it is in" }));
        }
    }
    Ok(())
}

fn taken(output: &Path, what: &str) -> CliError {
    let name = output.display();
    CliError::Usage(format!("{name}: this run reads {what}\n  help: name another file for the output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_at_the_end_or_written_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("file", &link).unwrap();
        let text = || fs::read_to_string(&path).unwrap();
        let write = |file: &mut OutputFile, text: &str| file.write(|out| out.write_all(text.as_bytes())).unwrap();

        let mut file = OutputFile::in_place(&link).unwrap();
        write(&mut file, "recorded, ");
        write(&mut file, "more");
        assert_eq!(text(), "recorded, more");
        // What was there stays until something is written.
        let mut file = OutputFile::in_place(&link).unwrap();
        assert_eq!(text(), "recorded, more");
        write(&mut file, "new");
        assert_eq!(text(), "new");
        OutputFile::in_place(&link).unwrap().keep().unwrap();
        assert_eq!(text(), "");

        let mut file = OutputFile::create(&link).unwrap();
        write(&mut file, "whole");
        assert_eq!(text(), "");
        let mut file = file.keep().unwrap();
        write(&mut file, ", and more");
        assert_eq!(text(), "whole, and more");
        let mut file = OutputFile::create(&link).unwrap();
        write(&mut file, "lost");
        drop(file);
        assert_eq!(text(), "whole, and more");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
