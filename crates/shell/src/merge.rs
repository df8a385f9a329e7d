//! Joins the states of two branches of which only a shell can determine which one is run.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::gap::ShellGap;
use super::state::{ShellState, ShellVariable, StartMark};
use super::syntax::Redirected;

impl ShellState {
    /// What holds in both states; the rest is unknown, because of `gap`.
    pub(super) fn merge(mut self, other: Self, gap: &ShellGap) -> Self {
        let absent = |state: &Self| ShellVariable {
            value: state.gap.clone().map_or(Ok(None), Err),
            is_exported: false,
            at: None,
        };
        let of_self = absent(&self);
        let of_other = absent(&other);
        let names: BTreeSet<&String> = self.variables.keys().chain(other.variables.keys()).collect();
        let variables: BTreeMap<String, ShellVariable> = names
            .into_iter()
            .map(|name| {
                let one = self.variables.get(name).unwrap_or(&of_self);
                let two = other.variables.get(name).unwrap_or(&of_other);
                (name.clone(), both(one, two, gap))
            })
            .collect();
        self.variables = variables;
        self.gap = self.gap.or(other.gap);
        self.arguments = agreed(self.arguments, other.arguments, gap);
        self.directory = agreed(self.directory, other.directory, gap);
        self.started = started(self.started, other.started, gap);
        self.functions = functions(self.functions, &other.functions);
        self.status = self.status.filter(|status| other.status == Some(*status));
        self.options.drops_unmatched |= other.options.drops_unmatched;
        self.options.expands_no_paths |= other.options.expands_no_paths;
        self.options.exports_all |= other.options.exports_all;
        self.options.exits_on_error &= other.options.exits_on_error;
        self.options.refuses_unset |= other.options.refuses_unset;
        self.touched.extend(other.touched);
        self.added = self.added.or(other.added);
        self.fault = self.fault.or(other.fault);
        let text = |one, two| match (one, two) {
            (Some(one), Some(two)) => Some(agreed(one, two, gap)),
            (one, two) => one.or(two),
        };
        self.output = text(self.output, other.output);
        self.input = text(self.input, other.input);
        self
    }
}

fn both(one: &ShellVariable, two: &ShellVariable, gap: &ShellGap) -> ShellVariable {
    let is_unset = |variable: &ShellVariable| variable.value == Ok(None);
    let same_export = one.is_exported == two.is_exported || is_unset(one) && is_unset(two);
    if one.value == two.value && same_export {
        return one.clone();
    }
    let known = [one, two].into_iter().find_map(|variable| variable.value.as_ref().err());
    ShellVariable {
        value: Err(known.unwrap_or(gap).clone()),
        is_exported: one.is_exported || two.is_exported,
        at: None,
    }
}

fn agreed<T: PartialEq>(one: Result<T, ShellGap>, two: Result<T, ShellGap>, gap: &ShellGap) -> Result<T, ShellGap> {
    match (one, two) {
        (Err(gap), _) | (_, Err(gap)) => Err(gap),
        (Ok(one), Ok(two)) if one == two => Ok(one),
        _ => Err(gap.clone()),
    }
}

/// The program that counts, whichever branch is run: a branch that starts none is of no interest, and one that fails to
/// start a program counts only where the other one fails to start it too.
pub(super) fn started(
    one: Result<Option<StartMark>, ShellGap>,
    two: Result<Option<StartMark>, ShellGap>,
    gap: &ShellGap,
) -> Result<Option<StartMark>, ShellGap> {
    let fails = |mark: &Option<StartMark>| mark.is_some_and(|mark| mark.fails);
    match (one, two) {
        (Err(gap), _) | (_, Err(gap)) => Err(gap),
        (Ok(one), Ok(two)) if one != two && (fails(&one) || fails(&two)) => {
            Ok([one, two].into_iter().find(|mark| !fails(mark)).flatten())
        }
        (Ok(Some(one)), Ok(Some(two))) if one.rank == two.rank && one != two => Err(gap.clone()),
        (Ok(one), Ok(two)) => Ok(one.max(two)),
    }
}

type Functions = BTreeMap<String, Option<Rc<Redirected>>>;

fn functions(mut one: Functions, two: &Functions) -> Functions {
    let is_same = |one: &Option<Rc<Redirected>>, two: &Option<Rc<Redirected>>| match (one, two) {
        (Some(one), Some(two)) => Rc::ptr_eq(one, two),
        _ => false,
    };
    for name in two.keys() {
        one.entry(name.clone()).or_insert(None);
    }
    for (name, body) in &mut one {
        if !two.get(name).is_some_and(|other| is_same(body, other)) {
            *body = None;
        }
    }
    one
}
