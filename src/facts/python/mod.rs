//! The Python that the image starts, and the directories that it imports from.

mod path;
mod program;

use crate::model::{Fact, Gap, ImagePath, Site};
use crate::rootfs::RootFs;

use super::key::definitions;
use super::producer::Producer;
use super::start::PythonCall;
use super::{Context, Draft, key, pattern};

pattern!(VERSIONED, r"^python3\.(\d+)t?$");

/// An interpreter of the image.
#[derive(Debug)]
pub(super) struct Python {
    /// The call that runs it.
    pub(super) call: PythonCall,
    site: Site,
    /// The file that runs, or why it is unknown.
    pub(super) program: Result<ImagePath, Gap>,
    /// Minor version of Python 3.
    pub(super) minor: Option<u32>,
    /// Existing directories of `sys.path`, in order: `PYTHONPATH`, the standard library, then packages.
    pub(super) path: Vec<ImagePath>,
    /// The directories of `path` that packages are installed in.
    pub(super) site_packages: Vec<ImagePath>,
    /// Files that run code when this interpreter starts, and may change where it imports from.
    pub(super) hooks: Vec<ImagePath>,
}

impl Python {
    /// The interpreter that a call runs, if it exists.
    pub(super) fn of(rootfs: &RootFs, call: &PythonCall) -> Option<Self> {
        let (real, file) = rootfs.open(&call.program).ok()?;
        let site = file.site(&real, None);
        let (call, program) = match program::behind_shim(rootfs, &call.state, &call.program, &real) {
            None => (call.clone(), Ok(real)),
            Some(Ok(behind)) => {
                let real = rootfs.open(&behind).ok()?.0;
                (call.of(behind), Ok(real))
            }
            Some(Err(gap)) => (call.clone(), Err(gap)),
        };
        let layout = program.as_ref().ok().map(|real| path::layout(rootfs, &call, real)).unwrap_or_default();
        // Another value of these variables may choose another interpreter, or another path for its packages.
        let gap = call.state.any_unknown(|name| name == "PATH" || name.starts_with("PY"));
        let program = gap.map_or(program, |gap| Err(gap.clone()));
        let path::PythonLayout { minor, path, site_packages, hooks } = layout;
        Some(Self { call, site, program, minor, path, site_packages, hooks })
    }
}

/// The minor version in the name of an interpreter's file, such as `python3.11`.
fn minor_of(file: &ImagePath) -> Option<u32> {
    let captures = VERSIONED.captures(file.file_name())?;
    std::str::from_utf8(captures.get(1)?.as_bytes()).ok()?.parse().ok()
}

pub(super) static PRODUCER: Producer = Producer {
    name: "python",
    produces: definitions![PYTHON_PATH, PYTHON_SITE_PACKAGES, PYTHON_STARTUP_CODE,],
    needs: &[],
    run: produce,
};

fn produce(context: &Context<'_>, facts: &mut Draft<'_>) {
    let Some(python) = &context.python else {
        let gap = context.config.and_then(|config| config.unknown.among(&["PATH"]));
        facts.insert(key::PYTHON_PATH, gap.map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone())));
        facts.insert(key::PYTHON_SITE_PACKAGES, gap.map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone())));
        facts.insert(key::PYTHON_STARTUP_CODE, gap.map_or(Fact::Absent, |gap| Fact::Unknown(gap.clone())));
        return;
    };
    let gap = context.config.and_then(|config| config.unknown.among(&["PATH"]));
    let name = || Fact::seen(python.call.program.clone(), [python.site.clone()]);
    facts.insert(key::PYTHON_PATH, gap.map_or_else(name, |gap| Fact::Unknown(gap.clone())));
    let folders: Vec<_> = python.site_packages.iter().map(ToString::to_string).collect();
    let folders = match (&python.program, folders.is_empty()) {
        (Err(gap), _) => Fact::Unknown(gap.clone()),
        (Ok(_), true) => {
            let why = format!("{} has no directory to import packages from", python.call.program);
            Fact::Unknown(Gap::new(why))
        }
        (Ok(_), false) => Fact::seen(folders, [python.site.clone()]),
    };
    facts.insert(key::PYTHON_SITE_PACKAGES, folders);
    let hooks: Vec<_> = python.hooks.iter().map(ToString::to_string).collect();
    facts.insert(
        key::PYTHON_STARTUP_CODE,
        match &python.program {
            Err(gap) => Fact::Unknown(gap.clone()),
            Ok(_) if hooks.is_empty() => Fact::Absent,
            Ok(_) => Fact::seen(hooks, [python.site.clone()]),
        },
    );
}

#[cfg(test)]
mod tests;
