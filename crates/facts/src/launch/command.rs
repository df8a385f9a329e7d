//! Variables that the commands of a script pass to programs: exports, assignments before a command, and launcher
//! options.

use std::collections::{BTreeMap, BTreeSet};

use model::is_among;

use super::lines::is_name;
use super::shell::{NESTING, REMOTE, SHELLS, ShellCommand, ShellWord, commands, reads_script};
use super::{Assignment, Launch};

/// Reserved words that may precede a command (POSIX, "Reserved Words").
const RESERVED: &[&str] = &["then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time"];

/// Programs with their own options for variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaunchProgram {
    /// Open MPI: `-x NAME[=VALUE]`. MPICH and Intel MPI: `-genv NAME VALUE`.
    Mpi,
    /// `-e NAME[=VALUE]`, `--env NAME[=VALUE]`.
    Container,
    /// `--export=ALL,NAME=VALUE`.
    Slurm,
    /// `env NAME=VALUE program`.
    Env,
    /// `bash -c SCRIPT`.
    Shell,
    /// `ssh NODE SCRIPT`.
    Remote,
}

impl LaunchProgram {
    fn of(word: &ShellWord) -> Option<Self> {
        Some(match word.known()?.rsplit('/').next()? {
            "mpirun" | "mpiexec" | "mpiexec.hydra" | "orterun" | "prterun" => Self::Mpi,
            "docker" | "podman" | "nerdctl" | "singularity" | "apptainer" | "enroot" | "kubectl" | "flux" => {
                Self::Container
            }
            "srun" | "sbatch" | "salloc" => Self::Slurm,
            "env" => Self::Env,
            name if is_among(name, SHELLS) => Self::Shell,
            name if is_among(name, REMOTE) => Self::Remote,
            _ => return None,
        })
    }
}

/// Files that a script sources to enter an environment of Python, which set no variables of a job.
const ACTIVATE: &[&str] = &["activate", "conda.sh"];

/// Most bytes of a script. Its words take some 100 times as much memory.
const LONGEST: usize = 1 << 20;

/// Returns the variables that a script passes to the programs that it starts, in script order.
pub fn script(text: &str) -> Vec<Assignment> {
    read(text, 1).assignments
}

/// The same of a script that begins at `line`, with notes about what it takes from elsewhere, or why it is not read.
pub(super) fn job_script(text: &str, line: usize) -> Result<Launch, String> {
    if text.len() > LONGEST {
        return Err(format!("a script has {} bytes, of which at most {LONGEST} are read", text.len()));
    }
    Ok(read(text, line))
}

fn read(text: &str, line: usize) -> Launch {
    let mut shell = Shell::default();
    shell.run(text, line, 0);
    shell.finish()
}

/// State of the variables while a script is read.
#[derive(Debug, Default)]
pub(super) struct Shell {
    /// The shell's own variables, with their latest assignment.
    own: BTreeMap<String, Assignment>,
    exported: BTreeSet<String>,
    /// True after `set -a`: every assignment is exported.
    exports_all: bool,
    handed: Vec<Assignment>,
    /// Those that the option of a container engine passes on.
    passed: Vec<Assignment>,
    /// True if it starts processes outside of a container too, which get what it exports.
    starts_outside: bool,
    /// Notes about variables that are set elsewhere.
    notes: Vec<String>,
}

impl Shell {
    /// Reads a script that begins at `line`.
    pub(super) fn run(&mut self, text: &str, line: usize, depth: usize) {
        if depth <= NESTING {
            for command in commands(text, line) {
                self.command(&command, depth);
            }
        }
    }

    /// Returns the variables that programs receive, without duplicates.
    pub(super) fn finish(mut self) -> Launch {
        let mut seen = BTreeSet::new();
        self.handed.retain(|given| seen.insert((given.name.clone(), given.value.clone(), given.line)));
        let passed = if self.starts_outside { self.handed.clone() } else { self.passed };
        Launch { assignments: self.handed, passed, notes: self.notes }
    }

    fn command(&mut self, command: &ShellCommand, depth: usize) {
        let reserved = |word: &&ShellWord| word.known().is_some_and(|text| RESERVED.contains(&text));
        let words: Vec<&ShellWord> = command.words.iter().skip_while(reserved).collect();
        let leading: Vec<Assignment> = words.iter().map_while(|word| word.assignment()).collect();
        let words = words.get(leading.len()..).unwrap_or_default();
        if let Some(name) = words.first() {
            match name.known() {
                Some("export") => return self.export(words),
                Some("declare" | "typeset") if words.iter().any(|word| word.known() == Some("-x")) => {
                    return self.export(words);
                }
                Some("setenv") => return self.setenv(words),
                Some("set") => self.exports_all |= is_allexport(words),
                Some("source" | ".") if !words.get(1).is_some_and(|file| activates(file)) => self.takes(words),
                Some("ml") => self.takes(words),
                Some("module")
                    if words.get(1).is_some_and(|word| is_one_of(word, &["load", "add", "swap", "restore"])) =>
                {
                    self.takes(words);
                }
                _ => {}
            }
            self.handed.extend(leading);
            self.launchers(words, depth);
            let texts = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>();
            if let Some((text, line)) = command.input.as_ref().filter(|_| reads_script(&texts)) {
                self.run(text, *line, depth + 1);
            }
        } else {
            for given in leading {
                self.set(given);
            }
        }
    }

    /// Notes a command that sets variables which the script does not show.
    fn takes(&mut self, words: &[&ShellWord]) {
        let shown = words.iter().map(|word| format!("{}{}", word.text, if word.computed { "…" } else { "" }));
        let command = shown.collect::<Vec<_>>().join(" ");
        self.notes.push(format!("what `{command}` sets is unknown: --launch reads scripts, and --env sets a variable"));
    }

    /// Handles `NAME=VALUE` alone, which sets a variable of the shell and changes the environment only if it is
    /// exported.
    fn set(&mut self, given: Assignment) {
        if self.exports_all || self.exported.contains(&given.name) {
            self.handed.push(given.clone());
        }
        self.own.insert(given.name.clone(), given);
    }

    fn export(&mut self, words: &[&ShellWord]) {
        for word in words.iter().skip(1) {
            if let Some(given) = word.assignment() {
                self.exported.insert(given.name.clone());
                self.set(given);
            } else if let Some(name) = word.known().filter(|name| is_name(name)) {
                self.exported.insert(name.to_owned());
                self.handed.push(self.taken_over(name, word.line));
            }
        }
    }

    /// Handles csh's `setenv NAME VALUE`.
    fn setenv(&mut self, words: &[&ShellWord]) {
        if let (Some(name), Some(value)) =
            (words.get(1).and_then(|word| word.known()).filter(|name| is_name(name)), words.get(2))
        {
            let value_known = value.known().map(ToOwned::to_owned);
            self.handed.push(Assignment { name: name.to_owned(), value: value_known, line: Some(value.line) });
        }
    }

    /// Resolves a variable that is passed on by name. If the script does not set it, its value comes from the
    /// environment of the script and is unknown.
    fn taken_over(&self, name: &str, line: usize) -> Assignment {
        let value = self.own.get(name).and_then(|own| own.value.clone());
        Assignment { name: name.to_owned(), value, line: Some(line) }
    }

    /// Reads the options of launchers anywhere in a command: `srun … docker run … mpirun …` is common.
    fn launchers(&mut self, words: &[&ShellWord], depth: usize) {
        let programs = || words.iter().filter_map(|word| LaunchProgram::of(word));
        let is_launcher = |program| matches!(program, LaunchProgram::Mpi | LaunchProgram::Slurm);
        self.starts_outside |=
            programs().any(is_launcher) && !programs().any(|program| program == LaunchProgram::Container);
        let mut launcher = None;
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            if let Some(found) = LaunchProgram::of(word) {
                launcher = Some(found);
                continue;
            }
            let option = word.text.split_once('=').map_or(&*word.text, |(option, _)| option);
            match (launcher, option) {
                (Some(LaunchProgram::Mpi), "-x")
                | (Some(LaunchProgram::Container), "-e" | "--env")
                | (Some(LaunchProgram::Slurm), "--export") => {
                    let separate = (word.text.len() == option.len()).then(|| words.next()).flatten();
                    let value = separate.cloned().unwrap_or_else(|| after(word, option.len() + 1));
                    let begin = self.handed.len();
                    self.list(&value, launcher == Some(LaunchProgram::Slurm));
                    if launcher == Some(LaunchProgram::Container) {
                        self.passed.extend(self.handed.iter().skip(begin).cloned());
                    }
                }
                (Some(LaunchProgram::Mpi), "-genv" | "-env") => {
                    if let Some(name) = words.next() {
                        self.pair(name, words.next());
                    }
                }
                // Options of env(1) that take the next word as their value.
                (Some(LaunchProgram::Env), "-u" | "--unset" | "-C" | "--chdir") if word.text.len() == option.len() => {
                    words.next();
                }
                (Some(LaunchProgram::Env), _) => match word.assignment() {
                    Some(given) => self.handed.push(given),
                    None if option.starts_with('-') => {}
                    None => launcher = None,
                },
                (Some(LaunchProgram::Shell), flags) if takes_script(flags) => {
                    if let Some(script) = words.next() {
                        // Only the known part: a `$` of the outer shell hides the rest.
                        self.run(&script.text, script.line, depth + 1);
                    }
                }
                (Some(LaunchProgram::Remote), _) if word.text.contains(char::is_whitespace) => {
                    self.run(&word.text, word.line, depth + 1);
                }
                _ => {}
            }
        }
    }

    /// Reads the value of an option: `NAME=VALUE` or `NAME`. Slurm accepts several of either, separated by commas, and
    /// Singularity several assignments. Elsewhere a comma is part of the value.
    fn list(&mut self, word: &ShellWord, is_slurm: bool) {
        let mut parts: Vec<String> = Vec::new();
        for part in word.text.split(',') {
            let begins = part.split('=').next().is_some_and(is_name);
            match parts.last_mut() {
                Some(last) if !begins || (!is_slurm && !part.contains('=')) => {
                    last.push(',');
                    last.push_str(part);
                }
                _ => parts.push(part.to_owned()),
            }
        }
        let count = parts.len();
        for (index, text) in parts.into_iter().enumerate() {
            let part = ShellWord { text, computed: word.computed && index + 1 == count, line: word.line };
            if let Some(given) = part.assignment() {
                self.handed.push(given);
            } else if let Some(name) =
                part.known().filter(|name| is_name(name) && !matches!(*name, "ALL" | "NONE" | "NIL"))
            {
                self.handed.push(self.taken_over(name, part.line));
            }
        }
    }

    fn pair(&mut self, name: &ShellWord, value: Option<&ShellWord>) {
        let line = name.line;
        if let Some(given) = name.assignment() {
            self.handed.push(given);
        } else if let Some(name) = name.known().filter(|name| is_name(name)) {
            let value = value.and_then(|word| word.known()).map(ToOwned::to_owned);
            self.handed.push(Assignment { name: name.to_owned(), value, line: Some(line) });
        }
    }
}

/// Returns true for `-c`, alone or behind other flags of a shell, as in `-euxc`.
fn takes_script(flags: &str) -> bool {
    let letters = flags.strip_prefix('-').and_then(|flags| flags.strip_suffix('c'));
    letters.is_some_and(|letters| letters.bytes().all(|letter| letter.is_ascii_alphabetic()))
}

fn is_one_of(word: &ShellWord, texts: &[&str]) -> bool {
    word.known().is_some_and(|text| texts.contains(&text))
}

/// Returns true for a file that enters an environment of Python.
fn activates(file: &ShellWord) -> bool {
    file.text.rsplit('/').next().is_some_and(|name| ACTIVATE.contains(&name))
}

/// Drops the first bytes of a word.
fn after(word: &ShellWord, length: usize) -> ShellWord {
    ShellWord { text: word.text.get(length..).unwrap_or_default().to_owned(), ..word.clone() }
}

fn is_allexport(words: &[&ShellWord]) -> bool {
    words.iter().any(|word| matches!(word.known(), Some("-a" | "allexport" | "-ae" | "-ea" | "-aeu")))
}

/// Returns the variables that a command line, given as a list of words like `command` and `args` of Kubernetes, passes
/// to programs. Each word has its line.
pub(super) fn of_words(words: Vec<(String, usize)>) -> Launch {
    let words = words.into_iter().map(|(text, line)| ShellWord { text, computed: false, line }).collect();
    let mut shell = Shell::default();
    shell.command(&ShellCommand { words, input: None }, 0);
    shell.finish()
}
