//! The user of a process, from the image's passwd and group files, as container runtimes find it (moby/sys,
//! `user.GetExecUser`).

use model::{ImagePath, StartUser};
use rootfs::{Credentials, RootFs};

use super::super::text;

/// The user that a process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerUser {
    /// The numeric user; `None` for a name that the image's passwd file lacks, which no engine starts.
    pub(crate) id: Option<u32>,
    /// The group, then the supplementary groups. A group that the configuration names is the only one.
    pub(crate) groups: Vec<u32>,
    /// Home directory in the image's passwd file; `None` if the file does not list the user.
    pub(crate) listed_home: Option<ImagePath>,
}

/// A line of a passwd file.
struct PasswdLine {
    name: String,
    user: u32,
    group: u32,
    home: ImagePath,
}

impl ContainerUser {
    /// The user that a configuration names: `NAME`, `UID`, or one of them with `:GROUP`; empty means root.
    pub(super) fn find(rootfs: &RootFs, user: &str) -> Self {
        let (user, group) = user.split_once(':').unwrap_or((user, ""));
        let number = if user.is_empty() { Some(0) } else { user.parse::<u32>().ok() };
        let is_meant = |line: &PasswdLine| number.map_or(line.name == user, |number| line.user == number);
        let found = passwd(rootfs).into_iter().find(is_meant);
        let id = found.as_ref().map(|line| line.user).or(number).or_else(|| (user == "root").then_some(0));
        let own = found.as_ref().map_or(0, |line| line.group);
        let groups = group_lines(rootfs);
        let groups = match (group, &found) {
            ("", Some(line)) => {
                let is_member = |members: &[String]| members.contains(&line.name);
                let more = groups.iter().filter(|(_, _, members)| is_member(members)).map(|(_, id, _)| *id);
                std::iter::once(own).chain(more).collect()
            }
            ("", None) => vec![own],
            (group, _) => {
                let number = group.parse::<u32>().ok();
                let is_meant = |name: &str, id: u32| number.map_or(name == group, |number| number == id);
                let named = groups.iter().find(|(name, id, _)| is_meant(name, *id)).map(|(_, id, _)| *id);
                named.or(number).into_iter().collect()
            }
        };
        Self { id, groups, listed_home: found.map(|line| line.home) }
    }

    /// The user that a launch names, in place of the one that the configuration has.
    pub(super) fn given(rootfs: &RootFs, own: &str, given: &StartUser) -> Self {
        let mut user = Self::find(rootfs, given.name.as_deref().unwrap_or(own));
        if let Some(group) = given.group {
            user.groups = std::iter::once(group).chain(user.groups.into_iter().skip(1)).collect();
        }
        let lines = group_lines(rootfs);
        let id = |name: &String| {
            let listed = lines.iter().find(|(listed, ..)| listed == name).map(|(_, id, _)| *id);
            name.parse().ok().or(listed)
        };
        user.groups.extend(given.more.iter().filter_map(id));
        user
    }

    /// Home directory as container runtimes set `HOME`: `/` for a user that the passwd file does not list.
    pub(crate) fn home(&self) -> ImagePath {
        self.listed_home.clone().unwrap_or_else(ImagePath::root)
    }

    /// What decides the permissions of a process of this user, if an engine starts it.
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        Some(Credentials { user: self.id?, groups: self.groups.clone() })
    }
}

/// The home directories of all users that the image's passwd file lists.
pub(crate) fn homes(rootfs: &RootFs) -> impl Iterator<Item = ImagePath> {
    passwd(rootfs).into_iter().map(|line| line.home)
}

/// The lines of `/etc/passwd` that have all fields.
fn passwd(rootfs: &RootFs) -> Vec<PasswdLine> {
    let lines = fields(rootfs, "etc/passwd").into_iter();
    let lines = lines.filter_map(|fields| match fields.as_slice() {
        [name, _, user, group, _, home, ..] => Some(PasswdLine {
            name: name.clone(),
            user: user.parse().ok()?,
            group: group.parse().ok()?,
            home: ImagePath::from(home.as_str()),
        }),
        _ => None,
    });
    lines.collect()
}

/// Name, number and members of each group in `/etc/group`.
fn group_lines(rootfs: &RootFs) -> Vec<(String, u32, Vec<String>)> {
    let lines = fields(rootfs, "etc/group").into_iter();
    let lines = lines.filter_map(|fields| match fields.as_slice() {
        [name, _, id, members, ..] => {
            Some((name.clone(), id.parse().ok()?, members.split(',').map(ToOwned::to_owned).collect()))
        }
        _ => None,
    });
    lines.collect()
}

fn fields(rootfs: &RootFs, path: &str) -> Vec<Vec<String>> {
    let text = text(rootfs, &ImagePath::from(path));
    let text = text.value().map(|bytes| String::from_utf8_lossy(bytes)).unwrap_or_default();
    text.lines().map(|line| line.split(':').map(|field| field.trim().to_owned()).collect()).collect()
}
