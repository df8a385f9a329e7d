//! The user of a process, from the image's passwd and group files.

use crate::model::ImagePath;
use crate::rootfs::RootFs;

use super::super::text;

/// The user that a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::facts) struct ContainerUser {
    /// The numeric user; `None` for a name that the image's passwd file lacks, which no engine starts.
    pub(in crate::facts) id: Option<u32>,
    /// Home directory: the one of the passwd file, else `/`, as container runtimes set `HOME`.
    pub(in crate::facts) home: ImagePath,
}

impl ContainerUser {
    /// The user that a configuration names: `NAME`, `UID`, or one of them with `:GROUP`; empty means root.
    pub(super) fn find(rootfs: &RootFs, user: &str) -> Self {
        let user = user.split(':').next().unwrap_or_default();
        if matches!(user, "" | "root" | "0") {
            return Self { id: Some(0), home: ImagePath::from("root") };
        }
        let passwd = text(rootfs, &ImagePath::from("etc/passwd"));
        let passwd = passwd.value().map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
        let mut lines = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let found = lines.find_map(|fields| match fields.as_slice() {
            [name, _, id, _, _, home, ..] if *name == user || *id == user => {
                Some(Self { id: id.parse().ok(), home: ImagePath::from(*home) })
            }
            _ => None,
        });
        found.unwrap_or_else(|| Self { id: user.parse().ok(), home: ImagePath::root() })
    }
}
