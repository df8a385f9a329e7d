//! A Python that is called: what it runs, or what the launcher runs that it is called with.

use model::ImagePath;
use shell::{Field, ShellGap, ShellState};

use super::super::arguments::Words;
use super::super::call::{PythonCall, PythonFlags, PythonTarget};
use super::super::interpreter::{PythonArguments, arguments, worker};
use super::super::wrapper::{Starts, of_module, of_program};
use super::{Outcome, Runner, Start, StartFault, Started, supervisor};

impl Runner<'_> {
    /// A Python with its arguments.
    pub(super) fn python(
        &mut self,
        start: &Start<'_>,
        state: &ShellState,
        path: &ImagePath,
        rest: &[Field],
    ) -> Outcome {
        if path.file_name().starts_with(b"python2") {
            return Ok(None);
        }
        let own = self.renamed(start, state, path)?;
        let path = own.as_ref().unwrap_or(path);
        let arguments = arguments(rest, &state.directory)?;
        if let PythonTarget::Script(script) = &arguments.target
            && script.file_name() == b"supervisord"
        {
            return supervisor::run(self, start, state, rest);
        }
        let (arguments, launcher) = self.launched(start, arguments, state)?;
        if let Some(words) = &arguments.program {
            return self.rest(start, state, words);
        }
        let named = match &arguments.target {
            PythonTarget::Script(script) => script.as_bytes(),
            PythonTarget::Module(name) => name.as_bytes(),
            _ => b"",
        };
        if named.ends_with(b"\r") {
            let mut words = rest.iter().filter_map(|word| word.as_deref().ok()?.strip_suffix('\r'));
            let fault = StartFault::of_return(words.next().unwrap_or_default(), &start.place);
            return Ok(Some(self.mark(Started::Nothing(Box::new(fault)))));
        }
        let process = self.process(state)?;
        let PythonArguments { flags, target, .. } = arguments;
        let call = PythonCall { program: path.clone(), flags, target, launcher, state: process };
        Ok(Some(self.mark(Started::Python(Box::new(call)))))
    }

    /// Python finds its environment by `argv[0]`. Returns the file that another `argv[0]` names, else the file for which this
    /// Python was built (CPython, `Modules/getpath.py`); `None` without another one.
    fn renamed(&self, start: &Start<'_>, state: &ShellState, path: &ImagePath) -> Result<Option<ImagePath>, ShellGap> {
        let (Some(name), Ok((real, _))) = (&start.name, self.rootfs.open(path)) else { return Ok(None) };
        let unknown = || Self::gap(start, "Python finds its environment by `argv[0]`, which `exec -a` sets");
        let Ok(name) = name else { return Err(unknown()) };
        if let Some(named) = self.locate(name, state)? {
            let is_same = self.rootfs.open(&named).is_ok_and(|(other, _)| other == real);
            return if is_same { Ok(Some(named)) } else { Err(unknown()) };
        }
        let prefix = real.parent().parent();
        let is_built_for =
            matches!(prefix.as_bytes(), b"usr" | b"usr/local") || self.rootfs.is_directory(&prefix.join(b"conda-meta"));
        if is_built_for && !name.contains('/') { Ok(Some(real)) } else { Err(unknown()) }
    }

    /// What runs if the target is a launcher such as torchrun, and the launcher's script.
    fn launched<'w>(
        &self,
        start: &Start<'_>,
        arguments: PythonArguments<'w>,
        state: &ShellState,
    ) -> Result<(PythonArguments<'w>, Option<ImagePath>), ShellGap> {
        let (name, found, script) = match &arguments.target {
            PythonTarget::Script(script) => {
                let name = String::from_utf8_lossy(script.file_name()).into_owned();
                // A script of that name which is not the launcher would be the job's own.
                let has =
                    |package: &str| self.read(script).is_some_and(|text| text.is_ok_and(|text| text.contains(package)));
                let found = of_program(&name, arguments.rest).filter(|(table, _)| has(&table.package));
                (name, found, Some(script.clone()))
            }
            PythonTarget::Module(name) => (name.clone(), of_module(name, arguments.rest), None),
            _ => return Ok((arguments, None)),
        };
        let Some((table, rest)) = found else { return Ok((arguments, None)) };
        let why = match table.starts {
            Starts::Python => {
                let mut words = Words::of(format!("{}: {name}: ", start.place), rest);
                let flags = if table.in_process { arguments.flags } else { PythonFlags::default() };
                return Ok((worker(&mut words, table, flags, &state.directory)?, script));
            }
            Starts::Elsewhere => "starts its command on another machine or in a service",
            Starts::Program | Starts::Files | Starts::Own => "starts the programs that files of its own name",
        };
        Err(Self::gap(start, &format!("{name} {why}")))
    }
}
