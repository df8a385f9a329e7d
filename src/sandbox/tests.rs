use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;

use super::*;

/// Runs a test in a thread of its own, which alone is restricted.
fn inside<T: Send>(sandbox: &Sandbox, test: impl FnOnce(SandboxState) -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(|| test(sandbox.enter())).join().unwrap())
}

/// What the kernel says to opening a file.
fn opened(path: &Path) -> Result<(), ErrorKind> {
    File::open(path).map(drop).map_err(|error| error.kind())
}

fn wrote(path: &Path) -> Result<(), ErrorKind> {
    OpenOptions::new().write(true).create_new(true).open(path).map(drop).map_err(|error| error.kind())
}

const DENIED: Result<(), ErrorKind> = Err(ErrorKind::PermissionDenied);

/// Returns true, and says so, on a kernel that cannot show what a test is about.
#[expect(clippy::print_stderr, reason = "a test that tries nothing must not look like one that passes")]
fn lacks_landlock(version: u32) -> bool {
    let lacks = landlock_version().is_none_or(|found| found < version);
    if lacks {
        eprintln!("not tried: this kernel has no Landlock {version}");
    }
    lacks
}

/// A state that the tests can rely on: this kernel has what they check.
fn full(state: &SandboxState) {
    let why = state.why.as_deref().unwrap_or_default();
    assert!(state.landlock.is_some(), "the tests need a kernel with Landlock: {state}");
    // The test harness has other threads.
    assert!(matches!(why, "" | "other threads had been started before"), "{state}");
}

#[test]
fn a_file_that_was_not_granted_cannot_be_opened_nor_a_program_started() {
    if lacks_landlock(3) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("image/blobs")).unwrap();
    fs::write(at("image/blobs/a"), "layer").unwrap();
    fs::write(at("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(at("secret"), at("image/blobs/link")).unwrap();
    let mut sandbox = Sandbox::new();
    sandbox.read(at("image")).read(at("none"));
    inside(&sandbox, |state| {
        full(&state);
        assert_eq!(opened(&at("image/blobs/a")), Ok(()));
        assert_eq!(opened(&at("secret")), DENIED);
        assert_eq!(opened(&at("image/blobs/link")), DENIED);
        assert_eq!(opened(&at("image/blobs/../../secret")), DENIED);
        assert_eq!(opened(Path::new("/etc/passwd")), DENIED);
        assert_eq!(opened(Path::new("/")), DENIED);
        assert_eq!(wrote(&at("image/new")), DENIED);
        assert_eq!(wrote(&at("new")), DENIED);
        assert_eq!(fs::remove_file(at("secret")).unwrap_err().kind(), ErrorKind::PermissionDenied);
        #[expect(clippy::disallowed_methods, reason = "shows that it fails")]
        let started = Command::new("/bin/true").status().map_err(|error| error.kind());
        assert_eq!(started.unwrap_err(), ErrorKind::PermissionDenied);
    });
    // The restriction holds for that thread alone.
    assert_eq!(opened(&at("secret")), Ok(()));
}

#[test]
fn threads_inherit_the_sandbox() {
    if lacks_landlock(3) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    inside(&Sandbox::new(), |_| {
        thread::scope(|scope| {
            let later = scope.spawn(|| {
                #[expect(clippy::disallowed_methods, reason = "shows that it fails")]
                let started = Command::new("/bin/true").status().map_err(|error| error.kind());
                (opened(&secret), started.unwrap_err())
            });
            assert_eq!(later.join().unwrap(), (DENIED, ErrorKind::PermissionDenied));
        });
    });
}

#[test]
fn new_privileges_and_the_filter_are_set() {
    let status = thread::scope(|scope| {
        let (ready, wait) = std::sync::mpsc::channel();
        let (done, end) = std::sync::mpsc::channel::<()>();
        let thread = scope.spawn(move || {
            Sandbox::new().enter();
            ready.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let _ended = end.recv();
        });
        let task = wait.recv().unwrap();
        let status = fs::read_to_string(Path::new("/proc").join(task).join("status")).unwrap();
        drop(done);
        thread.join().unwrap();
        status
    });
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), (Some("1"), Some("2")));
}

#[test]
fn outputs_are_written_and_their_folder_is_not_read() {
    if lacks_landlock(3) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("other"), "other").unwrap();
    inside(Sandbox::new().output(&at("report.json")), |state| {
        full(&state);
        assert_eq!(wrote(&at(".new")), Ok(()));
        fs::rename(at(".new"), at("report.json")).unwrap();
        assert_eq!(opened(&at("other")), DENIED);
        assert_eq!(fs::read_dir(folder.path()).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::create_dir(at("folder")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    });
    assert!(at("report.json").exists());
}

#[test]
fn a_cache_is_kept_and_temporary_files_have_no_list() {
    if lacks_landlock(3) {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    inside(Sandbox::new().keep(cache.path()).spool(temporary.path()), |state| {
        full(&state);
        let inner = cache.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("new"), "scan").unwrap();
        fs::rename(inner.join("new"), cache.path().join("scan")).unwrap();
        fs::remove_dir_all(cache.path().join("a")).unwrap();
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
        let file = tempfile::tempfile_in(temporary.path()).unwrap();
        file.set_len(7).unwrap();
        let mut named = tempfile::NamedTempFile::new_in(temporary.path()).unwrap();
        assert_eq!(named.as_file_mut().read(&mut [0; 1]).unwrap(), 0);
        named.close().unwrap();
        assert_eq!(fs::read_dir(temporary.path()).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(fs::create_dir(temporary.path().join("a")).unwrap_err().kind(), ErrorKind::PermissionDenied);
    });
}

#[test]
fn there_are_connections_only_where_they_are_needed() {
    if lacks_landlock(4) {
        return;
    }
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    inside(&Sandbox::new(), |_| {
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(UnixStream::connect("/none").unwrap_err().kind(), ErrorKind::PermissionDenied);
    });
    inside(Sandbox::new().network(&Environment::default()), |state| {
        full(&state);
        TcpStream::connect(address).unwrap();
        assert_eq!(TcpListener::bind("127.0.0.1:0").unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(UnixStream::connect("/none").unwrap_err().kind(), ErrorKind::NotFound);
        // A name is looked up in /etc/hosts.
        TcpStream::connect(("localhost", address.port())).unwrap();
    });
}

#[test]
fn a_refused_file_is_explained() {
    if lacks_landlock(3) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    inside(&Sandbox::new(), |_| {
        let error = model::open_regular(&secret).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("NCCLCHECK_SANDBOX=off allows it"), "{error}");
        let missing = model::open_regular(&folder.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_state_says_what_is_restricted() {
    let state = |state, landlock, why: Option<&str>| SandboxState { state, landlock, why: why.map(str::to_owned) };
    assert_eq!(state(SandboxExtent::On, Some(7), None).to_string(), "on, Landlock 7");
    let why = "this kernel or this container has no Landlock";
    assert_eq!(state(SandboxExtent::Partial, None, Some(why)).to_string(), format!("in part: {why}"));
    assert_eq!(SandboxState::off("a reason").to_string(), "off: a reason");
}
