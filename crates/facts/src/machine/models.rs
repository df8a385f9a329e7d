//! Models of NVIDIA GPUs: the table `gpus.yaml`.

use serde::Deserialize;

use crate::machine::Class;
use crate::table;
use model::{Arch, Table};

/// GPU models of one architecture and one market.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Models {
    arch: String,
    market: Class,
    /// Names in lower case, without spaces and hyphens.
    names: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

pub(crate) static TABLE: Table<Vec<Models>> = table!("gpus");

/// Looks up a model by its name, or an architecture such as `sm_90`.
pub(super) fn find(text: &str) -> Option<(Arch, Option<Class>)> {
    let name: String = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect::<String>().to_ascii_lowercase();
    let by_name = TABLE.iter().find(|models| models.names.contains(&name));
    let by_name = by_name.and_then(|models| Some((models.arch.parse().ok()?, Some(models.market))));
    by_name.or_else(|| {
        let arch: Arch = name.parse().ok()?;
        arch.is_plain().then_some((arch, None))
    })
}

/// Finds the model in a product name: h100 in `NVIDIA H100 80GB HBM3`. The longest matching name wins.
pub(super) fn spoken_of(product: &str) -> Option<(&'static str, Arch, Class)> {
    let words: Vec<String> = product.split([' ', '-']).map(str::to_ascii_lowercase).collect();
    let runs = (0..words.len()).flat_map(|from| (from + 1..=words.len()).map(move |to| (from, to)));
    let joined: Vec<String> = runs.filter_map(|(from, to)| Some(words.get(from..to)?.concat())).collect();
    let all = TABLE.iter().flat_map(|models| models.names.iter().map(move |name| (name, models)));
    let found = all.filter(|(name, _)| joined.contains(name)).max_by_key(|(name, _)| name.len());
    found.and_then(|(name, models)| Some((name.as_str(), models.arch.parse().ok()?, models.market)))
}

/// What was meant by `h1000x8` or `8xh100`, or else all that a description can name, for messages.
pub(super) fn suggestion(wrong: &str) -> String {
    let wrong = &*wrong.to_ascii_lowercase();
    let mut names: Vec<&str> = TABLE.iter().flat_map(|models| &models.names).map(String::as_str).collect();
    names.sort_unstable();
    let is_count = |text: &str| text.parse::<u32>().is_ok_and(|count| count > 0);
    let (name, count) = match (wrong.split_once('x'), wrong.rsplit_once('x')) {
        (Some((count, name)), _) | (_, Some((name, count))) if is_count(count) => (name, format!("x{count}")),
        _ => (wrong, String::new()),
    };
    let spoken = spoken_of(name).map(|(name, ..)| name);
    match spoken.or_else(|| model::nearest(name, names.iter().copied())) {
        Some(meant) => format!("did you mean {meant}{count}?"),
        None => format!("available: an architecture such as sm_90, or one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut seen = BTreeSet::new();
        for models in TABLE.iter() {
            assert!(models.arch.parse::<Arch>().is_ok_and(Arch::is_plain), "{models:?}");
            assert!(models.source.starts_with("https://"), "{models:?}");
            for name in &models.names {
                assert!(seen.insert(name), "duplicate name {name}");
                assert_eq!(find(name), Some((models.arch.parse().unwrap(), Some(models.market))));
            }
        }
        assert!(TABLE.is_sorted_by_key(|models| models.arch.parse::<Arch>().unwrap()));
    }
}
