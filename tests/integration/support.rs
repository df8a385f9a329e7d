//! Runs the program as a user does.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::record::record;

/// The path of a small test image in `fixtures/images`.
pub(crate) fn world(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/images").join(format!("{name}.oci.tar"))
}

/// The program under test. `tests/stand-ins` substitutes one without output, to prove that the tests fail.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("NCCLCHECK_STAND_IN").map_or_else(|| env!("CARGO_BIN_EXE_ncclcheck").into(), PathBuf::from)
}

/// Runs the program without the environment of the test process, so that its engine and terminal do not matter. Without
/// HOME there is no cache either.
pub(crate) fn run(arguments: &[&str], input: Option<&[u8]>) -> Output {
    run_with(&[], arguments, input)
}

/// Like [`run`], with these variables.
pub(crate) fn run_with(variables: &[(&str, &str)], arguments: &[&str], input: Option<&[u8]>) -> Output {
    let output = execute(Path::new("."), variables, arguments, input);
    record(variables, arguments, input, &output);
    output
}

/// Like [`run`], in this folder and without input.
pub(crate) fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    run_in_with(folder, &[], arguments)
}

/// Like [`run_in`], with these variables.
pub(crate) fn run_in_with(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let output = execute(folder, variables, arguments, None);
    record(variables, arguments, None, &output);
    output
}

fn execute(folder: &Path, variables: &[(&str, &str)], arguments: &[&str], input: Option<&[u8]>) -> Output {
    let mut child = Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.unwrap_or_default().to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The text that it wrote to standard output.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The text that it wrote to standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON report on one image, and the exit status.
pub(crate) fn check(reference: &str, input: Option<&[u8]>) -> (serde_json::Value, i32) {
    let output = run(&["check", "--format", "json", reference], input);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{reference}: {}", stderr(&output)));
    assert_judged(&report);
    (report, output.status.code().unwrap())
}

/// Asserts that a report has facts and judgements, because two empty reports are equal too.
pub(crate) fn assert_judged(report: &serde_json::Value) {
    let facts = report["facts"].as_object().map_or(0, serde_json::Map::len);
    let judgements = report["judgements"].as_array().map_or(0, Vec::len);
    assert!(facts > 0 && judgements > 0, "{facts} facts, {judgements} judgements");
}

/// The unpacked image layout of a small test image.
pub(crate) fn layout(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::open(world(name)).unwrap();
    tar::Archive::new(file).unpack(folder.path()).unwrap();
    folder
}
