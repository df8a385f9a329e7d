//! The frame of a page: its style and its script, both part of the file.

use std::borrow::Cow;
use std::io::{self, Write};

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::counts::OutcomeCounts;
use judge::Verdict;

/// The style: light or dark as the system asks, and for print.
const CSS: &str = include_str!("page.css");
/// The script: buttons that copy, and tables that sort. Without it the page has neither.
const SCRIPT: &str = include_str!("page.js");
/// Lets only this script run, and nothing be loaded: the SHA-256 of the script, in base64.
const SCRIPT_HASH: &str = include_str!("page.js.sha256");

pub(super) fn write(title: &str, body: &Markup, out: &mut dyn Write) -> io::Result<()> {
    let guard = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        SCRIPT_HASH.trim()
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(guard);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(CSS)) }
            }
            body {
                (body)
                footer.dim { "Written by ncclcheck " (env!("CARGO_PKG_VERSION")) "." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    for line in page.into_string().lines() {
        writeln!(out, "{}", without_command(line))?;
    }
    Ok(())
}

/// A line that a build's log cannot take for a command, as GitHub takes one that begins with `::`.
fn without_command(line: &str) -> Cow<'_, str> {
    match line.trim_start().strip_prefix("::") {
        Some(rest) => format!("&#58;:{rest}").into(),
        None => line.into(),
    }
}

/// A verdict, with what a pass leaves open.
pub(super) fn verdict(verdict: Verdict, counts: &OutcomeCounts) -> Markup {
    html! { span.badge.(verdict.name()) { (counts.verdict(verdict, verdict.name())) } }
}

/// A verdict or a severity in its colour.
pub(super) fn badge(word: &'static str) -> Markup {
    html! { span.badge.(word) { (word) } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::Hasher;

    use super::*;

    /// RFC 4648, section 4, for 32 bytes.
    fn base64(hex: &str) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2).unwrap(), 16).unwrap()).collect();
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let group =
                chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
            for digit in 0..4 {
                let sextet = group >> (18 - 6 * digit) & 63;
                text.push(if digit <= chunk.len() { char::from(DIGITS[sextet as usize]) } else { '=' });
            }
        }
        text
    }

    /// The colours of a part of the style, by the name of their variable.
    fn colours(style: &str) -> BTreeMap<&str, [f64; 3]> {
        let declarations = style.split(['{', '}', ';']).filter_map(|part| part.trim().split_once(":#"));
        let channel = |hex: &str, at: usize| {
            let digits = match hex.len() {
                3 => hex.get(at..=at).unwrap().repeat(2),
                _ => hex.get(2 * at..2 * at + 2).unwrap().to_owned(),
            };
            let value = f64::from(u8::from_str_radix(&digits, 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        declarations.map(|(name, hex)| (name, [0, 1, 2].map(|at| channel(hex, at)))).collect()
    }

    /// WCAG 2.2, section 1.4.3: text has at least 4.5 times the luminance of its ground, or the reverse.
    #[test]
    fn texts_stand_out_from_their_ground() {
        let luminance = |[red, green, blue]: [f64; 3]| 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        let (light, rest) = CSS.split_once("@media (prefers-color-scheme:dark)").unwrap();
        let (dark, _) = rest.split_once("\n*{").unwrap();
        for colours in [colours(light), colours(light).into_iter().chain(colours(dark)).collect()] {
            for name in
                ["fg", "dim", "link", "pass", "fail", "open", "warn", "info", "s0", "s1", "s2", "s3", "s4", "s5", "s6"]
            {
                for ground in ["bg", "panel"] {
                    let mut pair =
                        [format!("--{name}"), format!("--{ground}")].map(|name| luminance(colours[&*name]) + 0.05);
                    pair.sort_by(f64::total_cmp);
                    assert!(pair[1] / pair[0] >= 4.5, "{name} on {ground}: {}", pair[1] / pair[0]);
                }
            }
        }
    }

    #[test]
    fn the_page_admits_its_own_script_alone() {
        let mut hasher = Hasher::sha256();
        hasher.update(SCRIPT.as_bytes());
        assert_eq!(base64(hasher.finish().hex()), SCRIPT_HASH.trim());
    }
}
