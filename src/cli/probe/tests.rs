//! The commands that fixes print are commands that the program accepts, whatever the image's reference is.

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _};

use super::super::args::{Arguments, Command, stdin};
use super::plan::image_name;
use crate::check::names;
use judge::rules::{RuleSet, judge};
use model::ImageSummary;

/// References and the sources that they resolve to.
const IMAGES: [(&str, &str); 14] = [
    ("in place on node-1", ""),
    ("root:/", "root:/"),
    ("root:/mnt/tree", "root:/mnt/tree"),
    ("-", "docker-archive:standard input"),
    ("-:@1", "docker-archive:standard input"),
    ("image.oci.tar", "oci-archive:image.oci.tar"),
    ("my image.tar", "docker-archive:my image.tar"),
    ("--image.tar", "docker-archive:--image.tar"),
    ("oci:layout:1", "oci:layout:1"),
    ("lab/train:7", "docker://docker.io/lab/train:7"),
    ("docker://reg:5000/lab/train@sha256:00", "docker://reg:5000/lab/train@sha256:00"),
    ("containers-storage:[overlay@/srv+/run]lab/train:7", "containers-storage:[overlay@/srv+/run]lab/train:7"),
    ("docker-daemon:lab/train:7", "docker-daemon:lab/train:7"),
    ("sha256:7e8e1488e8b4", "Docker 28.5.2 at unix:///run/d.sock"),
];

fn image(reference: &str, source: &str) -> ImageSummary {
    ImageSummary { reference: reference.to_owned(), source: source.to_owned(), ..ImageSummary::default() }
}

/// The words of a line, of which one may be quoted.
fn words(line: &str) -> Vec<OsString> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(
        |(number, part)| {
            if number % 2 == 1 { vec![part] } else { part.split_whitespace().collect::<Vec<_>>() }
        },
    );
    words.map(Into::into).collect()
}

/// Why the program refuses a command, if it does.
fn refusal(line: &str, program: &mut clap::Command) -> Option<String> {
    let matches = program.try_get_matches_from_mut(stdin::mark(words(line).into_iter()));
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => return Some(error.to_string()),
    };
    let run = match arguments.command {
        Command::Probe(asked) => asked.image,
        Command::Preflight(asked) => asked.check.common.images.first().cloned(),
        _ => None,
    };
    run.and_then(|image| image_name(&image).err()).map(|error| error.to_string())
}

#[test]
fn every_command_of_a_fix_is_accepted() {
    let is_own = |line: &&str| line.trim_start().starts_with("ncclcheck ");
    let rules = RuleSet::builtin(crate::shipped()).unwrap().only(|rule| rule.fix.lines().any(|line| is_own(&line)));
    let mut lines = std::collections::BTreeSet::new();
    for (reference, source) in IMAGES {
        let image = image(reference, source);
        for example in rules.iter().filter_map(|rule| rule.examples().fail.first()) {
            let judged = judge(&rules, &example.value.facts(), &names(&image));
            let fixes = judged.iter().filter_map(|judgement| judgement.outcome.finding()).map(|finding| &finding.fix);
            lines.extend(fixes.flat_map(|fix| fix.lines()).filter(is_own).map(|line| line.trim().to_owned()));
        }
    }
    let mut program = Arguments::command();
    let refused = lines.iter().filter_map(|line| Some(format!("{line}: {}", refusal(line, &mut program)?)));
    let refused: Vec<_> = refused.collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    // Each kind of image is in a command that it fits.
    for part in [
        "probe --pid host --in-place",
        "inspect root:/ --explain",
        "inspect root:/mnt/tree --explain",
        "inspect - --explain",
        "inspect 'my image.tar' --explain",
        "inspect ./--image.tar --explain",
        "probe --pid host docker://reg:5000/lab/train@sha256:00",
        "probe --pid host sha256:7e8e1488e8b4",
        "probe --pid host lab/train:7",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:#?}");
    }
    assert!(refusal("ncclcheck probe --pid host root:/", &mut program).is_some());
}
