//! What a Python file imports for certain when it runs, from its text (The Python Language Reference, 7.11, 8.1 and 8.4).

mod alias;
mod condition;
mod lines;
mod statements;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use condition::fixed_condition;
pub use lines::PythonLines;

use super::ImagePath;
use alias::aliases;
use statements::Statements;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 256 << 10;

/// Most components of the path of a module below the folder of packages, or of one elsewhere.
const DEPTH: usize = 4;
const DEPTH_OF_PROGRAM: usize = 7;

/// Folders of a job hold no such component.
const OF_OTHERS: &[&[u8]] = &[b"node_modules", b"pkgs", b"share", b"doc", b"proc", b"sys"];

/// Large packages without libraries of CUDA beside torch's own, and modules that map none.
const WITHOUT_CUDA: &str = "IPython PIL _pytest aiohttp babel boto3 botocore datasets docutils fsspec functorch google grpc \
    huggingface_hub jedi jinja2 joblib markdown matplotlib mpmath networkx nltk numpy opt_einsum pandas parso pip \
    pkg_resources plotly polars pyarrow pydantic pygments pytest requests rich scipy setuptools sklearn sympy tensorboard \
    test tests tokenizers torch torchgen transformers typing_extensions urllib3 wheel";

/// Modules of the standard library that programs often import.
const STANDARD: &str = "__future__ abc argparse array ast asyncio atexit base64 bisect builtins collections concurrent \
    contextlib copy csv ctypes dataclasses datetime enum errno functools gc glob hashlib importlib inspect io itertools \
    json logging math multiprocessing numbers operator os pathlib pickle platform pprint queue random re shutil signal \
    site socket string struct subprocess sys tempfile textwrap threading time traceback types typing unittest urllib \
    uuid warnings weakref zipfile";

/// Text of code that may map libraries in ways that no import shows.
const OPENS: &[&[u8]] = &[b"ctypes", b"dlopen", b"load_library", b"LoadLibrary", b"find_spec", b"spec_from_file"];

/// The mark of such code among the statements.
const MARK: &str = "!";

/// What comes before the names that the code may give modules which no folder has.
const ALIASES: char = '%';

/// What comes before an import of a package without such libraries.
const OF_KNOWN: char = '~';

/// What a Python file imports whenever it runs, in order: one statement a line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonImports(Box<str>);

/// One import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonImport<'a> {
    /// What must hold for the import.
    pub condition: ImportCondition<'a>,
    /// The module, with leading dots if it is relative; `=` and its name for a library that is opened through ctypes.
    pub module: &'a str,
    /// The names of `from MODULE import NAME, …`, separated by blanks; empty for `import MODULE`.
    pub names: &'a str,
    /// The line of an import without which the program ends if the module is not installed.
    pub line: Option<usize>,
}

impl<'a> PythonImport<'a> {
    /// The first component of the module; `None` for a relative one.
    pub fn top_level(&self) -> Option<&'a str> {
        self.module.split('.').next().filter(|name| !name.is_empty())
    }
}

/// What must hold for an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportCondition<'a> {
    /// Nothing.
    None,
    /// The file is the program that runs.
    IsProgram,
    /// The process has no variable of this name.
    Unset(&'a str),
    /// Python finds this module, whose name has leading dots if it is relative.
    Found(&'a str),
}

impl PythonImports {
    /// Returns true for a file that is read: others are too large, too deep, or of packages without such libraries.
    pub fn are_read_of(path: &ImagePath, size: u64) -> bool {
        let parts: Vec<_> = path.components().collect();
        let folder = parts.iter().position(|part| matches!(*part, b"site-packages" | b"dist-packages"));
        let (parts, depth) = match folder.and_then(|folder| parts.get(folder + 1..)) {
            Some(below) => (below, DEPTH),
            None => (parts.as_slice(), DEPTH_OF_PROGRAM),
        };
        let is_of_other =
            |part: &&[u8]| part.starts_with(b"python2") || part.starts_with(b"python3") || OF_OTHERS.contains(part);
        size <= LARGEST
            && parts.len() <= depth
            && !(folder.is_some() && parts.first().is_some_and(|package| is_without_cuda(package)))
            && !(folder.is_none() && parts.split_last().is_some_and(|(_, folders)| folders.iter().any(is_of_other)))
    }

    /// Reads a file.
    pub fn read(text: &[u8]) -> Self {
        let mut statements = Statements::read(text);
        // The first import of torch counts for what is before it.
        let mut is_first = true;
        // Of packages that are not followed, the first import counts.
        let mut known = BTreeSet::new();
        statements.retain_mut(|statement| {
            let is_torch = statement.split(['.', ' ', '@']).next() == Some("torch");
            if is_torch {
                return std::mem::take(&mut is_first);
            }
            let top = top_level(statement);
            if is_without_cuda(top.as_bytes())
                && let Some((_, line)) = statement.split_once('@')
            {
                let (condition, _) = statement.split_once('?').unwrap_or_default();
                let own = if condition.is_empty() { top.to_owned() } else { format!("{condition}?{top}") };
                let is_new = known.insert(own.clone());
                *statement = format!("{OF_KNOWN}{own}@{line}");
                return is_new;
            }
            top.is_empty() || !(super::is_among(top, STANDARD) || is_without_cuda(top.as_bytes()))
        });
        if OPENS.iter().any(|part| memchr::memmem::find(text, part).is_some()) {
            statements.push(MARK.to_owned());
        }
        if let Some(names) = aliases(text) {
            statements.push(format!("{ALIASES}{names}"));
        }
        Self(statements.join("\n").into())
    }

    /// Returns true if the file imports nothing that counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the statements.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the code may map libraries in ways that no import shows.
    pub fn open_libraries(&self) -> bool {
        self.0.lines().any(|line| line == MARK)
    }

    /// The names that the code gives to modules which no folder has, each by its first component; `*` for any name.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.0.lines().filter_map(|line| line.strip_prefix(ALIASES)).flat_map(|names| names.split(' '))
    }

    /// The imports in order, apart from those of packages without libraries of CUDA.
    pub fn iter(&self) -> impl Iterator<Item = PythonImport<'_>> {
        self.all().filter_map(|(is_known, import)| (!is_known).then_some(import))
    }

    /// The imports without which the program ends if the module is not installed.
    pub fn required(&self) -> impl Iterator<Item = PythonImport<'_>> {
        self.all().filter_map(|(_, import)| import.line.is_some().then_some(import))
    }

    /// The imports in order, true for those of packages without libraries of CUDA.
    fn all(&self) -> impl Iterator<Item = (bool, PythonImport<'_>)> {
        self.0.lines().filter(|line| *line != MARK && !line.starts_with(ALIASES)).map(|line| {
            let own = line.strip_prefix(OF_KNOWN);
            let (line, number) = own
                .unwrap_or(line)
                .split_once('@')
                .map_or_else(|| (own.unwrap_or(line), None), |(line, number)| (line, number.parse().ok()));
            let (condition, import) = line.split_once('?').unwrap_or(("", line));
            let (module, names) = import.split_once(' ').unwrap_or((import, ""));
            let condition = match condition {
                "" => ImportCondition::None,
                condition::MAIN => ImportCondition::IsProgram,
                other => {
                    other.strip_prefix(condition::FOUND).map_or(ImportCondition::Unset(other), ImportCondition::Found)
                }
            };
            (own.is_some(), PythonImport { condition, module, names, line: number })
        })
    }
}

fn is_without_cuda(package: &[u8]) -> bool {
    WITHOUT_CUDA.split_ascii_whitespace().any(|name| name.as_bytes() == package)
}

/// The first component of the module of a statement.
fn top_level(statement: &str) -> &str {
    let import = statement.split_once('?').map_or(statement, |(_, import)| import);
    import.split(['.', ' ', '@']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
