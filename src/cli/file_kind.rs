//! Files of another kind than an option takes, such as a report in the place of a policy.

use std::io::{ErrorKind, Read as _};
use std::path::Path;

use ::report::REPORT_FORM;
use judge::policy::POLICY_FORM;
use model::{bytes_within, conceal, open_named};

use super::CliError;
use crate::check::HOST_FORM;

/// Number of bytes that say what a file is: those of a tar archive are in the header of its first member, from byte 257 on.
const FIRST: u64 = 512;

const FOLDER: &str = "a folder";
const EMPTY: &str = "an empty file";
const GZIP: &str = "a gzip file";
const TAR: &str = "a tar archive";
const ZSTD: &str = "a zstd file";
const REPORT: &str = "a report of ncclcheck";
const HOST: &str = "a record of `ncclcheck host`";
const RECORDING: &str = "a recording of `ncclcheck probe`";

/// What files begin with.
const BEGINNINGS: [(&[u8], &str); 11] = [
    (b"\x89PNG", "a PNG image"),
    (b"\x7fELF", "an ELF file"),
    (b"%PDF", "a PDF file"),
    (b"PK\x03\x04", "a ZIP file"),
    (b"\x1f\x8b", GZIP),
    (b"\x28\xb5\x2f\xfd", ZSTD),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"{\"schema\":\"ncclcheck/", REPORT),
    (b"{\"schema\":\"ncclcheck-host/", HOST),
    (b"{\"ncclcheck\":", RECORDING),
];

/// Options whose value may be another thing than a path, which their readers explain.
const ALSO_WORDS: [&str; 2] = ["--baseline", "--host"];

/// What a list is, for those who gave another file.
pub(super) const LIST_FORM: &str =
    "a list has the name of one image on each line and nothing else; lines that begin with # are comments";

/// An option whose value is the path of a file.
struct FileOption {
    name: &'static str,
    /// What the option takes.
    takes: &'static str,
    /// The kinds that it takes, of those that are known by their beginning.
    kinds: &'static [&'static str],
    help: &'static str,
}

const OPTIONS: [FileOption; 11] = [
    FileOption {
        name: "--baseline",
        takes: "a report or an image",
        kinds: &[REPORT, FOLDER, TAR, GZIP, ZSTD],
        help: REPORT_FORM,
    },
    FileOption { name: "--config", takes: "a policy", kinds: &[], help: POLICY_FORM },
    FileOption {
        name: "--dockerfile",
        takes: "a Dockerfile",
        kinds: &[],
        help: "name the Dockerfile that the image was built with",
    },
    FileOption {
        name: "--expect",
        takes: "a file of expected facts",
        kinds: &[],
        help: "write lines such as `nccl.loaded.version: 2.28.9`",
    },
    FileOption {
        name: "--from",
        takes: "a recording of a probe",
        kinds: &[RECORDING],
        help: "create one with ncclcheck probe --record FILE",
    },
    FileOption { name: "--host", takes: "a host", kinds: &[HOST], help: HOST_FORM },
    FileOption {
        name: "--launch",
        takes: "a launch file",
        kinds: &[FOLDER, EMPTY],
        help: "name the script or the manifest that starts the job; - is standard input",
    },
    FileOption { name: "--list", takes: "a list of images", kinds: &[EMPTY], help: LIST_FORM },
    FileOption {
        name: "--reference",
        takes: "a recording of a probe",
        kinds: &[RECORDING],
        help: "create one with ncclcheck probe --record FILE",
    },
    FileOption {
        name: "--rules",
        takes: "an archive of rules",
        kinds: &[GZIP],
        help: "a release has its rules in ncclcheck-rules-VERSION.tar.gz; tar -czf rules.tar.gz rules packs a folder",
    },
    FileOption { name: "report", takes: "a report", kinds: &[REPORT, EMPTY], help: REPORT_FORM },
];

/// Returns an error if there is no file at a path, or one of a kind that the option does not take. Where its beginning does not say
/// what it is, the reader of the option decides.
pub(super) fn refuse_other_kind(option: &str, path: &Path) -> Result<(), CliError> {
    let Some(FileOption { name, takes, kinds, help }) = OPTIONS.iter().find(|known| known.name == option) else {
        return Ok(());
    };
    let text = path.to_string_lossy();
    let is_path = !ALSO_WORDS.contains(name) && text != "-" && !text.contains("://");
    let why = match recognize_kind(path) {
        Some(kind) if !kinds.contains(&kind) => format!("{kind}, not {takes}"),
        None if is_path && path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) => {
            "no such file or directory".to_owned()
        }
        _ => return Ok(()),
    };
    Err(CliError::Usage(format!("{name} {}: {why}\n  help: {help}", conceal(&text))))
}

/// What is at a path; `None` for what its beginning does not say, and for what can be read only once.
fn recognize_kind(path: &Path) -> Option<&'static str> {
    if path.is_dir() {
        return Some(FOLDER);
    }
    let file = path.is_file().then(|| open_named(path).ok()).flatten()?;
    let bytes = bytes_within(file.take(FIRST), FIRST).ok()??;
    let has =
        |beginning: &[u8]| bytes.get(..beginning.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(beginning));
    match BEGINNINGS.iter().find(|(beginning, _)| has(beginning)) {
        Some((_, kind)) => Some(kind),
        None if bytes.is_empty() => Some(EMPTY),
        None => bytes.get(257..)?.starts_with(b"ustar").then_some(TAR),
    }
}
