//! `sys.path` of a real interpreter, in random trees of files and with random calls, against the prediction.
//!
//! Without variables, a few calls of this machine's `python3` are compared. `NCCLCHECK_PYTHONS` names other interpreters,
//! separated by colons, and `NCCLCHECK_PYTHON_CALLS` the number of calls of each.

#![expect(clippy::disallowed_methods, reason = "it runs real interpreters, which variables may name")]

mod tree;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::start::{ContainerUser, ProcessState, PythonFlags, PythonTarget};
use layer::scan::{TreeJobs, scan_folder};
use model::{EntryKind, Limits, NoProgress};
use unpack::pipe::Cancel;

use super::*;
use tree::{PythonTree, Random};

/// Calls in each tree.
const CALLS: usize = 12;

/// One call, in the words of a shell and in ours.
struct PathTrial {
    program: PathBuf,
    directory: PathBuf,
    variables: BTreeMap<String, String>,
    flags: PythonFlags,
    target: PythonTarget,
    arguments: Vec<String>,
}

#[test]
fn the_path_is_that_of_the_real_interpreter() {
    let calls: usize = std::env::var("NCCLCHECK_PYTHON_CALLS").map_or(2 * CALLS, |calls| calls.parse().unwrap());
    let pythons = std::env::var("NCCLCHECK_PYTHONS").unwrap_or_else(|_| "python3".to_owned());
    for python in pythons.split(':') {
        let mut failed = 0;
        for seed in 0..calls.div_ceil(CALLS) {
            failed += compare(python, seed as u64 + 1);
        }
        assert!(failed * 3 < calls, "{failed} of {calls} calls of {python} do not run, which compares too little");
    }
}

/// Compares the calls in one tree. Returns how many of them do not run.
fn compare(python: &str, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let tree = PythonTree::build(python, &mut random);
    let rootfs = image_of(&tree);
    let mut failed = 0;
    for number in 0..CALLS {
        let trial = tree.trial(&mut random);
        // Without a library in the tree, the interpreter takes the one of this machine.
        let is_inside = |entries: &Vec<String>| {
            entries.iter().all(|entry| !entry.starts_with('/') || Path::new(entry).starts_with(tree.root()))
        };
        let Some(real) = trial.run().filter(is_inside) else {
            failed += 1;
            continue;
        };
        let python = Python::of(&rootfs, &trial.call()).unwrap();
        let directory = ImagePath::from(trial.directory.to_str().unwrap());
        let real: Vec<_> = real.iter().map(|entry| directory.join(entry.as_bytes())).collect();
        let about = format!(
            "seed {seed}, call {number}: {} {:?} {:?} in {}, {:?}\n{}\nreal {real:#?}",
            trial.program.display(),
            trial.flags,
            trial.arguments,
            trial.directory.display(),
            trial.variables,
            tree.listing(),
        );
        let known = python.modules.as_ref().unwrap_or_else(|gap| panic!("{about}\n{}", gap.why));
        assert_eq!(known.opaque, [] as [ImagePath; 0], "{about}");
        let ours = python.entries();
        assert!(ours == real, "{about}\nours {ours:#?}");
    }
    failed
}

/// The tree as an image in which it has the same path as here.
fn image_of(tree: &PythonTree) -> RootFs {
    let limits = Limits::default();
    let cancel = Cancel::default();
    let jobs = TreeJobs { threads: NonZeroUsize::MIN, limits: &limits, meter: &NoProgress, cancel: &cancel };
    let mut scan = scan_folder(tree.root(), jobs).unwrap();
    let place = ImagePath::from(tree.root().to_str().unwrap());
    let moved = |path: &ImagePath| place.join(path.as_bytes());
    for entry in &mut scan.entries {
        entry.path = moved(&entry.path);
        if let EntryKind::Hardlink(target) = &mut entry.kind {
            *target = moved(target);
        }
    }
    RootFs::fold(vec![Arc::new(scan)], &Limits::default())
}

impl PathTrial {
    /// The entries that the interpreter prints; `None` if it fails.
    fn run(&self) -> Option<Vec<String>> {
        let mut command = Command::new(&self.program);
        let flags = [
            ("-I", self.flags.isolated),
            ("-E", self.flags.ignores_environment),
            ("-s", self.flags.no_user_site),
            ("-S", self.flags.no_site),
            ("-P", self.flags.safe_path),
        ];
        command.args(flags.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag));
        command.args(&self.arguments).env_clear().envs(&self.variables).current_dir(&self.directory);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| text.lines().map(ToOwned::to_owned).collect())
    }

    fn call(&self) -> PythonCall {
        let path = |path: &Path| ImagePath::from(path.to_str().unwrap());
        let user = ContainerUser { id: Some(0), groups: vec![0], listed_home: Some(ImagePath::from("nonexistent")) };
        let variables = self.variables.iter().map(|(name, value)| (name.clone(), Ok(value.clone()))).collect();
        let state = ProcessState {
            directory: path(&self.directory),
            user: Ok(user),
            variables,
            origins: BTreeMap::new(),
            gap: None,
        };
        PythonCall {
            program: path(&self.program),
            flags: self.flags,
            target: self.target.clone(),
            launcher: None,
            state,
        }
    }
}
