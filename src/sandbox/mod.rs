//! Gives up the rights of a process that reading an image does not need, before it reads any of it: files
//! by Landlock ([`files`]), system calls by seccomp ([`calls`]), and new privileges. A parser that an image has taken
//! over then reads no secrets, starts no programs, and writes only where the run writes.
//!
//! All of this holds for the calling thread and the threads that it starts later, and cannot be undone. Nothing of it
//! is ever an error: a kernel or a container without it runs the command as before, and the state says so.

mod calls;
mod files;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use files::landlock_version;

use model::{Environment, SandboxExtent, SandboxState, WriteTarget};

/// Configuration by which names of hosts are resolved (resolv.conf(5), hosts(5), nsswitch.conf(5), gai.conf(5)), with the
/// folders to which `resolv.conf` is a link, because services replace the file in them.
const NAMES: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/var/run/nscd",
];

/// The modules that glibc loads to resolve names.
const LIBRARIES: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/// Where distributions keep certificate authorities: files, and the folders that links in them lead to.
const AUTHORITIES: &[&str] = &[
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/pki",
    "/usr/local/share/certs",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What the run-time libraries read of any machine: the number of its processors, and randomness. A rule for a file in
/// /proc would grant nothing, because a rule names an inode, and the kernel makes a new one for each opening.
const RUNTIME: &[&str] = &["/sys/devices/system/cpu", "/sys/fs/cgroup", "/dev/urandom", "/dev/random", "/dev/null"];

/// What a run needs of this machine. Everything else is given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    grants: Vec<(PathBuf, Grant)>,
    has_network: bool,
}

/// What may be done beneath a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    Read,
    List,
    Keep,
    Spool,
    Output,
    Write,
}

impl Sandbox {
    /// A process that reads and writes nothing but what it has already opened.
    #[must_use]
    pub fn new() -> Self {
        let grants = RUNTIME.iter().map(|path| (PathBuf::from(path), Grant::Read)).collect();
        Self { grants, has_network: false }
    }

    fn grant(&mut self, path: &Path, grant: Grant) -> &mut Self {
        let new = (path.to_owned(), grant);
        if !self.grants.contains(&new) {
            self.grants.push(new);
        }
        self
    }

    /// Allows to read a file, or a folder and all beneath it. What does not exist yet is not allowed.
    pub fn read(&mut self, path: impl AsRef<Path>) -> &mut Self {
        self.grant(path.as_ref(), Grant::Read)
    }

    /// Allows to list a folder and the folders in it.
    pub fn list(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.grant(folder.as_ref(), Grant::List)
    }

    /// Allows to read, write, make and remove files and folders beneath a folder.
    pub fn keep(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.grant(folder.as_ref(), Grant::Keep)
    }

    /// Allows temporary files in a folder, which is not listed.
    pub fn spool(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.grant(folder.as_ref(), Grant::Spool)
    }

    /// Allows to write a file, behind links too: next to others, which are not read, and in place where it exists.
    pub fn output(&mut self, file: &Path) -> &mut Self {
        // Opening a file that cannot be written reports why.
        let Ok(target) = WriteTarget::of(file) else { return self };
        if let (WriteTarget::Replaced(file), Some(folder)) = (&target, target.path().parent()) {
            self.grant(folder, Grant::Output).grant(file, Grant::Write)
        } else {
            self.grant(target.path(), Grant::Write)
        }
    }

    /// Allows connections, and to read what they need: the configuration of name resolution, and certificate authorities.
    pub fn network(&mut self, environment: &Environment) -> &mut Self {
        self.has_network = true;
        for path in NAMES.iter().chain(LIBRARIES).chain(AUTHORITIES) {
            self.read(path);
        }
        // As rustls-native-certs reads them; the folder variable is a list.
        if let Some(file) = environment.get("SSL_CERT_FILE") {
            self.read(file);
        }
        for folder in environment.get("SSL_CERT_DIR").into_iter().flat_map(std::env::split_paths) {
            self.read(folder);
        }
        self
    }

    /// Restricts the calling thread, and the threads that it starts from now on.
    pub fn enter(&self) -> SandboxState {
        // Files first: the filter of system calls does not know the calls of Landlock, and need not.
        let files = files::restrict(self);
        let calls = calls::restrict(self.has_network);
        let threads = other_threads().then_some("other threads had been started before");
        let landlock = files.as_ref().ok().copied();
        let whys: Vec<_> = files.err().into_iter().chain(calls.err()).chain(threads.map(str::to_owned)).collect();
        let state = match whys.len() {
            0 => SandboxExtent::On,
            2.. if landlock.is_none() => SandboxExtent::Off,
            _ => SandboxExtent::Partial,
        };
        SandboxState { state, landlock, why: (!whys.is_empty()).then(|| whys.join("; ")) }
    }
}

/// Returns true if this process has other threads than the calling one, which a restriction does not reach.
fn other_threads() -> bool {
    std::fs::metadata("/proc/self/task").is_ok_and(|tasks| std::os::unix::fs::MetadataExt::nlink(&tasks) > 3)
}
