//! Completions and man pages.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::support::{run, stderr};

fn completions(shell: &str) -> String {
    let output = run(&["completions", shell], None);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn completions_name_commands_and_options() {
    for (shell, words) in [
        ("bash", ["preflight", "--fail-on"]),
        ("zsh", ["preflight", "--fail-on"]),
        ("fish", ["preflight", "-l fail-on"]),
    ] {
        let script = completions(shell);
        for word in words {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn bash_completes_options_and_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("ncclcheck");
    fs::write(&script, completions("bash")).unwrap();
    let replies = |words: &str| {
        let code = format!(
            ". {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _ncclcheck ncclcheck \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let output = Command::new("bash").args(["-c", &code]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(replies("ncclcheck pref"), "preflight");
    assert_eq!(replies("ncclcheck check --fail"), "--fail-on");
    assert_eq!(replies("ncclcheck check --fail-on warn"), "warning");
}

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("man/man1");
    let output = run(&["man", target.to_str().unwrap()], None);
    assert!(output.status.success(), "{}", stderr(&output));
    let names: BTreeSet<_> =
        fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for name in ["ncclcheck.1", "ncclcheck-check.1", "ncclcheck-audit-plan.1", "ncclcheck-rules-schema.1"] {
        assert!(names.contains(name), "{names:?}");
    }
    let page = fs::read_to_string(target.join("ncclcheck-check.1")).unwrap();
    for part in [".TH ", "fail\\-on", "Exit status:", "Examples:"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let printed = String::from_utf8(run(&["man"], None).stdout).unwrap();
    assert_eq!(printed, fs::read_to_string(target.join("ncclcheck.1")).unwrap());
}
