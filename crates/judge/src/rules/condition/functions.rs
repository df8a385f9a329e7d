//! The functions of conditions. CEL functions that are not listed here are refused.

use std::fmt;

use super::kind::ValueKind;

/// A documented function.
#[derive(Debug)]
pub struct Function {
    /// Name of the function.
    pub name: &'static str,
    /// Example of a call.
    pub form: &'static str,
    /// Description of the result.
    pub about: &'static str,
    takes: &'static [Takes],
    gives: Gives,
}

/// The type of an argument; the first argument is the receiver.
#[derive(Clone, Copy, Debug)]
enum Takes {
    Text,
    /// Text, a list or a map.
    Several,
    /// A number, or text that contains one.
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

/// All functions; CEL's operators are also available.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "has",
        form: "has(torch.version)",
        about: "true if a fact or a map entry is present; test it before you use the value",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "version",
        form: "version(torch.version) >= version('2.6')",
        about: "text as a version, compared by its numbers, then by its suffix; a missing number counts as 0",
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
        about: "number of characters in text, elements in a list or entries in a map",
        takes: &[Takes::Several],
        gives: Gives::Int,
    },
    Function {
        name: "contains",
        form: "image.os.contains('Ubuntu')",
        about: "true if text contains other text; for a list use `x in list`",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "startsWith",
        form: "nccl.loaded.path.startsWith('/opt/')",
        about: "true if text starts with other text",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "endsWith",
        form: "nccl.loaded.path.endsWith('.so.2')",
        about: "true if text ends with other text",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "matches",
        form: "image.env.NCCL_IB_HCA.matches('^=?mlx5')",
        about: "true if a regular expression (RE2 syntax) matches part of a text",
        takes: &[Takes::Text, Takes::Text],
        gives: Gives::Bool,
    },
    Function {
        name: "int",
        form: "int(image.env.NCCL_NTHREADS) > 512",
        about: "text as a whole number; other text makes the condition unknown",
        takes: &[Takes::Number],
        gives: Gives::Int,
    },
    Function {
        name: "double",
        form: "double(change.ratio) >= 1.1",
        about: "text as a number; other text makes the condition unknown",
        takes: &[Takes::Number],
        gives: Gives::Double,
    },
    Function {
        name: "string",
        form: "string(host.gpu_count)",
        about: "a number, true or false as text",
        takes: &[Takes::Scalar],
        gives: Gives::Text,
    },
    Function {
        name: "exists",
        form: "nccl.plugins.exists(plugin, plugin.opened != 'no')",
        about: "true if a predicate holds for at least one element of a list or name in a map",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "all",
        form: "torch.arch_list.all(arch, arch.startsWith('sm_'))",
        about: "true if the predicate holds for every element",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "exists_one",
        form: "nccl.copies.exists_one(copy, copy.soname == 'libnccl.so.2')",
        about: "true if the predicate holds for exactly one element",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "filter",
        form: "size(nccl.copies.filter(copy, has(copy.owner))) > 1",
        about: "list of the elements for which the predicate holds",
        takes: &[],
        gives: Gives::Bool,
    },
    Function {
        name: "map",
        form: "'2.27.5' in nccl.copies.map(copy, copy.version)",
        about: "list of the values of an expression, one for each element",
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
            Self::Several => "text, a list or a map",
            Self::Number => "text or a number",
            Self::Scalar => "text, a number, true or false",
        })
    }
}

impl Function {
    /// Finds a function by its name. Macros are not found: the parser has expanded them.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name && !function.takes.is_empty())
    }

    /// Returns true if the function may be called in this form: as a method, `x.f(y)`, or as a function, `f(x)`.
    pub(super) fn is_written_so(&self, as_method: bool) -> bool {
        match self.name {
            "size" => true,
            "contains" | "startsWith" | "endsWith" | "matches" => as_method,
            _ => !as_method,
        }
    }

    /// The type of the result for these arguments, or the index of the wrong one, if a single one is wrong, and the
    /// reason.
    pub(super) fn apply(&self, arguments: &[ValueKind]) -> Result<ValueKind, (Option<usize>, String)> {
        if arguments.len() != self.takes.len() {
            let what =
                format!("wrong number of arguments: {} takes {}, as in {}", self.name, self.takes.len(), self.form);
            return Err((None, what));
        }
        let wrong = self.takes.iter().zip(arguments).position(|(takes, kind)| !takes.admits(kind));
        if let Some((index, (takes, kind))) =
            wrong.and_then(|index| Some((index, (self.takes.get(index)?, arguments.get(index)?))))
        {
            return Err((Some(index), format!("{} takes {takes}, but this is {kind}", self.name)));
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
