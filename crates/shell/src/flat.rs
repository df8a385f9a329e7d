//! Simple commands of a script, in its order and without what controls them.

use super::kind::ShellKind;
use super::lexer::{Lexer, ShellToken};
use super::word::Word;

/// A simple command and its here-document.
#[derive(Debug, Default)]
pub struct FlatCommand {
    /// Its words, without redirections.
    pub words: Vec<Word>,
    /// Text of the here-document, and the line where it begins.
    pub input: Option<(String, usize)>,
    /// The comment behind it, or alone, and its line.
    pub comment: Option<(String, usize)>,
}

/// The simple commands of a script that begins at `line`.
pub fn commands(text: &str, line: usize) -> impl Iterator<Item = FlatCommand> {
    // Engines and schedulers read their own files with the line ends of Windows too.
    let mut lexer = Lexer::new(&text.replace("\r\n", "\n"), line, ShellKind::Bash).peekable_tokens();
    std::iter::from_fn(move || lexer.command())
}

struct FlatReader {
    lexer: Lexer,
    next: Option<ShellToken>,
}

impl Lexer {
    fn peekable_tokens(self) -> FlatReader {
        FlatReader { lexer: self, next: None }
    }
}

impl FlatReader {
    fn token(&mut self) -> Option<ShellToken> {
        self.next.take().or_else(|| self.lexer.next())
    }

    fn command(&mut self) -> Option<FlatCommand> {
        let mut command = FlatCommand::default();
        loop {
            let Some(token) = self.token() else {
                return (!command.words.is_empty()).then_some(command);
            };
            match token {
                ShellToken::Word(word) if !word.pieces.is_empty() => command.words.push(word),
                ShellToken::Comment(text) => command.comment = Some((text, self.lexer.line)),
                ShellToken::Newline => {
                    match self.lexer.next() {
                        Some(ShellToken::Document(text, line)) => command.input = Some((text, line)),
                        other => self.next = other,
                    }
                    if !command.words.is_empty() || command.comment.is_some() {
                        return Some(command);
                    }
                }
                // In `cat <<EOF | bash` the document belongs to the whole line.
                ShellToken::Operator(_) if !command.words.is_empty() && !self.lexer.awaits_document() => {
                    return Some(command);
                }
                ShellToken::Word(_)
                | ShellToken::Operator(_)
                | ShellToken::Redirection(_)
                | ShellToken::Document(..)
                | ShellToken::Arithmetic(..) => {}
            }
        }
    }
}
