//! Compilers that packages run while a job runs.

use model::{Fact, ImagePath, Table};

use super::super::python::{BuildCall, BuildKind, Python};
use crate::table;

use super::super::Context;

/// A row of the table.
#[derive(serde::Deserialize)]
pub(crate) struct CompilingModule {
    module: String,
    needs: Compiler,
}

/// What compiles the code.
#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Compiler {
    /// gcc or clang, for code against Python's header.
    C,
    /// CUDA's.
    Nvcc,
}

/// Variables by which torch.compile does nothing, or goes on where it fails.
const OFF: [&str; 3] = ["TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCHDYNAMO_SUPPRESS_ERRORS"];

pub(crate) static COMPILING: Table<Vec<CompilingModule>> = table!("compilers");

impl Compiler {
    /// The modules that need this compiler, of those that are imported, if the image lacks it; unknown if its environment is.
    pub(super) fn missing(
        self,
        context: &Context<'_>,
        python: &Python,
        is_imported: impl Fn(&str) -> bool,
    ) -> Fact<Vec<String>> {
        let rows = COMPILING.iter().filter(|row| row.needs == self && is_imported(&row.module));
        let modules: Vec<_> = rows.map(|row| row.module.clone()).collect();
        let has_triton = || python.import(context.rootfs, "triton").is_ok_and(|import| import.found.is_some());
        if modules.is_empty() || (self == Self::C && !has_triton()) || self.is_in(context, python) {
            return Fact::Absent;
        }
        python.call.state.gap.clone().map_or_else(|| Fact::known(modules), Fact::Unknown)
    }

    fn is_in(self, context: &Context<'_>, python: &Python) -> bool {
        let tools = Tools { context, python };
        match self {
            Self::C => tools.has_header() && tools.has_c(),
            Self::Nvcc => tools.nvcc_fault().is_none(),
        }
    }
}

/// The calls of the program that fail since the image lacks what they compile with, each with what it lacks.
pub(super) fn failing(context: &Context<'_>, python: &Python) -> Vec<(BuildCall, String)> {
    let rootfs = context.rootfs;
    let tools = Tools { context, python };
    let is_built = |part: &[u8]| rootfs.files_named(|name| name.starts_with(part)).next().is_some();
    // What an earlier run compiled is kept in such files.
    let has_cache = |kind| match kind {
        BuildKind::Triton => is_built(b"cuda_utils."),
        BuildKind::Host | BuildKind::Cuda => is_built(b"build.ninja") || is_built(b"fused_adam_op."),
    };
    let is_off = |name: &str| tools.is_set(name) && tools.variable(name) != Some("0");
    let is_in_vain = |call: &BuildCall| call.name == "torch.compile" && OFF.into_iter().any(is_off);
    let calls = { python.builds.iter() }.filter(|_| !tools.is_doubtful());
    let calls = calls.filter(|call| !is_in_vain(call) && !has_cache(call.kind));
    calls.filter_map(|call| Some((call.clone(), tools.lacked(call.kind)?))).collect()
}

/// The programs that a process of the image compiles with.
struct Tools<'t, 'a> {
    context: &'t Context<'a>,
    python: &'t Python,
}

impl Tools<'_, '_> {
    /// A variable as the program has it that sets some itself.
    fn variable(&self, name: &str) -> Option<&str> {
        let own = self.python.changed.values.get(name).map(|(value, _)| value.as_ref().ok()?.as_deref());
        own.unwrap_or_else(|| self.python.call.state.known(name)).filter(|value| !value.is_empty())
    }

    /// True if it is unknown where programs are found.
    fn is_doubtful(&self) -> bool {
        let changed = &self.python.changed;
        let is_computed = |name: &str| {
            let own = changed.values.get(name).is_some_and(|(value, _)| value.is_err());
            own || self.python.call.state.variables.get(name).is_some_and(Result::is_err)
        };
        changed.gap.is_some()
            || self.python.call.state.gap.is_some()
            || ["PATH", "CUDA_HOME", "CUDA_PATH"].into_iter().any(is_computed)
    }

    fn is_set(&self, name: &str) -> bool {
        self.python.changed.values.contains_key(name) || self.python.call.state.variables.contains_key(name)
    }

    fn exists(&self, path: &ImagePath) -> bool {
        self.context.rootfs.open(path).is_ok()
    }

    fn has(&self, program: &str) -> bool {
        let path = self.variable("PATH").unwrap_or_default();
        path.split(':').any(|folder| self.exists(&ImagePath::from(folder).join(program.as_bytes())))
    }

    fn has_c(&self) -> bool {
        self.is_set("CC") || ["gcc", "clang"].into_iter().any(|name| self.has(name))
    }

    fn has_header(&self) -> bool {
        let program = self.python.program.as_ref().ok().and_then(|program| self.context.rootfs.open(program).ok());
        program.zip(self.python.minor).is_none_or(|((program, _), minor)| {
            let prefix = program.parent().parent();
            self.exists(&prefix.join(format!("include/python3.{minor}/Python.h").as_bytes()))
        })
    }

    /// Why there is no nvcc where `torch.utils.cpp_extension` looks for it: in CUDA_HOME alone if that is set.
    fn nvcc_fault(&self) -> Option<String> {
        let nvcc = |home: &str| self.exists(&ImagePath::from(home).join(b"bin/nvcc"));
        match ["CUDA_HOME", "CUDA_PATH"].into_iter().find_map(|name| Some((name, self.variable(name)?))) {
            Some((name, home)) => (!nvcc(home)).then(|| format!("{name} is {home}, which has no bin/nvcc")),
            None if self.has("nvcc") || nvcc("/usr/local/cuda") => None,
            None => Some("CUDA_HOME is not set, and there is no nvcc in PATH or in /usr/local/cuda".to_owned()),
        }
    }

    /// What a kind of call lacks, as a part of a sentence.
    fn lacked(&self, kind: BuildKind) -> Option<String> {
        let missing = |program: &str| format!("there is no {program} in PATH");
        let python = self.python;
        match kind {
            BuildKind::Triton => {
                let has_triton =
                    python.import(self.context.rootfs, "triton").is_ok_and(|import| import.found.is_some());
                (has_triton && !self.has_c()).then(|| missing("gcc or clang"))
            }
            _ if !self.has("ninja") => Some(missing("ninja")),
            _ if !self.is_set("CXX") && !self.has("c++") => Some(missing("c++")),
            BuildKind::Host => None,
            BuildKind::Cuda => self.nvcc_fault(),
        }
    }
}
