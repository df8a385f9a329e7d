//! Folders that training writes to by default, and those that it cannot write to.

use facts::Facts;
use facts::key;
use model::{Fact, Gap, size};

use super::super::recording::Recording;
use super::super::wire::StepBody as _;
use super::super::wire::storage::{StorageBody, UsedFolder};
use super::{none_of, texts, unanswered};

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<StorageBody>() else {
        let keys = key::definitions![RUN_STORAGE, RUN_STORAGE_UNWRITABLE];
        return none_of(keys, &unanswered(recording, StorageBody::STEP), facts);
    };
    let folders = match body.folders.known_list() {
        Ok(folders) => folders,
        Err(gap) => {
            facts.insert(key::RUN_STORAGE, Fact::Unknown(gap.clone()));
            facts.insert(key::RUN_STORAGE_UNWRITABLE, Fact::Unknown(gap));
            return;
        }
    };
    facts.insert(key::RUN_STORAGE, texts(step, folders.iter().map(name).collect()));
    let mut unwritable = Vec::new();
    let mut gap = None;
    for folder in folders {
        match refusal(folder, recording.launch.is_some()) {
            Ok(why) => unwritable.extend(why.map(|why| format!("{}: {why}", name(folder)))),
            Err(why) => gap = gap.or(Some(Gap::new(format!("{}: {}", name(folder), why.why)))),
        }
    }
    let unwritable = gap.filter(|_| unwritable.is_empty()).map_or_else(|| texts(step, unwritable), Fact::Unknown);
    facts.insert(key::RUN_STORAGE_UNWRITABLE, unwritable);
}

/// Formats a folder: its purpose, its path and the variable that names it.
fn name(folder: &UsedFolder) -> String {
    let kept = folder.kept.text().unwrap_or("a folder");
    let path = folder.path.text().map(|path| format!(" {path}")).unwrap_or_default();
    let named_by = folder.named_by.text().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{kept}{path}{named_by}")
}

/// The reason why training cannot create a file in a folder; `None` if it can.
///
/// A container that ncclcheck launches has a read-only root file system and no capabilities, unlike that of a training job. So
/// the folder's mode decides where either of these causes the error.
fn refusal(folder: &UsedFolder, is_launched: bool) -> Result<Option<String>, Gap> {
    if let Some(why) = folder.unnamed.known()? {
        return Ok(Some(why.clone()));
    }
    let Some(error) = folder.error.known()? else { return Ok(None) };
    let is_of_launch = match error.as_str() {
        "EROFS" => folder.mount.known()?.is_some_and(|mount| mount == "/"),
        "EACCES" => true,
        _ => false,
    };
    if is_launched && is_of_launch {
        let Some(is_permitted) = folder.permitted.known()?.copied() else {
            return Err(Gap::new("the probe did not report whether the folder's mode permits writing"));
        };
        return Ok((!is_permitted).then(|| worded(folder, "EACCES")));
    }
    Ok(Some(worded(folder, error)))
}

/// Formats an error with its context: `ENOSPC in /scratch, on tmpfs with 0 bytes and 9 inodes free`.
fn worded(folder: &UsedFolder, error: &str) -> String {
    if error == "ENOENT" {
        return error.to_owned();
    }
    let existing = folder.existing.text().filter(|existing| folder.path.text() != Some(existing));
    let place = existing.map(|existing| format!(" in {existing}")).unwrap_or_default();
    let kind = folder.file_system.text().map(|kind| format!(", on {kind}")).unwrap_or_default();
    let bytes = folder.free_bytes.copied().map(|bytes| size(bytes.unsigned_abs()));
    let inodes = folder.free_inodes.copied().map(|inodes| format!("{inodes} inodes"));
    let free: Vec<_> = bytes.into_iter().chain(inodes).collect();
    let is_of_room = matches!(error, "ENOSPC" | "EDQUOT") && !free.is_empty();
    let room = if is_of_room { format!(" with {} free", free.join(" and ")) } else { String::new() };
    format!("{error}{place}{kind}{room}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Facts about folders, in a container that ncclcheck launched or in place.
    fn facts(folders: &Value, is_launched: bool) -> Facts {
        let result = format!(
            r#"{{"ncclcheck":1,"event":"result","step":"storage","seconds":0.1,"body":{{"folders":{folders}}}}}"#
        );
        let launch =
            r#"{"ncclcheck":1,"event":"launch","engine":"Docker","image":"x","image_id":"","command":"","gpus":true}"#;
        let lines = if is_launched { format!("{launch}\n{result}") } else { result };
        let mut facts = Facts::default();
        produce(&Recording::read(lines.as_bytes()), &mut facts);
        facts
    }

    fn unwritable(folder: &Value, is_launched: bool) -> String {
        let facts = facts(&json!([folder]), is_launched);
        facts.view(&key::RUN_STORAGE_UNWRITABLE).value().map(ToString::to_string).unwrap_or_default()
    }

    /// A home folder with these fields.
    fn home(fields: &Value) -> Value {
        let mut folder = json!({"use": "home folder", "path": "/root", "named_by": "HOME", "existing": "/root",
            "error": null, "permitted": true, "mount": "/", "file_system": "overlay", "free_bytes": 5, "free_inodes": 7});
        folder.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        folder
    }

    #[test]
    fn folders_that_take_files() {
        let facts = facts(&json!([home(&json!({}))]), false);
        assert_eq!(facts.get(key::RUN_STORAGE).value().unwrap(), &["home folder /root (HOME)"]);
        assert_eq!(facts.get(key::RUN_STORAGE_UNWRITABLE), &Fact::Absent);
    }

    #[test]
    fn a_mode_that_is_not_reported_is_unknown() {
        let folder = home(&json!({"error": "EACCES", "permitted": null}));
        let facts = facts(&json!([folder]), true);
        let fact = facts.view(&key::RUN_STORAGE_UNWRITABLE);
        assert!(matches!(fact, Fact::Unknown(gap) if gap.why.contains("did not report")), "{fact:?}");
    }

    #[test]
    fn errors_say_where_and_why() {
        for (fields, text) in [
            (json!({"error": "EROFS"}), "home folder /root (HOME): EROFS, on overlay"),
            (
                json!({"use": "cache of Triton", "path": "/root/.triton/cache", "named_by": "default", "error": "EACCES"}),
                "cache of Triton /root/.triton/cache (default): EACCES in /root, on overlay",
            ),
            (
                json!({"use": "temporary files", "path": "/s", "existing": "/s", "named_by": "TMPDIR", "error": "ENOSPC",
                    "file_system": "tmpfs"}),
                "temporary files /s (TMPDIR): ENOSPC, on tmpfs with 5 bytes and 7 inodes free",
            ),
            (
                json!({"use": "log of NCCL", "path": "/logs", "existing": "/", "named_by": "NCCL_DEBUG_FILE", "error": "ENOENT"}),
                "log of NCCL /logs (NCCL_DEBUG_FILE): ENOENT",
            ),
            (
                json!({"error": "EDQUOT", "file_system": "btrfs", "free_inodes": null}),
                "home folder /root (HOME): EDQUOT, on btrfs with 5 bytes free",
            ),
            (
                json!({"path": null, "named_by": null, "unnamed": "HOME is not set, and /etc/passwd has no entry for user 7"}),
                "home folder: HOME is not set, and /etc/passwd has no entry for user 7",
            ),
        ] {
            assert_eq!(unwritable(&home(&fields), false), text);
        }
    }

    #[test]
    fn what_our_launch_forbids_is_judged_by_modes() {
        for error in ["EROFS", "EACCES"] {
            assert_eq!(unwritable(&home(&json!({ "error": error })), true), "", "{error}");
            let closed = home(&json!({"error": error, "permitted": false}));
            assert_eq!(unwritable(&closed, true), "home folder /root (HOME): EACCES, on overlay", "{error}");
        }
        let volume = json!({"error": "EROFS", "mount": "/root", "file_system": "nfs4"});
        assert_eq!(unwritable(&home(&volume), true), "home folder /root (HOME): EROFS, on nfs4");
        assert!(unwritable(&home(&json!({"error": "ENOSPC"})), true).contains("ENOSPC"));
    }

    #[test]
    fn what_is_not_known_is_a_gap_unless_another_folder_is_closed() {
        let unread =
            home(&json!({"error": "EACCES", "permitted": null, "unread": {"permitted": "/root: Stale file handle"}}));
        let is_unknown = |folders: &Value| {
            let facts = facts(folders, true);
            matches!(facts.get(key::RUN_STORAGE_UNWRITABLE), Fact::Unknown(gap) if gap.why.contains("Stale file handle"))
        };
        assert!(is_unknown(&json!([unread])));
        assert!(!is_unknown(&json!([unread, home(&json!({"error": "ENOSPC"}))])));
        let facts = facts(&json!("none"), false);
        assert!(matches!(facts.get(key::RUN_STORAGE), Fact::Unknown(_)));
        assert!(matches!(facts.get(key::RUN_STORAGE_UNWRITABLE), Fact::Unknown(_)));
    }

    #[test]
    fn a_recording_without_the_step_leaves_its_facts_absent() {
        let mut facts = Facts::default();
        produce(&Recording::read(b""), &mut facts);
        assert_eq!(facts.get(key::RUN_STORAGE), &Fact::Absent);
        assert_eq!(facts.get(key::RUN_STORAGE_UNWRITABLE), &Fact::Absent);
    }
}
