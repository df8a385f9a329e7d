//! Settings whose place was not read, or that something computes.

use super::*;
use crate::tests::synthetic::ScannedEntry;
use model::{Entry, EntryKind, FileOwner, Found, Gap};

const PASSWD: &str = "root:x:0:0::/root:/bin/sh\ntrainer:x:1000:1000::/home/trainer:/bin/sh\n";

/// Facts of an image with files whose modes and contents are given, for a user.
fn facts_of_entries(entries: Vec<ScannedEntry>, user: &str) -> Facts {
    let rootfs = rootfs(entries.into_iter().chain([text_or_link("etc/passwd", PASSWD)]));
    let environment = [("NCCL_DEBUG".to_owned(), "WARN".to_owned())].into_iter().collect();
    let config = ImageConfig { environment, user: user.to_owned(), ..ImageConfig::default() };
    Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] })
}

/// Whether the settings as a whole, one that ENV sets, and another variable of NCCL and of the process are unknown.
fn gaps(facts: &Facts) -> [Option<String>; 4] {
    let gap = |entry| facts.gap(&key::ENV_EFFECTIVE, entry).map(ToString::to_string);
    [gap(None), gap(Some("NCCL_DEBUG")), gap(Some("NCCL_IB_DISABLE")), gap(Some("RANK"))]
}

#[test]
fn a_file_of_nccl_that_was_not_read_leaves_only_its_variables_unknown() {
    let conf = |path: &str, found| {
        let (entry, _) = text_or_link(path, "NCCL_IB_DISABLE=1\n");
        (entry, found)
    };
    let text = |text: &[u8]| vec![Ok(Found::Text(text.into()))];
    let large = || vec![Err(Gap::new("9 GB of text, more than text_file"))];
    for (entries, expected) in [
        (vec![conf("etc/nccl.conf", large())], "9 GB of text, more than text_file"),
        (vec![conf("home/trainer/.nccl.conf", large())], "9 GB of text, more than text_file"),
        (
            vec![text_or_link("etc/nccl.conf", "-> /mnt/nccl.conf")],
            "/etc/nccl.conf is a link to /mnt/nccl.conf, which the image does not have and a host may mount",
        ),
        // Its first setting counts, and may be in the file that was not read.
        (
            vec![conf("home/trainer/.nccl.conf", large()), text_or_link("etc/nccl.conf", "NCCL_IB_DISABLE=0\n")],
            "9 GB of text, more than text_file",
        ),
        (
            vec![conf("etc/nccl.conf", text(b"NCCL_IB_DISABLE=\xff\n"))],
            "/etc/nccl.conf (line 1) sets NCCL_IB_DISABLE to a value that is not UTF-8",
        ),
    ] {
        let facts = facts_of_entries(entries, "trainer");
        let [whole, set, other, rank] = gaps(&facts);
        assert!(whole.is_some_and(|gap| gap.contains(expected)), "{expected}");
        assert!(other.is_some_and(|gap| gap.contains(expected)), "{expected}");
        assert_eq!([set, rank], [None, None], "{expected}");
        let known = facts.certain(&key::ENV_EFFECTIVE).value().unwrap().to_string();
        assert!(known.contains("NCCL_DEBUG") && !known.contains("NCCL_IB"), "{known}");
        let is_loopback_known = matches!(facts.get(key::ENV_LOOPBACK_ONLY), Fact::Absent);
        assert_eq!(is_loopback_known, expected.ends_with("UTF-8"), "{expected}");
    }
    // What is not UTF-8 elsewhere in the file hides nothing.
    let mixed = b"# \xff\nNCCL_\xff=1\nNCCL_DEBUG=\xff\nNCCL_ALGO=Ring\n";
    let facts = facts_of_entries(vec![conf("etc/nccl.conf", text(mixed))], "trainer");
    assert_eq!(gaps(&facts), [const { None }; 4]);
    assert_eq!(
        listed(&facts, &key::NCCL_CONFIG_PROBLEMS),
        ["/etc/nccl.conf (line 2): it sets a variable whose name is not UTF-8, which nothing reads"]
    );
}

#[test]
fn nccl_ignores_what_it_cannot_open() {
    let closed = || {
        let (entry, found) = text_or_link("etc/nccl.conf", "NCCL_IB_DISABLE=1\n");
        (Entry { mode: 0o600, owner: Some(FileOwner::ROOT), ..entry }, found)
    };
    let folder = (Entry { kind: EntryKind::Directory, ..text_or_link("etc/nccl.conf", "").0 }, Vec::new());
    for (entry, user, problem) in [
        (closed(), "trainer", "the job's user may not read /etc/nccl.conf (mode 0600, owner 0:0), so NCCL ignores it"),
        (folder, "", "it is a directory, so NCCL ignores it"),
        (text_or_link("etc/nccl.conf", "-> nccl.conf"), "", "its links form a loop, so NCCL ignores it"),
    ] {
        let facts = facts_of_entries(vec![entry], user);
        assert_eq!(gaps(&facts), [const { None }; 4], "{problem}");
        assert_eq!(listed(&facts, &key::NCCL_CONFIG_PROBLEMS), [format!("/etc/nccl.conf: {problem}")]);
        assert!(!facts.certain(&key::ENV_EFFECTIVE).value().unwrap().to_string().contains("NCCL_IB"), "{problem}");
    }
    // Root reads it.
    let facts = facts_of_entries(vec![closed()], "");
    assert!(facts.view(&key::ENV_EFFECTIVE).value().unwrap().to_string().contains("NCCL_IB_DISABLE"));
    let empty = facts_of_entries(vec![text_or_link("etc/nccl.conf", "-> /dev/null")], "");
    assert_eq!(gaps(&empty), [const { None }; 4]);
}

#[test]
fn a_value_that_the_launch_computes_is_unknown_alone() {
    let launch = ["NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME"].map(|name| Setting {
        name: name.to_owned(),
        value: None,
        site: Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: name.to_owned() },
    });
    let facts = facts_of(&[], &[("NCCL_DEBUG", "WARN"), ("NCCL_IB_DISABLE", "1")], &launch);
    let gap = |name| facts.gap(&key::ENV_EFFECTIVE, Some(name)).map(ToString::to_string);
    assert!(gap("NCCL_IB_DISABLE").is_some_and(|gap| gap.contains("job.sh, line 3 (NCCL_IB_DISABLE) computes")));
    assert_eq!([gap("NCCL_DEBUG"), gap("NCCL_P2P_DISABLE")], [None, None]);
    assert!(matches!(facts.view(&key::ENV_EFFECTIVE), Fact::Seen { .. }));
    assert!(matches!(facts.get(key::ENV_LOOPBACK_ONLY), Fact::Unknown(_)));
}

#[test]
fn a_computed_value_may_stop_the_job_where_some_values_do() {
    let refused = |name: &str| {
        let site = Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: name.to_owned() };
        let launch = Setting { name: name.to_owned(), value: None, site };
        facts_of(&[], &[], &[launch]).get(key::ENV_REFUSED_VALUES).clone()
    };
    for name in ["TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_NAN_CHECK"] {
        let Fact::Unknown(gap) = refused(name) else { panic!("{name} may be anything") };
        assert!(gap.to_string().starts_with(&format!("job.sh, line 3 ({name}) computes {name}")), "{gap}");
    }
    for name in ["TORCH_CPP_LOG_LEVEL", "MASTER_ADDR"] {
        assert!(matches!(refused(name), Fact::Absent), "{name}");
    }
}

#[test]
fn a_script_that_is_not_followed_leaves_what_is_not_found_unknown() {
    let environment = [("NCCL_DEBUG".to_owned(), "WARN".to_owned())].into_iter().collect();
    let mut config = ImageConfig { environment, ..ImageConfig::default() };
    config.unknown.environment = Some(Gap::new("not followed"));
    let rootfs = rootfs([]);
    let facts = Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] });
    assert_eq!(gaps(&facts).map(|gap| gap.is_some()), [true, false, true, true]);
    assert!(matches!(facts.view(&key::ENV_EFFECTIVE), Fact::Unknown(_)));
}
