//! The fixes of rules: prose, and lines to copy.

/// Instructions that mark a line of a fix as Dockerfile syntax.
const INSTRUCTIONS: [&str; 10] = ["ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "SHELL", "USER"];

/// A part of a fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A paragraph, on one line.
    Prose(String),
    /// A line that users copy verbatim.
    Code(&'a str),
    /// An empty line.
    Blank,
}

/// Splits a fix into paragraphs of prose, whose line breaks have no meaning, and lines to copy: indented lines,
/// instructions of a Dockerfile, and their continuations.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        let is_code = continued || is_instruction(line) || line.starts_with([' ', '\t']);
        continued = line.ends_with('\\');
        match (line, parts.last_mut()) {
            (_, _) if is_code => parts.push(Part::Code(line)),
            ("", _) => parts.push(Part::Blank),
            (_, Some(Part::Prose(paragraph))) => {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            _ => parts.push(Part::Prose(line.to_owned())),
        }
    }
    parts
}

fn is_instruction(line: &str) -> bool {
    line.split(' ').next().is_some_and(|word| INSTRUCTIONS.contains(&word))
}

/// Joins the lines of prose, whose line breaks have no meaning.
pub(super) fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// A paragraph, or lines to copy without the indentation that they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FixBlock {
    /// A paragraph, on one line.
    Prose(String),
    /// Lines to copy.
    Code(String),
}

/// The blocks of a fix.
pub(super) fn blocks(fix: &str) -> Vec<FixBlock> {
    let parts = parts(fix);
    parts.chunk_by(|a, b| matches!((a, b), (Part::Code(_), Part::Code(_)))).filter_map(block).collect()
}

/// Renders a fix in Markdown, with the lines to copy as code blocks.
pub(super) fn markdown(fix: &str) -> String {
    let text = |block: FixBlock| match block {
        FixBlock::Prose(text) => text,
        FixBlock::Code(text) => {
            let language =
                if is_instruction(text.trim_start().lines().next().unwrap_or_default()) { "dockerfile" } else { "sh" };
            format!("```{language}\n{text}\n```")
        }
    };
    blocks(fix).into_iter().map(text).collect::<Vec<_>>().join("\n\n")
}

fn block(group: &[Part<'_>]) -> Option<FixBlock> {
    match group.first()? {
        Part::Blank => None,
        Part::Prose(text) => Some(FixBlock::Prose(text.clone())),
        Part::Code(_) => {
            let lines = group.iter().filter_map(|part| if let Part::Code(line) = part { Some(*line) } else { None });
            let indent = lines.clone().map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
            let text = lines.map(|line| line.get(indent..).unwrap_or_default()).collect::<Vec<_>>().join("\n");
            Some(FixBlock::Code(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_joined_and_code_is_kept() {
        let fix = "Set the variable\nfor the job:\n\n    ENV A=1\n    RUN a \\\n     && b\nThen build\nagain.";
        let expected = [
            Part::Prose("Set the variable for the job:".to_owned()),
            Part::Blank,
            Part::Code("    ENV A=1"),
            Part::Code("    RUN a \\"),
            Part::Code("     && b"),
            Part::Prose("Then build again.".to_owned()),
        ];
        assert_eq!(parts(fix), expected);
        assert_eq!(
            markdown(fix),
            "Set the variable for the job:\n\n```dockerfile\nENV A=1\nRUN a \\\n && b\n```\n\nThen build again."
        );
    }
}
