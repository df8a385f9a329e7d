//! Prints, as JSON, every mutant of the Rust files named on the command line: a byte range, its form, and the code that replaces it.
//!
//! It finds mutants only in code that runs, not in constants, patterns, types, attributes, macro arguments and tests.

mod bodies;
mod finder;
mod swaps;

use std::process::ExitCode;

use serde_json::{Value, json};

/// The mutants of one file, and the offset of its first item, before which a module can be inserted into a crate root.
fn read(path: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let file = syn::parse_file(&text).map_err(|error| format!("{path}: {error}"))?;
    let mutants: Vec<_> = finder::mutants(&text, &file).iter().map(finder::Mutant::json).collect();
    Ok(json!({"path": path, "first_item": finder::first_item(&file), "mutants": mutants}))
}

fn main() -> ExitCode {
    match std::env::args().skip(1).map(|path| read(&path)).collect::<Result<Vec<_>, _>>() {
        Ok(files) => {
            println!("{}", Value::Array(files));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("mutation-sites: {error}");
            ExitCode::from(2)
        }
    }
}
