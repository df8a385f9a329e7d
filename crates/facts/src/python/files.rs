//! The image's files as one process sees them: from its working directory, with the permissions of its user.

use std::cell::RefCell;

use model::{Fact, Gap, ImagePath};
use rootfs::{Credentials, FileAccess, Refusal, RootFs};

use super::super::start::ProcessState;
use super::super::text;
use super::budget::StartBudget;

/// The files of the image as a process sees them.
#[derive(Debug)]
pub(crate) struct ProcessFiles<'a> {
    pub(crate) rootfs: &'a RootFs,
    directory: ImagePath,
    /// `None` if the user is unknown: then nothing is refused.
    who: Option<Credentials>,
    /// Why an access may have been refused that counted as allowed.
    doubt: RefCell<Option<Gap>>,
    /// What the process may cost.
    pub(super) budget: StartBudget,
}

impl<'a> ProcessFiles<'a> {
    pub(crate) fn of(rootfs: &'a RootFs, state: &ProcessState) -> Self {
        let who = state.user.as_ref().ok().and_then(super::super::start::ContainerUser::credentials);
        let budget = StartBudget::new(rootfs.python_steps);
        Self { rootfs, directory: state.directory.clone(), who, doubt: RefCell::default(), budget }
    }

    /// The same files with every permission.
    pub(super) fn unlimited(self) -> Self {
        Self { who: None, ..self }
    }

    /// Returns true if no permission refuses a file.
    pub(super) fn is_unlimited(&self) -> bool {
        self.who.as_ref().is_none_or(|who| who.user == 0)
    }

    /// The path that a string of the process means.
    pub(super) fn absolute(&self, raw: &[u8]) -> ImagePath {
        self.directory.join(raw)
    }

    /// The working directory.
    pub(super) const fn directory(&self) -> &ImagePath {
        &self.directory
    }

    /// Why the process may see other files than this one says.
    pub(super) fn doubt(&self) -> Option<Gap> {
        self.doubt.borrow().clone()
    }

    /// Notes why the process may see other files.
    pub(super) fn doubts(&self, gap: Gap) {
        self.doubt.borrow_mut().get_or_insert(gap);
    }

    pub(super) fn is_file(&self, path: &ImagePath) -> bool {
        self.rootfs.open(path).is_ok() && self.may(path, FileAccess::Exists)
    }

    pub(super) fn is_directory(&self, path: &ImagePath) -> bool {
        self.rootfs.is_directory(path) && self.may(path, FileAccess::Exists)
    }

    pub(super) fn exists(&self, path: &ImagePath) -> bool {
        self.is_file(path) || self.is_directory(path)
    }

    /// Names in a directory, sorted; empty if the process cannot list it.
    pub(super) fn names(&self, folder: &ImagePath) -> Vec<&'a [u8]> {
        if self.lists(folder) { self.rootfs.names(folder).collect() } else { Vec::new() }
    }

    /// Names in a directory that begin with `prefix`, sorted; empty if the process cannot list it.
    pub(super) fn names_with(&self, folder: &ImagePath, prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
        let listed = self.lists(folder).then_some(folder);
        listed.into_iter().flat_map(move |folder| self.rootfs.names_with(folder, prefix))
    }

    /// True if the process can list a directory.
    pub(super) fn lists(&self, folder: &ImagePath) -> bool {
        self.rootfs.is_directory(folder) && self.may(folder, FileAccess::Read)
    }

    /// The content of a file; absent if the process cannot read it.
    pub(super) fn text(&self, path: &ImagePath) -> Fact<&'a [u8]> {
        match text(self.rootfs, path) {
            Fact::Absent => Fact::Absent,
            found if self.may(path, FileAccess::Read) => found,
            _ => Fact::Absent,
        }
    }

    /// The path of a file without links.
    pub(super) fn real(&self, path: &ImagePath) -> Option<ImagePath> {
        self.rootfs.open(path).ok().map(|(real, _)| real)
    }

    /// Why the process cannot do this with a path that exists; `None` if it can.
    pub(crate) fn refusal(&self, path: &ImagePath, access: FileAccess) -> Option<Refusal> {
        self.rootfs.access(self.who.as_ref()?, path.as_bytes(), access).err()
    }

    fn may(&self, path: &ImagePath, access: FileAccess) -> bool {
        match self.refusal(path, access) {
            None => true,
            Some(Refusal::Unknown(gap)) => {
                self.doubts(gap);
                true
            }
            Some(Refusal::NoFile(_) | Refusal::Denied(_)) => false,
        }
    }
}
