use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

fn names(local: &Local) -> Vec<String> {
    let stored = local.stored().unwrap();
    stored.iter().map(|stored| stored.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Makes a file look as if it was not touched for so long.
fn age(path: &Path, age: Duration) {
    File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn a_missing_folder_is_an_empty_one_until_something_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::new(folder.path().join("a/b"), 100);
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
fn what_was_not_used_for_the_longest_time_goes() {
    let folder = tempfile::tempdir().unwrap();
    let local = Local::new(folder.path(), 100);
    for (number, name) in ["a", "b", "c", "d"].iter().enumerate() {
        local.write(&format!("0123456789abcdef/{name}"), &[0; 25]).unwrap();
        age(&folder.path().join("0123456789abcdef").join(name), HOUR * (9 - u32::try_from(number).unwrap()));
    }
    assert_eq!(names(&local), ["a", "b", "c", "d"]);
    // Reading is using.
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
    // Another process, which does not know how much there is, fills it.
    Local::new(folder.path(), 100).write("fedcba9876543210/e", &[0; 25]).unwrap();
    assert_eq!(names(&local), ["d", "a", "e"]);
    assert!(!abandoned.exists() && fresh.exists() && foreign.exists());
    // What is larger than all that may be kept leaves nothing.
    local.write("0123456789abcdef/f", &[0; 101]).unwrap();
    assert!(names(&local).is_empty());
}

#[test]
fn what_cannot_be_written_or_read_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let local = Local::new(file.path().join("below"), 100);
    assert!(local.write("0123456789abcdef/x", b"x").is_err());
    assert_eq!(local.read("0123456789abcdef/x").unwrap(), None);
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("0123456789abcdef/x")).unwrap();
    assert!(Local::new(folder.path(), 100).read("0123456789abcdef/x").is_err());
}
