//! The commands that reach the nodes: their input, their output and their end.

use std::fmt;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process_group};

/// Most bytes of one piece of output. A thousand nodes have two thousand streams, each with room for a piece.
const PIECE: usize = 1 << 13;

/// What comes from a process, which has this number.
#[derive(Debug)]
pub(super) enum News {
    /// Bytes of its standard output.
    Output(usize, Vec<u8>),
    /// Bytes of its standard error.
    Errors(usize, Vec<u8>),
    /// One of its two streams has ended.
    Closed(usize),
}

/// A command that runs, as the leader of a process group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// What is written to the process's input, which stays open while this exists.
    input: Option<Sender<Arc<str>>>,
    open_streams: u8,
    stopper: Stopper,
}

impl Process {
    /// Starts a command and writes the program to its standard input.
    pub(super) fn start(
        mut command: Command,
        number: usize,
        program: &Arc<str>,
        news: &SyncSender<News>,
        stopper: &Stopper,
    ) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for ncclcheck, which then ends the group.
        let mut child = command.process_group(0).spawn()?;
        stopper.groups().push(group(&child));
        let (input, texts) = channel::<Arc<str>>();
        if let Some(mut stdin) = child.stdin.take() {
            thread::spawn(move || {
                for text in texts {
                    // A program that ends before it has read its source gives the reason on standard error.
                    let _ = stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush());
                }
            });
        }
        let [stdout, stderr] = [child.stdout.take().map(boxed), child.stderr.take().map(boxed)];
        for (stream, piece) in [(stdout, News::Output as fn(usize, Vec<u8>) -> News), (stderr, News::Errors)] {
            let news = news.clone();
            thread::spawn(move || {
                let mut stream = stream;
                while let Some(bytes) = stream.as_mut().and_then(next) {
                    if news.send(piece(number, bytes)).is_err() {
                        return;
                    }
                }
                let _ = news.send(News::Closed(number));
            });
        }
        let started = Self { child, input: Some(input), open_streams: 2, stopper: stopper.clone() };
        started.write(Arc::clone(program));
        Ok(started)
    }

    /// Writes a text to the process's input, without waiting for it.
    pub(super) fn write(&self, text: Arc<str>) {
        // Nothing reads it if the process has ended.
        let _ = self.input.as_ref().map(|input| input.send(text));
    }

    /// Notes that one of the streams has ended.
    pub(super) fn closed(&mut self) {
        self.open_streams = self.open_streams.saturating_sub(1);
    }

    /// How the process has ended, once all of its output has been read.
    pub(super) fn ending(&mut self) -> Option<ExitStatus> {
        if self.open_streams > 0 {
            return None;
        }
        let status = self.child.try_wait().ok()??;
        let ended = group(&self.child);
        self.stopper.groups().retain(|other| *other != ended);
        Some(status)
    }

    /// Ends the process's input, upon which the programs that it started end.
    pub(super) fn end_input(&mut self) {
        self.input = None;
    }

    /// Sends a signal to the process and those that it started here.
    pub(super) fn signal(&self, signal: Signal) {
        // It fails for a group that has ended.
        let _ = kill_process_group(group(&self.child), signal);
    }
}

fn boxed(stream: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(stream)
}

/// The next bytes of a stream; `None` at its end.
fn next(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut buffer = [0; PIECE];
    loop {
        match stream.read(&mut buffer) {
            Ok(count) => return buffer.get(..count).filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn group(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Ends the commands of a run, from another thread or a signal handler.
#[derive(Clone, Default)]
pub struct Stopper(Arc<Mutex<Vec<Pid>>>);

impl Stopper {
    /// Asks every command that still runs to end. srun ends its tasks then.
    pub fn end(&self) {
        for group in self.groups().iter() {
            let _ = kill_process_group(*group, Signal::TERM);
        }
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopper")
    }
}
