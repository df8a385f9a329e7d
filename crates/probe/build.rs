//! Lists the modules of the program that runs in a container.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

const FOLDER: &str = "src/payload";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={FOLDER}");
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let mut modules = Vec::new();
    for entry in fs::read_dir(variable("CARGO_MANIFEST_DIR").join(FOLDER))? {
        modules.push(entry?.path());
    }
    modules.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    modules.sort();
    let mut list = "&[\n".to_owned();
    for (name, path) in modules.iter().filter_map(|path| Some((path.file_stem()?.to_str()?, path.to_str()?))) {
        let _ = writeln!(list, "({name:?}, include_str!({path:?})),");
    }
    fs::write(variable("OUT_DIR").join("modules.rs"), list + "]")
}
