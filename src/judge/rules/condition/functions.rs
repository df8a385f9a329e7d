//! What conditions can ask of values. Functions of CEL that are not here are no part of the contract.

use std::fmt;

use super::kind::ValueKind;

/// A function, as the documentation shows it.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// What it tells.
    pub about: &'static str,
    takes: &'static [Takes],
    gives: Gives,
}

/// What an argument must be; the first is the receiver.
#[derive(Clone, Copy, Debug)]
enum Takes {
    Text,
    /// A text, a list or a map.
    Several,
    /// A number, or a text that is one.
    Number,
    Scalar,
}

#[derive(Clone, Copy, Debug)]
enum Gives {
    Bool,
    Int,
    Double,
    Text,
    Version,
}

/// All of them, besides CEL's operators.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "has",
        form: "has(torch.version)",
        about: "whether a fact, or an entry of a map, is there; ask it before the value",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "version",
        form: "version(torch.version) >= version('2.6')",
        about: "a text as a version: compared by its numbers, what follows them last; a missing number counts as 0",
        takes: &[Takes::Text],
        gives: Gives::Version,
    },
    Function {
        name: "major",
        form: "major(torch.cuda.version) == 12",
        about: "the first number of a version",
        takes: &[Takes::Text],
        gives: Gives::Int,
    },
    Function {
        name: "size",
        form: "size(nccl.copies) > 1",
        about: "how many characters a text has, or elements a list, or entries a map",
        takes: &[Takes::Several],
        gives: Gives::Int,
    },
    Function {
        name: "contains",
        form: "image.os.contains('Ubuntu')",
        about: "whether a text has another in it; of a list ask `x in list`",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "startsWith",
        form: "nccl.loaded.path.startsWith('/opt/')",
        about: "whether a text begins with another",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "endsWith",
        form: "nccl.loaded.path.endsWith('.so.2')",
        about: "whether a text ends with another",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "matches",
        form: "image.env.NCCL_IB_HCA.matches('^=?mlx5')",
        about: "whether a regular expression (RE2's syntax) is found in a text",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "int",
        form: "int(image.env.NCCL_NTHREADS) > 512",
        about: "a text as a whole number; what is none makes the condition unknown",
        takes: &[Takes::Number],
        gives: Gives::Int,
    },
    Function {
        name: "double",
        form: "double(change.ratio) >= 1.1",
        about: "a text as a number; what is none makes the condition unknown",
        takes: &[Takes::Number],
        gives: Gives::Double,
    },
    Function {
        name: "string",
        form: "string(host.gpu_count)",
        about: "a number or a truth as text",
        takes: &[Takes::Scalar],
        gives: Gives::Text,
    },
    Function {
        name: "exists",
        form: "nccl.plugins.exists(plugin, plugin.opened != 'no')",
        about: "whether something holds for an element of a list, or a name in a map",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "all",
        form: "torch.arch_list.all(arch, arch.startsWith('sm_'))",
        about: "whether it holds for each",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "exists_one",
        form: "nccl.copies.exists_one(copy, copy.soname == 'libnccl.so.2')",
        about: "whether it holds for just one",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "filter",
        form: "size(nccl.copies.filter(copy, has(copy.owner))) > 1",
        about: "the elements for which it holds",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "map",
        form: "'2.27.5' in nccl.copies.map(copy, copy.version)",
        about: "what it is for each element",
        takes: &[],
        gives: Gives::Bool,
    },
];

impl Takes {
    fn admits(self, kind: &ValueKind) -> bool {
        match self {
            Self::Text => kind.is_text(),
            Self::Several => {
                kind.is_text() || matches!(kind, ValueKind::List(_) | ValueKind::Map(_) | ValueKind::Record(_))
            }
            Self::Number => kind.is_text() || kind.is_number(),
            Self::Scalar => kind.is_text() || kind.is_number() || *kind == ValueKind::Bool,
        }
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Several => "a text, a list or a map",
            Self::Number => "a text or a number",
            Self::Scalar => "a text, a number or a truth",
        })
    }
}

impl Function {
    /// One that is called by its name; the others are macros, which the parser has taken apart.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name && !function.takes.is_empty())
    }

    /// Whether it is called as a method, `x.f(y)`, or as a function, `f(x)`, as it should.
    pub(super) fn is_written_so(&self, as_method: bool) -> bool {
        match self.name {
            "size" => true,
            "contains" | "startsWith" | "endsWith" | "matches" => as_method,
            _ => !as_method,
        }
    }

    /// What it gives for these arguments, or which of them is wrong, and how.
    pub(super) fn apply(&self, arguments: &[ValueKind]) -> Result<ValueKind, (Option<usize>, String)> {
        if arguments.len() != self.takes.len() {
            let what = format!("{} takes {} values, as in {}", self.name, self.takes.len(), self.form);
            return Err((None, what));
        }
        let wrong = self.takes.iter().zip(arguments).position(|(takes, kind)| !takes.admits(kind));
        if let Some((index, (takes, kind))) =
            wrong.and_then(|index| Some((index, (self.takes.get(index)?, arguments.get(index)?))))
        {
            return Err((Some(index), format!("{} takes {takes}, and this is {kind}", self.name)));
        }
        Ok(match self.gives {
            Gives::Bool => ValueKind::Bool,
            Gives::Int => ValueKind::Int,
            Gives::Double => ValueKind::Double,
            Gives::Text => ValueKind::Text,
            Gives::Version => ValueKind::Version,
        })
    }
}
