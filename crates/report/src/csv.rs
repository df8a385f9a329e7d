//! Comma-separated values (RFC 4180), one record for each image.

use std::io::{self, Write};

use super::Style;
use super::collected::Collection;
use super::plain_text::clean;
use super::survey::{JudgedRow, RowState, Survey, SurveyRow};

const HEADS: [&str; 19] = [
    "image",
    "platform",
    "digest",
    "verdict",
    "torch",
    "cuda",
    "nccl",
    "errors",
    "warnings",
    "unknown",
    "waived",
    "passed",
    "rules_off",
    "policy",
    "layers",
    "layers_not_read",
    "first_rule",
    "owner",
    "first_finding",
];

pub(super) fn write(collection: &Collection, _: &Style, out: &mut dyn Write) -> io::Result<()> {
    record(&HEADS.map(str::to_owned), out)?;
    let survey = &collection.survey;
    survey.rows.iter().try_for_each(|row| record(&fields(row, survey), out))
}

fn fields(row: &SurveyRow, survey: &Survey) -> [String; HEADS.len()] {
    let reference = row.reference.clone();
    let verdict = row.word().to_owned();
    let platform = row.platform.clone().unwrap_or_default();
    let digest = row.digest.clone().unwrap_or_default();
    let judged = match &row.state {
        RowState::Unopened(why) => {
            let mut fields: [String; HEADS.len()] = std::array::from_fn(|_| String::new());
            let known = [(0, reference), (1, platform), (2, digest), (3, verdict), (HEADS.len() - 1, why.clone())];
            for (column, text) in known {
                if let Some(field) = fields.get_mut(column) {
                    *field = text;
                }
            }
            return fields;
        }
        RowState::Judged(judged) => judged,
    };
    let JudgedRow { torch, cuda, nccl, counts, .. } = &**judged;
    let first = judged.findings.first().and_then(|index| survey.findings.get(*index));
    [
        reference,
        platform,
        digest,
        verdict,
        torch.clone(),
        cuda.clone(),
        nccl.clone(),
        counts.errors.to_string(),
        counts.warnings.to_string(),
        counts.unknown.to_string(),
        counts.waived.to_string(),
        counts.passed.to_string(),
        judged.rules_off.to_string(),
        judged.policy.clone(),
        judged.layers.to_string(),
        judged.cached.to_string(),
        first.map(|finding| finding.rule.id.clone()).unwrap_or_default(),
        first.map(|finding| finding.owner.name().to_owned()).unwrap_or_default(),
        first.map(|finding| finding.message.clone()).unwrap_or_default(),
    ]
}

/// Writes a record. What controls a terminal is escaped, and a field is quoted where it needs it.
///
/// # Errors
/// The output fails.
pub fn record(fields: &[String], out: &mut dyn Write) -> io::Result<()> {
    let fields: Vec<_> = fields.iter().map(|field| escaped(&clean(field))).collect();
    write!(out, "{}\r\n", fields.join(","))
}

/// A field in quotes where it needs them. Spreadsheets run a field that begins with one of four characters as a formula,
/// and build logs a line that begins with two colons as a command, so an apostrophe precedes both.
fn escaped(field: &str) -> String {
    let runs = field.starts_with(['=', '+', '-', '@']) || field.trim_start().starts_with("::");
    let guard = if runs { "'" } else { "" };
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{guard}{}\"", field.replace('"', "\"\""))
    } else {
        format!("{guard}{field}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_are_never_formulas_or_commands() {
        for (field, expected) in [
            ("a b", "a b"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "'=1+1"),
            ("@x,y", "\"'@x,y\""),
            (" ::error::x", "' ::error::x"),
        ] {
            assert_eq!(escaped(field), expected);
        }
        let mut out = Vec::new();
        record(&["\u{1b}[2J".to_owned(), "b".to_owned()], &mut out).unwrap();
        assert!(!out.contains(&0x1b) && out.ends_with(b",b\r\n"), "{out:?}");
    }
}
