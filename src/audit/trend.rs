//! What changed between two runs, by name of the image, and to what the change is due.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::AuditRow;
use super::judging::changed;
use super::merge::rows;
use super::owners::TeamMap;
use super::text::table;
use super::{AuditError, AuditRules, AuditRun, FORM};

/// The changes from one run to a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "ncclcheck audit trend")]
#[non_exhaustive]
pub struct AuditTrend {
    /// Name and major version of the format.
    pub schema: String,
    /// The earlier run.
    pub since: String,
    /// The later run.
    pub run: String,
    /// What differs between the runs besides the images: `program`, `scanner`, `policy`, `hosts`, or ids of rules.
    pub differing: Vec<String>,
    /// Changes of verdicts and findings, sorted by name.
    pub changes: Vec<TrendChange>,
    /// Names with the same verdict and the same failing rules.
    pub unchanged: usize,
}

/// The change of one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TrendChange {
    /// The name, with the platform if the image has one.
    pub name: String,
    /// The team that owns it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// What happened.
    pub kind: TrendKind,
    /// What it is due to.
    pub cause: TrendCause,
    /// The verdict before; `None` for a new name.
    pub before: Option<String>,
    /// The verdict after; `None` for a name that is gone.
    pub after: Option<String>,
    /// Rules that newly fail.
    pub newly_failing: Vec<String>,
    /// Rules that no longer fail.
    pub fixed: Vec<String>,
}

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrendKind {
    /// Its verdict became `fail`.
    NewlyFailing,
    /// Its verdict was `fail` and is not any more.
    Fixed,
    /// Other rules fail, or another verdict that is not a failure.
    Changed,
    /// The earlier run did not have it.
    New,
    /// The later run does not have it.
    Gone,
}

impl TrendKind {
    const ALL: [Self; 5] = [Self::NewlyFailing, Self::Fixed, Self::Changed, Self::New, Self::Gone];

    /// The name in documents.
    const fn name(self) -> &'static str {
        match self {
            Self::NewlyFailing => "newly-failing",
            Self::Fixed => "fixed",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

/// What a change is due to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrendCause {
    /// The name means another image, and the rules concerned are the same.
    Image,
    /// The image is the same, or the rules concerned differ.
    Rules,
    /// Both differ. `audit plan --again` and a new run of the earlier images separate them.
    Either,
    /// The image could not be judged in one of the runs.
    Availability,
}

impl TrendCause {
    const ALL: [Self; 4] = [Self::Image, Self::Rules, Self::Either, Self::Availability];

    /// The name in documents.
    const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Rules => "rules",
            Self::Either => "either",
            Self::Availability => "availability",
        }
    }
}

/// What a run says about a name.
struct Standing {
    id: String,
    team: Option<String>,
    verdict: String,
    rules: Vec<String>,
}

impl AuditTrend {
    /// Compares two runs.
    ///
    /// # Errors
    /// The store fails.
    pub fn of(before: &AuditRun<'_>, after: &AuditRun<'_>, teams: &TeamMap) -> Result<Self, AuditError> {
        let old = standings(before, teams)?;
        let mut new = standings(after, teams)?;
        let difference = RunDifference::of(&before.plan.rules, &after.plan.rules);
        let mut changes = Vec::new();
        let mut unchanged = 0;
        for (name, old) in old {
            let now = new.remove(&name);
            match change(&name, Some(&old), now.as_ref(), &difference) {
                Some(change) => changes.push(change),
                None => unchanged += 1,
            }
        }
        changes.extend(new.iter().filter_map(|(name, new)| change(name, None, Some(new), &difference)));
        changes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            schema: FORM.to_owned(),
            since: before.plan.run.clone(),
            run: after.plan.run.clone(),
            differing: difference.names(),
            changes,
            unchanged,
        })
    }

    /// Returns true if a name newly fails because of its image, or perhaps because of it.
    pub fn is_worse(&self) -> bool {
        let is_worse = |change: &TrendChange| {
            change.kind == TrendKind::NewlyFailing && matches!(change.cause, TrendCause::Image | TrendCause::Either)
        };
        self.changes.iter().any(is_worse)
    }

    /// Writes it for people, or in Markdown.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(&self, is_markdown: bool, out: &mut dyn Write) -> io::Result<()> {
        let mark = if is_markdown { "# " } else { "" };
        writeln!(out, "{mark}{}\n", self.title())?;
        self.lines().try_for_each(|line| writeln!(out, "{line}"))?;
        for (title, rows) in self.tables() {
            table(title, &TITLES, rows.into_iter().map(Vec::from).collect(), is_markdown, out)?;
        }
        Ok(())
    }

    /// Writes one page with all changes.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        report::write_tables(&self.title(), self.lines(), TITLES, self.tables(), out)
    }

    /// Writes one record for each change.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let heads = ["image", "team", "kind", "cause", "before", "after", "newly_failing", "no_longer_failing"];
        report::csv_record(&heads.map(str::to_owned), out)?;
        self.changes.iter().try_for_each(|change| {
            let [image, cause, before, after, newly, fixed] = cells(change);
            let team = change.team.clone().unwrap_or_default();
            report::csv_record(&[image, team, change.kind.name().to_owned(), cause, before, after, newly, fixed], out)
        })
    }

    /// Writes the number of changed names as a metric, by kind and cause.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_metrics(&self, out: &mut dyn Write) -> io::Result<()> {
        let pairs = TrendKind::ALL.into_iter().flat_map(|kind| TrendCause::ALL.map(|cause| (kind, cause)));
        let series = pairs.map(|(kind, cause)| {
            let changes = self.changes.iter().filter(|change| (change.kind, change.cause) == (kind, cause));
            ([("kind", kind.name()), ("cause", cause.name())], changes.count())
        });
        report::write_metric(
            "ncclcheck_audit_changes",
            "Number of names that changed since the earlier run.",
            series,
            out,
        )
    }

    fn title(&self) -> String {
        format!("since {}: run {}", self.since, self.run)
    }

    fn lines(&self) -> impl Iterator<Item = String> {
        let differing =
            (!self.differing.is_empty()).then(|| format!("the runs differ in: {}", self.differing.join(", ")));
        differing.into_iter().chain([format!("{} names changed, {} did not", self.changes.len(), self.unchanged)])
    }

    /// The changes of each kind, with a title.
    fn tables(&self) -> impl Iterator<Item = (&'static str, Vec<[String; 6]>)> {
        let kinds = [
            (TrendKind::NewlyFailing, "Newly failing"),
            (TrendKind::Fixed, "Fixed"),
            (TrendKind::Changed, "Other changes"),
            (TrendKind::New, "New"),
            (TrendKind::Gone, "Gone"),
        ];
        kinds
            .into_iter()
            .map(|(kind, title)| (title, self.changes.iter().filter(|change| change.kind == kind).map(cells).collect()))
    }
}

/// Titles of the columns of a change.
const TITLES: [&str; 6] = ["image", "due to", "before", "after", "newly failing", "no longer failing"];

fn cells(change: &TrendChange) -> [String; 6] {
    let verdict = |verdict: &Option<String>| verdict.clone().unwrap_or_default();
    [
        change.name.clone(),
        change.cause.name().to_owned(),
        verdict(&change.before),
        verdict(&change.after),
        change.newly_failing.join(", "),
        change.fixed.join(", "),
    ]
}

/// How the rules of two runs differ.
struct RunDifference {
    rules: Vec<String>,
    /// Parts that can change the outcome of every rule.
    others: Vec<&'static str>,
}

impl RunDifference {
    fn of(before: &AuditRules, after: &AuditRules) -> Self {
        let parts = [
            ("program", before.program != after.program),
            ("scanner", before.scanner != after.scanner),
            ("policy", before.policy != after.policy || before.fail_on != after.fail_on),
            ("hosts", before.hosts != after.hosts),
        ];
        let others = parts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name);
        Self { rules: changed(&before.rules, &after.rules), others: others.collect() }
    }

    fn names(&self) -> Vec<String> {
        self.others.iter().map(|name| (*name).to_owned()).chain(self.rules.iter().cloned()).collect()
    }

    /// The cause of a change in the outcomes of these rules.
    fn cause(&self, is_same_image: bool, rules: &[&String]) -> TrendCause {
        let is_by_rules = !rules.is_empty() && rules.iter().all(|rule| self.rules.contains(rule));
        let may_be_rules = !self.others.is_empty() || rules.iter().any(|rule| self.rules.contains(rule));
        match (is_same_image, is_by_rules, may_be_rules) {
            (true, _, _) | (_, true, _) => TrendCause::Rules,
            (false, false, true) => TrendCause::Either,
            (false, false, false) => TrendCause::Image,
        }
    }
}

fn change(
    name: &str,
    before: Option<&Standing>,
    after: Option<&Standing>,
    difference: &RunDifference,
) -> Option<TrendChange> {
    let rules = |standing: Option<&Standing>| standing.map(|standing| standing.rules.clone()).unwrap_or_default();
    let old = rules(before);
    let new = rules(after);
    let newly: Vec<_> = new.iter().filter(|rule| !old.contains(rule)).cloned().collect();
    let fixed: Vec<_> = old.iter().filter(|rule| !new.contains(rule)).cloned().collect();
    let verdict = |standing: Option<&Standing>| standing.map(|standing| standing.verdict.clone());
    let was = verdict(before);
    let is = verdict(after);
    let no_answer = |verdict: &Option<String>| matches!(verdict.as_deref(), Some("unavailable" | "pending"));
    let kind = match (was.as_deref(), is.as_deref()) {
        (None, _) => TrendKind::New,
        (_, None) => TrendKind::Gone,
        (Some(was), Some("fail")) if was != "fail" => TrendKind::NewlyFailing,
        (Some("fail"), Some(is)) if is != "fail" && !no_answer(&Some(is.to_owned())) => TrendKind::Fixed,
        (was, is) if was == is && newly.is_empty() && fixed.is_empty() => return None,
        _ => TrendKind::Changed,
    };
    let is_same_image = before.zip(after).is_some_and(|(before, after)| before.id == after.id);
    let concerned: Vec<&String> = newly.iter().chain(&fixed).collect();
    let cause = match kind {
        TrendKind::New | TrendKind::Gone => TrendCause::Image,
        _ if no_answer(&was) || no_answer(&is) => TrendCause::Availability,
        _ => difference.cause(is_same_image, &concerned),
    };
    Some(TrendChange {
        name: name.to_owned(),
        team: after.or(before).and_then(|standing| standing.team.clone()),
        kind,
        cause,
        before: was,
        after: is,
        newly_failing: newly,
        fixed,
    })
}

/// The verdict of each name.
fn standings(run: &AuditRun<'_>, teams: &TeamMap) -> Result<BTreeMap<String, Standing>, AuditError> {
    let mut standings = BTreeMap::new();
    rows(run, teams, |_, row, _| {
        let AuditRow { id, names, platform, verdict, findings, .. } = row;
        let mut rules: Vec<_> = findings.into_iter().map(|finding| finding.rule).collect();
        rules.dedup();
        for name in names {
            let team = teams.team(std::slice::from_ref(&name)).map(ToOwned::to_owned);
            let key = platform.as_ref().map_or_else(|| name.clone(), |platform| format!("{name} ({platform})"));
            standings.insert(key, Standing { id: id.clone(), team, verdict: verdict.clone(), rules: rules.clone() });
        }
        Ok(())
    })?;
    Ok(standings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(id: &str, verdict: &str, rules: &[&str]) -> Standing {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        Standing { id: id.to_owned(), team: None, verdict: verdict.to_owned(), rules }
    }

    fn of(
        before: &Standing,
        after: &Standing,
        rules: &[&str],
        others: &[&'static str],
    ) -> Option<(TrendKind, TrendCause)> {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let difference = RunDifference { rules, others: others.to_vec() };
        change("a", Some(before), Some(after), &difference).map(|change| (change.kind, change.cause))
    }

    #[test]
    fn changes_have_a_cause() {
        let pass = standing("1", "pass", &[]);
        let (fail, same) = (standing("2", "fail", &["r"]), standing("1", "fail", &["r"]));
        assert_eq!(of(&pass, &fail, &[], &[]), Some((TrendKind::NewlyFailing, TrendCause::Image)));
        assert_eq!(of(&pass, &same, &["r"], &[]), Some((TrendKind::NewlyFailing, TrendCause::Rules)));
        assert_eq!(of(&pass, &same, &[], &["policy"]), Some((TrendKind::NewlyFailing, TrendCause::Rules)));
        // A rule that was changed or added is not booked to the image.
        assert_eq!(of(&pass, &fail, &["r"], &[]), Some((TrendKind::NewlyFailing, TrendCause::Rules)));
        assert_eq!(of(&pass, &fail, &["other"], &[]), Some((TrendKind::NewlyFailing, TrendCause::Image)));
        assert_eq!(of(&pass, &fail, &[], &["program"]), Some((TrendKind::NewlyFailing, TrendCause::Either)));
        assert_eq!(of(&fail, &pass, &[], &[]), Some((TrendKind::Fixed, TrendCause::Image)));
        assert_eq!(
            of(&fail, &standing("3", "unavailable", &[]), &[], &[]),
            Some((TrendKind::Changed, TrendCause::Availability))
        );
        assert_eq!(of(&fail, &standing("3", "fail", &["r"]), &[], &[]), None);
        assert_eq!(
            of(&fail, &standing("3", "fail", &["r", "s"]), &[], &[]),
            Some((TrendKind::Changed, TrendCause::Image))
        );
    }
}
