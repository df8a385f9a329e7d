//! The unified diff of two texts.

use std::fmt::Write as _;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// A line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLine<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// The change from one text to another, as `patch -p0` and `git apply -p0` read it; empty if there is none.
pub(super) fn unified(path: &str, before: &str, after: &str) -> String {
    let lines = compare(before, after);
    let mut text = String::new();
    let changes: Vec<_> =
        lines.iter().enumerate().filter(|(_, line)| !matches!(line, DiffLine::Same(_))).map(|(at, _)| at).collect();
    // Changes whose contexts touch share a hunk.
    for hunk in changes.chunk_by(|one, next| next - one <= 2 * CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        if text.is_empty() {
            let _ = writeln!(text, "--- {path}\n+++ {path}");
        }
        let start = first.saturating_sub(CONTEXT);
        let end = (last + CONTEXT + 1).min(lines.len());
        let (before, shown) = (lines.get(..start).unwrap_or_default(), lines.get(start..end).unwrap_or_default());
        let _ = writeln!(text, "@@ -{} +{} @@", range(before, shown, is_old), range(before, shown, is_new));
        for line in shown {
            write(*line, &mut text);
        }
    }
    text
}

/// First line and number of lines of a hunk in one of the texts.
fn range(before: &[DiffLine<'_>], shown: &[DiffLine<'_>], is_in: fn(&DiffLine<'_>) -> bool) -> String {
    let count = shown.iter().filter(|line| is_in(line)).count();
    let above = before.iter().filter(|line| is_in(line)).count();
    // An empty range names the line before it.
    format!("{},{count}", if count == 0 { above } else { above + 1 })
}

const fn is_old(line: &DiffLine<'_>) -> bool {
    !matches!(line, DiffLine::Added(_))
}

const fn is_new(line: &DiffLine<'_>) -> bool {
    !matches!(line, DiffLine::Removed(_))
}

fn write(line: DiffLine<'_>, text: &mut String) {
    let (mark, line) = match line {
        DiffLine::Same(line) => (' ', line),
        DiffLine::Removed(line) => ('-', line),
        DiffLine::Added(line) => ('+', line),
    };
    text.push(mark);
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// All lines of both texts in order: the lines of a longest common subsequence are the same.
fn compare<'t>(before: &'t str, after: &'t str) -> Vec<DiffLine<'t>> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    // lengths[i][j]: length of the longest common subsequence of old[i..] and new[j..].
    let mut lengths = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    let length = |lengths: &[Vec<usize>], i: usize, j: usize| {
        lengths.get(i).and_then(|row| row.get(j)).copied().unwrap_or_default()
    };
    for (i, old) in old.iter().enumerate().rev() {
        for (j, new) in new.iter().enumerate().rev() {
            let longest = if old == new {
                length(&lengths, i + 1, j + 1) + 1
            } else {
                length(&lengths, i + 1, j).max(length(&lengths, i, j + 1))
            };
            if let Some(place) = lengths.get_mut(i).and_then(|row| row.get_mut(j)) {
                *place = longest;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(old.len().max(new.len()));
    loop {
        match (old.get(i), new.get(j)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(DiffLine::Same(one));
                (i, j) = (i + 1, j + 1);
            }
            (Some(one), other) if other.is_none() || length(&lengths, i + 1, j) >= length(&lengths, i, j + 1) => {
                lines.push(DiffLine::Removed(one));
                i += 1;
            }
            (_, Some(other)) => {
                lines.push(DiffLine::Added(other));
                j += 1;
            }
            (_, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_context_and_numbers() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n";
        let after = "1\n2\n3\n4\nx\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let expected = "--- a/D\n+++ a/D\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n@@ -11,3 +11,4 @@\n 11\n 12\n 13\n+14\n";
        assert_eq!(unified("a/D", before, after), expected);
        assert_eq!(unified("a/D", before, before), "");
    }

    #[test]
    fn ends_without_a_newline_and_empty_texts() {
        let expected = "--- D\n+++ D\n@@ -1,2 +1,1 @@\n a\n-b\n\\ No newline at end of file\n";
        assert_eq!(unified("D", "a\nb", "a\n"), expected);
        assert_eq!(unified("D", "", "a\r\n"), "--- D\n+++ D\n@@ -0,0 +1,1 @@\n+a\r\n");
        assert_eq!(unified("D", "a\n", ""), "--- D\n+++ D\n@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn near_changes_share_a_hunk() {
        let text = unified("D", "a\n1\n2\n3\n4\n5\n6\nb\n", "x\n1\n2\n3\n4\n5\n6\ny\n");
        assert_eq!(text.matches("@@ -").count(), 2, "{text}");
        let text = unified("D", "a\n1\n2\n3\n4\n5\nb\n", "x\n1\n2\n3\n4\n5\ny\n");
        assert_eq!(text.matches("@@ -").count(), 1, "{text}");
    }
}
