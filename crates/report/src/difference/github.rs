//! The comparison of two images as GitHub's workflow commands: an annotation for each new finding and each lost answer.

use std::io::{self, Write};

use super::message;
use crate::github::{Annotation, CommandKind, write_all};
use crate::plain_text::short;
use judge::{ChangeKind, ChangedRule, Difference};

/// Maximum characters of a message.
const LONGEST: usize = 1000;

pub(super) fn write(difference: &Difference<'_>, out: &mut dyn Write) -> io::Result<()> {
    let changed = difference.rules();
    let annotations: Vec<_> = changed.iter().filter_map(|changed| annotation(changed, difference)).collect();
    write_all(&annotations, out)
}

fn annotation(changed: &ChangedRule<'_>, difference: &Difference<'_>) -> Option<Annotation> {
    let rule = changed.after.rule;
    let (kind, word) = match changed.kind() {
        ChangeKind::New => (rule.severity.into(), "new"),
        ChangeKind::Changed if changed.is_lost() => (CommandKind::Warning, "no longer known"),
        ChangeKind::Changed | ChangeKind::Fixed => return None,
    };
    let images = [("image", difference.after.reference), ("compared with", difference.before.reference)];
    let images = images.map(|(name, reference)| format!("{name}: {}", short(reference, LONGEST)));
    Some(Annotation {
        kind,
        title: format!("{word}: {}", rule.id),
        place: None,
        message: format!("{}\n{}", short(message(changed), LONGEST), images.join("\n")),
    })
}
