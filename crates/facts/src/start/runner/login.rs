//! Shells: their options, the files that they read when they start (bash(1), "Invocation"; dash(1)), and their scripts.

use model::ImagePath;
use shell::{Field, ShellGap, ShellKind, ShellSource, ShellState};

use super::super::arguments::Words;
use super::{Outcome, Runner, Start, Started};

/// What a login shell reads (bash reads the first of its three files that exists).
const LOGIN_BASH: &str = "if [ -f /etc/profile ]; then . /etc/profile; fi\n\
    if [ -f ~/.bash_profile ]; then . ~/.bash_profile\n\
    elif [ -f ~/.bash_login ]; then . ~/.bash_login\n\
    elif [ -f ~/.profile ]; then . ~/.profile; fi\n";
const LOGIN_POSIX: &str =
    "if [ -f /etc/profile ]; then . /etc/profile; fi\nif [ -f ~/.profile ]; then . ~/.profile; fi\n";
/// What an interactive bash reads; Debian adds the first one.
const INTERACTIVE: &str =
    "if [ -f /etc/bash.bashrc ]; then . /etc/bash.bashrc; fi\nif [ -f ~/.bashrc ]; then . ~/.bashrc; fi\n";
const ENVIRONMENT: &str = "if [ -n \"$BASH_ENV\" ]; then if [ -f \"$BASH_ENV\" ]; then . \"$BASH_ENV\"; fi; fi\n";

/// The options of a shell.
#[derive(Default)]
struct ShellArguments {
    is_login: bool,
    is_interactive: bool,
    takes_command: bool,
    reads_nothing: bool,
    /// Options of `set`.
    letters: String,
}

/// Follows a shell that is called by its own name.
pub(super) fn shell(
    runner: &mut Runner<'_>,
    start: &Start<'_>,
    state: &ShellState,
    real: &ImagePath,
    rest: &[Field],
) -> Outcome {
    let called = start.words.first().and_then(|word| word.as_deref().ok()).unwrap_or_default();
    let base = called.rsplit('/').next().unwrap_or_default();
    shell_as(runner, start, state, base, real, rest)
}

/// Follows a shell of this name.
pub(super) fn shell_as(
    runner: &mut Runner<'_>,
    start: &Start<'_>,
    state: &ShellState,
    base: &str,
    real: &ImagePath,
    rest: &[Field],
) -> Outcome {
    let kind = runner.shell_kind(base, Some(real)).unwrap_or(ShellKind::Posix);
    let mut words = Words::new(rest);
    let options = options(&mut words)?;
    let mut shell = state.child(kind, base);
    let mut sources = Vec::new();
    if options.is_login && !options.reads_nothing {
        sources.push(if kind == ShellKind::Bash { LOGIN_BASH } else { LOGIN_POSIX });
    }
    if options.is_interactive && kind == ShellKind::Bash && !options.is_login && !options.reads_nothing {
        sources.push(INTERACTIVE);
    }
    if !options.is_interactive && !options.is_login && kind == ShellKind::Bash {
        sources.push(ENVIRONMENT);
    }
    let source = |text: &str| ShellSource { name: format!("{base}, when it starts"), text: text.to_owned() };
    let mut sources: Vec<ShellSource> = sources.into_iter().map(source).collect();
    if !options.letters.is_empty() {
        sources.push(source(&format!("set -{}", options.letters)));
    }
    let first = words.next().transpose()?;
    let Some(first) = first else {
        if start.has_input {
            return Err(Runner::gap(start, "a shell reads its commands from its standard input"));
        }
        runner.evaluate(&mut shell, &sources)?;
        let process = Box::new(runner.process(&shell)?);
        return Ok(Some(runner.mark(Started::Shell(process))));
    };
    if options.takes_command {
        let arguments = words.rest();
        arguments.first().and_then(|name| name.as_deref().ok()).unwrap_or(base).clone_into(&mut shell.name);
        shell.arguments = Ok(arguments.get(1..).unwrap_or_default().to_vec());
        sources.push(ShellSource { name: start.place.clone(), text: first.to_owned() });
        return runner.evaluate(&mut shell, &sources);
    }
    // A name without a slash that is not in the working directory is looked up in PATH.
    let direct = ImagePath::from(state.directory.clone()?.as_str()).join(first.as_bytes());
    let path = match runner.rootfs.open(&direct) {
        Ok(_) => direct,
        Err(_) => runner.locate(first, state)?.unwrap_or(direct),
    };
    let text = match runner.read(&path) {
        Some(text) => text?,
        None => return Err(Runner::gap(start, &format!("{first} does not exist in the image"))),
    };
    first.clone_into(&mut shell.name);
    shell.arguments = Ok(words.rest().to_vec());
    sources.push(ShellSource { name: path.to_string(), text });
    runner.evaluate(&mut shell, &sources)
}

/// Follows a script that a shell runs itself.
pub(super) fn file(
    runner: &mut Runner<'_>,
    start: &Start<'_>,
    state: &ShellState,
    kind: ShellKind,
    path: &str,
    text: &str,
    rest: &[Field],
) -> Outcome {
    if text.contains('\0') {
        return Err(Runner::gap(start, &format!("{path} is neither a script nor an ELF file")));
    }
    let mut shell = state.child(kind, path);
    shell.arguments = Ok(rest.to_vec());
    runner.evaluate(&mut shell, &[ShellSource { name: path.to_owned(), text: text.to_owned() }])
}

/// Reads the options of a shell.
fn options(words: &mut Words<'_>) -> Result<ShellArguments, ShellGap> {
    let mut options = ShellArguments::default();
    while let Some(word) = words.peek() {
        if !word.starts_with(['-', '+']) || word.len() < 2 {
            break;
        }
        words.next();
        match word {
            "--" => break,
            "--login" => options.is_login = true,
            "--noprofile" | "--norc" => options.reads_nothing = true,
            "--rcfile" | "--init-file" => _ = words.next().transpose()?,
            _ if word.starts_with("--") => {}
            _ => {
                for letter in word.chars().skip(1) {
                    match letter {
                        'c' => options.takes_command = true,
                        'l' => options.is_login = true,
                        'i' => options.is_interactive = true,
                        'o' | 'O' => {
                            let name = words.next().transpose()?;
                            if word.starts_with('-') {
                                match name {
                                    Some("errexit") => options.letters.push('e'),
                                    Some("nounset") => options.letters.push('u'),
                                    Some("allexport") => options.letters.push('a'),
                                    _ => {}
                                }
                            }
                        }
                        'e' | 'u' | 'a' | 'f' if word.starts_with('-') => options.letters.push(letter),
                        _ => {}
                    }
                }
            }
        }
    }
    Ok(options)
}
