//! The program: parse, run, exit.

use std::process::ExitCode;

fn main() -> ExitCode {
    ncclcheck::cli::main()
}
