//! The image's entrypoint with the command of a run: whether it starts the command, and what the command inherits.

use std::collections::BTreeMap;

use model::{Gap, ImageConfig, StartChoice, conceal_words};
use rootfs::RootFs;

use super::ImageStart;
use super::call::PythonTarget;

/// Code that stands for that of the run.
const CODE: &str = "import ncclcheck_probe";

/// What an entrypoint hands over to the Python that it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Each variable that is set, or why its value is unknown.
    pub variables: BTreeMap<String, Result<String, Gap>>,
    /// Why any variable may have another value.
    pub gap: Option<Gap>,
    /// The numeric user; `None` for a name that the image's passwd file lacks.
    pub user: Result<Option<u32>, Gap>,
    /// The working directory.
    pub directory: String,
}

/// Why an entrypoint hands nothing over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoHandover {
    /// It ends without starting a program, as one does that fails.
    StartsNothing,
    /// It starts another program or is none that engines execute, or that is unknown.
    Other(Gap),
}

impl NoHandover {
    /// The reason.
    pub fn gap(self) -> Gap {
        match self {
            Self::StartsNothing => Gap::new("the entrypoint ends without starting a program"),
            Self::Other(gap) => gap,
        }
    }
}

/// Follows the entrypoint of a configuration, given `python` and code as its arguments.
///
/// # Errors
/// The entrypoint does not start this Python, or cannot be followed without running it.
pub fn handover(rootfs: &RootFs, config: &ImageConfig, python: &str) -> Result<Handover, NoHandover> {
    let command = [python, "-c", CODE].map(ToOwned::to_owned).to_vec();
    let choice = StartChoice { command: None, python: None, ..config.start.clone() };
    let config = ImageConfig { command, start: choice, ..config.clone() };
    let start = ImageStart::of(rootfs, Some(&config));
    if start.starts_nothing {
        return Err(NoHandover::StartsNothing);
    }
    if let Some(gap) = start.gap {
        return Err(NoHandover::Other(gap));
    }
    let given = start.call.filter(|call| call.target == PythonTarget::Command(CODE.to_owned()));
    let state = given.map(|call| call.state).ok_or_else(|| {
        let entrypoint = || conceal_words(&config.entrypoint).join(" ");
        NoHandover::Other(Gap::new(match start.fault {
            Some(fault) => fault.message,
            None => format!("{} does not start the command that it is given", entrypoint()),
        }))
    })?;
    Ok(Handover {
        variables: state.variables,
        gap: state.gap,
        user: state.user.map(|user| user.id),
        directory: state.directory.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, image};
    use super::*;

    fn of(entrypoint: &[&str], script: &str) -> Result<Handover, NoHandover> {
        let files = [("entry.sh", script), ("usr/bin/tini", "elf"), ("usr/bin/gosu", "elf"), ("srv/serve", "elf")];
        handover(&image(&files), &config(&[("NCCL_DEBUG", "WARN")], entrypoint, &["bash"]), "python3")
    }

    #[test]
    fn an_entrypoint_hands_over_variables_user_and_directory() {
        let script = "#!/bin/sh\nset -e\nexport NCCL_ALGO=Ring\nunset NCCL_DEBUG\ncd /srv\nexec gosu user \"$@\"\n";
        let handover = of(&["tini", "--", "/entry.sh"], script).unwrap();
        assert_eq!(handover.variables["NCCL_ALGO"], Ok("Ring".to_owned()));
        assert_eq!(handover.variables.get("NCCL_DEBUG"), None);
        assert_eq!((handover.user, &*handover.directory), (Ok(Some(1000)), "/srv"));
    }

    #[test]
    fn a_variable_of_the_machine_is_unknown_and_the_handover_is_not() {
        let handover = of(&["/entry.sh"], "#!/bin/sh\nexport NCCL_HOSTID=$(hostname)\nexec \"$@\"\n").unwrap();
        assert!(handover.variables["NCCL_HOSTID"].is_err());
    }

    #[test]
    fn an_entrypoint_that_fails_starts_nothing() {
        for script in ["#!/bin/sh\n. /etc/missing\nexec \"$@\"\n", "#!/bin/sh\nexit 3\n"] {
            assert_eq!(of(&["/entry.sh"], script), Err(NoHandover::StartsNothing), "{script}");
        }
    }

    #[test]
    fn an_entrypoint_without_a_handover_has_a_reason() {
        for (script, why) in [
            ("#!/bin/sh\nexec /srv/serve\n", "the image starts /srv/serve, a compiled program"),
            ("#!/bin/sh\nexec python3 -c 'import x'\n", "/entry.sh does not start the command that it is given"),
            ("#!/bin/sh\nexec bash\n", "/entry.sh does not start the command that it is given"),
            ("#!/bin/none\nexec \"$@\"\n", "exec /entry.sh: no such file or directory"),
        ] {
            let reason = of(&["/entry.sh"], script).unwrap_err().gap().why;
            assert!(reason.starts_with(why), "{script}: {reason}");
        }
    }
}
