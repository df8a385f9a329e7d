//! Runs the program without an engine: on this host, or in the container in which ncclcheck itself runs.

use std::io::{BufReader, Read, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use model::{cause, line_within};

use super::ProbeError;
use super::engine::Finished;
use super::lines::Lines;
use super::payload;
use super::tail::Tail;

/// Most bytes of standard error that are kept as one line.
const LONGEST_ERROR: u64 = 4 << 10;

/// Runs the program to its end and passes each line of its standard output to `line`. If this process ends first, the
/// program notices it by the end of its standard input.
pub(super) fn run(
    python: &str,
    program: &str,
    plan: &str,
    line: &mut dyn FnMut(&[u8]),
) -> Result<Finished, ProbeError> {
    let failed = |error: std::io::Error| ProbeError::Engine {
        what: format!("{python} cannot run the probe's program: {}", cause(&error)),
        help: Some("select the Python that has torch with --python".to_owned()),
    };
    #[expect(clippy::disallowed_methods, reason = "the user requests this run with --in-place")]
    let mut child = Command::new(python)
        .args(payload::start(program, plan))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let finished = converse(&mut child, program, line);
    child.wait().map_err(failed)?;
    Ok(finished)
}

fn converse(child: &mut Child, program: &str, line: &mut dyn FnMut(&[u8])) -> Finished {
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let errors = thread::spawn(move || {
        let mut tail = Tail::default();
        let Some(mut stderr) = stderr.map(BufReader::new) else { return tail.text() };
        // A read error is harmless here: it only shortens an error message.
        while let Ok(Some(line)) = line_within(&mut stderr, LONGEST_ERROR) {
            tail.push(&line);
        }
        tail.text()
    });
    let mut lifeline = stdin;
    // A program that exits before it has read its source gives the reason on standard error.
    let _ = lifeline.as_mut().map(|stdin| stdin.write_all(program.as_bytes()).and_then(|()| stdin.flush()));
    let broken = stdout.and_then(|stdout| follow(stdout, line).err());
    drop(lifeline);
    Finished { stderr: errors.join().unwrap_or_default(), broken, ..Finished::default() }
}

/// Passes each line of a stream to `line`, to the end of the stream. Returns the reason for an early end.
fn follow(mut stream: impl Read, line: &mut dyn FnMut(&[u8])) -> Result<(), String> {
    let mut lines = Lines::default();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = stream.read(&mut buffer).map_err(|error| error.to_string())?;
        if count == 0 {
            return Ok(());
        }
        lines.push(buffer.get(..count).unwrap_or_default(), line)?;
    }
}
