//! What the words behind the name of a Python make it run (`python3 --help`), and what launchers of PyTorch make of
//! theirs: they start the same interpreter again for each GPU.

use model::{ImagePath, is_among};
use shell::{Field, ShellGap};

use super::arguments::Words;
use super::call::{PythonFlags, PythonTarget};
use super::wrapper::Wrapper;

/// What an interpreter is called with.
#[derive(Debug, Default)]
pub(super) struct PythonArguments<'w> {
    pub(super) flags: PythonFlags,
    /// What it runs; `None` if another program is started.
    pub(super) target: PythonTarget,
    /// The words behind the target.
    pub(super) rest: &'w [Field],
    /// The program that a launcher starts in place of Python.
    pub(super) program: Option<Vec<Field>>,
}

/// A target as a command names it: a relative script is resolved in `directory`.
fn script(directory: &Result<String, ShellGap>, path: &str) -> Result<PythonTarget, ShellGap> {
    if path.starts_with('/') {
        return Ok(PythonTarget::Script(ImagePath::from(path)));
    }
    let folder = directory.clone()?;
    Ok(PythonTarget::Script(ImagePath::from(folder.as_str()).join(path.as_bytes())))
}

/// Reads the words behind the interpreter.
pub(super) fn arguments<'w>(
    words: &'w [Field],
    directory: &Result<String, ShellGap>,
) -> Result<PythonArguments<'w>, ShellGap> {
    let mut words = Words::new(words);
    let mut flags = PythonFlags::default();
    let done = |flags, target, rest| Ok(PythonArguments { flags, target, rest, program: None });
    while let Some(word) = words.next() {
        let word = word?;
        if word == "-" {
            return done(flags, code(directory)?, words.rest());
        }
        if let Some(long) = word.strip_prefix("--") {
            if long == "check-hash-based-pycs" {
                words.next();
            }
            continue;
        }
        let Some(letters) = word.strip_prefix('-') else {
            return done(flags, script(directory, word)?, words.rest());
        };
        for (at, letter) in letters.char_indices() {
            let attached = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            match letter {
                'I' => flags.isolated = true,
                'E' => flags.ignores_environment = true,
                's' => flags.no_user_site = true,
                'S' => flags.no_site = true,
                'P' => flags.safe_path = true,
                'c' => return done(flags, command(attached, words.rest(), directory)?, words.rest()),
                'm' => {
                    let module =
                        if attached.is_empty() { words.next().transpose()?.unwrap_or_default() } else { attached };
                    directory.clone()?;
                    return done(flags, PythonTarget::Module(module.to_owned()), words.rest());
                }
                'W' | 'X' => {
                    if attached.is_empty() {
                        words.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    done(flags, code(directory)?, &[])
}

/// `-cCODE` and `-c CODE`.
fn command(attached: &str, rest: &[Field], directory: &Result<String, ShellGap>) -> Result<PythonTarget, ShellGap> {
    let target = code(directory)?;
    Ok(match rest.first() {
        _ if !attached.is_empty() => PythonTarget::Command(attached.to_owned()),
        Some(Ok(text)) => PythonTarget::Command(text.clone()),
        Some(Err(_)) | None => target,
    })
}

/// `-c`, standard input and the prompt import from the working directory.
fn code(directory: &Result<String, ShellGap>) -> Result<PythonTarget, ShellGap> {
    directory.clone().map(|_| PythonTarget::Code)
}

/// What the workers of a launcher run.
pub(super) fn worker<'w>(
    words: &mut Words<'w>,
    table: &Wrapper,
    flags: PythonFlags,
    directory: &Result<String, ShellGap>,
) -> Result<PythonArguments<'w>, ShellGap> {
    let mut is_module = false;
    let mut is_program = false;
    while let Some(option) = words.option(table)? {
        is_module |= is_among(&option.name, &table.module);
        is_program |= is_among(&option.name, &table.program);
    }
    let done = |target| PythonArguments { flags, target, ..PythonArguments::default() };
    if is_program {
        return Ok(PythonArguments { program: Some(words.rest().to_vec()), ..done(PythonTarget::default()) });
    }
    Ok(done(match words.next().transpose()? {
        None => code(directory)?,
        Some(module) if is_module => {
            directory.clone()?;
            PythonTarget::Module(module.to_owned())
        }
        Some(path) => script(directory, path)?,
    }))
}
