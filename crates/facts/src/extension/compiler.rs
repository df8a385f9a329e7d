//! Compilers that packages run while a job runs.

use std::sync::LazyLock;

use model::{Fact, ImagePath};

use super::super::python::Python;
use super::super::{Context, table};

/// A row of the table.
#[derive(serde::Deserialize)]
struct CompilingModule {
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

static COMPILING: LazyLock<Vec<CompilingModule>> = LazyLock::new(|| table!("compilers"));

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
        if modules.is_empty() {
            return Fact::Absent;
        }
        if self.is_in(context, python) {
            return Fact::Absent;
        }
        python.call.state.gap.clone().map_or_else(|| Fact::known(modules), Fact::Unknown)
    }

    fn is_in(self, context: &Context<'_>, python: &Python) -> bool {
        let rootfs = context.rootfs;
        let variable = |name: &str| python.call.state.variables.get(name).and_then(|value| value.as_deref().ok());
        let exists = |path: &ImagePath| rootfs.open(path).is_ok();
        let in_path = |program: &str| {
            variable("PATH").is_some_and(|folders| {
                folders.split(':').any(|folder| exists(&ImagePath::from(folder).join(program.as_bytes())))
            })
        };
        match self {
            Self::C => {
                let header =
                    python.program.as_ref().ok().and_then(|program| rootfs.open(program).ok()).zip(python.minor);
                let has_header = header.is_none_or(|((program, _), minor)| {
                    let prefix = program.parent().parent();
                    exists(&prefix.join(format!("include/python3.{minor}/Python.h").as_bytes()))
                });
                has_header && (variable("CC").is_some() || ["gcc", "clang"].into_iter().any(in_path))
            }
            Self::Nvcc => {
                let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).chain(["/usr/local/cuda"]);
                in_path("nvcc") || homes.into_iter().any(|home| exists(&ImagePath::from(home).join(b"bin/nvcc")))
            }
        }
    }
}
