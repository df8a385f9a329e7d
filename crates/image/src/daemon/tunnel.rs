//! A socket of this process whose connections lead to processes, because the client library knows sockets only.

use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tempfile::TempDir;

use model::{cause, line_within, part};

/// Maximum number of bytes kept of a line that a process writes to standard error.
const LONGEST_LINE: u64 = 4 << 10;

/// The socket. Each connection to it has a process of its own.
pub(super) struct Tunnel {
    /// A folder that only this user can enter.
    folder: TempDir,
    shared: Arc<TunnelState>,
}

#[derive(Default)]
struct TunnelState {
    is_closed: AtomicBool,
    /// The last line that a process wrote to standard error.
    complaint: Mutex<Option<String>>,
}

impl Tunnel {
    /// Listens, and starts `command` for each connection.
    pub(super) fn open(command: impl Fn() -> Command + Send + 'static) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let listener = UnixListener::bind(folder.path().join("engine.sock"))?;
        let shared = Arc::<TunnelState>::default();
        let tunnel = Self { folder, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.is_closed.load(Ordering::SeqCst) {
                    break;
                }
                // The stream is open until the complaint is there, so that a client that sees its end can ask for it.
                let Ok(stream) = stream.inspect_err(|error| shared.complain(cause(error))) else { continue };
                if let Err(error) = shared.connect(&stream, command()) {
                    shared.complain(cause(&error));
                }
            }
        });
        Ok(tunnel)
    }

    /// The path of the socket.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// The last line that a process wrote to standard error, or the reason why none could be started.
    pub(super) fn complaint(&self) -> Option<String> {
        self.shared.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // The listening thread notices the flag when it gets a connection.
        self.shared.is_closed.store(true, Ordering::SeqCst);
        drop(UnixStream::connect(self.path()));
    }
}

impl TunnelState {
    /// Starts a process and relays between it and a connection, on threads of their own.
    fn connect(self: &Arc<Self>, stream: &UnixStream, mut command: Command) -> io::Result<()> {
        let mut from = stream.try_clone()?;
        let mut to = stream.try_clone()?;
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| {
            let program = command.get_program().to_string_lossy().into_owned();
            io::Error::new(error.kind(), format!("cannot run {program}: {}", cause(&error)))
        })?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let errors = child.stderr.take();
        if let Some(mut input) = input {
            // Ends with the connection, and closes the process's input, which ends the process.
            thread::spawn(move || relay(&mut from, &mut input));
        }
        let state = Arc::clone(self);
        thread::spawn(move || state.finish(child, output, errors, &mut to));
        Ok(())
    }

    /// Relays what a process writes until it ends.
    fn finish(
        &self,
        mut child: Child,
        output: Option<impl Read>,
        errors: Option<impl Read + Send>,
        to: &mut UnixStream,
    ) {
        thread::scope(|scope| {
            if let Some(errors) = errors {
                scope.spawn(|| self.listen(errors));
            }
            if let Some(mut output) = output {
                relay(&mut output, to);
            }
        });
        // After the complaint has been read, so that a client that sees the end of the connection can ask for it.
        let _ = to.shutdown(Shutdown::Both);
        let _ = child.wait();
    }

    fn listen(&self, errors: impl Read) {
        let mut reader = BufReader::new(errors);
        while let Ok(Some(line)) = line_within(&mut reader, LONGEST_LINE) {
            self.complain(String::from_utf8_lossy(&line).trim().to_owned());
        }
    }

    fn complain(&self, line: String) {
        if !line.is_empty() {
            *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
        }
    }
}

/// Copies each block as it arrives, until one side ends. The client may hang up at any time. `io::copy` would use
/// splice(2) here, and an answer of ssh then stays in the pipe while the connection is open.
fn relay(from: &mut impl Read, to: &mut impl Write) {
    let mut block = vec![0; 64 << 10];
    loop {
        match from.read(&mut block) {
            Ok(0) => return,
            Ok(count) => {
                let sent = part(&block, ..count).map_err(io::Error::from).and_then(|bytes| to.write_all(bytes));
                if sent.is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
