//! Interrupt and termination (SIGINT, SIGTERM, SIGHUP): what the program has begun is ended, and files that are not
//! complete are removed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Exit status of an interrupted program, as shells report it.
const INTERRUPTED: i32 = 130;

type Cleanup = Box<dyn Fn() + Send>;

static CLEANUPS: Mutex<Vec<Cleanup>> = Mutex::new(Vec::new());

/// Paths of the files that are not complete.
static PENDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

static INSTALLED: Once = Once::new();

/// Runs `clean` before an interrupt ends the program, after what was registered before.
pub(super) fn on_interrupt(clean: impl Fn() + Send + 'static) {
    lock(&CLEANUPS).push(Box::new(clean));
    install();
}

fn install() {
    INSTALLED.call_once(|| {
        // An error means that the process has another handler.
        let _ = ctrlc::set_handler(|| {
            lock(&CLEANUPS).iter().for_each(|clean| clean());
            // Held until the end, so that no thread creates another file.
            let pending = lock(&PENDING);
            for path in &*pending {
                let _ = fs::remove_file(path);
            }
            #[expect(clippy::exit, reason = "the only way to stop at once, whatever every thread is doing")]
            std::process::exit(INTERRUPTED);
        });
    });
}

/// A file that gets its name when it is complete. Until then an interrupt removes it.
#[derive(Debug)]
pub(super) struct PendingFile(tempfile::NamedTempFile);

impl PendingFile {
    /// Creates a file in a folder.
    pub(super) fn create(builder: &tempfile::Builder<'_, '_>, folder: &Path) -> io::Result<Self> {
        install();
        // An interrupt waits until the name is known.
        let mut pending = lock(&PENDING);
        // Only written, because the sandbox does not let the folder's files be read. The mode is that of any new file: the
        // process's umask reduces it.
        let file = builder.make_in(folder, |path| File::options().write(true).create_new(true).open(path))?;
        pending.insert(file.path().to_owned());
        Ok(Self(file))
    }

    /// The file.
    pub(super) fn file(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// Gives the file its final name.
    pub(super) fn persist(self, path: &Path) -> io::Result<File> {
        let Self(file) = self;
        let temporary = file.path().to_owned();
        let mut pending = lock(&PENDING);
        let persisted = file.persist(path).map_err(|error| error.error);
        pending.remove(&temporary);
        persisted
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
