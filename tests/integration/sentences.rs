//! The sentences about verdicts and exit statuses, which README.md, docs/exit-status.md and `--help` have in the same words: each
//! is held against a run of the program.

use std::fs;

use crate::foreign::{blob_file, foreign};
use crate::support::{run, stderr, text, world};

/// A row of the table: command, what it says, exit status, meaning.
fn rows(page: &str) -> Vec<[String; 4]> {
    let text = fs::read_to_string(page).unwrap();
    let table = text.lines().skip_while(|line| *line != "| command | says | exit status | meaning |").skip(2);
    let cells = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        cells.try_into().unwrap()
    };
    table.take_while(|line| line.starts_with('|')).map(cells).collect()
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a run says about its verdict: the words before the first `:` or two spaces, on the line of the command.
fn said(command: &str, arguments: &[&str]) -> (String, i32) {
    let output = run(&[&[command], arguments].concat(), None);
    let report = text(&output);
    let line = if command == "diff" { report.lines().last() } else { report.lines().next() };
    let line = line.map_or_else(|| stderr(&output), str::to_owned);
    let end = line.find("  ").into_iter().chain(line.find(':')).min().unwrap_or(line.len());
    (line[..end].split(" (").next().unwrap().to_owned(), output.status.code().unwrap())
}

#[test]
fn each_sentence_is_what_the_program_does() {
    let (incomplete, manifest) = foreign();
    fs::remove_file(blob_file(incomplete.path(), &manifest["layers"][0])).unwrap();
    let incomplete = format!("oci:{}", incomplete.path().display());
    let path = |name| world(name).display().to_string();
    let [good, warned, bad, noisy] = ["good", "no-verbs", "no-nccl", "debug-on"].map(path);
    let runs: [(&str, &str, &[&str]); 8] = [
        ("check", "PASS", &[&good]),
        ("check", "PASS with 1 warning", &[&warned]),
        ("check", "FAIL", &[&bad]),
        ("check", "INCOMPLETE", &[&incomplete]),
        ("diff", "NOT WORSE", &[&good, &noisy]),
        ("diff", "WORSE", &[&good, &bad]),
        ("diff", "INCOMPLETE", &[&good, &incomplete]),
        ("each", "error", &["nosuch.tar"]),
    ];
    let table = rows("README.md");
    assert_eq!(table, rows("docs/exit-status.md"), "README.md and docs/exit-status.md say the same");
    assert_eq!(table.len(), runs.len());
    for ([command, says, status, meaning], (of, word, arguments)) in table.iter().zip(runs) {
        assert_eq!((&**command, &**says), (of, word));
        let commands: &[&str] = if of == "each" { &["check", "inspect"] } else { &[of] };
        for command in commands {
            let (line, exit) = said(command, arguments);
            assert_eq!((&*line, exit.to_string()), (word, status.clone()), "{command} {arguments:?}");
        }
        let helped = if of == "diff" { "diff" } else { "check" };
        let word = word.replace("1 warning", "…");
        let sentence = format!("{status} {word}: {meaning}");
        let help = words(&text(&run(&[helped, "--help"], None)));
        assert!(help.contains(&words(&sentence)), "{helped} --help lacks: {sentence}\n{help}");
    }
}

/// `PASS` alone means NCCL and RDMA. Of the images in `fixtures/images`, one has both and nothing to find.
#[test]
fn a_pass_alone_has_nccl_and_rdma_and_an_answer_of_each_rule() {
    let images: Vec<_> =
        fs::read_dir(world("good").parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let images: Vec<_> = images.iter().filter(|path| path.extension().is_some_and(|ending| ending == "tar")).collect();
    let passes = images.iter().filter(|image| said("check", &[&image.display().to_string()]) == ("PASS".to_owned(), 0));
    assert_eq!(passes.copied().collect::<Vec<_>>(), [&world("good")]);
}

#[test]
fn a_pass_names_what_it_leaves_out() {
    let path = |name| world(name).display().to_string();
    let [good, warned, bad] = ["good", "no-verbs", "no-nccl"].map(path);
    for (arguments, expected) in [
        (vec!["check", &warned], "PASS with 1 warning (no RDMA between hosts)  "),
        (vec!["check", "--launch", "-", &good], "PASS with 1 unknown  "),
        (vec!["check", "--fail-on", "never", &bad], "PASS with 1 error  "),
        (vec!["check", "--ignore", "nccl/missing-library", &bad], "PASS  "),
    ] {
        let script = "#!/bin/sh\nexport NCCL_IB_HCA=$(ibdev2netdev | head -1)\npython train.py\n";
        let output = run(&arguments, Some(script.as_bytes()));
        let line = text(&output).lines().next().unwrap_or_default().to_owned();
        assert_eq!((line.starts_with(expected), output.status.code()), (true, Some(0)), "{arguments:?}: {line}");
        assert_eq!(line.ends_with(" rules (others off)"), arguments.contains(&"--ignore"), "{line}");
    }
    for page in ["README.md", "docs/exit-status.md"] {
        let text = fs::read_to_string(page).unwrap();
        assert!(text.contains(
            "- `(others off)` behind the number of rules says that a profile, a policy or an option left rules out."
        ));
    }
    assert_eq!(said("check", &["--fail-on", "warning", &warned]), ("FAIL".to_owned(), 1));
}
