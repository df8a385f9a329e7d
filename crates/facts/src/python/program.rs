//! The program that Python runs, as far as it changes where torch comes from: its statements up to the import of torch.

use std::collections::BTreeMap;

use model::{Fact, ImagePath};

use super::super::pattern;
use super::super::start::PythonTarget;
use super::code::{self, PathEffect};
use super::expression::{CodeScope, split, string};
use super::files::ProcessFiles;
use super::modules::{self, Importable};
use super::version::PythonVersion;

pattern!(TORCH, r"(?u)^(?:import\s+(?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*|from\s+)torch\b");
pattern!(ASSIGNMENT, r"(?u)^([A-Za-z_]\w*)\s*=\s*([^=].*)$");
// What changes sys.path, or how modules are found; reading them is harmless.
pattern!(
    CHANGE,
    r"\bsys\.(?:path|meta_path|path_hooks|modules)\s*(?:\.(?:insert|append|extend|remove|pop|clear|sort|reverse|update|setdefault)\b|\[[^\]]*\]\s*=[^=]|\+?=[^=])|\bdel\s+sys\.path\b|\baddsitedir\b|\bfrom\s+sys\s+import\s.*\bpath\b"
);

/// The code of a program.
#[derive(Debug)]
pub(super) struct ProgramCode {
    /// Its file; `None` for `-c`.
    pub(super) file: Option<ImagePath>,
    pub(super) text: String,
}

impl ProgramCode {
    /// The code that an interpreter runs; `None` if it is not known, or was not kept because it does not concern
    /// `sys.path`. `entries` is `sys.path`.
    pub(super) fn of(
        files: &ProcessFiles<'_>,
        version: PythonVersion,
        entries: &[ImagePath],
        target: &PythonTarget,
    ) -> Option<Self> {
        let file = match target {
            PythonTarget::Command(text) => return Some(Self { file: None, text: text.clone() }),
            PythonTarget::Script(path) if files.is_directory(path) => path.join(b"__main__.py"),
            PythonTarget::Script(path) => path.clone(),
            PythonTarget::Module(name) => module(files, version, entries, name)?,
            PythonTarget::Unstated | PythonTarget::Code => return None,
        };
        let Fact::Seen { value, .. } = files.text(&file) else { return None };
        Some(Self { text: String::from_utf8_lossy(value).into_owned(), file: Some(file) })
    }
}

/// The file that `-m NAME` runs.
fn module(files: &ProcessFiles<'_>, version: PythonVersion, entries: &[ImagePath], name: &str) -> Option<ImagePath> {
    let mut parts = name.split('.');
    let mut found = modules::find(files, version, entries, parts.next()?)?;
    for part in parts {
        found = modules::in_entry(files, version, found.path(), part)?;
    }
    match found {
        Importable::Module(file) => Some(file),
        Importable::Package(folder, _) | Importable::Namespace(folder) => {
            Some(modules::in_entry(files, version, &folder, "__main__")?.path().clone())
        }
    }
}

/// The effects of a program on `sys.path` before it imports torch; `None` if one is not understood.
pub(super) fn effects(text: &str, scope: &CodeScope<'_>) -> Option<Vec<PathEffect>> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut effects = Vec::new();
    for line in lines(text) {
        let parts = split(&line, ';').unwrap_or_else(|| vec![&line]);
        for part in parts {
            let statement = part.trim();
            if !scope.budget.spend_on_text(statement.len()) {
                return None;
            }
            if TORCH.is_match(statement.as_bytes()) {
                return Some(effects);
            }
            let scope = CodeScope { names: &names, ..*scope };
            if CHANGE.is_match(statement.as_bytes()) {
                // What a block does depends on what happens before it.
                let is_indented = line.starts_with([' ', '\t']);
                effects.extend(code::line(statement, &scope).filter(|_| !is_indented)?);
            } else if let Some(captures) = ASSIGNMENT.captures(statement.as_bytes()) {
                let part = |index: usize| captures.get(index).map(|part| String::from_utf8_lossy(part.as_bytes()));
                let name = part(1)?.into_owned();
                let value = part(2)?;
                match string(&value, &scope) {
                    Some(value) => _ = names.insert(name, value),
                    None => _ = names.remove(&name),
                }
            }
        }
    }
    Some(effects)
}

/// The lines of a program, without comments; those within brackets and long strings are joined. A line of a string has
/// quotes around it, so that nothing in it looks like a statement.
fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut depth = 0_usize;
    let mut quote = None::<&str>;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match (quote, c) {
            (_, '\\') => {
                length = rest.char_indices().nth(2).map_or(rest.len(), |(third, _)| third);
                // A line that is continued.
                let escaped = rest.get(..length).unwrap_or_default();
                line.push_str(if quote.is_none() && escaped.ends_with('\n') { " " } else { escaped });
            }
            (Some(open), _) if rest.starts_with(open) => {
                length = open.len();
                line.push_str(open);
                quote = None;
            }
            (Some(open), '\n') if open.len() == 1 => {
                quote = None;
                lines.push(std::mem::take(&mut line));
            }
            (Some(_), '\n') => line.push_str("\\n"),
            (Some(_), _) => line.push(c),
            (None, '\'' | '"') => {
                let open = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|open| rest.starts_with(open));
                length = open.map_or(length, str::len);
                line.push_str(open.unwrap_or_default());
                quote = open;
            }
            (None, '#') => length = rest.find('\n').unwrap_or(rest.len()),
            (None, '\n') if depth == 0 => lines.push(std::mem::take(&mut line)),
            (None, '\n') => line.push(' '),
            (None, _) => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                line.push(c);
            }
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::super::budget::StartBudget;
    use super::PathEffect::{Append, Insert};
    use super::*;

    fn of(text: &str) -> Option<Vec<PathEffect>> {
        let directory = ImagePath::from("work");
        let file = ImagePath::from("app/train.py");
        let prefix = ImagePath::from("usr");
        let none = |_: &str| None;
        let scope = CodeScope {
            folder: None,
            prefix: &prefix,
            directory: &directory,
            home: None,
            file: Some(&file),
            variable: &none,
            names: &BTreeMap::new(),
            budget: &StartBudget::new(1_000),
        };
        effects(text, &scope)
    }

    #[test]
    fn statements_before_the_import_of_torch_count() {
        let text = |text: &str| text.to_owned();
        for (code, expected) in [
            ("import sys\nsys.path.insert(0, '/x')\nimport torch\n", vec![Insert(0, text("/x"))]),
            ("import sys; sys.path.insert(0, '/x'); import torch", vec![Insert(0, text("/x"))]),
            ("import os, torch\nimport sys\nsys.path.insert(0, '/x')\n", vec![]),
            ("from torch import nn\nsys.path.append('/x')\n", vec![]),
            ("import torchvision\nsys.path.append('/x')\n", vec![Append(text("/x"))]),
            (
                "HERE = os.path.dirname(os.path.abspath(__file__))\nsys.path.append(os.path.join(HERE, 'lib'))\n",
                vec![Append(text("/app/lib"))],
            ),
            ("sys.path.insert(\n    0,  # first\n    '/x',\n)\n", vec![Insert(0, text("/x"))]),
            ("\"\"\"Text.\n\nsys.path.clear()\n\"\"\"\nimport torch\n", vec![]),
            ("import sys, \\\n    torch\nsys.path.append('/x')\n", vec![]),
            ("text = 'it\\'s # é'\nsys.path.append('/x')\n", vec![Append(text("/x"))]),
            ("text = \"\"\"a\"\"\"\"b\"\nsys.path.append('/x')\n", vec![Append(text("/x"))]),
            // From Python 3.12 on, a format string may contain its own quote. The scan starts again at the next line.
            ("text = f\"{'\"'}\"\nsys.path.insert(0,\n    '/x')\n", vec![Insert(0, text("/x"))]),
            ("text = 'a # b'  # sys.path.clear()\nprint(sys.path)\nif sys.path[0] == '/x': pass\n", vec![]),
            ("try:\n    import torch\nexcept ImportError:\n    sys.path.clear()\n", vec![]),
        ] {
            assert_eq!(of(code), Some(expected), "{code}");
        }
    }

    #[test]
    fn other_changes_are_not_understood() {
        for code in [
            "sys.path.insert(0, sys.argv[1])",
            "ROOT = find()\nsys.path.insert(0, ROOT)",
            "ROOT = '/x'\nROOT = find()\nsys.path.insert(0, ROOT)",
            "if a:\n    sys.path.insert(0, '/x')",
            "sys.path = []",
            "sys.path[:] = ['/x']",
            "del sys.path[0]",
            "sys.path.pop(0)",
            "from sys import argv, path",
            "sys.modules['torch'] = fake",
            "sys.meta_path.insert(0, Finder())",
            "site.addsitedir(folder)",
        ] {
            assert_eq!(of(code), None, "{code}");
        }
    }
}
