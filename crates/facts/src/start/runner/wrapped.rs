//! Programs that start another program with the same variables, apart from those that they set by an option.

use model::is_among;
use shell::{Field, ShellKind, ShellState};

use super::super::arguments::{assignment, known};
use super::super::wrapper::Wrapper;
use super::{Outcome, Runner, Start};

/// Starts the command behind the options of a wrapper.
pub(super) fn run(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    start: &Start<'_>,
    state: &ShellState,
    rest: &[Field],
) -> Outcome {
    let mut words = start.options(rest);
    let mut child = state.child(ShellKind::Posix, "");
    while let Some(option) = words.option(table)? {
        if is_among(&option.name, &table.pairs) {
            let value = words.next().transpose()?.unwrap_or_default().to_owned();
            // MPICH: `-genv NAME VALUE`.
            if option.name.ends_with("env")
                && let Some(name) = known(option.value)?
            {
                child.export(&name, Ok(value));
            }
        } else if is_among(&option.name, &table.directory) {
            child.enter(&known(option.value)?.unwrap_or_default());
        } else if is_among(&option.name, &table.sets)
            && let Some((name, value)) = option.value.as_ref().and_then(assignment)
        {
            child.export(name, value);
        }
    }
    for _ in 0..table.operands {
        words.next();
    }
    // `flock FILE -c COMMAND`
    if words.peek().is_some_and(|word| word.starts_with('-')) {
        return Err(Runner::gap(start, "an option follows an operand"));
    }
    runner.rest(start, &child, words.rest())
}
