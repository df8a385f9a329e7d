//! Facts about the container's resources, and about the probe as a whole.

use facts::Facts;
use facts::key;
use facts::records::{FailedStep, SkippedStep};
use facts::value::ListItem;
use model::{Fact, Gap};

use super::super::recording::{Recording, StepOutcome, StepRecord};
use super::super::wire::StepBody as _;
use super::super::wire::collectives::{CollectivesBody, UncleanExit};
use super::super::wire::limits::LimitsBody;
use super::super::wire::{self, Field};
use super::{filled, given, none_of, seen, site, unanswered};

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let launch = recording.launch.as_ref();
    let engine = launch.map_or(Fact::Absent, |launch| Fact::seen(launch.engine.clone(), []));
    facts.insert(key::RUN_ENGINE, engine);
    facts.insert(key::RUN_GPUS_ASKED, launch.map_or(Fact::Absent, |launch| Fact::seen(launch.gpus, [])));
    facts.insert(key::RUN_UNFINISHED, unfinished(recording));
    facts.insert(key::RUN_FAILED_STEPS, records(recording, failed));
    facts.insert(key::RUN_SKIPPED_STEPS, records(recording, skipped));
    let unclean: Vec<String> = recording.steps.iter().flat_map(unclean).collect();
    facts.insert(key::RUN_UNCLEAN_EXITS, if unclean.is_empty() { Fact::Absent } else { Fact::seen(unclean, []) });

    let Some((step, body)) = recording.result::<LimitsBody>() else {
        let keys = key::definitions![
            RUN_SHM,
            RUN_MEMLOCK,
            RUN_NOFILE,
            RUN_PROCESSORS,
            RUN_GIVEN_OTHERWISE,
            RUN_HOSTNAME,
            RUN_HOSTNAME_ERROR,
            RUN_PORT_TAKEN,
        ];
        return none_of(keys, &unanswered(recording, LimitsBody::STEP), facts);
    };
    facts.insert(key::RUN_SHM, number(step, body.shm_bytes(), &body.shm));
    facts.insert(key::RUN_MEMLOCK, number(step, body.soft_limit("memlock"), &body.rlimits));
    facts.insert(key::RUN_NOFILE, number(step, body.soft_limit("nofile"), &body.rlimits));
    facts.insert(key::RUN_PROCESSORS, number(step, processors(&body), &body.affinity));
    rendezvous(step, &body, facts);
    let otherwise = given::find_differences(recording, &body);
    facts.insert(
        key::RUN_GIVEN_OTHERWISE,
        match launch {
            _ if !otherwise.is_empty() => seen(step, otherwise),
            Some(launch) if launch.given.is_none() => {
                Fact::Unknown(Gap::new(format!("{} did not report the container's configuration", launch.engine)))
            }
            _ => Fact::Absent,
        },
    );
}

/// What the ranks of a job need to meet. Older programs did not ask.
fn rendezvous(step: &StepRecord, limits: &LimitsBody, facts: &mut Facts) {
    let asked = limits.rendezvous.value();
    // Without a network, a job runs on this machine alone, and needs no address of its name.
    let has_network = limits.interfaces.list().iter().any(|interface| interface.name.text() != Some("lo"));
    let addresses = asked.filter(|_| has_network).map(|asked| asked.hostname_addresses.fact());
    let name = addresses.and(limits.hostname.text());
    facts.insert(key::RUN_HOSTNAME, name.map_or(Fact::Absent, |name| seen(step, name.to_owned())));
    let error = match addresses {
        Some(Fact::Unknown(gap)) => seen(step, gap.why.clone()),
        _ => Fact::Absent,
    };
    facts.insert(key::RUN_HOSTNAME_ERROR, error);
    let taken =
        asked.map_or(Fact::Absent, |asked| {
            asked.port_taken.fact().as_ref().and_then(|taken, _| {
                asked.port.copied().filter(|_| *taken).map_or(Fact::Absent, |port| seen(step, port))
            })
        });
    facts.insert(key::RUN_PORT_TAKEN, taken);
}

/// The reason for an early end. Whether a program with lines that were not accepted ran to its end is unknown.
fn unfinished(recording: &Recording) -> Fact<String> {
    match (&recording.broken, recording.refused.first()) {
        (Some(why), _) if !recording.ended => Fact::seen(why.clone(), []),
        (_, Some(first)) => Fact::Unknown(
            Gap::new(format!(
                "{} of the program's lines were not accepted, the first: {first}",
                recording.refused_count
            ))
            .settled_by("make sure that nothing else in the image writes to the program's standard output"),
        ),
        _ => Fact::Absent,
    }
}

/// A number from a step. Without a number, the fact takes the gap of `field`, the field that contains it.
fn number<T>(step: &StepRecord, value: Option<i64>, field: &Field<T>) -> Fact<i64> {
    match value {
        Some(value) => seen(step, value),
        None => field.fact().as_ref().and_then(|_, _| Fact::Absent),
    }
}

/// A record for each step that has one.
fn records<T: ListItem>(recording: &Recording, record: fn(&StepRecord) -> Option<T>) -> Fact<Vec<T>> {
    let found = recording.steps.iter().filter_map(|step| Some((site(&step.name), record(step)?)));
    let (at, records): (Vec<_>, Vec<_>) = found.unzip();
    if records.is_empty() { Fact::Absent } else { Fact::Seen { value: records, at } }
}

fn failed(step: &StepRecord) -> Option<FailedStep> {
    let StepOutcome::Failed(failed) = &step.outcome else { return None };
    Some(FailedStep {
        step: filled(step.name.clone()),
        how: filled(failed.how.clone()),
        message: filled(failed.worded(&failed.message)),
    })
}

fn skipped(step: &StepRecord) -> Option<SkippedStep> {
    let StepOutcome::Skipped(why) = &step.outcome else { return None };
    Some(SkippedStep { step: filled(step.name.clone()), why: filled(why.clone()) })
}

fn unclean(step: &StepRecord) -> Vec<String> {
    let StepOutcome::Done { body, unclean_exit } = &step.outcome else { return Vec::new() };
    let own = unclean_exit.iter().map(|how| format!("{}: {how}", step.name));
    // Steps without ranks have no such exits.
    let body: CollectivesBody = wire::read(body);
    // An unreadable failure is still a failure.
    let ranks = match body.unclean_exits.known_list() {
        Ok(exits) => exits.iter().map(|exit| format!("{}: {}", step.name, ending(exit))).collect(),
        Err(gap) => vec![format!("{}: {gap}", step.name)],
    };
    own.chain(ranks).collect()
}

fn ending(exit: &UncleanExit) -> String {
    let rank = exit.rank.copied().map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
    format!("{rank}: {}", exit.ending.text().unwrap_or("ended abnormally"))
}

/// Number of processors that the container may use: the size of its CPU affinity, limited by its CPU quota.
fn processors(limits: &LimitsBody) -> Option<i64> {
    let bound = i64::try_from(limits.affinity.list().len()).ok().filter(|count| *count > 0)?;
    let quota = limits.cgroup.value().and_then(|cgroup| cgroup.cpu_quota.copied()).filter(|quota| *quota > 0.0);
    // A quota below one processor counts as one.
    Some(quota.map_or(bound, |quota| bound.min(super::whole(quota.floor()).max(1))))
}
