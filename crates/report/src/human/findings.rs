//! The findings of several images, each once, with the images that have it.

use std::io;

use anstyle::AnsiColor;

use super::judgements::{COLUMN, fix};
use super::page::{self, Page, label};
use crate::fix_text::one_line;
use crate::survey::{Survey, SurveyFinding};

/// Maximum images named for one finding.
const NAMED: usize = 4;

/// Writes the findings, the worst first.
pub(super) fn write(survey: &Survey, page: &mut Page<'_>) -> io::Result<()> {
    let findings = survey.worst_findings();
    let (failures, unknown): (Vec<_>, Vec<_>) = findings.into_iter().partition(|finding| finding.is_failure);
    failures.into_iter().try_for_each(|finding| failure(finding, survey, page))?;
    let mut groups: Vec<Vec<&SurveyFinding>> = Vec::new();
    for finding in unknown {
        // One missing answer often concerns many rules.
        let is_same = |group: &&mut Vec<&SurveyFinding>| {
            group.first().is_some_and(|first| {
                (&first.message, &first.images, &first.hosts) == (&finding.message, &finding.images, &finding.hosts)
            })
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups.iter().try_for_each(|group| unanswered(group, survey, page))
}

fn failure(finding: &SurveyFinding, survey: &Survey, page: &mut Page<'_>) -> io::Result<()> {
    let rule = &finding.rule;
    page.heading(&format!("{}[{}]:", finding.word(), rule.id), page::severity(rule.severity), &finding.message)?;
    places(finding, survey, page)?;
    page.row(2, label("of"), COLUMN, finding.owner.name())?;
    page.row(2, label("why"), COLUMN, &one_line(&rule.why))?;
    fix(&finding.fix, page)?;
    page.blank()
}

fn unanswered(group: &[&SurveyFinding], survey: &Survey, page: &mut Page<'_>) -> io::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    page.heading("unknown:", page::bold(AnsiColor::Magenta), &first.message)?;
    places(first, survey, page)?;
    page.text(2, "not ruled out:")?;
    let rules: Vec<_> = group.iter().map(|finding| &*finding.rule.id).collect();
    page.text(4, &rules.join(", "))?;
    page.blank()
}

/// Writes the images and the hosts of a finding.
fn places(finding: &SurveyFinding, survey: &Survey, page: &mut Page<'_>) -> io::Result<()> {
    let names = finding.images.iter().filter_map(|index| survey.rows.get(*index)).map(|row| &*row.reference);
    for (index, name) in names.take(NAMED).enumerate() {
        page.row(2, label(if index == 0 { "in" } else { "" }), COLUMN, name)?;
    }
    let more = finding.images.len().saturating_sub(NAMED);
    if more > 0 {
        page.row(2, label(""), COLUMN, &format!("and {more} more of {} images", survey.rows.len()))?;
    }
    if finding.hosts.is_empty() { Ok(()) } else { page.row(2, label("on"), COLUMN, &finding.hosts.join("; ")) }
}
