//! Evaluates the shell scripts in which Apptainer keeps an image's environment (`/.singularity.d/env/*.sh`), as far as
//! their effect does not depend on a machine. Nothing is executed.
//!
//! Understood are assignments, `export`, `unset`, and `if` with a test of one variable. Any other command that may set a
//! variable makes it unknown; one that may set any variable makes all of them unknown.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Gap;

use super::words::{Piece, ShellLine, ShellText, lines, name_length};

/// Commands that set no variable.
const HARMLESS: &[&str] =
    &["echo", "printf", ":", "true", "false", "umask", "ulimit", "mkdir", "test", "[", "[[", "cat", "ls", "touch"];

/// Variables of a shell.
#[derive(Debug, Default)]
pub(super) struct ShellVariables {
    values: BTreeMap<String, Result<String, Gap>>,
    exported: BTreeSet<String>,
    /// Why any variable may have another value.
    pub(super) gap: Option<Gap>,
}

/// A compound command that has begun.
enum Block {
    /// `if`. True if one of its branches was taken, `None` if that is unknown.
    If { taken: Option<bool>, is_run: Option<bool> },
    /// A loop, a `case` or a function, whose commands may run or not.
    Other,
}

impl ShellVariables {
    /// Sets a variable that the runtime exports.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), Ok(value.to_owned()));
        self.exported.insert(name.to_owned());
    }

    /// The exported variables, by name.
    pub(super) fn exported(self) -> impl Iterator<Item = (String, Result<String, Gap>)> {
        let Self { values, exported, .. } = self;
        values.into_iter().filter(move |(name, _)| exported.contains(name))
    }

    /// Evaluates a script; `file` is its name for messages.
    pub(super) fn run(&mut self, file: &str, text: &str) {
        let mut blocks = Vec::new();
        for line in lines(text) {
            self.line(&line, file, &mut blocks);
        }
        if !blocks.is_empty() {
            self.lose(file, None, "a block does not end");
        }
    }

    /// Evaluates one simple command, or the beginning or end of a block.
    fn line(&mut self, line: &ShellLine, file: &str, blocks: &mut Vec<Block>) {
        let Some((first, rest)) = line.words.split_first() else { return };
        let keyword = first.plain().unwrap_or_default();
        let tail = || ShellLine { words: rest.to_vec(), ..line.clone() };
        match (keyword.as_str(), blocks.last_mut()) {
            ("if", _) => {
                let is_run = self.condition(&tail());
                blocks.push(Block::If { taken: is_run, is_run });
            }
            ("elif" | "else", Some(Block::If { taken, is_run })) => {
                let before = *taken;
                let holds = if keyword == "else" { Some(true) } else { self.condition(&tail()) };
                *is_run = match before {
                    Some(true) => Some(false),
                    Some(false) => holds,
                    None => None,
                };
                *taken = if before == Some(false) { holds } else { before };
                if keyword == "else" {
                    self.line(&tail(), file, blocks);
                }
            }
            ("then" | "do", _) => self.line(&tail(), file, blocks),
            ("fi", Some(Block::If { .. })) | ("done" | "esac" | "}", Some(Block::Other)) => _ = blocks.pop(),
            ("for" | "while" | "until" | "case" | "select" | "{", _) => blocks.push(Block::Other),
            _ => {
                let mut runs = Some(true);
                for block in blocks.iter() {
                    let one = if let Block::If { is_run, .. } = block { *is_run } else { None };
                    runs = if runs == Some(false) || one == Some(false) { Some(false) } else { runs.and(one) };
                }
                match runs {
                    Some(true) => self.command(line, file),
                    Some(false) => {}
                    None => self.perhaps(line, file),
                }
            }
        }
    }

    /// Evaluates a command that is run.
    fn command(&mut self, line: &ShellLine, file: &str) {
        if line.is_compound {
            return self.perhaps(line, file);
        }
        let words = line.words.as_slice();
        let plain: Vec<String> = words.iter().map(|word| word.plain().unwrap_or_default()).collect();
        let first = plain.first().map_or("", String::as_str);
        if words.iter().all(|word| word.assignment().is_some()) {
            for word in words {
                self.assign(word, line, file);
            }
        } else if first == "export" && !plain.iter().any(|word| word.starts_with('-')) {
            for (word, name) in words.iter().zip(&plain).skip(1) {
                self.assign(word, line, file);
                let name = word.assignment().map_or(name.as_str(), |(name, _)| name);
                self.exported.insert(name.to_owned());
            }
        } else if first == "unset" && !plain.iter().any(|word| word == "-f") {
            for name in &plain {
                self.values.remove(name);
                self.exported.remove(name);
            }
        } else if !HARMLESS.contains(&first) {
            self.lose(file, Some(line), "");
        }
    }

    /// Takes note of a command that may run or not.
    fn perhaps(&mut self, line: &ShellLine, file: &str) {
        let first = line.words.first().and_then(ShellText::plain).unwrap_or_default();
        let assigns = line.words.first().is_some_and(|word| word.assignment().is_some());
        let is_known = assigns || matches!(&*first, "export" | "unset") || HARMLESS.contains(&&*first);
        let sources = |word: &ShellText| matches!(word.plain().as_deref(), Some("." | "source" | "eval" | "read"));
        if !is_known || line.words.iter().any(sources) {
            return self.lose(file, Some(line), "");
        }
        let gap = Gap::new(format!(
            "{file}, line {}: only a shell can determine whether '{}' is run",
            line.number, line.text
        ))
        .settled_by(SETTLE);
        for word in &line.words {
            let name = match word.assignment() {
                Some((name, _)) => Some(name.to_owned()),
                None => word.plain().filter(|text| first == "unset" && name_length(text) == text.len()),
            };
            if let Some(name) = name {
                self.values.insert(name.clone(), Err(gap.clone()));
                self.exported.insert(name);
            }
        }
    }

    /// Gives up on all variables.
    fn lose(&mut self, file: &str, line: Option<&ShellLine>, why: &str) {
        let why = match line {
            Some(line) => format!("{file}, line {}: only a shell can determine what '{}' sets", line.number, line.text),
            None => format!("{file}: {why}"),
        };
        self.gap.get_or_insert(Gap::new(why).settled_by(SETTLE));
    }

    fn assign(&mut self, word: &ShellText, line: &ShellLine, file: &str) {
        let Some((name, value)) = word.assignment() else { return };
        let value = self.expand(&value).ok_or_else(|| {
            let why = format!("{file}, line {}: only a shell can determine the value of {name}", line.number);
            Gap::new(why).settled_by(SETTLE)
        });
        let value = value.and_then(|value| value);
        self.values.insert(name.to_owned(), value);
    }

    /// The value of a word: `None` if only a shell can determine it, an error if it depends on an unknown variable.
    fn expand(&self, word: &ShellText) -> Option<Result<String, Gap>> {
        let mut text = String::new();
        for piece in &word.pieces {
            match piece {
                Piece::Plain(plain) => text.push_str(plain),
                Piece::Variable { name, otherwise } => {
                    let value = match self.values.get(name) {
                        Some(Ok(value)) => value.as_str(),
                        Some(Err(gap)) => return Some(Err(gap.clone())),
                        // The host's variables do not belong to the image.
                        None => "",
                    };
                    match otherwise {
                        Some(otherwise) if value.is_empty() => match self.expand(otherwise)? {
                            Ok(value) => text.push_str(&value),
                            Err(gap) => return Some(Err(gap)),
                        },
                        _ => text.push_str(value),
                    }
                }
                Piece::Computed => return None,
            }
        }
        Some(Ok(text))
    }

    /// The result of `[ -z WORD ]` or `[ -n WORD ]`; `None` for any other condition.
    fn condition(&self, line: &ShellLine) -> Option<bool> {
        let words = line.words.as_slice();
        let (operator, word) = match words {
            [open, operator, word, close] if is(open, "[") && is(close, "]") => (operator, word),
            [test, operator, word] if is(test, "test") => (operator, word),
            _ => return None,
        };
        let value = self.expand(word).filter(|_| !line.is_compound)?.ok()?;
        match operator.plain()?.as_str() {
            "-z" => Some(value.is_empty()),
            "-n" => Some(!value.is_empty()),
            _ => None,
        }
    }
}

/// Advice on a variable that only a shell can determine.
const SETTLE: &str = "set the variable at launch, and name it with --env";

fn is(word: &ShellText, text: &str) -> bool {
    word.plain().as_deref() == Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> (BTreeMap<String, Result<String, Gap>>, Option<Gap>) {
        let mut variables = ShellVariables::default();
        variables.set("PATH", "/bin");
        variables.run("env/90.sh", text);
        let gap = variables.gap.clone();
        (variables.exported().collect(), gap)
    }

    #[test]
    fn values_are_those_of_a_shell() {
        for (text, value) in [
            ("export A=1", Some("1")),
            ("A=1", None),
            ("A=1\nexport A", Some("1")),
            ("A=1; export A B\nA='2 3'", Some("2 3")),
            ("export A=\"x \\\"y\\\" \\$Z\"", Some("x \"y\" $Z")),
            ("export A=\"${A:-\"C.UTF-8\"}\"", Some("C.UTF-8")),
            ("export A=/x:$PATH:${PATH}", Some("/x:/bin:/bin")),
            ("export A=x$NONE", Some("x")),
            ("export A=1 # why\n# export A=2", Some("1")),
            ("export A=1\nunset B \\\n  A", None),
            ("if [ -z \"$A\" ]; then\n  A=\"/libs\"\nelse\n  A=\"$A:/libs\"\nfi\nexport A", Some("/libs")),
            ("A=1\nif [ -z \"$A\" ]; then\n  A=\"/libs\"\nelse\n  A=\"$A:/libs\"\nfi\nexport A", Some("1:/libs")),
            (
                "export A=1\nif test -n \"${APP:-}\"; then\n . /scif/env\n A=2\n if test -d /x; then A=3; fi\nfi",
                Some("1"),
            ),
            ("export A=0\nif [ -n \"$B\" ]; then A=1; elif [ -z \"$B\" ]; then A=2; else A=3; fi", Some("2")),
            ("export A='multi\nline'", Some("multi\nline")),
        ] {
            let (found, gap) = run(text);
            let found = found.get("A").map(|value| value.clone().unwrap());
            assert_eq!((found.as_deref(), gap), (value, None), "{text}");
        }
    }

    #[test]
    fn what_only_a_shell_can_tell_is_unknown() {
        for (text, why) in [
            ("export A=$(uname -m)", "env/90.sh, line 1: only a shell can determine the value of A"),
            ("export A=`id`", "only a shell can determine the value of A"),
            ("B=$((1+1))\nexport A=$B", "line 1: only a shell can determine the value of B"),
            ("export A=${A#x}", "only a shell can determine the value of A"),
            ("if [ -d /x ]; then\nexport A=1\nfi", "line 2: only a shell can determine whether 'export A=1' is run"),
            ("[ -d /x ] && export A=1", "only a shell can determine whether"),
            ("for x in a b; do\nA=$x\ndone", "line 2: only a shell can determine whether 'A=$x' is run"),
        ] {
            let (found, gap) = run(text);
            let error = found["A"].clone().unwrap_err();
            assert!(error.why.contains(why) && gap.is_none(), "{text}: {error} {gap:?}");
        }
        for text in [
            "source /opt/env.sh",
            ". /opt/env.sh",
            "eval \"$X\"",
            "[ -f /x ] && . /x",
            "module load cuda",
            "f() {\nA=1\n}",
            "if true",
        ] {
            let (_, gap) = run(text);
            assert!(gap.is_some(), "{text}");
        }
    }
}
