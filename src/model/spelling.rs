//! Suggestions for misspelt names.

/// Returns the nearest name within one edit of `wrong`, or within one edit per three letters.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let distances = names.map(|name| (strsim::osa_distance(wrong, name), name));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, name)| name)
}

/// Returns `did you mean …?` if there is a [`nearest`] name.
pub(crate) fn suggestion<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest(wrong, names).map(|name| format!("did you mean {name}?"))
}

/// Returns a suggestion, or else all names: the end of a message about a name that is not among them.
pub(crate) fn suggestion_or_all<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    suggestion(wrong, names.iter().copied()).unwrap_or_else(|| format!("available: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_otherwise_all_are_listed() {
        let names = ["entries", "path"];
        assert_eq!(suggestion_or_all("entires", names), "did you mean entries?");
        assert_eq!(suggestion_or_all("spool", names), "available: entries, path");
    }
}
