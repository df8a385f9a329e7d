//! Calls a function of a library without loading the library: `call LIBRARY FUNCTION [new|old]`. Prints the returned number or,
//! given an ABI of `std::string` (new or old), the map of strings to which the function returns a reference.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write as _};

use emulate::{ElfImage, StringAbi, call};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (path, name, abi) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path, name] => (path, name, None),
        [path, name, "new"] => (path, name, Some(StringAbi::Cxx11)),
        [path, name, "old"] => (path, name, Some(StringAbi::Old)),
        _ => return Err("usage: call LIBRARY FUNCTION [new|old]".into()),
    };
    let file = File::open(path)?;
    let image = ElfImage::open(&file)?;
    let entry = image.function(name)?.ok_or("there is no such function")?;
    let mut returned = call(&image, entry)?;
    let mut out = io::stdout();
    match abi {
        None => writeln!(out, "{}", returned.value())?,
        Some(abi) => returned.map(abi)?.iter().try_for_each(|(key, value)| writeln!(out, "{key}={value}"))?,
    }
    Ok(())
}
