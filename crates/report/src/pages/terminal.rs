//! A page of Markdown on a terminal.

use std::io;
use std::sync::LazyLock;

use anstyle::{AnsiColor, Style as Look};
use regex::{Captures, Regex};

use crate::Style;
use crate::human::page::{Page, bold, label};

/// A page as lines for a terminal: wrapped, without Markdown's signs. A link is its text.
pub fn for_terminal(markdown: &str, style: &Style) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = write(markdown, &mut Page::new(&mut out, style));
    String::from_utf8_lossy(&out).into_owned()
}

fn write(markdown: &str, page: &mut Page<'_>) -> io::Result<()> {
    let mut is_code = false;
    let mut was_blank = true;
    for line in one_line_each(markdown) {
        let line = &*line;
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        // Of several blank lines, one is left.
        if is_fence || (line.is_empty() && was_blank && !is_code) {
            continue;
        }
        was_blank = line.is_empty();
        let text = plain(line);
        match text.split_once(' ') {
            _ if line.is_empty() => page.blank()?,
            _ if is_code => page.verbatim(0, label(""), 4, line)?,
            Some(("#" | "##", title)) if title.chars().count() <= page.room(0) => {
                page.heading(title, bold(AnsiColor::Cyan), "")?;
            }
            Some(("#" | "##", title)) => page.text(0, title)?,
            Some(("-", item)) => page.heading("-", Look::new(), item)?,
            _ => page.text(0, &text)?,
        }
    }
    Ok(())
}

/// The lines of a page, with each paragraph and each item of a list on one.
fn one_line_each(markdown: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_code = false;
    let mut is_open = false;
    for line in markdown.lines() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_text = !is_code && !is_fence && !line.is_empty() && !line.starts_with('#');
        match lines.last_mut() {
            Some(last) if is_text && is_open && !line.starts_with("- ") => {
                last.push(' ');
                last.push_str(line.trim_start());
            }
            _ => lines.push(line.to_owned()),
        }
        is_open = is_text;
    }
    lines
}

/// Text without the signs of emphasis and links.
fn plain(text: &str) -> String {
    #[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
    static LINK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\[(?<text>[^\]\[]+)\]\([^)\s]+\.md(?:#[^)\s]*)?\)|<(?<url>https?://[^>\s]+)>")
            .expect("a pattern that parses")
    });
    let shown =
        |found: &Captures<'_>| found.name("text").or(found.name("url")).map_or("", |shown| shown.as_str()).to_owned();
    LINK.replace_all(&text.replace("**", ""), shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_links() {
        let page = "# T\n\nOne [link](../a/b.md#c)\nof **two** lines: `[0]`(x).\n- item <https://example.com/>\n  goes on\n- other\n\n```sh\na\n  b\n```\n";
        let expected =
            "T\n\nOne link of two lines: `[0]`(x).\n- item https://example.com/ goes on\n- other\n\n    a\n      b\n";
        assert_eq!(for_terminal(page, &Style { color: false, width: 80, verbose: false, brief: false }), expected);
    }
}
