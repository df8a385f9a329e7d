//! The results of a run in the forms that list images: a page in HTML, metrics, and CSV.

use std::collections::BTreeMap;
use std::io::Write;

use judge::Verdict;
use judge::rules::Rule;
use model::{Severity, counted};
use report::{AuditedFinding, AuditedImage, AuditedLayer, AuditedResult, Collection, Format, csv_record};

use super::aggregate::AuditSums;
use super::document::{AuditCounts, AuditRow};
use super::judged::{FACTS, ItemFinding};
use super::merge::rows;
use super::owners::TeamMap;
use super::plan::AuditPlan;
use super::{AuditError, AuditRun, ItemResult};

/// Maximum names that were not resolved, of which the page says why.
const UNRESOLVED: usize = 12;

/// Writes one page on the results so far: what images fail by, and then the images. `rule` returns the rule with an id,
/// if the program has it.
///
/// # Errors
/// The store or the output fails.
pub fn page<'r>(
    run: &AuditRun<'_>,
    teams: &TeamMap,
    rule: impl Fn(&str) -> Option<&'r Rule>,
    out: &mut dyn Write,
) -> Result<AuditCounts, AuditError> {
    let mut sums = AuditSums::new(!teams.is_empty());
    rows(run, teams, |item, row, result| {
        sums.add(item, &row, result);
        Ok(())
    })?;
    // The owner of a layer is known once all images are.
    let owners: BTreeMap<_, _> =
        sums.layers().into_iter().filter_map(|layer| Some((layer.layer, layer.owner?))).collect();
    let mut collection = Collection::new(&[Format::Html]);
    collection.set_audit(head(&run.plan, sums.counts.pending));
    let hosts = run.plan.rules.hosts.len();
    rows(run, teams, |_, row, result| {
        if result.is_some() {
            collection.add_audited(audited(row, result, hosts, &owners), &rule);
        }
        Ok(())
    })?;
    collection.write_page(out)?;
    Ok(sums.counts)
}

/// Writes metrics of the results so far. An image counts once for each of its names, as for `check`, so that a series stays
/// where its tag moves; one without a result counts as one that could not be opened.
///
/// # Errors
/// The plan has no valid time, or the store or the output fails.
pub fn metrics<'r>(
    run: &AuditRun<'_>,
    teams: &TeamMap,
    rule: impl Fn(&str) -> Option<&'r Rule>,
    out: &mut dyn Write,
) -> Result<AuditCounts, AuditError> {
    let AuditPlan { run: name, created, .. } = &run.plan;
    let wrong = |why: String| AuditError::Usage(format!("the plan of run {name} of {}: {created}: {why}", run.store));
    let planned: jiff::Timestamp = created.parse().map_err(|error: jiff::Error| wrong(error.to_string()))?;
    let planned = u64::try_from(planned.as_second()).map_err(|error| wrong(error.to_string()))?;
    let mut counts = AuditCounts::default();
    let mut collection = Collection::new(&[Format::Prometheus]);
    let hosts = run.plan.rules.hosts.len();
    let no_owners = BTreeMap::new();
    rows(run, teams, |_, row, result| {
        counts.add(&row.verdict);
        for name in &row.names {
            let row = AuditRow { names: vec![name.clone()], ..row.clone() };
            collection.add_audited(audited(row, result, hosts, &no_owners), &rule);
        }
        Ok(())
    })?;
    collection.write_metrics(planned, out)?;
    Ok(counts)
}

/// Writes one record for each image.
///
/// # Errors
/// The store or the output fails.
pub fn csv(run: &AuditRun<'_>, teams: &TeamMap, out: &mut dyn Write) -> Result<AuditCounts, AuditError> {
    const HEADS: [&str; 16] = [
        "image",
        "names",
        "platform",
        "digest",
        "team",
        "verdict",
        "torch",
        "cuda",
        "nccl",
        "errors",
        "warnings",
        "unknown",
        "first_rule",
        "layer",
        "first_finding",
        "pods",
    ];
    csv_record(&HEADS.map(str::to_owned), out)?;
    let mut counts = AuditCounts::default();
    rows(run, teams, |_, row, _| {
        counts.add(&row.verdict);
        let first = row.findings.iter().min_by_key(|finding| std::cmp::Reverse(finding.severity));
        let of = |severity| row.findings.iter().filter(|finding| finding.severity == severity).count().to_string();
        let [torch, cuda, nccl] = versions(&row);
        let message = first.map(|finding| finding.message.clone());
        let why = || row.unavailable.as_ref().map(|unavailable| unavailable.why.clone());
        csv_record(
            &[
                row.names.first().cloned().unwrap_or_default(),
                row.names.len().to_string(),
                row.platform.clone().unwrap_or_default(),
                row.manifest.clone().unwrap_or_default(),
                row.team.clone().unwrap_or_default(),
                row.verdict.clone(),
                torch,
                cuda,
                nccl,
                of(Severity::Error),
                of(Severity::Warning),
                row.unknown.len().to_string(),
                first.map(|finding| finding.rule.clone()).unwrap_or_default(),
                first.and_then(|finding| finding.layer.clone()).unwrap_or_default(),
                message.or_else(why).unwrap_or_default(),
                row.pods.join(" "),
            ],
            out,
        )?;
        Ok(())
    })?;
    Ok(counts)
}

/// What the page says first: the run, what judged it, and what is missing.
fn head(plan: &AuditPlan, pending: usize) -> Vec<String> {
    let rules = &plan.rules;
    let hosts = if rules.hosts.is_empty() { String::new() } else { format!(" for {}", rules.hosts.join("; ")) };
    let mut lines = vec![
        format!("Run {} of {}", plan.run, plan.created),
        format!("Judged by ncclcheck {} with {} rules{hosts}", rules.program, rules.rules.len()),
    ];
    if pending > 0 {
        lines.push(format!("Without a result yet: {}", counted(pending, "image", "images")));
    }
    let unresolved = plan.unresolved.iter().take(UNRESOLVED);
    lines.extend(
        unresolved.map(|(name, why)| format!("Not resolved: {name}: {}", why.lines().next().unwrap_or_default())),
    );
    if let Some(more) = plan.unresolved.len().checked_sub(UNRESOLVED).filter(|more| *more > 0) {
        lines.push(format!("Not resolved: {more} more names; the format json has them all"));
    }
    lines
}

fn audited(
    row: AuditRow,
    result: Option<&ItemResult>,
    hosts: usize,
    owners: &BTreeMap<String, String>,
) -> AuditedImage {
    let versions = versions(&row);
    let judged = |verdict| {
        let findings = findings(&row.findings, result, hosts, owners);
        AuditedResult::Judged { verdict, versions, findings, unanswered: row.unknown }
    };
    let result = match &*row.verdict {
        "pass" => judged(Verdict::Pass),
        "fail" => judged(Verdict::Fail),
        "incomplete" => judged(Verdict::Incomplete),
        _ => AuditedResult::Unavailable(row.unavailable.map(|unavailable| unavailable.why).unwrap_or_default()),
    };
    let name = row.names.into_iter().next().unwrap_or_default();
    AuditedImage { name, platform: row.platform, team: row.team, result }
}

/// The findings of an image, each once with its hosts.
fn findings(
    found: &[ItemFinding],
    result: Option<&ItemResult>,
    hosts: usize,
    owners: &BTreeMap<String, String>,
) -> Vec<AuditedFinding> {
    let mut on: BTreeMap<ItemFinding, Vec<String>> = BTreeMap::new();
    for finding in found {
        on.entry(ItemFinding { host: None, ..finding.clone() }).or_default().extend(finding.host.clone());
    }
    let finding = |(finding, on): (ItemFinding, Vec<String>)| AuditedFinding {
        rule: finding.rule,
        severity: finding.severity,
        owner: finding.owner,
        message: finding.message,
        hosts: if on.len() == hosts { Vec::new() } else { on },
        layer: finding.layer.map(|digest| {
            let known = result.and_then(|result| result.layers.get(&digest));
            AuditedLayer {
                size: known.map(|known| known.size),
                step: known.and_then(|known| known.step.clone()),
                owner: owners.get(&digest).cloned(),
                digest,
            }
        }),
    };
    on.into_iter().map(finding).collect()
}

/// The versions of torch, of its CUDA and of NCCL; empty if they are unknown.
fn versions(row: &AuditRow) -> [String; 3] {
    FACTS.map(|name| row.facts.get(name).cloned().unwrap_or_default())
}
