//! The search for a module: `sys.path`, then the finders that startup code installed.

use model::{Gap, ImagePath};

use super::editable;
use super::files::ProcessFiles;
use super::modules::{self, Importable};
use super::program::is_of_packages;
use super::version::PythonVersion;

/// How an interpreter finds modules.
#[derive(Debug)]
pub(super) struct ModuleSearch {
    pub(super) version: PythonVersion,
    /// `sys.path`, with entries that do not exist.
    pub(super) entries: Vec<ImagePath>,
    /// The directory of the standard library.
    pub(super) standard: ImagePath,
    /// The archive of the standard library, which need not exist.
    pub(super) archive: ImagePath,
    /// Files of finders for editable packages.
    pub(super) finders: Vec<ImagePath>,
    /// Code that may change the search, and is not understood.
    pub(super) opaque: Vec<ImagePath>,
    /// Code that changes the path in a way that is not followed, although it makes no difference to torch.
    pub(super) unfollowed: Option<String>,
    /// A folder that a `.pth` file names and that the image does not have.
    pub(super) missing: Option<ImagePath>,
    /// An archive that runs, with modules of its own.
    pub(super) program: Option<ImagePath>,
    /// Why the path may have other entries.
    pub(super) gap: Option<Gap>,
}

/// The result of an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModuleImport {
    /// What is imported, if anything.
    pub(crate) found: Option<Importable>,
    /// Code that may lead to another module of this name, if the image has one.
    pub(crate) opaque: Vec<ImagePath>,
}

impl ModuleSearch {
    /// What a name is imported from.
    pub(super) fn import(&self, files: &ProcessFiles<'_>, name: &str) -> Result<ModuleImport, Gap> {
        if let Some(gap) = &self.gap {
            return Err(gap.clone());
        }
        if let Some(archive) = &self.program {
            let why = format!("{archive} is an archive of modules, whose content is not read");
            return Err(Gap::new(why).settled_by("check the image with the files of the archive unpacked"));
        }
        let mut found = modules::find(files, self.version, &self.entries, name);
        let place = found.as_ref().map(|found| found.path().parent());
        let before = self.entries.iter().take_while(|entry| Some(*entry) != place.as_ref());
        let mut archives = before.filter(|entry| self.may_have(files, entry, name));
        if let Some(archive) = archives.next() {
            return Err(Gap::new(format!("{archive}, an entry of sys.path, is an archive, whose content is not read")));
        }
        if found.is_none() {
            for finder in &self.finders {
                found = found.or(editable::find(files, self.version, finder, name)?);
            }
        }
        Ok(ModuleImport { found, opaque: self.opaque.clone() })
    }

    /// Why a module may be found that no entry has.
    pub(super) fn doubt(&self, files: &ProcessFiles<'_>, name: &str) -> Option<Gap> {
        if let Some(code) = self.opaque.first().map(ToString::to_string).or_else(|| self.unfollowed.clone()) {
            return Some(Gap::new(format!("{code} may change where modules come from")));
        }
        let of_installation = |entry: &ImagePath| *entry == self.archive || entry.file_name() == b"lib-dynload";
        let mut absent = self.entries.iter().filter(|entry| !files.exists(entry) && !of_installation(entry));
        let absent = absent.next().or(self.missing.as_ref());
        let mounted =
            absent.map(|folder| format!("{folder}, an entry of sys.path that the image does not have, may be mounted"));
        let finder = self.finders.iter().find(|finder| editable::names(files, finder, name));
        let mounted = mounted.or_else(|| {
            finder.map(|finder| format!("{finder} names a folder that the image does not have and a run may mount"))
        });
        mounted.map(Gap::new)
    }

    /// The module of the program's folder or of `PYTHONPATH` that is imported by a name, and the installed one that it hides.
    pub(super) fn hidden(&self, files: &ProcessFiles<'_>, name: &str) -> Option<(Importable, Importable)> {
        let find = |entries: &[ImagePath]| {
            let found = modules::find(files, self.version, entries, name)?;
            (!matches!(found, Importable::Namespace(_))).then_some(found)
        };
        let own = self.entries.iter().position(|entry| *entry == self.standard)?;
        let (own, installed) = self.entries.split_at_checked(own)?;
        let found = find(own).filter(|found| !is_of_packages(found.path()))?;
        Some((found, find(installed)?))
    }

    /// Returns true for a file that may be an archive with this module. An egg has the modules of the package that its
    /// name begins with.
    fn may_have(&self, files: &ProcessFiles<'_>, entry: &ImagePath, name: &str) -> bool {
        let is_other_egg = entry.file_name().ends_with(b".egg") && !entry.file_name().starts_with(name.as_bytes());
        *entry != self.archive && !is_other_egg && files.is_file(entry)
    }
}
