//! Configuration of systemd-logind (logind.conf(5)).

use std::collections::BTreeMap;

use model::{Fact, Gap};

use super::HostTree;

/// Folders of the configuration. A file hides those of the same name in later folders.
const FOLDERS: &[&str] = &["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd"];

/// Reads RemoveIPC. The last file that sets it wins; the main file also shows the default of systemd's build, in a
/// comment. Absent if no file has it.
pub(super) fn remove_ipc(tree: &HostTree) -> Fact<String> {
    let main = FOLDERS.iter().map(|folder| tree.text(&format!("{folder}/logind.conf")));
    let main = main.into_iter().find(|text| *text != Fact::Absent).unwrap_or(Fact::Absent);
    let default = main.as_ref().and_then(|text, _| {
        let comments: String =
            text.lines().filter_map(|line| Some(format!("{}\n", line.trim().strip_prefix('#')?))).collect();
        setting(&comments).into()
    });
    let others = match drop_ins(tree) {
        Ok(paths) => paths,
        Err(gap) => return Fact::Unknown(gap),
    };
    let texts = std::iter::once(main).chain(others.values().map(|path| tree.text(path)));
    texts.fold(default, |before, text| match text {
        Fact::Seen { value: text, .. } => Fact::from(setting(&text)).or_else(|| before),
        Fact::Absent => before,
        Fact::Unknown(gap) => Fact::Unknown(gap),
    })
}

/// Paths of the files beside the main one, by name.
fn drop_ins(tree: &HostTree) -> Result<BTreeMap<String, String>, Gap> {
    let mut paths = BTreeMap::new();
    for folder in FOLDERS {
        let folder = format!("{folder}/logind.conf.d");
        match tree.names(&folder) {
            Fact::Seen { value: names, .. } => {
                for name in names.into_iter().filter(|name| is_configuration(name)) {
                    let path = format!("{folder}/{name}");
                    paths.entry(name).or_insert(path);
                }
            }
            Fact::Absent => {}
            Fact::Unknown(gap) => return Err(gap),
        }
    }
    Ok(paths)
}

fn is_configuration(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| extension == "conf")
}

/// The last value of RemoveIPC in a text.
fn setting(text: &str) -> Option<String> {
    let mut values =
        text.lines().filter_map(|line| line.split_once('=')).filter(|(name, _)| name.trim() == "RemoveIPC");
    values.next_back().map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_file_that_sets_it_wins() {
        let main = ("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\n#RemoveIPC=yes\n");
        for (files, expected) in [
            (&[][..], None),
            (&[("etc/systemd/logind.conf", "[Login]\n")], None),
            // The comment shows the default of the build.
            (&[main], Some("yes")),
            (&[("usr/lib/systemd/logind.conf", "[Login]\n#RemoveIPC=no\n")], Some("no")),
            (&[main, ("usr/lib/systemd/logind.conf", "[Login]\nRemoveIPC=no\n")], Some("yes")),
            (&[main, ("etc/systemd/logind.conf.d/a.conf", "[Login]\nRemoveIPC = no\n")], Some("no")),
            (&[main, ("etc/systemd/logind.conf.d/a.txt", "[Login]\nRemoveIPC=no\n")], Some("yes")),
            (&[main, ("etc/systemd/logind.conf.d/a.conf", "[Login]\nHandleLidSwitch=ignore\n")], Some("yes")),
            // The name decides across folders, and an earlier folder hides a file of the same name.
            (
                &[
                    ("etc/systemd/logind.conf.d/a.conf", "RemoveIPC=no\n"),
                    ("usr/lib/systemd/logind.conf.d/b.conf", "RemoveIPC=yes\n"),
                ],
                Some("yes"),
            ),
            (
                &[
                    ("run/systemd/logind.conf.d/a.conf", "RemoveIPC=no\n"),
                    ("usr/lib/systemd/logind.conf.d/a.conf", "RemoveIPC=yes\n"),
                ],
                Some("no"),
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = root.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let found = remove_ipc(&HostTree::new(root.path()));
            assert_eq!(found, expected.map(ToOwned::to_owned).into(), "{files:?}");
        }
    }
}
