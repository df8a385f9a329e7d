//! Ends the containers of a process that is gone. The program in a container notices the end of ncclcheck only if it
//! wants to, so a second process of ncclcheck waits for that end and removes what is left.
//!
//! The watchdog holds one end of a pipe as its standard input. The other end closes when ncclcheck ends, however it ends.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setsid;

use image::source::AccessOptions;

use super::engine::Launcher;
use super::{ProbeError, owner};

/// What ncclcheck writes when no container of it is left.
const DONE: u8 = b'.';
/// Time during which a creation that the engine has received can still give a container.
const CREATION: Duration = Duration::from_secs(8);
/// Pause between two looks at the engine's containers.
const PAUSE: Duration = Duration::from_millis(250);

/// A process that removes the containers of this one, should it end without doing so.
#[derive(Debug)]
pub struct Watchdog(Child);

impl Watchdog {
    /// Starts this program again with `arguments` and the owner of this process's containers, upon which it has to call
    /// [`watch`].
    pub fn start(arguments: &[&str]) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "this program, which the user has started to run a container")]
        let child = Command::new("/proc/self/exe")
            .arg0("ncclcheck")
            .args(arguments)
            .arg(owner::this())
            .stdin(Stdio::piped())
            // An open output would keep its reader waiting after the end of ncclcheck.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(child))
    }

    /// Ends the watchdog: no container is left.
    pub fn end(mut self) {
        // A watchdog that cannot be reached removes what is left, which is nothing.
        let _ = self.0.stdin.take().map(|mut stdin| stdin.write_all(&[DONE]));
        let _ = self.0.wait();
    }
}

/// Waits for the end of the process that started this one, and removes the containers of `owner` if it has not done so.
///
/// # Errors
/// The engine does not answer, or does not remove a container.
pub fn watch(engine: &AccessOptions, owner: &str) -> Result<(), ProbeError> {
    // A signal to the session or group of the other process is not one for this process. It fails for a process that
    // leads a group already.
    let _ = setsid();
    let mut last = [0];
    let read = io::stdin().lock().read(&mut last);
    if matches!(read, Ok(count) if count > 0) && last == [DONE] {
        return Ok(());
    }
    let end = Instant::now() + CREATION;
    loop {
        let removed = Launcher::connect(engine).and_then(|launcher| launcher.clean_of(owner));
        if Instant::now() > end {
            return removed;
        }
        thread::sleep(PAUSE);
    }
}
