//! Wheels of NVIDIA that install different files to one path. Those for several CUDA releases do so: `nvidia-cudnn-cu12`
//! and `nvidia-cudnn-cu13`, for example, where each file is that of the wheel that was installed last.

use std::collections::BTreeMap;

use model::{Fact, ImagePath, Site};

use super::super::packages::Recorded;
use super::super::{Context, Facts, key};

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    // The files of two wheels that overwrite each other, by the wheels and by the one whose file is there.
    let mut groups: BTreeMap<(Vec<&str>, Option<&str>), Vec<&ImagePath>> = BTreeMap::new();
    let mut at = Vec::new();
    for (path, wheels) in context.packages.recorded().filter(|(_, wheels)| differ(wheels)) {
        let Ok((_, file)) = context.rootfs.open(path) else { continue };
        let mut names: Vec<_> = wheels.iter().map(|recorded| recorded.wheel.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        groups.entry((names, written_by(wheels, file.size))).or_default().push(path);
        at.push(file.site(path, None));
    }
    let texts: Vec<_> = groups.into_iter().map(|((wheels, last), paths)| text(&wheels, last, &paths)).collect();
    facts.insert(key::CUDA_OVERWRITTEN, fact(context, texts, at));
}

fn fact(context: &Context<'_>, texts: Vec<String>, at: Vec<Site>) -> Fact<Vec<String>> {
    match context.packages.unread() {
        _ if !texts.is_empty() => Fact::Seen { value: texts, at },
        Some(gap) => Fact::Unknown(gap.clone()),
        None => Fact::Absent,
    }
}

/// Returns true if wheels of NVIDIA recorded different files.
fn differ(wheels: &[Recorded]) -> bool {
    let is_of_nvidia = wheels.iter().any(|recorded| recorded.wheel.starts_with("nvidia"));
    is_of_nvidia && wheels.iter().zip(wheels.iter().skip(1)).any(|(one, other)| one.hash != other.hash)
}

/// The wheel whose file is there, as far as the recorded sizes show it.
fn written_by(wheels: &[Recorded], size: u64) -> Option<&str> {
    let mut fitting = wheels.iter().filter(|recorded| recorded.size == Some(size));
    let first = fitting.next()?;
    fitting.all(|other| other.hash == first.hash).then_some(first.wheel.as_str())
}

fn text(wheels: &[&str], last: Option<&str>, paths: &[&ImagePath]) -> String {
    let first = paths.first().map(ToString::to_string).unwrap_or_default();
    let more = match paths.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let last =
        last.map_or_else(|| "which wheel wrote it is unknown".to_owned(), |last| format!("that of {last} is there"));
    format!("{first}{more} of {} ({last})", wheels.join(" and "))
}
