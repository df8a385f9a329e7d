//! The fixes of rules: prose, and lines to copy.

/// Instructions that mark a line of a fix as Dockerfile syntax.
const INSTRUCTIONS: [&str; 10] = ["ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "SHELL", "USER"];

/// The lines of a fix, each with true if users copy it verbatim.
pub(super) fn lines(text: &str) -> Vec<(&str, bool)> {
    let mut continued = false;
    let told = |line: &'_ str| {
        let instruction = line.split(' ').next().is_some_and(|word| INSTRUCTIONS.contains(&word));
        let copied = instruction || continued || line.starts_with([' ', '\t']);
        continued = line.ends_with('\\');
        copied
    };
    text.lines().zip(text.lines().map(told)).collect()
}

/// Joins the lines of prose, whose line breaks have no meaning.
pub(super) fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// Renders a fix in Markdown, with the lines to copy as code blocks.
pub(super) fn markdown(fix: &str) -> String {
    let lines = lines(fix);
    let groups = lines.chunk_by(|(_, a), (_, b)| a == b).map(|group| {
        let is_copied = group.iter().all(|(_, copied)| *copied);
        let depth = |line: &str| line.len() - line.trim_start().len();
        let indent = if is_copied { group.iter().map(|(line, _)| depth(line)).min().unwrap_or_default() } else { 0 };
        let text = group.iter().map(|(line, _)| line.get(indent..).unwrap_or_default()).collect::<Vec<_>>().join("\n");
        let is_instruction = text.split(' ').next().is_some_and(|word| INSTRUCTIONS.contains(&word));
        match (is_copied, is_instruction) {
            (true, true) => format!("```dockerfile\n{text}\n```"),
            (true, false) => format!("```sh\n{text}\n```"),
            (false, _) => text,
        }
    });
    groups.collect::<Vec<_>>().join("\n\n")
}
