//! How much the programs count that a command starts.

use std::collections::BTreeSet;

use shell::StartMark;

use super::super::call::{PythonCall, PythonTarget};
use super::super::is_idle;
use super::{Runner, Started};

impl Runner<'_> {
    /// The mark of a program.
    pub(in super::super) fn mark(&mut self, started: Started) -> StartMark {
        let rank = match &started {
            Started::Nothing(fault) if fault.is_of_launcher() => 2,
            Started::Nothing(_) | Started::Ended(_) => 0,
            Started::Program(path, _) if is_idle(path) => 1,
            Started::Shell(_) | Started::Program(..) => 3,
            Started::Python(_) => 4,
        };
        let weight = match &started {
            Started::Python(call) => self.weight(call),
            // What comes before a script's end in an error, such as a Python, prepares.
            Started::Nothing(_) | Started::Ended(_) => 1,
            Started::Shell(_) | Started::Program(..) => 0,
        };
        let fails = matches!(started, Started::Nothing(_) | Started::Ended(_));
        let is_same = |other: &Started| match (other, &started) {
            // The same program that fails in several branches.
            (Started::Nothing(one), Started::Nothing(two)) => one.program == two.program && one.cause == two.cause,
            (one, two) => one == two,
        };
        let index = self.started.iter().position(is_same).unwrap_or_else(|| {
            self.started.push(started);
            self.started.len() - 1
        });
        StartMark { rank, weight, fails, index }
    }

    /// How likely a Python trains, among those that one script starts.
    pub(super) fn weight(&self, call: &PythonCall) -> u8 {
        let has_torch = |script| self.read(script).is_some_and(|text| text.is_ok_and(|text| text.contains("torch")));
        match &call.target {
            _ if call.launcher.is_some() => 2,
            PythonTarget::Script(script) => 1 + u8::from(has_torch(script)),
            PythonTarget::Module(_) => 1,
            PythonTarget::Unstated | PythonTarget::Command(_) | PythonTarget::Code => 0,
        }
    }

    /// The programs that a command starts in turn beside the one that is judged, and that may train as well.
    pub(in super::super) fn others(&self, judged: &PythonCall) -> Option<String> {
        let shown = |call: &PythonCall| match &call.target {
            PythonTarget::Script(path) => path.to_string(),
            PythonTarget::Module(name) => format!("-m {name}"),
            PythonTarget::Unstated | PythonTarget::Command(_) | PythonTarget::Code => String::new(),
        };
        let weight = self.weight(judged);
        let calls = self.started.iter().filter_map(|started| match started {
            Started::Python(call) if weight > 0 && self.weight(call) == weight => Some(shown(call)),
            _ => None,
        });
        let judged = shown(judged);
        let others: BTreeSet<String> = calls.filter(|other| *other != judged).collect();
        let others = others.into_iter().collect::<Vec<_>>().join(" and ");
        (!others.is_empty()).then(|| format!("{judged} is what trains, and {others} is not"))
    }
}
