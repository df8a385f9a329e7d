//! Takes what the program tells, as it comes or from a file.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::image::source::read_bounded;
use crate::model::printable;
use crate::probe::ProbeError;
use crate::probe::engine::Finished;
use crate::probe::recording::{Outcome, Recording};
use crate::probe::wire::events::{self, Event};

use super::super::Failure;
use super::super::verbosity::Verbosity;

/// Takes the program's lines as they come: into the recording, to the file, and a word about each step to the user.
pub(super) struct Listener {
    pub(super) recording: Recording,
    pub(super) launch: Option<events::Launch>,
    pub(super) verbosity: Verbosity,
    file: Option<(File, PathBuf)>,
    /// Whether the file has all of it.
    kept: io::Result<()>,
}

impl Listener {
    pub(super) fn new(verbosity: Verbosity, record: Option<&Path>) -> Result<Self, Failure> {
        let file = record.map(|path| File::create(path).map(|file| (file, path.to_owned()))).transpose();
        let failed =
            |error| Failure::Output { what: record.map_or(String::new(), |path| path.display().to_string()), error };
        Ok(Self { recording: Recording::default(), launch: None, verbosity, file: file.map_err(failed)?, kept: Ok(()) })
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        let before = self.done();
        self.recording.push(line);
        self.keep(line);
        if self.done() > before {
            self.tell();
        }
    }

    /// Writes a line to the file; the first failure is told in the end.
    fn keep(&mut self, line: &[u8]) {
        if let (Some((file, _)), Ok(())) = (&mut self.file, &self.kept) {
            self.kept = file.write_all(&[line, b"\n"].concat());
        }
    }

    fn done(&self) -> usize {
        self.recording.steps.iter().filter(|step| step.outcome != Outcome::Open).count()
    }

    /// One line for a step that is over.
    fn tell(&self) {
        let over = self.recording.steps.iter().rev().find(|step| step.outcome != Outcome::Open);
        let Some(step) = over else { return };
        let seconds = step.seconds.map(|seconds| format!(" ({seconds:.1} s)")).unwrap_or_default();
        let text = match &step.outcome {
            Outcome::Done { .. } | Outcome::Open => format!("{}: done{seconds}", step.name),
            Outcome::Failed(failed) => format!("{}: failed{seconds}: {}", step.name, failed.message),
            Outcome::Skipped(why) => format!("{}: skipped: {why}", step.name),
        };
        say(self.verbosity, &text);
    }

    /// An event of our own, as if the program had told it.
    pub(super) fn event(&mut self, event: &Event) {
        if let Ok(line) = events::write(event) {
            self.line(line.as_bytes());
        }
    }

    pub(super) fn finish(mut self, finished: Finished) -> Result<Recording, Failure> {
        if let Some(launch) = &mut self.launch {
            launch.given = finished.given;
        }
        // What the engine gave is known only now; where in a recording this line stands makes no difference.
        if let Some(launch) = self.launch.clone().and_then(|launch| events::write(&Event::Launch(launch)).ok()) {
            self.keep(launch.as_bytes());
        }
        if let (Err(error), Some((_, path))) = (std::mem::replace(&mut self.kept, Ok(())), &self.file) {
            return Err(Failure::Output { what: path.display().to_string(), error });
        }
        self.recording.launch = self.launch;
        if !self.recording.ended {
            let stderr = finished.stderr.trim();
            let last: Vec<_> = stderr.lines().rev().take(5).collect();
            let said = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
            let why = finished.broken.unwrap_or_else(|| "it ended before its end".to_owned());
            let said = if said.is_empty() { said } else { format!("; its last words:\n    {said}") };
            self.recording.broken = Some(format!("{why}{said}"));
        }
        if self.recording.hello.is_none() {
            let why = self.recording.broken.unwrap_or_else(|| "it said nothing".to_owned());
            return Err(Failure::Probe(ProbeError::Engine {
                what: format!("the program did not begin in the container: {why}"),
                help: Some("it needs a Python from 3.8 on: name the image's with --python".to_owned()),
            }));
        }
        Ok(self.recording)
    }
}

/// A word on standard error, where words are wanted.
pub(super) fn say(verbosity: Verbosity, text: &str) {
    if verbosity != Verbosity::Quiet {
        // Progress that nobody can see is no reason to stop.
        let _ = writeln!(io::stderr(), "{}", printable(text));
    }
}

/// Bytes of a recording that is read. Those of eight GPUs with every step have some two million.
const LARGEST: u64 = 256 << 20;

/// What was recorded before.
pub(super) fn recorded(option: &str, file: &Path) -> Result<Recording, Failure> {
    let name = file.display().to_string();
    let read = if name == "-" {
        read_bounded(io::stdin().lock(), LARGEST, &name)
    } else {
        let opened = File::open(file).map_err(|error| Failure::Usage(format!("{option} {name}: {error}")))?;
        read_bounded(opened, LARGEST, &name)
    };
    let text = read.map_err(|error| Failure::Usage(format!("{option} {error}")))?;
    let mut recording = Recording::read(&text);
    if recording.hello.is_none() {
        let why = "there is no line of a probe in it; write one with --record, or with ncclcheck probe --in-place";
        return Err(Failure::Usage(format!("{option} {name}: {why}")));
    }
    if !recording.ended {
        recording.broken = Some("the recording ends before the probe did".to_owned());
    }
    Ok(recording)
}
