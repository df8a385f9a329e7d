//! Records what the program writes to standard error, for `tests/messages/collect`.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value, json};

/// Larger inputs are archives and layouts, which a reader of messages cannot use.
const SHOWN_INPUT: usize = 300;

/// Writes a run that has messages to a new file in the folder `$NCCLCHECK_MESSAGES`, if this variable is set.
///
/// Files are named by test and position, because tests run in parallel, in one process or in many.
pub(crate) fn record(variables: &[(&str, &str)], arguments: &[&str], input: Option<&[u8]>, output: &Output) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Some(folder) = std::env::var_os("NCCLCHECK_MESSAGES") else { return };
    if output.stderr.is_empty() {
        return;
    }
    let thread = std::thread::current();
    let test = thread.name().expect("a thread of a test has the test's name");
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let run = json!({
        "test": test,
        "number": number,
        "variables": variables,
        "arguments": arguments,
        "input": input.map(shown),
        "files": files(arguments),
        "status": output.status.code(),
        "stderr": String::from_utf8_lossy(&output.stderr),
    });
    fs::create_dir_all(&folder).unwrap();
    let name = format!("{}-{number}.json", test.replace("::", "."));
    fs::write(Path::new(&folder).join(name), run.to_string()).unwrap();
}

/// The content of the small text files that these arguments name: the files themselves, and the documents of folders.
fn files(arguments: &[&str]) -> Map<String, Value> {
    let temporary = std::env::temp_dir();
    let paths = arguments.iter().flat_map(|argument| argument.split([':', '='])).map(Path::new);
    let named = paths.filter(|path| path.starts_with(&temporary)).flat_map(|path| {
        [path.to_owned(), path.join("index.json"), path.join("manifest.json"), path.join("ncclcheck.yaml")]
    });
    // A FIFO would wait for its writer.
    let regular = named.filter(|path| path.is_file());
    regular.filter_map(|path| Some((path.display().to_string(), shown(&fs::read(path).ok()?)?.into()))).collect()
}

/// A small input as text.
fn shown(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| text.len() <= SHOWN_INPUT)
}
