//! Disagreements between the files of one torch about its build. One build is consistent; files of two builds, one
//! installed over the other or copied in part, are not.

use std::collections::BTreeSet;

use model::{Fact, Site, Version};

use super::super::key::Definition;
use super::super::words::Linkage;
use super::super::{Facts, key};
use super::build::{Build, OptionValues, Switch, is_on};

/// Longer values are omitted; compiler flags would fill a screen.
const LONGEST_VALUE: usize = 60;

/// Disagreements, with the sites that disagree.
#[derive(Default)]
struct Points {
    texts: Vec<String>,
    at: Vec<Site>,
}

impl Points {
    fn add<'s>(&mut self, text: String, at: impl IntoIterator<Item = &'s Site>) {
        self.texts.push(text);
        self.at.extend(at.into_iter().cloned());
    }
}

pub(super) fn produce(build: &Build, facts: &mut Facts) {
    let found = find(build, facts);
    facts.insert(key::TORCH_BUILD_CONTRADICTIONS, found);
}

fn find(build: &Build, facts: &Facts) -> Fact<Vec<String>> {
    let (options, at) = match &build.options {
        Fact::Seen { value, at } => (value, at),
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    let mut points = Points::default();
    if let (Fact::Seen { value: code, at: in_code }, Fact::Seen { value: header, at: in_header }) =
        (&build.code, &build.header)
    {
        for name in code.keys().chain(header.keys()).collect::<BTreeSet<_>>() {
            let code = value_text(code, name);
            let header = value_text(header, name);
            if code != header {
                let text = if code.len().max(header.len()) > LONGEST_VALUE {
                    format!("{name} differs between libtorch_cpu.so and macros.h")
                } else {
                    format!("{name} is {code} in libtorch_cpu.so, {header} in macros.h")
                };
                points.add(text, in_code.iter().chain(in_header));
            }
        }
    }
    for (option, key, same) in SAID_TWICE {
        let fact = facts.view(key);
        if let (Some(value), Some(said)) = (options.get(*option), fact.value().map(ToString::to_string))
            && !same(value, &said)
        {
            points.add(format!("{option} is {value}, {} is {said}", key.name), at.iter().chain(fact.sites()));
        }
    }
    let linkage = facts.get(key::TORCH_NCCL_LINKAGE);
    if let Some(said) = linkage.value() {
        let is_linked = *said != Linkage::None;
        let differs = match is_on(options, "USE_NCCL") {
            Switch::On => !is_linked,
            Switch::Off => is_linked,
            Switch::Odd(_) => false,
        };
        if differs {
            let text = format!(
                "USE_NCCL is {}, NCCL linkage of libtorch_cuda.so is {}",
                value_text(options, "USE_NCCL"),
                said.name()
            );
            points.add(text, at.iter().chain(linkage.sites()));
        }
    }
    points.at.sort();
    points.at.dedup();
    match (&build.code, &build.header) {
        _ if !points.texts.is_empty() => Fact::Seen { value: points.texts, at: points.at },
        // An unread source might contradict the other.
        (Fact::Unknown(gap), _) | (_, Fact::Unknown(gap)) => Fact::Unknown(gap.clone()),
        _ => Fact::Absent,
    }
}

fn value_text<'o>(options: &'o OptionValues, name: &str) -> &'o str {
    options.get(name).map_or("not set", String::as_str)
}

/// Options that `torch/version.py` repeats, and a comparison of both values.
type Twice = (&'static str, &'static Definition, fn(&str, &str) -> bool);
const SAID_TWICE: &[Twice] = &[
    ("TORCH_VERSION", key::TORCH_VERSION.definition, is_same_release),
    ("CUDA_VERSION", key::TORCH_CUDA_VERSION.definition, |option, said| Version::parse(option) == Version::parse(said)),
    ("COMMIT_SHA", key::TORCH_GIT_VERSION.definition, |option, said| {
        !is_commit(option) || !is_commit(said) || option == said
    }),
];

/// Returns true when the option has the three numbers of the release, without the suffixes of builders
/// (`2.9.0a0+git0fabc3b`, `2.4.1.post3`).
fn is_same_release(option: &str, said: &str) -> bool {
    let numbers = |text: &str| -> Vec<String> {
        let parts = text.split('.').take(3).map(|part| part.chars().take_while(char::is_ascii_digit).collect());
        parts.collect()
    };
    numbers(option) == numbers(said)
}

/// Builds from an archive have no commit, and set other values.
fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
