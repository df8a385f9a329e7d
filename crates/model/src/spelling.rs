//! Suggestions for misspelt names.

/// Returns the nearest name within one edit of `wrong`, or within one edit per three letters. Letters in another case are near.
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let distance = |name: &str| {
        let written = distance_within(allowed, wrong, name);
        written.or_else(|| distance_within(allowed, &wrong.to_ascii_lowercase(), &name.to_ascii_lowercase()))
    };
    let distances = names.filter_map(|name| Some((distance(name)?, name)));
    distances.min().map(|(_, name)| name)
}

/// The number of edits between two names, if it is at most `most`. An edit inserts, deletes or replaces a letter, or swaps
/// two neighbours.
pub fn distance_within(most: usize, one: &str, other: &str) -> Option<usize> {
    // The distance costs the product of the lengths, and an image can hold any number of names. An edit changes the
    // length by at most one letter, and the set of bytes by those of two letters.
    let bytes = if one.is_ascii() && other.is_ascii() { 1 } else { 4 };
    let changed = (letters(one) ^ letters(other)).count_ones();
    if one.len().abs_diff(other.len()) > bytes * most || changed as usize > 2 * bytes * most {
        return None;
    }
    Some(strsim::osa_distance(one, other)).filter(|distance| *distance <= most)
}

/// The set of bytes of a name, modulo 64.
fn letters(name: &str) -> u64 {
    name.bytes().fold(0, |set, byte| set | 1 << (byte % 64))
}

/// Returns `did you mean …?` if there is a [`nearest`] name.
pub fn suggestion<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest(wrong, names).map(|name| format!("did you mean {name}?"))
}

/// Returns a suggestion, or else all names: the end of a message about a name that is not among them.
pub fn suggestion_or_all<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> String {
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
        assert_eq!(suggestion_or_all("ENTRIES", names), "did you mean entries?");
        assert_eq!(suggestion_or_all("spool", names), "available: entries, path");
    }

    #[test]
    fn a_distance_is_exact_up_to_its_bound() {
        let mut random = fastrand::Rng::with_seed(5);
        let letters = ['A', 'B', '_', '\u{e9}', '\u{1f600}'];
        let mut name = || (0..random.usize(0..7)).map(|_| letters[random.usize(0..letters.len())]).collect::<String>();
        for _ in 0..5_000 {
            let one = name();
            let other = name();
            for most in 0..4 {
                let exact = Some(strsim::osa_distance(&one, &other)).filter(|distance| *distance <= most);
                assert_eq!(distance_within(most, &one, &other), exact, "{one} {other} {most}");
            }
        }
    }

    #[test]
    fn names_that_cannot_be_near_cost_no_comparison() {
        let one = "a".repeat(200_000);
        let other = "b".repeat(400_000);
        // The distance itself would take some 10^11 steps.
        assert_eq!(distance_within(2, &one, &other), None);
    }
}
