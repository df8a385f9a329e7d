//! The simple commands of a launch script. Nothing is expanded: a word with an expansion is computed, and only the text
//! before it is known.

use model::is_among;
use shell::{Piece, Word};

use super::Assignment;

/// Maximum depth of nested scripts, such as `bash -c '…'`.
pub(super) const NESTING: usize = 6;

/// Shells, which run the word behind `-c`, or their input.
pub(super) const SHELLS: &str = "sh bash dash zsh";
/// Programs that run a word by a shell, on this host or another.
pub(super) const REMOTE: &str = "ssh pdsh clush pssh parallel-ssh su eval";

/// Options of ssh that take the next word, by ssh(1) of OpenSSH 9.
const SSH_VALUED: &str = "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w";

/// True if the here-document of a command is a script: of a shell without a program of its own, here or on the node that is named.
pub(super) fn reads_script(words: &[&str]) -> bool {
    let is_one_of = |word: &str, names: &str| is_among(word.rsplit('/').next().unwrap_or_default(), names);
    let place = words.iter().rposition(|word| is_one_of(word, SHELLS) || is_one_of(word, REMOTE));
    let Some((shell, behind)) = place.and_then(|place| words.get(place..)?.split_first()) else { return false };
    let valued = if is_one_of(shell, "ssh") { SSH_VALUED } else { "" };
    let before = std::iter::once(&"").chain(behind);
    let is_operand = |(word, before): &(&&str, &&str)| !word.starts_with('-') && !is_among(before, valued);
    let operands = behind.iter().zip(before).filter(is_operand).count();
    operands <= usize::from(is_one_of(shell, REMOTE)) || behind.contains(&"-s")
}

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// Its text without quotes, up to the first expansion.
    pub(super) text: String,
    /// True if an expansion follows, whose value only a shell can determine.
    pub(super) computed: bool,
    /// Line where it begins, from 1.
    pub(super) line: usize,
}

impl From<&Word> for ShellWord {
    fn from(word: &Word) -> Self {
        let texts = word.pieces.iter().map_while(|piece| match piece {
            Piece::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        Self { text: texts.collect(), computed: word.plain().is_none(), line: word.line }
    }
}

impl ShellWord {
    /// Returns the word if all of it is known.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.computed).then_some(&self.text)
    }

    /// Parses `NAME=VALUE`; the value is `None` if it is computed.
    pub(super) fn assignment(&self) -> Option<Assignment> {
        let (name, value) = self.text.split_once('=')?;
        let value = (!self.computed).then(|| value.to_owned());
        super::lines::is_name(name).then(|| Assignment { name: name.to_owned(), value, line: Some(self.line) })
    }
}

/// A simple command and its here-document.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) words: Vec<ShellWord>,
    /// Text of the here-document, and the line where it begins.
    pub(super) input: Option<(String, usize)>,
}

/// The simple commands of a script that begins at `line`. A Slurm directive (`#SBATCH --export=…`) is read as options of
/// sbatch.
pub(super) fn commands(text: &str, line: usize) -> impl Iterator<Item = ShellCommand> {
    shell::commands(text, line).flat_map(|command| {
        let words: Vec<ShellWord> = command.words.iter().map(ShellWord::from).collect();
        let directive =
            command.comment.and_then(|(text, line)| Some((text.strip_prefix("#SBATCH ")?.to_owned(), line)));
        let directive = directive.map(|(options, line)| {
            let options = shell::commands(&options, line).next().map(|command| command.words).unwrap_or_default();
            let program = ShellWord { text: "sbatch".to_owned(), computed: false, line };
            let words = std::iter::once(program).chain(options.iter().map(ShellWord::from));
            ShellCommand { words: words.collect(), input: None }
        });
        let command = ShellCommand { words, input: command.input };
        std::iter::once(command).filter(|command| !command.words.is_empty()).chain(directive)
    })
}
