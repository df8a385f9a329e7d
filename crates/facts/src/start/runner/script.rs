//! Text files that a kernel executes: the first line names the interpreter and at most one argument (execve(2)).

use model::ImagePath;
use shell::{Field, ShellKind, ShellState};

use super::{Outcome, Runner, Start, StartFault, Started, login};

/// The interpreter of a script and its argument, which may be empty; `None` without a first line of this form.
pub(super) fn interpreter(text: &str) -> Option<(&str, &str)> {
    const BLANKS: [char; 2] = [' ', '\t'];
    let line = text.strip_prefix("#!")?.split('\n').next().unwrap_or_default().trim_matches(BLANKS);
    Some(line.split_once(BLANKS).map_or((line, ""), |(one, two)| (one, two.trim_matches(BLANKS))))
}

/// Follows a script.
pub(super) fn run(
    runner: &mut Runner<'_>,
    start: &Start<'_>,
    state: &ShellState,
    called: &str,
    path: &ImagePath,
) -> Outcome {
    let text = match runner.read(path) {
        Some(Ok(text)) => text,
        Some(Err(gap)) => return Err(gap),
        None => return Ok(None),
    };
    let rest = start.words.get(1..).unwrap_or_default();
    // The path as the kernel gets it: as it was called, or as it was found in PATH.
    let shown = if called.contains('/') { called.to_owned() } else { path.to_string() };
    let Some((program, argument)) = interpreter(&text) else {
        // A shell runs a file without an interpreter itself.
        return login::file(runner, start, state, ShellKind::Posix, &shown, &text, rest);
    };
    // env itself splits a string at a carriage return.
    if let Some(word) = argument.strip_suffix('\r').filter(|word| !word.starts_with("-S")) {
        let error = if word.starts_with('-') { "invalid option" } else { "no such file or directory" };
        let message = format!("{}: {program}: '{word}\\r': {error}", start.place);
        let fault = StartFault { message, ..StartFault::of_first_line(called, path.clone()) };
        return Ok(Some(runner.mark(Started::Nothing(Box::new(fault)))));
    }
    let base = program.rsplit('/').next().unwrap_or_default();
    let real = runner.rootfs.open(&ImagePath::from(program)).ok().map(|(real, _)| real);
    let is_shell = runner.shell_kind(base, real.as_ref()).is_some();
    if is_shell && (argument.is_empty() || argument.starts_with('-')) {
        let mut words: Vec<Field> = Vec::new();
        if !argument.is_empty() {
            words.push(Ok(argument.to_owned()));
        }
        words.push(Ok(shown));
        words.extend(rest.iter().cloned());
        let real = real.unwrap_or_else(|| ImagePath::from(program));
        let inner = Start { words: &words, ..start.clone() };
        return login::shell_as(runner, &inner, state, base, &real, &words);
    }
    let mut words: Vec<Field> = vec![Ok(program.to_owned())];
    if !argument.is_empty() {
        words.push(Ok(argument.to_owned()));
    }
    words.push(Ok(shown));
    words.extend(rest.iter().cloned());
    runner.start(&Start { words: &words, ..start.clone() }, state)
}
