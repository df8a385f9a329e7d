//! Permissions of a process without capabilities (Linux, `generic_permission`; path_resolution(7)).

use std::fmt;

use model::{FileOwner, Gap, ImagePath};

use super::{NoFile, NodeId, ROOT, RootFs, What};

/// The numeric user and groups of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user. Root has every permission except to execute a file that no one may execute.
    pub user: u32,
    /// The group, then the supplementary groups.
    pub groups: Vec<u32>,
}

impl Credentials {
    /// The credentials of root.
    pub fn root() -> Self {
        Self { user: 0, groups: vec![0] }
    }

    /// The credentials of a user to whom only the permissions for others apply.
    pub const fn anybody() -> Self {
        Self { user: u32::MAX, groups: Vec::new() }
    }
}

/// What a process does with a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Learns that the file exists: needs search permission on the directories of the path alone.
    Exists,
    /// Reads a file, or lists a directory.
    Read,
    /// Executes a file, or searches a directory.
    Execute,
}

impl FileAccess {
    const fn bit(self) -> u32 {
        match self {
            Self::Exists => 0,
            Self::Read => 4,
            Self::Execute => 1,
        }
    }
}

/// A file or a directory whose mode refuses an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Its path, without links.
    pub path: ImagePath,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner; `None` if unknown.
    pub owner: Option<FileOwner>,
    /// True for a directory.
    pub is_directory: bool,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (mode {:04o}", self.path, self.mode)?;
        match self.owner {
            Some(FileOwner { user, group }) => write!(f, ", owner {user}:{group})"),
            None => f.write_str(")"),
        }
    }
}

/// Why a path cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not lead to anything, or to something else.
    NoFile(NoFile),
    /// A mode refuses the access.
    Denied(Denied),
    /// It depends on an owner that the image does not record.
    Unknown(Gap),
}

impl From<NoFile> for Refusal {
    fn from(reason: NoFile) -> Self {
        Self::NoFile(reason)
    }
}

impl RootFs {
    /// Returns true when a path leads to a regular file that some user may execute.
    pub fn is_executable(&self, path: &ImagePath) -> bool {
        self.resolve(path).is_ok_and(|(_, node)| {
            let node = self.node(node);
            matches!(node.what, What::File { .. }) && node.mode & 0o111 != 0
        })
    }

    /// Returns true when a path leads to anything.
    pub fn exists(&self, path: &ImagePath) -> bool {
        self.resolve(path).is_ok()
    }

    /// Returns the path without links if a process may do this with what it leads to.
    pub fn access(&self, who: &Credentials, path: &[u8], access: FileAccess) -> Result<ImagePath, Refusal> {
        let search = |id, names: &[&[u8]]| self.permit(who, id, FileAccess::Execute, || path_of(names));
        let (real, id) = self.follow_through(ROOT, path, search)?;
        self.permit(who, id, access, || real.clone())?;
        Ok(real)
    }

    /// Checks the mode of one node.
    fn permit(
        &self,
        who: &Credentials,
        id: NodeId,
        access: FileAccess,
        path: impl FnOnce() -> ImagePath,
    ) -> Result<(), Refusal> {
        let node = self.node(id);
        let mode = node.mode;
        let bit = access.bit();
        let is_directory = matches!(node.what, What::Directory(_));
        // CAP_DAC_OVERRIDE, which engines give to root: it executes files that anyone may execute.
        if bit == 0 || (who.user == 0 && (bit != 1 || is_directory || mode & 0o111 != 0)) {
            return Ok(());
        }
        let owner = self.owners.get(&id).copied().unwrap_or(Some(FileOwner::ROOT));
        let is_granted = |class: u32| (mode >> class) & bit != 0;
        let is_allowed = match owner {
            Some(owner) if owner.user == who.user => is_granted(USER),
            Some(owner) if who.groups.contains(&owner.group) => is_granted(GROUP),
            Some(_) => is_granted(OTHERS),
            None if [USER, GROUP, OTHERS].map(is_granted) == [true; 3] => true,
            None if [USER, GROUP, OTHERS].map(is_granted) == [false; 3] => false,
            None => {
                let why = format!("{} has mode {mode:04o}, and the image does not record its owner", path());
                return Err(Refusal::Unknown(Gap::new(why)));
            }
        };
        if is_allowed { Ok(()) } else { Err(Refusal::Denied(Denied { path: path(), mode, owner, is_directory })) }
    }
}

/// Positions of the classes in permission bits.
const USER: u32 = 6;
const GROUP: u32 = 3;
const OTHERS: u32 = 0;

fn path_of(names: &[&[u8]]) -> ImagePath {
    ImagePath::normalise(&names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use layer::scan::{Compression, LayerScan};
    use model::{Entry, EntryKind, Limits};

    fn entry(path: &str, kind: EntryKind, mode: u32, owner: Option<(u32, u32)>) -> Entry {
        let owner = owner.map(|(user, group)| FileOwner { user, group });
        Entry { path: path.into(), kind, mode, owner, size: 0 }
    }

    fn image(entries: Vec<Entry>) -> RootFs {
        let layer = LayerScan {
            compression: Compression::None,
            unpacked: 0,
            diff_id: None,
            entries,
            found: std::collections::BTreeMap::new(),
        };
        RootFs::fold(vec![Arc::new(layer)], &Limits::default())
    }

    const FILE: EntryKind = EntryKind::File;
    const FOLDER: EntryKind = EntryKind::Directory;

    fn who(user: u32, groups: &[u32]) -> Credentials {
        Credentials { user, groups: groups.to_vec() }
    }

    /// Why the access fails: the path whose mode refuses it, or another word.
    fn refused(rootfs: &RootFs, who: &Credentials, path: &str, access: FileAccess) -> Option<String> {
        rootfs.access(who, path.as_bytes(), access).err().map(|refusal| match refusal {
            Refusal::NoFile(why) => format!("{why:?}"),
            Refusal::Denied(denied) => denied.path.to_string(),
            Refusal::Unknown(gap) => gap.why,
        })
    }

    #[test]
    fn the_first_class_that_fits_decides_alone() {
        let owner = Some((1000, 100));
        let rootfs =
            image(vec![entry("a", FILE, 0o077, owner), entry("b", FILE, 0o604, owner), entry("c", FILE, 0o440, owner)]);
        let read = |who: &Credentials, path| refused(&rootfs, who, path, FileAccess::Read);
        assert_eq!(read(&who(1000, &[100]), "a").as_deref(), Some("/a"), "the owner has no bit");
        assert_eq!(read(&who(1001, &[7, 100]), "a"), None, "a supplementary group");
        assert_eq!(read(&who(1001, &[100]), "b").as_deref(), Some("/b"), "the group has no bit");
        assert_eq!(read(&who(1001, &[7]), "b"), None);
        assert_eq!(read(&who(1001, &[7]), "c").as_deref(), Some("/c"));
        assert_eq!(read(&Credentials::root(), "a"), None);
    }

    #[test]
    fn root_executes_only_what_anyone_may_execute() {
        let rootfs = image(vec![
            entry("data", FILE, 0o644, Some((0, 0))),
            entry("tool", FILE, 0o001, Some((0, 0))),
            entry("closed", FOLDER, 0o000, Some((5, 5))),
            entry("closed/x", FILE, 0o000, Some((5, 5))),
        ]);
        let execute = |path| refused(&rootfs, &Credentials::root(), path, FileAccess::Execute);
        assert_eq!(execute("data").as_deref(), Some("/data"));
        assert_eq!(execute("tool"), None);
        assert_eq!(execute("closed"), None, "root searches every directory");
        assert_eq!(refused(&rootfs, &Credentials::root(), "closed/x", FileAccess::Read), None);
    }

    #[test]
    fn every_directory_on_the_way_must_be_searched() {
        let root = Some((0, 0));
        let rootfs = image(vec![
            entry("root", FOLDER, 0o700, root),
            entry("root/lib", FOLDER, 0o755, root),
            entry("root/lib/a", FILE, 0o644, root),
            entry("listed", FOLDER, 0o744, root),
            entry("listed/a", FILE, 0o644, root),
            entry("link", EntryKind::Symlink(b"/root/lib".to_vec().into()), 0o777, root),
            entry("up", EntryKind::Symlink(b"root/../listed".to_vec().into()), 0o777, root),
        ]);
        let user = who(1000, &[1000]);
        let exists = |path| refused(&rootfs, &user, path, FileAccess::Exists);
        for path in ["root/lib", "root/lib/a", "link/a", "link", "up", "root/none"] {
            assert_eq!(exists(path).as_deref(), Some("/root"), "{path}");
        }
        assert_eq!(exists("root"), None, "the mode of the directory itself does not hide it");
        assert_eq!(exists("none").as_deref(), Some("Missing"));
        assert_eq!(exists("listed/a").as_deref(), Some("/listed"));
        assert_eq!(refused(&rootfs, &user, "listed", FileAccess::Read), None, "its names can be listed");
        assert_eq!(refused(&rootfs, &user, "root", FileAccess::Read).as_deref(), Some("/root"));
    }

    #[test]
    fn an_unknown_owner_matters_only_where_the_classes_differ() {
        let rootfs = image(vec![entry("a", FILE, 0o755, None), entry("b", FILE, 0o700, None)]);
        let user = who(1000, &[1000]);
        assert_eq!(refused(&rootfs, &user, "a", FileAccess::Execute), None);
        let why = refused(&rootfs, &user, "b", FileAccess::Read).unwrap();
        assert!(why.contains("does not record its owner"), "{why}");
        assert_eq!(refused(&rootfs, &who(0, &[0]), "b", FileAccess::Read), None);
    }

    #[test]
    fn a_later_layer_changes_the_owner() {
        let layer = |owner| {
            let entries = vec![entry("data", FOLDER, 0o700, Some(owner))];
            let found = std::collections::BTreeMap::new();
            Arc::new(LayerScan { compression: Compression::None, unpacked: 0, diff_id: None, entries, found })
        };
        let rootfs = RootFs::fold(vec![layer((0, 0)), layer((1000, 1000))], &Limits::default());
        assert_eq!(refused(&rootfs, &who(1000, &[]), "data", FileAccess::Execute), None);
        let rootfs = RootFs::fold(vec![layer((1000, 1000)), layer((0, 0))], &Limits::default());
        assert_eq!(refused(&rootfs, &who(1000, &[]), "data", FileAccess::Execute).as_deref(), Some("/data"));
    }
}
