//! Other things than regular files where one is expected, folders of the cache that are not the user's own, and interrupts.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{layout, program, run, run_with, stderr, world};

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_an_error() {
    let good = layout("good");
    let blobs = good.path().join("blobs/sha256");
    let names: Vec<_> = fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in names.iter().chain([&good.path().join("index.json")]) {
        let bytes = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        fifo(path);
        let output = run(&["check", &format!("oci:{}", good.path().display())], None);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{}: {said}", path.display());
        assert!(said.contains("it is a FIFO, not a regular file"), "{said}");
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let pipe = good.path().join("pipe");
    fifo(&pipe);
    let pipe = pipe.to_str().unwrap();
    for option in ["--config", "--launch", "--host", "--list", "--dockerfile"] {
        let output = run(&["check", option, pipe, world("good").to_str().unwrap()], None);
        assert!(stderr(&output).contains("it is a FIFO, not a regular file"), "{option}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(2), "{option}");
    }
}

#[test]
fn a_cache_that_others_can_write_is_not_used() {
    let user = tempfile::tempdir().unwrap();
    let check = || {
        let variables = [("XDG_CACHE_HOME", user.path().to_str().unwrap())];
        let output = run_with(&variables, &["check", world("good").to_str().unwrap()], None);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(check(), "");
    let folder = user.path().join("ncclcheck/layers");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(check().contains("can be written by other users: run chmod go-w on it"));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(check(), "");
    let scanner = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    // What a link leads to is not ours, and stays.
    let outside = user.path().join("outside");
    fs::rename(&scanner, &outside).unwrap();
    symlink(&outside, &scanner).unwrap();
    let kept = || fs::read_dir(&outside).unwrap().count();
    let before = kept();
    let output = run_with(&[("XDG_CACHE_HOME", user.path().to_str().unwrap())], &["cache", "clear"], None);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(before > 0 && kept() == before, "{before} files, then {}", kept());
    assert!(check().contains("is a symbolic link"));
}

#[test]
fn an_interrupt_leaves_nothing_beside_the_outputs() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["INT", "TERM"] {
        let mut child = Command::new(program())
            .args(["check", "--format", "sarif=out.sarif", "-"])
            .current_dir(folder.path())
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It waits for the rest of the archive.
        child.stdin.as_mut().unwrap().write_all(&fs::read(world("good")).unwrap()[..4096]).unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().count();
        for _ in 0..500 {
            if names() > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(names(), 1, "the output is being written");
        let id = child.id().to_string();
        let kill = ["-c", "kill -s \"$0\" \"$1\"", signal, &id];
        assert!(Command::new("bash").args(kill).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(names(), 0, "{signal}");
    }
}
