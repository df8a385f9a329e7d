//! Prints the variables that a script exports, and why others are unknown: `evaluate FILE`. The script is alone: it finds no file,
//! inherits no variable, and what a program does is unknown.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};

use shell::{
    Evaluator, Field, FileKind, ProgramCall, ShellGap, ShellKind, ShellSource, ShellState, ShellValue, StartMark,
    Surroundings,
};

/// Commands that are followed.
const STEPS: usize = 50_000;

/// No files and no programs. The number is that of the steps that are left.
struct Nothing(usize);

impl Surroundings for Nothing {
    fn spend(&mut self, steps: usize) -> bool {
        self.0 = self.0.saturating_sub(steps);
        self.0 > 0
    }

    fn text(&mut self, _: &str) -> Option<Result<ShellSource, ShellGap>> {
        None
    }

    fn kind(&mut self, _: &str) -> Result<Option<FileKind>, ShellGap> {
        Ok(None)
    }

    fn names(&mut self, _: &str) -> Result<Vec<String>, ShellGap> {
        Ok(Vec::new())
    }

    fn program(&mut self, _: &str, _: &ShellState) -> Result<Option<String>, ShellGap> {
        Ok(None)
    }

    fn resolve(&mut self, path: &str) -> Result<String, ShellGap> {
        Err(ShellGap::new(format!("{path} does not exist")))
    }

    fn stand_in(&mut self, _: &[Field], _: &ShellState) -> Option<Result<String, ShellGap>> {
        None
    }

    fn is_given(&mut self, _: &str, _: &(std::rc::Rc<str>, usize)) -> bool {
        false
    }

    fn write(&mut self, _: &str, _: &(std::rc::Rc<str>, usize)) {}

    fn run(&mut self, _: &ProgramCall<'_>, _: &ShellState) -> Result<Option<StartMark>, ShellGap> {
        Ok(None)
    }
}

#[expect(clippy::disallowed_methods, reason = "an example: a file that the caller chooses")]
fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("usage: evaluate FILE")?;
    let text = fs::read_to_string(&name)?;
    let mut state = ShellState::new(ShellKind::Bash, &name);
    Evaluator::new(&mut Nothing(STEPS), "run the script").run(&mut state, &ShellSource { name, text });
    let mut out = io::stdout();
    for (name, variable) in state.exported() {
        match &variable.value {
            Ok(Some(ShellValue::Text(text))) => writeln!(out, "{name}={text}")?,
            Err(gap) => writeln!(out, "{name} is unknown: {gap}")?,
            // Programs inherit neither arrays nor variables that are not set.
            Ok(Some(ShellValue::List(_)) | None) => {}
        }
    }
    if let Some(gap) = &state.gap {
        writeln!(out, "any other variable may be set: {gap}")?;
    }
    Ok(())
}
