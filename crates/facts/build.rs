//! Writes the tables as JSON, which is read in a tenth of the time.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=tables");
    let output = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    for entry in fs::read_dir("tables")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.with_extension("json");
            fs::write(output.join(name.file_name().unwrap_or_default()), as_json(&path)?)?;
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "files of this repository")]
fn as_json(path: &Path) -> io::Result<String> {
    let options = serde_yaml::options! { strict_booleans: true };
    let value: Result<serde_json::Value, _> = serde_yaml::from_str_with_options(&fs::read_to_string(path)?, options);
    value.map(|value| value.to_string()).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}
