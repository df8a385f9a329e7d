//! Files that commands write: what is in their place already is not destroyed.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, lchown, symlink,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{program, run, run_in, run_in_with, stderr, world};

/// A run that keeps all rights.
const UNCONFINED: &[(&str, &str)] = &[("NCCLCHECK_SANDBOX", "off")];

fn image(name: &str) -> String {
    world(name).display().to_string()
}

/// Makes a FIFO and opens both of its ends, so that no writer waits.
fn fifo(path: &Path) -> File {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap()
}

/// What waits in a FIFO.
fn waiting(mut fifo: &File) -> String {
    let mut bytes = vec![0; 1 << 16];
    let count = fifo.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

/// Runs a command, with a path in place of `FILE`.
fn wrote(arguments: &[&str], path: &Path) {
    let path = path.to_str().unwrap();
    let arguments: Vec<_> = arguments.iter().map(|word| word.replace("FILE", path)).collect();
    let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), None);
    // Of an audit without results, the exit status is 3.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{arguments:?}: {}", stderr(&output));
}

/// Runs a command that writes `FILE`, which is a link to a file in another folder. With a `page`, `FILE` is the folder that
/// it is in.
fn writes_through_a_link(arguments: &[&str], page: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("elsewhere")).unwrap();
    let target = at("elsewhere/target");
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    // Only root can give a file away.
    let _not_permitted = chown(&target, Some(12), Some(34));
    let before = fs::metadata(&target).unwrap();
    let link = at(page.unwrap_or("link"));
    symlink("elsewhere/target", &link).unwrap();
    wrote(arguments, page.map_or(&*link, |_| folder.path()));
    assert!(link.is_symlink(), "{arguments:?}");
    let written = fs::read_to_string(&target).unwrap();
    assert!(written.len() > 20, "{arguments:?}: {written}");
    let after = fs::metadata(&target).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()), "{arguments:?}");
    assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 1, "{arguments:?}");
}

#[test]
fn reports_are_written_through_links() {
    writes_through_a_link(&["check", "--quiet", "--format", "human=FILE", &image("good")], None);
    writes_through_a_link(&["inspect", "--quiet", "--format", "human=FILE", &image("good")], None);
}

#[test]
fn a_difference_and_a_baseline_are_written_through_links() {
    writes_through_a_link(&["diff", "--quiet", "--format", "human=FILE", &image("good"), &image("no-nccl")], None);
}

#[test]
fn a_probe_is_written_through_a_link() {
    let recording = format!("{}/fixtures/probe/h200-x2/full.jsonl", env!("CARGO_MANIFEST_DIR"));
    writes_through_a_link(&["probe", "--quiet", "--from", &recording, "--format", "human=FILE"], None);
}

#[test]
fn pages_and_records_are_written_through_links() {
    writes_through_a_link(&["host", "--format", "human=FILE"], None);
    writes_through_a_link(&["man", "FILE"], Some("ncclcheck-host.1"));
    writes_through_a_link(&["rules", "docs", "--no-config", "FILE"], Some("README.md"));
}

#[test]
fn a_stored_report_is_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("report.json").display().to_string();
    wrote(&["check", "--quiet", "--format", &format!("json={stored}"), &image("good")], folder.path());
    writes_through_a_link(&["report", "--format", "human=FILE", &stored], None);
    let output = run(&["report", "--format", &format!("human={stored}"), &stored], None);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn an_audit_is_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").display().to_string();
    for name in ["a", "b"] {
        wrote(&["audit", "plan", "--no-config", "--store", &store, "--run", name, &image("good")], folder.path());
    }
    writes_through_a_link(&["audit", "merge", "--store", &store, "--format", "human=FILE"], None);
    writes_through_a_link(
        &["audit", "trend", "--store", &store, "--since", "a", "--run", "b", "--format", "human=FILE"],
        None,
    );
}

#[test]
fn a_fifo_stays_and_gets_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let opened = fifo(&path);
    for arguments in
        [&["check", "--quiet", "--format", "human=FILE", &image("good")][..], &["host", "--format", "human=FILE"]]
    {
        wrote(arguments, &path);
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo(), "{arguments:?}");
        assert!(waiting(&opened).len() > 20, "{arguments:?}");
    }
}

#[test]
fn a_dangling_link_creates_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("a/b")).unwrap();
    symlink("a/second", at("first")).unwrap();
    symlink("b/new.json", at("a/second")).unwrap();
    let output = run_in(folder.path(), &["check", "--quiet", "--format", "json=first", &image("good")]);
    assert_eq!(stderr(&output), "");
    let report: Value = serde_json::from_slice(&fs::read(at("a/b/new.json")).unwrap()).unwrap();
    let sandbox = report["asked"]["sandbox"]["state"].as_str();
    assert!(matches!(sandbox, Some("on" | "partial")), "{sandbox:?}");
    assert!(at("first").is_symlink() && at("a/second").is_symlink());
}

#[test]
fn a_device_stays_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("null");
    // Making a device needs root, and a file system that has devices. A FIFO is another thing that a rename destroys.
    let made = Command::new("mknod").arg(&device).args(["c", "1", "3"]).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) || File::open(&device).is_err() {
        return;
    }
    for (name, status) in [("good", 0), ("no-nccl", 1)] {
        let output = run_in(folder.path(), &["check", "--quiet", "--format", "sarif=null", &image(name)]);
        assert_eq!((output.status.code(), &*stderr(&output)), (Some(status), ""));
    }
    assert!(fs::symlink_metadata(&device).unwrap().file_type().is_char_device());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Runs a check that writes to a path, with this standard output.
fn to_descriptor(path: &str, output: Stdio) -> Vec<u8> {
    let arguments = ["inspect", "--quiet", "--format", &format!("human={path}"), &image("good")];
    let child =
        Command::new(program()).args(arguments).env_clear().stdout(output).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    output.stdout
}

#[test]
fn standard_output_is_written_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert!(to_descriptor(path, Stdio::piped()).starts_with(image("good").as_bytes()), "{path}");
        fs::write(&file, "before\n").unwrap();
        let number = fs::metadata(&file).unwrap().ino();
        to_descriptor(path, OpenOptions::new().append(true).open(&file).unwrap().into());
        assert!(fs::read_to_string(&file).unwrap().starts_with(&format!("before\n{}", image("good"))), "{path}");
        assert_eq!(fs::metadata(&file).unwrap().ino(), number);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_substituted_process_gets_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#""$0" check --quiet --format human=>(cat > "$1") "$2"; wait $!"#;
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(program())
        .arg(folder.path().join("copy"))
        .arg(world("good"))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    assert!(fs::read_to_string(folder.path().join("copy")).unwrap().starts_with("PASS "));
}

#[test]
fn what_cannot_be_an_output_is_an_error_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink("loop", at("loop")).unwrap();
    fs::copy(world("good"), at("image.tar")).unwrap();
    symlink("image.tar", at("link")).unwrap();
    let json = ["--format", "json=a"];
    let csv = ["--format", "csv=./a"];
    let two = [json, csv].concat();
    for (arguments, why) in [
        (&["--format", "human=folder"][..], "writing folder: is a directory"),
        (&["--format", "human=folder/"], "writing folder/: is a directory"),
        (&["--format", "human=new/"], "writing new/: is a directory"),
        (&["--format", "human=none/file"], "writing none/file: there is no folder none"),
        (&["--format", "human=socket"], "writing socket: it is a socket, not a regular file"),
        (&["--format", "human=loop"], "writing loop: "),
        (&["--format", "human=image.tar"], "image.tar: this run reads this file"),
        (&["--format", "human=link"], "link: this run reads this file"),
        (&two, "--format csv=./a: another format has the same target"),
    ] {
        for variables in [&[], UNCONFINED] {
            let arguments = [&["check", "--quiet", "image.tar"], arguments].concat();
            let output = run_in_with(folder.path(), variables, &arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
        }
    }
    assert_eq!(fs::read(at("image.tar")).unwrap(), fs::read(world("good")).unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
}

/// Runs a command in a folder, and expects that it refuses to replace a file.
fn spares(folder: &Path, arguments: &[&str], file: &str) {
    spares_with(&[], folder, arguments, file);
}

/// Likewise, with these variables.
fn spares_with(variables: &[(&str, &str)], folder: &Path, arguments: &[&str], file: &str) {
    let before = fs::read(folder.join(file)).unwrap();
    let output = run_in_with(folder, variables, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    let why = format!("error: {file}: this run reads this file\n  help: name another file for the output\n");
    assert_eq!(stderr(&output), why, "{arguments:?}");
    assert!(fs::read(folder.join(file)).unwrap() == before, "{arguments:?}");
}

#[test]
fn what_a_check_reads_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let good = image("good");
    for (option, text) in [
        ("--list", good.as_str()),
        ("--launch", "NCCL_DEBUG=INFO\n"),
        ("--config", "fail-on: warning\n"),
        ("--dockerfile", "FROM x\n"),
        ("--host", "gpu: h100\n"),
    ] {
        write("file", text);
        for (variables, format) in [(&[][..], "human=./file"), (UNCONFINED, "json=./file")] {
            let arguments = ["check", "--quiet", &good, option, "./file", "--format", format];
            spares_with(variables, folder.path(), &arguments, "./file");
        }
    }
    write("list", &good);
    spares(folder.path(), &["inspect", "--quiet", "--list", "list", "--format", "human=list"], "list");
    assert!(run_in(folder.path(), &["check", "--quiet", "--format", "json=known", &good]).status.success());
    spares(folder.path(), &["check", "--quiet", "--baseline", "known", "--format", "json=known", &good], "known");
    assert!(run_in(folder.path(), &["host", "--format", "json=host"]).status.success());
    spares(folder.path(), &["check", "--quiet", "--host", "host", "--format", "human=host", &good], "host");
    fs::copy(&good, folder.path().join("image")).unwrap();
    spares(folder.path(), &["preflight", "--dry-run", "image", "--format", "human=image"], "image");
}

#[test]
fn what_a_probe_and_an_audit_read_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let recording = format!("{}/fixtures/probe/h200-x2/quick.jsonl", env!("CARGO_MANIFEST_DIR"));
    fs::copy(&recording, folder.path().join("recording")).unwrap();
    fs::write(folder.path().join("owners"), "- {images: x, team: y}\n").unwrap();
    let from = ["probe", "--quiet", "--from"];
    spares(folder.path(), &[&from[..], &["recording", "--format", "human=recording"]].concat(), "recording");
    let more = ["--reference", "recording", "--format", "human=recording"];
    spares(folder.path(), &[&from[..], &[&recording], &more].concat(), "recording");
    spares(folder.path(), &[&["preflight", "--in-place", "--dry-run"][..], &more].concat(), "recording");
    assert!(
        run_in(folder.path(), &["audit", "plan", "--no-config", "--store", "store", &image("good")]).status.success()
    );
    let merge = ["audit", "merge", "--store", "store", "--owners", "owners", "--format"];
    spares(folder.path(), &[&merge[..], &["csv=owners"]].concat(), "owners");
    let output = run_in(folder.path(), &[&merge[..], &["json=a.json", "--format", "csv"]].concat());
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("image,"), "{}", stderr(&output));
    let merged: Value = serde_json::from_slice(&fs::read(folder.path().join("a.json")).unwrap()).unwrap();
    assert_eq!(merged["counts"]["images"], 1, "{merged}");
}

#[test]
fn files_in_a_folder_that_is_an_image_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("root/etc")).unwrap();
    let file = folder.path().join("root/etc/hostname");
    fs::write(&file, "name").unwrap();
    let hostname = file.to_str().unwrap();
    let check = |image: &str, output: &str| {
        run_in(folder.path(), &["inspect", "--quiet", image, "--format", &format!("human={output}")])
    };
    let output = check("root:root", hostname);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("hostname: this run reads the folder that it is in\n"), "{}", stderr(&output));
    assert_eq!(fs::read(&file).unwrap(), b"name");
    assert_eq!(check("root:root", "root/new").status.code(), Some(0));
}

#[test]
fn a_document_that_is_full_is_not_numbered_beside_a_fifo() {
    let folder = tempfile::tempdir().unwrap();
    let list = vec![image("no-nccl"); 21].join("\n");
    fs::write(folder.path().join("list"), list).unwrap();
    let _open = fifo(&folder.path().join("fifo"));
    let check = ["check", "--quiet", "--list", "list", "--format"];
    let output = run_in(folder.path(), &[&check[..], &["sarif=fifo"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("a document holds at most 20 images, but there are 21"), "{}", stderr(&output));
    // The numbers are next to what a link leads to.
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    symlink("elsewhere/a.sarif", folder.path().join("link")).unwrap();
    assert_eq!(run_in(folder.path(), &[&check[..], &["sarif=link"]].concat()).status.code(), Some(1));
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder.path().join("elsewhere")).unwrap().map(|entry| entry.unwrap().file_name().into()).collect();
    names.sort();
    assert_eq!(names, [Path::new("a-1.sarif"), Path::new("a-2.sarif")]);
}

#[test]
fn a_link_of_another_user_in_a_shared_folder_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let link = shared.join("ncclcheck.1");
    symlink("../file", &link).unwrap();
    let write = || run_in(folder.path(), &["man", "shared"]);
    assert_eq!(stderr(&write()), "");
    // Only root can make another user's link.
    fs::remove_file(folder.path().join("file")).unwrap();
    if lchown(&link, Some(65534), None).is_ok() {
        let output = write();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("another user made this link"), "{}", stderr(&output));
        assert!(!folder.path().join("file").exists());
    }
}
