use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

fn names(local: &LocalCache) -> Vec<String> {
    let stored = local.stored().unwrap();
    stored.iter().map(|stored| stored.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Sets the file's modification time back by `age`.
fn age(path: &Path, age: Duration) {
    fs::File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_missing_folder_is_an_empty_one_until_something_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalCache::new(folder.path().join("a/b"), 100);
    assert_eq!(local.read("0123456789abcdef/x").unwrap(), None);
    assert!(local.stored().unwrap().is_empty() && local.remove(|_| true).unwrap().is_empty());
    local.write("0123456789abcdef/x", b"one").unwrap();
    local.write("0123456789abcdef/x", b"two").unwrap();
    assert_eq!(local.read("0123456789abcdef/x").unwrap().unwrap(), b"two");
    assert_eq!(fs::metadata(folder.path().join("a/b")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(local.remove(|_| true).unwrap().len(), 1);
    assert_eq!(fs::read_dir(local.folder()).unwrap().count(), 0);
}

#[test]
fn the_least_recently_used_scans_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalCache::new(folder.path(), 100);
    for (number, name) in ["a", "b", "c", "d"].iter().enumerate() {
        local.write(&format!("0123456789abcdef/{name}"), &[0; 25]).unwrap();
        age(&folder.path().join("0123456789abcdef").join(name), HOUR * (9 - u32::try_from(number).unwrap()));
    }
    assert_eq!(names(&local), ["a", "b", "c", "d"]);
    // Reading counts as use.
    local.read("0123456789abcdef/a").unwrap().unwrap();
    assert_eq!(names(&local), ["b", "c", "d", "a"]);
    let abandoned = folder.path().join(".new-1");
    let fresh = folder.path().join(".new-2");
    let foreign = folder.path().join("README");
    for path in [&abandoned, &fresh, &foreign] {
        fs::write(path, [0; 500]).unwrap();
    }
    age(&abandoned, HOUR * 2);
    age(&foreign, HOUR * 2);
    // Another process, which does not know the size of the cache, fills it.
    LocalCache::new(folder.path(), 100).write("fedcba9876543210/e", &[0; 25]).unwrap();
    assert_eq!(names(&local), ["d", "a", "e"]);
    assert!(!abandoned.exists() && fresh.exists() && foreign.exists());
    // An entry larger than the limit empties the cache.
    local.write("0123456789abcdef/f", &[0; 101]).unwrap();
    assert!(names(&local).is_empty());
}

#[test]
fn failed_reads_and_writes_are_errors() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let local = LocalCache::new(file.path().join("below"), 100);
    assert!(local.write("0123456789abcdef/x", b"x").is_err());
    assert_eq!(local.read("0123456789abcdef/x").unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("0123456789abcdef/x")).unwrap();
    assert!(LocalCache::new(folder.path(), 100).read("0123456789abcdef/x").is_err());
    let link = folder.path().join("loop");
    std::os::unix::fs::symlink("loop", &link).unwrap();
    assert!(LocalCache::new(&link, 100).stored().is_err());
}

#[test]
fn an_unknown_size_is_counted_again() {
    let folder = tempfile::tempdir().unwrap();
    let write = |local: &LocalCache, name: &str, size: usize, hours: u32| {
        local.write(&format!("0123456789abcdef/{name}"), &vec![0; size]).unwrap();
        age(&folder.path().join("0123456789abcdef").join(name), HOUR * hours);
    };
    let local = LocalCache::new(folder.path(), 100);
    write(&local, "a", 60, 9);
    write(&local, "b", 40, 8);
    assert_eq!(names(&local), ["a", "b"], "an exact fit stays");
    assert_eq!(local.remove(|stored| stored.size == 60).unwrap().len(), 1);
    write(&local, "c", 60, 7);
    assert_eq!(names(&local), ["b", "c"], "a removed scan does not count");
    // The cache shrinks to nine tenths of the limit.
    write(&local, "d", 1, 6);
    assert_eq!(names(&local), ["c", "d"]);
    write(&local, "e", 39, 5);
    assert_eq!(names(&local), ["c", "d", "e"]);
    write(&local, "f", 50, 4);
    assert_eq!(names(&local), ["d", "e", "f"], "ninety of a hundred are left");
}

#[test]
fn only_files_in_folders_of_scanners_are_scans() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalCache::new(folder.path(), 100);
    assert_eq!(
        (local.folder(), local.bound(), local.to_string()),
        (folder.path(), 100, folder.path().display().to_string())
    );
    local.write("0123456789abcdef/x", b"one").unwrap();
    fs::create_dir_all(folder.path().join("0123456789abcdef/folder")).unwrap();
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/y"), b"").unwrap();
    fs::write(folder.path().join("README"), b"").unwrap();
    let stored = local.stored().unwrap();
    assert_eq!(names(&local), ["x"]);
    assert_eq!(stored[0].read(&local).unwrap().unwrap(), ("0123456789abcdef/x".to_owned(), b"one".to_vec()));
    fs::remove_file(folder.path().join("0123456789abcdef/x")).unwrap();
    assert_eq!(stored[0].read(&local).unwrap(), None);
}

#[test]
fn scans_that_another_process_removed_are_no_error_and_not_counted() {
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    assert!(gone(Ok(())).unwrap());
    assert!(!gone(Err(missing())).unwrap());
    assert!(gone(Err(io::Error::from(io::ErrorKind::PermissionDenied))).is_err());
}
