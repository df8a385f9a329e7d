//! Prints what the debug output of a job shows: `read FILE`.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};

use nccllog::NcclLog;

#[expect(clippy::disallowed_methods, reason = "an example: a file that the caller chooses")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: read FILE")?;
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let log = NcclLog::read(text.lines());
    writeln!(io::stdout(), "{log:#?}")?;
    Ok(())
}
