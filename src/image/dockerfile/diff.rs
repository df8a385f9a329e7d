//! The unified diff of two texts.

use std::fmt::Write as _;
use std::ops::Range;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// A line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffLine<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// A range of a text, and the range of the changed text that replaces it.
#[derive(Clone, Debug)]
pub(super) struct TextChange {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

/// The change from one text to another, as `patch -p0` and `git apply -p0` read it; empty if there is none. The changes are
/// in order, and everything between them is the same in both texts.
pub(super) fn unified(path: &str, before: &str, after: &str, changes: &[TextChange]) -> String {
    let lines = compare(before, after, changes);
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

/// All lines of both texts in order. Only lines that a change touches can differ: a comparison of all lines with all others
/// would take the square of their number.
fn compare<'t>(before: &'t str, after: &'t str, changes: &[TextChange]) -> Vec<DiffLine<'t>> {
    let mut lines = Vec::new();
    let (mut old, mut new) = (0, 0);
    let mut changes = changes.iter().peekable();
    while let Some(change) = changes.next() {
        let same = before.get(old..change.old.start).and_then(|text| text.rfind('\n')).map_or(0, |end| end + 1);
        lines.extend(before.get(old..old + same).unwrap_or_default().split_inclusive('\n').map(DiffLine::Same));
        (old, new) = (old + same, new + same);
        let mut end = whole_lines(before, after, change);
        while let Some(next) = changes.next_if(|next| next.old.start <= end.0) {
            end = whole_lines(before, after, next);
        }
        let removed = before.get(old..end.0).unwrap_or_default();
        let added = after.get(new..end.1).unwrap_or_default();
        lines.extend(removed.split_inclusive('\n').map(DiffLine::Removed));
        lines.extend(added.split_inclusive('\n').map(DiffLine::Added));
        (old, new) = end;
    }
    lines.extend(before.get(old..).unwrap_or_default().split_inclusive('\n').map(DiffLine::Same));
    lines
}

/// The ends of the lines that a change ends in, in both texts.
fn whole_lines(before: &str, after: &str, change: &TextChange) -> (usize, usize) {
    let (old, new) = (change.old.end, change.new.end);
    let is_end = |text: &str, at: usize| text.get(..at).is_some_and(|text| text.is_empty() || text.ends_with('\n'));
    let rest = before.get(old..).unwrap_or_default();
    let more =
        if is_end(before, old) && is_end(after, new) { 0 } else { rest.find('\n').map_or(rest.len(), |end| end + 1) };
    (old + more, new + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The diff for a text in which these parts are replaced, each after the one before.
    fn diff(before: &str, replaced: &[(&str, &str)]) -> String {
        let (mut after, mut changes, mut rest) = (String::new(), Vec::new(), before);
        for (from, to) in replaced {
            // An empty part is the end.
            let (kept, behind) = if from.is_empty() { (rest, "") } else { rest.split_once(from).unwrap() };
            after.push_str(kept);
            let start = before.len() - rest.len() + kept.len();
            changes.push(TextChange { old: start..start + from.len(), new: after.len()..after.len() + to.len() });
            after.push_str(to);
            rest = behind;
        }
        after.push_str(rest);
        unified("D", before, &after, &changes)
    }

    #[test]
    fn changes_have_context_and_numbers() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n";
        let expected =
            "--- D\n+++ D\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n@@ -11,3 +11,4 @@\n 11\n 12\n 13\n+14\n";
        assert_eq!(diff(before, &[("5", "x"), ("", "14\n")]), expected);
        assert_eq!(diff(before, &[]), "");
    }

    #[test]
    fn ends_without_a_newline_and_empty_texts() {
        let expected = "--- D\n+++ D\n@@ -1,2 +1,1 @@\n a\n-b\n\\ No newline at end of file\n";
        assert_eq!(diff("a\nb", &[("b", "")]), expected);
        assert_eq!(diff("", &[("", "a\r\n")]), "--- D\n+++ D\n@@ -0,0 +1,1 @@\n+a\r\n");
        assert_eq!(diff("a\n", &[("a\n", "")]), "--- D\n+++ D\n@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn near_changes_share_a_hunk() {
        let text = diff("a\n1\n2\n3\n4\n5\n6\nb\n", &[("a", "x"), ("b", "y")]);
        assert_eq!(text.matches("@@ -").count(), 2, "{text}");
        let text = diff("a\n1\n2\n3\n4\n5\nb\n", &[("a", "x"), ("b", "y")]);
        assert_eq!(text.matches("@@ -").count(), 1, "{text}");
    }

    #[test]
    fn changes_of_one_line_and_of_lines_that_touch() {
        assert_eq!(diff("a b c\nd\n", &[("a", "x"), ("c", "")]), "--- D\n+++ D\n@@ -1,2 +1,2 @@\n-a b c\n+x b \n d\n");
        assert_eq!(
            diff("a\nb\nc\n", &[("a\nb", "x"), ("c", "y")]),
            "--- D\n+++ D\n@@ -1,3 +1,2 @@\n-a\n-b\n-c\n+x\n+y\n"
        );
        assert_eq!(diff("a\nb\n", &[("b\n", "x\nb\n")]), "--- D\n+++ D\n@@ -1,2 +1,3 @@\n a\n-b\n+x\n+b\n");
        assert_eq!(diff("a\nb\n", &[("a\n", ""), ("b", "c")]), "--- D\n+++ D\n@@ -1,2 +1,1 @@\n-a\n-b\n+c\n");
    }

    #[test]
    fn many_lines_take_no_square_of_memory() {
        let before = "RUN a\n".repeat(100_000) + "ENV A=1\n";
        assert!(diff(&before, &[("ENV A=1\n", "")]).ends_with("-ENV A=1\n"));
    }
}
