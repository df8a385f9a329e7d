//! A page of Markdown on a terminal.

use std::io;

use anstyle::{AnsiColor, Style as Look};

use crate::Style;
use crate::human::page::{Page, bold, label};

/// A page as lines for a terminal: wrapped, without Markdown's signs.
pub fn for_terminal(markdown: &str, style: &Style) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = write(markdown, &mut Page::new(&mut out, style));
    String::from_utf8_lossy(&out).into_owned()
}

fn write(markdown: &str, page: &mut Page<'_>) -> io::Result<()> {
    let mut is_code = false;
    let mut was_blank = true;
    for line in markdown.lines() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        // Of several blank lines, one is left.
        if is_fence || (line.is_empty() && was_blank && !is_code) {
            continue;
        }
        was_blank = line.is_empty();
        let text = line.replace("**", "");
        match line.split_once(' ') {
            _ if line.is_empty() => page.blank()?,
            _ if is_code => page.verbatim(0, label(""), 4, line)?,
            Some(("#" | "##", title)) if title.chars().count() <= page.room(0) => {
                page.heading(title, bold(AnsiColor::Cyan), "")?;
            }
            Some(("#" | "##", title)) => page.text(0, title)?,
            Some(("-", item)) => page.heading("-", Look::new(), item.trim_matches(['<', '>']))?,
            _ => page.text(0, &text)?,
        }
    }
    Ok(())
}
