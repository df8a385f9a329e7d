//! `ncclcheck completions` and `ncclcheck man`: files for shells and for `man`, from the definitions of the arguments.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::Arguments;
use super::{CliError, ExitStatus, output, output_file};

/// Prints the completion script of a shell.
pub(super) fn completions(shell: Shell) -> Result<ExitStatus, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ncclcheck", &mut script);
    output::stdout(|out| out.write_all(&script))?;
    Ok(ExitStatus::Pass)
}

/// Prints the man page of the program, or writes that of each command to a folder.
pub(super) fn man(folder: Option<&Path>) -> Result<ExitStatus, CliError> {
    // Each page names `--help`; pages about `help` would add nothing.
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    match folder {
        Some(folder) => {
            let failed = |error| CliError::Output { what: folder.display().to_string(), error };
            std::fs::create_dir_all(folder).map_err(failed)?;
            write_pages(&program, folder)?;
        }
        None => output::stdout(|out| Man::new(program).render(out))?,
    }
    Ok(ExitStatus::Pass)
}

/// Writes the page of a command and those of its commands.
fn write_pages(command: &Command, folder: &Path) -> Result<(), CliError> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| CliError::Output { what: path.display().to_string(), error })?;
    output_file::file(&path, &String::from_utf8_lossy(&page))?;
    command.get_subcommands().try_for_each(|inner| write_pages(inner, folder))
}
