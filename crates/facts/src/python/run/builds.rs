//! Calls of a program that compile code while it runs.

use model::ImagePath;

use super::super::super::pattern;
use super::ProgramRun;

pattern!(
    CALL,
    r"(?:^|[^\w.])(torch\.compile|torch\.utils\.cpp_extension\.load(?:_inline)?|deepspeed\.ops\.adam\.(?:FusedAdam|DeepSpeedCPUAdam))\((.*)"
);
pattern!(LAUNCH, r"^(?:[\w.]+ *= *)?([A-Za-z_]\w*)\[.*\]\(");

/// What compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuildKind {
    /// Triton: its launcher, which is C code against Python.
    Triton,
    /// `torch.utils.cpp_extension`, for the host.
    Host,
    /// The same with code for GPUs.
    Cuda,
}

/// A call that certainly runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BuildCall {
    pub(crate) kind: BuildKind,
    /// What is called.
    pub(crate) name: String,
    /// Its file and line; no file for `-c`.
    pub(crate) at: (Option<ImagePath>, usize),
}

impl ProgramRun<'_, '_> {
    /// Notes a call that compiles.
    pub(super) fn note_build(&mut self, text: &str) {
        // What compiles nothing then, or goes on where compiling fails.
        if ["suppress_errors", "_dynamo.config.disable", "set_stance("].iter().any(|part| text.contains(part)) {
            self.path.compiles = false;
        }
        if self.path.is_doubtful || text.starts_with('@') {
            return;
        }
        let part = |captures: &regex::bytes::Captures<'_>, index: usize| {
            captures.get(index).map(|found| String::from_utf8_lossy(found.as_bytes()).into_owned()).unwrap_or_default()
        };
        let call = if let Some(captures) = CALL.captures(text.as_bytes()) {
            let arguments = part(&captures, 2);
            kind(&part(&captures, 1), &arguments).map(|kind| (kind, part(&captures, 1)))
        } else if let Some(captures) = LAUNCH.captures(text.as_bytes()) {
            let full = self.written(&part(&captures, 1));
            let is_kernel = self.functions.get(&full).is_some_and(|function| function.is_kernel);
            is_kernel.then(|| (BuildKind::Triton, format!("the kernel {}", part(&captures, 1))))
        } else {
            None
        };
        self.path.builds.extend(call.map(|(kind, name)| BuildCall { kind, name, at: self.path.at.clone() }));
    }
}

fn kind(name: &str, arguments: &str) -> Option<BuildKind> {
    match name {
        "torch.compile" => {
            let is_other =
                arguments.contains("disable") || (arguments.contains("backend") && !arguments.contains("inductor"));
            (!is_other).then_some(BuildKind::Triton)
        }
        "torch.utils.cpp_extension.load" | "torch.utils.cpp_extension.load_inline" => {
            let has_cuda =
                [".cu\"", ".cu'", "cuda_sources", "with_cuda=True"].iter().any(|part| arguments.contains(part));
            Some(if has_cuda { BuildKind::Cuda } else { BuildKind::Host })
        }
        _ => Some(BuildKind::Cuda),
    }
}
