//! Completes the recording of a program that has ended, or says why there is none.

use super::ProbeError;
use super::engine::Finished;
use super::observer::Follower;
use super::recording::Recording;
use super::wire::events::{self, Event, LaunchEvent};

/// Completes the recording of a program that has ended.
pub(super) fn finish(
    follower: Follower<'_>,
    launch: Option<LaunchEvent>,
    finished: Finished,
) -> Result<Recording, ProbeError> {
    let Follower { mut recording, observer } = follower;
    let is_started = recording.hello.is_some();
    let failure = (!is_started).then(|| entrypoint_failure(&finished));
    let Finished { stderr, given, process, broken, .. } = finished;
    if let Some(mut launch) = launch {
        launch.given = given;
        if let Some(entrypoint) = launch.entrypoint.as_mut().filter(|entrypoint| entrypoint.bypassed.is_none()) {
            (entrypoint.given, entrypoint.failure) = (process, failure);
        }
        // The engine's account is known only now; the position of this line in a recording does not matter.
        if let Ok(line) = events::write(&Event::Launch(launch.clone())) {
            observer.line(line.as_bytes());
        }
        recording.launch = Some(launch);
    }
    if !recording.ended {
        let why = broken.unwrap_or_else(|| "the program ended early".to_owned());
        recording.broken = Some(why + &last_words(&stderr));
    }
    if recording.note_failed_entrypoint() {
        return Ok(recording);
    }
    if recording.hello.is_none() {
        let why = recording.broken.unwrap_or_else(|| "it wrote no line of a probe".to_owned());
        return Err(ProbeError::Engine {
            what: format!("the probe's program did not start: {why}"),
            help: Some("it needs Python 3.8 or later; select the image's Python with --python".to_owned()),
        });
    }
    if recording.ended && recording.steps.is_empty() {
        return Err(ProbeError::Engine {
            what: "the probe's program ended without running a step".to_owned(),
            help: Some("another program may answer in its place: check the image's Python with --python".to_owned()),
        });
    }
    Ok(recording)
}

/// Why an entrypoint did not start the program.
fn entrypoint_failure(finished: &Finished) -> String {
    let why = match (&finished.broken, finished.exit) {
        (Some(why), _) => why.clone(),
        (None, Some(0)) => "it ended without an error and without starting the command that it was given".to_owned(),
        (None, Some(status)) => format!("it ended with exit status {status}"),
        (None, None) => "it ended".to_owned(),
    };
    let last: Vec<_> = last_lines(&finished.stderr).into_iter().map(|line| format!("`{line}`")).collect();
    if last.is_empty() {
        format!("{why}, without output")
    } else {
        format!("{why}; end of its output: {}", last.join(", "))
    }
}

/// The end of a program's standard error, for a message.
fn last_words(stderr: &str) -> String {
    let last = last_lines(stderr);
    if last.is_empty() { String::new() } else { format!("; end of its standard error:\n    {}", last.join("\n    ")) }
}

/// The last lines of a text that have anything in them.
pub(super) fn last_lines(text: &str) -> Vec<&str> {
    let lines: Vec<_> = text.trim().lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::observer::Observer;
    use super::super::wire::entrypoint::EntrypointLaunch;
    use super::*;

    /// Result of a program that wrote these lines.
    fn finished(lines: &[&str], stderr: &str) -> Result<Recording, ProbeError> {
        let mut observer = ();
        let mut follower = Follower::new(vec!["limits".to_owned()], &mut observer);
        for line in lines {
            follower.line(line.as_bytes());
        }
        finish(follower, Some(LaunchEvent::default()), Finished { stderr: stderr.to_owned(), ..Finished::default() })
    }

    const HELLO: &str = r#"{"ncclcheck": 1, "event": "hello"}"#;
    const START: &str = r#"{"ncclcheck": 1, "event": "start", "step": "limits", "deadline": 1.0}"#;
    const SKIPPED: &str = r#"{"ncclcheck": 1, "event": "skipped", "step": "limits", "why": "none"}"#;
    const END: &str = r#"{"ncclcheck": 1, "event": "end", "skipped": 1}"#;

    #[test]
    fn a_program_that_ends_early_leaves_the_end_of_its_standard_error() {
        let whole = finished(&[HELLO, START, SKIPPED, END], "a warning").unwrap();
        assert_eq!((whole.broken, whole.launch), (None, Some(LaunchEvent::default())));
        let early = finished(&[HELLO], "1\n2\n3\n4\n5\n6\n").unwrap();
        let why = "the program ended early; end of its standard error:\n    2\n    3\n    4\n    5\n    6";
        assert_eq!(early.broken.as_deref(), Some(why));
    }

    #[test]
    fn a_program_that_does_not_start_is_an_error() {
        let error = finished(&[], "No module named json").unwrap_err().to_string();
        assert!(error.contains("the probe's program did not start: the program ended early"), "{error}");
        assert!(error.contains("No module named json") && error.contains("--python"), "{error}");
    }

    /// The recording of an entrypoint that did not start the program, and the lines that an observer got.
    fn behind_entrypoint(finished: Finished) -> (Recording, Vec<u8>) {
        #[derive(Default)]
        struct Lines(Vec<u8>);
        impl Observer for Lines {
            fn line(&mut self, line: &[u8]) {
                self.0.extend([line, b"\n"].concat());
            }
        }
        let entrypoint = EntrypointLaunch { words: vec!["/entry.sh".to_owned()], ..EntrypointLaunch::default() };
        let launch = LaunchEvent { entrypoint: Some(entrypoint), ..LaunchEvent::default() };
        let mut lines = Lines::default();
        let recording = finish(Follower::new(vec!["limits".to_owned()], &mut lines), Some(launch), finished).unwrap();
        (recording, lines.0)
    }

    #[test]
    fn an_entrypoint_that_does_not_start_the_program_is_a_result_that_can_be_replayed() {
        let silent = Finished::default();
        for (finished, why) in [
            (
                Finished { exit: Some(2), stderr: "a\n\nb\n".to_owned(), ..silent.clone() },
                "it ended with exit status 2; end of its output: `a`, `b`",
            ),
            (
                Finished { exit: Some(0), ..silent.clone() },
                "it ended without an error and without starting the command that it was given, without output",
            ),
            (
                Finished { broken: Some("the engine".to_owned()), exit: Some(1), ..silent.clone() },
                "the engine, without output",
            ),
            (silent, "it ended, without output"),
        ] {
            let (recording, lines) = behind_entrypoint(finished);
            let failure = |recording: &Recording| recording.launch.clone()?.entrypoint?.failure;
            assert_eq!(failure(&recording).as_deref(), Some(why));
            let replayed = Recording::replay(&lines).unwrap();
            assert_eq!((failure(&replayed), &replayed.broken), (failure(&recording), &recording.broken));
        }
    }

    #[test]
    fn a_program_that_runs_no_step_is_an_error() {
        let error = finished(&[HELLO, r#"{"ncclcheck": 1, "event": "end"}"#], "").unwrap_err().to_string();
        assert!(error.starts_with("the probe's program ended without running a step"), "{error}");
    }
}
