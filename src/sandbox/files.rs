//! Files, by Landlock (landlock(7)).

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, RestrictionStatus, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, make_bitflags,
};
use rustix::fs::{FileType, fstat};

use super::{Grant, Sandbox};
use model::set_confined;

/// The version whose rights were tried. Of an older kernel, those that it knows are given up.
const TRIED: ABI = ABI::V7;

impl Grant {
    fn rights(self) -> BitFlags<AccessFs> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let write = make_bitflags!(AccessFs::{WriteFile | MakeReg | RemoveFile});
        match self {
            Self::Read => read,
            Self::List => AccessFs::ReadDir.into(),
            Self::Keep => read | write | make_bitflags!(AccessFs::{MakeDir | RemoveDir | Refer | Truncate}),
            Self::Spool => write | make_bitflags!(AccessFs::{ReadFile | Truncate}),
            Self::Output => write,
            Self::Write => make_bitflags!(AccessFs::{WriteFile | Truncate}),
        }
    }
}

/// Gives up all files but those that are granted, and returns the version of the kernel's interface. The error says why
/// nothing was given up.
pub(super) fn restrict(sandbox: &Sandbox) -> Result<u32, String> {
    let status = try_restrict(sandbox).map_err(|error| format!("Landlock refuses: {error}"))?;
    let version = version(&status).ok_or("this kernel or this container has no Landlock")?;
    set_confined();
    Ok(version)
}

fn try_restrict(sandbox: &Sandbox) -> Result<RestrictionStatus, RulesetError> {
    let network = if sandbox.has_network { BitFlags::from(AccessNet::BindTcp) } else { AccessNet::from_all(TRIED) };
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(TRIED))?
        .handle_access(network)?
        .scope(Scope::from_all(TRIED))?
        .create()?;
    for (path, grant) in &sandbox.grants {
        // What cannot be opened is not granted, and opening it later reports why.
        let Ok(opened) = PathFd::new(path) else { continue };
        let is_folder = fstat(&opened).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        let rights = if is_folder { grant.rights() } else { grant.rights() & AccessFs::from_file(TRIED) };
        // The kernel refuses rules on pipes and sockets, to which no restriction applies.
        let _unrestricted = (&mut ruleset).add_rule(PathBeneath::new(opened, rights));
    }
    ruleset.restrict_self()
}

fn version(status: &RestrictionStatus) -> Option<u32> {
    match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } if status.ruleset != RulesetStatus::NotEnforced => {
            let known = effective_abi as u32;
            Some(kernel_abi.and_then(|version| u32::try_from(version).ok()).unwrap_or(known))
        }
        _ => None,
    }
}

/// Version of Landlock's interface that this process can use; `None` if it cannot.
pub fn landlock_version() -> Option<u32> {
    // The crate reports it only to a thread that has restricted itself.
    let restricted = std::thread::spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::MakeBlock)?.create()?;
        ruleset.restrict_self().map(|status| version(&status))
    });
    restricted.join().ok()?.ok()?
}
