//! Merges the results of a run, chunk by chunk, into one document or one summary.

use std::io::{self, Write};

use serde::Serialize;

use super::aggregate::AuditSums;
use super::document::{AuditCounts, AuditRow};
use super::owners::TeamMap;
use super::{AuditError, AuditItem, AuditRun, FORM, ItemResult};

/// Writes the results so far as one [`AuditDocument`](super::AuditDocument). Memory does not grow with the number of
/// images, but for the names of the layers that images end with.
///
/// # Errors
/// The store or the output fails.
pub fn merge(run: &AuditRun<'_>, teams: &TeamMap, out: &mut dyn Write) -> Result<AuditCounts, AuditError> {
    let mut sums = AuditSums::new(!teams.is_empty());
    let plan = &run.plan;
    write!(out, "{{\"schema\":{},\"run\":{},", json_of(&FORM)?, json_of(&plan.run)?)?;
    write!(out, "\"created\":{},\"judged_by\":{},\"images\":[", json_of(&plan.created)?, json_of(&plan.rules)?)?;
    let mut before = "";
    rows(run, teams, |item, row, result| {
        sums.add(item, &row, result);
        write!(out, "{before}\n{}", json_of(&row)?)?;
        before = ",";
        Ok(())
    })?;
    write!(out, "\n],\n\"counts\":{},\n\"layers\":{},\n", json_of(&sums.counts)?, json_of(&sums.layers())?)?;
    write!(out, "\"rules\":{},\n\"teams\":{},\n", json_of(&sums.rules())?, json_of(&sums.teams())?)?;
    writeln!(out, "\"unresolved\":{}}}", json_of(&plan.unresolved)?)?;
    Ok(sums.counts)
}

/// Writes a summary of the results so far: text for people, or tables in Markdown.
///
/// # Errors
/// The store or the output fails.
pub fn summarize(
    run: &AuditRun<'_>,
    teams: &TeamMap,
    is_markdown: bool,
    out: &mut dyn Write,
) -> Result<AuditCounts, AuditError> {
    let mut sums = AuditSums::new(!teams.is_empty());
    let mut failing = Vec::new();
    rows(run, teams, |item, row, result| {
        sums.add(item, &row, result);
        if row.verdict == "fail" || row.verdict == "unavailable" {
            failing.push(super::text::brief(&row));
            // The text shows the first ones, and counts the others.
            failing.truncate(super::text::SHOWN);
        }
        Ok(())
    })?;
    super::text::write(&run.plan, &sums, failing, is_markdown, out)?;
    Ok(sums.counts)
}

/// Visits every image with its row and its result, in the order of the plan.
pub(super) fn rows(
    run: &AuditRun<'_>,
    teams: &TeamMap,
    mut see: impl FnMut(&AuditItem, AuditRow, Option<&ItemResult>) -> Result<(), AuditError>,
) -> Result<(), AuditError> {
    for chunk in 0..run.plan.chunks.len() {
        let items = run.items(chunk)?;
        let results = run.results(chunk, &items)?;
        for (item, result) in items.iter().zip(results) {
            see(item, row(item, result.as_ref(), teams), result.as_ref())?;
        }
    }
    Ok(())
}

fn row(item: &AuditItem, result: Option<&ItemResult>, teams: &TeamMap) -> AuditRow {
    let verdict = match result {
        None => "pending",
        Some(result) => result.verdict.as_deref().unwrap_or("unavailable"),
    };
    AuditRow {
        id: item.id.clone(),
        names: item.names.clone(),
        manifest: item.manifest.as_ref().map(ToString::to_string),
        platform: item.platform.clone(),
        team: teams.team(&item.names).map(ToOwned::to_owned),
        verdict: verdict.to_owned(),
        findings: result.map(|result| result.findings.clone()).unwrap_or_default(),
        unknown: result.map(|result| result.unknown.clone()).unwrap_or_default(),
        unavailable: result.and_then(|result| result.unavailable.clone()),
        facts: result.map(|result| result.facts.clone()).unwrap_or_default(),
        pods: item.pods.clone(),
    }
}

/// Compact JSON on one line.
fn json_of(value: &impl Serialize) -> io::Result<String> {
    serde_json::to_string(value).map_err(io::Error::from)
}
