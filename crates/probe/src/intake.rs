//! The output of a program that another command starts, on another machine.

use std::mem;

use super::finish::last_lines;
use super::lines::Lines;
use super::observer::{Follower, Observer};
use super::recording::{MOST_LINES, Recording};
use super::tail::Tail;
use super::wire::events::is_of_protocol;

/// Takes the output of the program piece by piece, and keeps the lines of its recording.
#[derive(Debug)]
pub struct Intake {
    lines: Lines,
    recording: Recording,
    kept: Kept,
    errors: Tail,
}

/// The lines of a recording, as they are written to a file.
#[derive(Debug, Default)]
struct Kept {
    text: Vec<u8>,
    noise: usize,
}

impl Observer for Kept {
    fn line(&mut self, line: &[u8]) {
        if !is_of_protocol(line) {
            self.noise += 1;
            // A recording keeps no more of them.
            if self.noise > MOST_LINES {
                return;
            }
        }
        self.text.extend([line, b"\n"].concat());
    }
}

impl Intake {
    /// Takes the output of a program that is asked to run these steps.
    pub fn new(steps: Vec<String>) -> Self {
        let recording = Recording::of_steps(steps);
        Self { lines: Lines::default(), recording, kept: Kept::default(), errors: Tail::default() }
    }

    /// Takes bytes of standard output. What comes after the end of the program is not its own, and is left out.
    ///
    /// # Errors
    /// The output is too long to be a probe's.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), String> {
        let recording = mem::take(&mut self.recording);
        let mut follower = Follower { recording, observer: &mut self.kept };
        let pushed = self.lines.push(bytes, &mut |line| {
            if !follower.recording.ended {
                follower.line(line);
            }
        });
        self.recording = follower.recording;
        pushed
    }

    /// Takes bytes of standard error.
    pub fn push_error(&mut self, bytes: &[u8]) {
        self.errors.push(bytes);
    }

    /// A reason for the program's end, with the last lines of standard error below it.
    pub fn explained(&self, why: &str) -> String {
        std::iter::once(why).chain(last_lines(self.errors.as_str())).collect::<Vec<_>>().join("\n")
    }

    /// The recording so far.
    pub const fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The lines of the recording, which [`Recording::replay_of`] reads.
    pub fn into_text(self) -> Vec<u8> {
        self.kept.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_gives_the_same_recording() {
        let steps = vec!["limits".to_owned()];
        let mut intake = Intake::new(steps.clone());
        let start = r#"{"ncclcheck":1,"event":"start","step":"limits","deadline":1.0}"#;
        let other = start.replace("limits", "gpus");
        let skipped = r#"{"ncclcheck":1,"event":"skipped","step":"limits","why":"none"}"#;
        let noise = "noise\n".repeat(3 * MOST_LINES);
        let hello = r#"{"ncclcheck":1,"event":"hello","plan":{"steps":["gpus"]}}"#;
        let text = format!(
            "{noise}{hello}\n{other}\n{start}\n{skipped}\n{{\"ncclcheck\":1,\"event\":\"end\",\"skipped\":1}}\n"
        );
        for piece in text.as_bytes().chunks(7) {
            intake.push(piece).unwrap();
        }
        let recording = intake.recording().clone();
        assert!(recording.ended && recording.refused_count == 1, "{recording:?}");
        let kept = intake.into_text();
        assert_eq!(kept.split(|byte| *byte == b'\n').count(), MOST_LINES + 6);
        let replayed = Recording::replay_of(&kept, steps).unwrap();
        assert_eq!((replayed.steps, replayed.refused_count), (recording.steps, 1));
    }
}
