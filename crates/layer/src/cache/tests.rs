use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::scan::{Compression, LayerScan};
use model::{BlobRef, Environment};
use model::{Gap, Limits};

use super::*;

fn blob() -> BlobRef {
    BlobRef { digest: format!("sha256:{}", "a".repeat(64)).parse().unwrap(), size: 7 }
}

fn scan() -> LayerScan {
    let found = BTreeMap::new();
    LayerScan { compression: Compression::None, unpacked: 1024, diff_id: None, entries: Vec::new(), found }
}

fn cache(local: &Path, shared: Option<&Path>) -> ScanCache {
    let shared = shared.map(|path| ObjectFolder::new(path.to_str().unwrap(), &Environment::default()).unwrap());
    ScanCache::new(Some(LocalCache::new(local, DEFAULT_BOUND)), shared)
}

fn only_file(folder: &Path) -> PathBuf {
    let [stored] = &*LocalCache::new(folder, 0).stored().unwrap() else { panic!("not one file") };
    folder.join(stored.scanner.to_string()).join(format!("sha256-{}", "a".repeat(64)))
}

#[test]
fn no_cache_finds_and_keeps_nothing() {
    let blob = blob();
    let limits = Limits::default();
    let key = ScanKey { blob: &blob, limits: &limits };
    let cache = ScanCache::default();
    cache.put(&key, &scan());
    assert!(cache.get(&key).is_none());
    assert!(cache.notices().is_empty());
}

#[test]
fn damaged_entries_are_ignored_and_replaced() {
    let blob = blob();
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let key = ScanKey { blob: &blob, limits: &limits };
    let cache = cache(folder.path(), None);
    cache.put(&key, &scan());
    let path = only_file(folder.path());
    let good = fs::read(&path).unwrap();
    let flipped: Vec<u8> = good.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == good.len() / 2)).collect();
    let form: Vec<u8> = good.iter().enumerate().map(|(at, byte)| if at == 8 { 9 } else { *byte }).collect();
    for bad in [&good[..good.len() - 1], b"", b"x", &flipped, &form] {
        fs::write(&path, bad).unwrap();
        assert!(cache.get(&key).is_none());
        cache.put(&key, &scan());
        assert_eq!(fs::read(&path).unwrap(), good);
        assert_eq!(cache.get(&key).unwrap().scan, scan());
    }
    assert!(cache.notices().is_empty());
}

#[test]
fn hits_in_the_shared_cache_are_kept_locally() {
    let blob = blob();
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let key = ScanKey { blob: &blob, limits: &limits };
    let at = |name: &str| folder.path().join(name);
    cache(&at("mine"), Some(&at("team"))).put(&key, &scan());
    assert!(!cache(&at("mine"), Some(&at("team"))).get(&key).unwrap().is_shared);
    let other = cache(&at("yours"), Some(&at("team")));
    let own = |name: &str, shared: Option<&Path>| cache(&at(name), shared).trusting(CacheTrust::Own);
    assert!(own("yours", Some(&at("team"))).get(&key).is_none());
    assert_eq!(other.get(&key).unwrap().scan, scan());
    assert_eq!(cache(&at("yours"), None).get(&key).unwrap().scan, scan());
    // It stays marked as one of another user: where those are not believed, and in an export.
    assert!(cache(&at("yours"), None).get(&key).unwrap().is_shared);
    assert!(own("yours", None).get(&key).is_none());
    let local = LocalCache::new(at("yours"), DEFAULT_BOUND);
    let to = ObjectFolder::new(at("other").to_str().unwrap(), &Environment::default()).unwrap();
    assert_eq!(export_all(&local, &limits, &to).unwrap().scans, 0);
    assert_eq!(cache(&at("yours"), None).blob(&blob.digest, &limits), Some(blob.clone()));
    assert_eq!(own("yours", None).blob(&blob.digest, &limits), None);
    // A damaged shared entry is ignored, and replaced by the next scan.
    fs::write(only_file(&at("team")), b"x").unwrap();
    let third = cache(&at("third"), Some(&at("team")));
    assert!(third.get(&key).is_none());
    third.put(&key, &scan());
    assert_eq!(cache(&at("fourth"), Some(&at("team"))).get(&key).unwrap().scan, scan());
    assert!(third.notices().is_empty() && other.notices().is_empty());
}

#[test]
fn scans_that_depend_on_this_machine_are_not_kept() {
    let blob = blob();
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let key = ScanKey { blob: &blob, limits: &limits };
    let cache = cache(folder.path(), None);
    let gap = Gap::new("no room").of_this_run();
    cache.put(&key, &LayerScan { found: BTreeMap::from([(0, vec![Err(gap)])]), ..scan() });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_access_is_reported_once_and_not_retried() {
    let blob = blob();
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let key = ScanKey { blob: &blob, limits: &limits };
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = cache(&file, Some(&file));
    for _ in 0..3 {
        assert!(cache.get(&key).is_none());
        cache.put(&key, &scan());
    }
    let notices = cache.notices();
    let about = |text: &str| notices.iter().filter(|notice| notice.contains(text)).count();
    assert_eq!(about(" not written to: "), 1, "{notices:?}");
    assert_eq!(about(" not used: "), 1, "{notices:?}");
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(cache.notices().is_empty());
}

#[test]
fn an_export_copies_scans() {
    let blob = blob();
    let limits = Limits::default();
    let folder = tempfile::tempdir().unwrap();
    let key = ScanKey { blob: &blob, limits: &limits };
    let at = |name: &str| folder.path().join(name);
    let to = |name: &str| ObjectFolder::new(at(name).to_str().unwrap(), &Environment::default()).unwrap();
    let local = LocalCache::new(at("mine"), DEFAULT_BOUND);
    assert_eq!(export(&local, &key, &to("none")).unwrap(), None);
    cache(&at("mine"), None).put(&key, &scan());
    let other = Limits { entries: 5, ..Limits::default() };
    cache(&at("mine"), None).put(&ScanKey { limits: &other, ..key }, &scan());
    assert_eq!(export(&local, &key, &to("one")).unwrap().unwrap().scans, 1);
    // Only scans of the requested scanner are copied.
    assert_eq!(export_all(&local, &limits, &to("all")).unwrap().scans, 1);
    for name in ["one", "all"] {
        assert_eq!(cache(&at("yours"), Some(&at(name))).get(&key).unwrap().scan, scan());
    }
}

#[test]
fn an_entry_that_cannot_be_opened_is_an_error_and_no_miss() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalCache::new(folder.path(), DEFAULT_BOUND);
    assert!(local.read("missing").unwrap().is_none());
    assert!(local.read(&"x".repeat(300)).is_err(), "the name is too long");
}
