//! The statements of Python code, with the blocks below them.

use model::{ImagePath, PythonLines};

use super::expression::split;

/// Words that begin the header of a block.
const HEADERS: &str = "if elif else for while try except finally with def class async match case";

/// One statement, or the header of a block without its colon.
#[derive(Debug)]
pub(super) struct Statement {
    indent: usize,
    /// The number of its line, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    /// The statement behind its block, or the next one.
    pub(super) end: usize,
}

/// The code of one file.
#[derive(Debug)]
pub(super) struct PythonSource {
    /// Its file; `None` for `-c`.
    pub(super) file: Option<ImagePath>,
    pub(super) statements: Vec<Statement>,
}

impl PythonSource {
    pub(super) fn read(file: Option<ImagePath>, text: &[u8]) -> Self {
        let mut statements = Vec::new();
        let mut lines = PythonLines::new(text);
        while let Some((mut indent, text)) = lines.next_line() {
            let line = text.to_owned();
            let mut text = line.as_str();
            // `if a: b` has its block in the line.
            if is_header(text)
                && let Some([header, ..]) = split(text, ':').as_deref()
            {
                push(&mut statements, indent, lines.number(), header.trim());
                text = text.get(header.len() + 1..).unwrap_or_default().trim();
                indent += 1;
            }
            for part in split(text, ';').unwrap_or_else(|| vec![text]) {
                push(&mut statements, indent, lines.number(), part.trim());
            }
        }
        close(&mut statements);
        Self { file, statements }
    }
}

/// The first word of a statement.
pub(super) fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn is_header(text: &str) -> bool {
    model::is_among(first_word(text), HEADERS)
}

fn push(statements: &mut Vec<Statement>, indent: usize, line: usize, text: &str) {
    if !text.is_empty() {
        statements.push(Statement { indent, line, text: text.to_owned(), end: 0 });
    }
}

/// Finds the ends of the blocks.
fn close(statements: &mut [Statement]) {
    let mut open: Vec<(usize, usize)> = Vec::new();
    let count = statements.len();
    for at in 0..=count {
        let indent = statements.get(at).map_or(0, |statement| statement.indent);
        while let Some((_, start)) = open.pop_if(|(above, _)| indent <= *above) {
            if let Some(statement) = statements.get_mut(start) {
                statement.end = at;
            }
        }
        open.push((indent, at));
    }
}
