//! Facts about the speed of the collectives: how it compares with sound hosts, and what variables and a lack of CPUs take away.

use std::collections::BTreeMap;

use serde::Deserialize;

use facts::Facts;
use facts::key::{self, Definition};
use model::document::parse_table;
use model::{Fact, Gap, ReplaceableTable, Table, size};

use super::super::recording::{Recording, StepOutcome, StepRecord};
use super::super::wire::StepBody as _;
use super::super::wire::collectives::{CollectivesBody, CpuWait, Measurement, RunWithout};
use super::super::wire::what_if::VariantSize;
use super::{none_of, seen, texts, unanswered, whole};

const KEYS: &[&Definition] =
    key::definitions![RUN_CPU_WAIT, RUN_NCCL_SLOW, RUN_NCCL_PERCENT, RUN_SLOWED_BY_VARIABLES, RUN_SLOWED_PERCENT];

/// The operation that runs again without variables.
const ALL_REDUCE: &str = "all_reduce";

/// Share of the expected bandwidth, in percent, from which on an operation is not slow. Runs on one host differ by a few percent.
const NOT_SLOW: i64 = 90;

/// Smallest message, in bytes, whose time the bandwidth determines and not the latency, which varies by a multiple.
const LARGE: u64 = 16 << 20;

/// An entry of the table `speeds.yaml`, which describes its fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoundHost {
    models: Vec<String>,
    nvlink_gb_s: i64,
    rows: Vec<SoundSpeed>,
}

/// What a sound host reaches.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SoundSpeed {
    ranks: i64,
    operation: String,
    mib: u64,
    gb_s: f64,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

static SOUND: Table<Vec<SoundHost>> =
    Table::new("speeds", || parse_table("rules/tables/speeds.yaml", include_str!("../../tables/speeds.yaml")));

/// The table, to be replaced.
pub fn table_of_speeds() -> &'static dyn ReplaceableTable {
    &SOUND
}

/// The bandwidth of an operation, in bytes per second.
struct Measured<'a> {
    operation: &'a str,
    bytes: u64,
    median: f64,
    /// That of the fastest sample, which noise lowers least.
    best: f64,
}

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<CollectivesBody>() else {
        return none_of(KEYS, &unanswered(recording, CollectivesBody::STEP), facts);
    };
    let waited = match cpu_wait(&body) {
        Ok(percent) => percent.map_or(Fact::Absent, |percent| seen(step, percent)),
        Err(gap) => Fact::Unknown(gap),
    };
    facts.insert(key::RUN_CPU_WAIT, waited);
    let parts: Vec<_> = step.parts_of::<Measurement>().collect();
    let cost = match body.without_variables.known_list() {
        Ok(runs) => VariableCost::of(&parts, runs),
        Err(gap) => return none_of(KEYS, &Fact::Unknown(gap), facts),
    };
    let settings = facts.get(key::RUN_RUNTIME_VARIABLES).value();
    let named = |name: &String| match settings.and_then(|settings| settings.get(name)) {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    let named = cost.iter().flat_map(|cost| cost.names.iter().map(named)).collect();
    facts.insert(key::RUN_SLOWED_BY_VARIABLES, texts(step, named));
    let percent = cost.as_ref().map(|cost| seen(step, cost.percent()));
    facts.insert(key::RUN_SLOWED_PERCENT, percent.unwrap_or(Fact::Absent));
    compare(step, cost.as_ref(), &parts, facts);
}

/// Percentage of its time in which the rank that waited most had no CPU. `None` without ranks that report it.
fn cpu_wait(body: &CollectivesBody) -> Result<Option<i64>, Gap> {
    let percent = |wait: &CpuWait| {
        let waited = wait.waited_seconds.known()?;
        Ok(waited.zip(wait.seconds.known()?).map(|(waited, seconds)| waited / seconds * 100.0))
    };
    let waits = body.cpu_waits.known_list()?.iter().map(percent).collect::<Result<Vec<Option<f64>>, Gap>>()?;
    Ok(waits.into_iter().flatten().reduce(f64::max).map(whole))
}

/// What variables take away from all_reduce.
struct VariableCost {
    names: Vec<String>,
    bytes: u64,
    /// Seconds with the variables, and without them.
    seconds_with: f64,
    seconds_without: f64,
}

impl VariableCost {
    /// `None` if the run without the variables is not faster by more than noise and a tenth, or its messages are small.
    fn of(parts: &[Measurement], runs: &[RunWithout]) -> Option<Self> {
        let without = runs.first()?;
        let sample = without.sizes.list().first()?;
        let bytes = u64::try_from(sample.bytes.copied()?).ok().filter(|bytes| *bytes >= LARGE)?;
        let is_same =
            |part: &&Measurement| part.operation.text() == Some(ALL_REDUCE) && part.bytes.copied() == Some(bytes);
        let with = parts.iter().find(is_same)?;
        let seconds_with = with.seconds_median.copied()?;
        let gains = |run: &RunWithout| {
            let least = with.seconds_min.copied().unwrap_or(seconds_with);
            run.sizes.list().first().is_some_and(|size| slowest(size).is_some_and(|most| most * 1.1 < least))
        };
        if !gains(without) {
            return None;
        }
        // Without a variable that alone makes a difference, all of them do so together.
        let alone = runs.iter().skip(1).filter(|run| gains(run)).flat_map(|run| run.variables.list());
        let mut names: Vec<_> = alone.cloned().collect();
        if names.is_empty() {
            names = without.variables.list().to_vec();
        }
        Some(Self { names, bytes, seconds_with, seconds_without: sample.median_seconds.copied()? })
    }

    /// The bandwidth without the variables, which its ranks determine (nccl-tests' doc/PERFORMANCE.md).
    #[expect(clippy::cast_precision_loss, reason = "sizes and numbers of ranks are far below 2^52")]
    fn measured(&self, ranks: i64) -> Measured<'static> {
        let factor = 2.0 * (ranks - 1) as f64 / ranks as f64;
        let busbw = self.bytes as f64 / self.seconds_without * factor;
        Measured { operation: ALL_REDUCE, bytes: self.bytes, median: busbw, best: busbw }
    }

    /// Speed with the variables as a percentage of the speed without them.
    fn percent(&self) -> i64 {
        whole(self.seconds_without / self.seconds_with * 100.0)
    }
}

/// The slowest sample, in seconds.
fn slowest(size: &VariantSize) -> Option<f64> {
    size.samples.list().iter().copied().reduce(f64::max)
}

/// Adds the facts about operations that are slower than on sound hosts. If variables slow the run down, the run without them is compared,
/// since it shows what the host is capable of.
fn compare(step: &StepRecord, cost: Option<&VariableCost>, parts: &[Measurement], facts: &mut Facts) {
    let lost = match &step.outcome {
        StepOutcome::Done { .. } => parts.iter().find_map(|part| part.busbw_bytes_per_second.known().err()),
        _ => Some(Gap::new("the step did not end")),
    };
    if let Some(gap) = lost {
        return none_of(key::definitions![RUN_NCCL_SLOW, RUN_NCCL_PERCENT], &Fact::Unknown(gap), facts);
    }
    let known = facts.get(key::RUN_NCCL_RANKS).value().copied().zip(sound_host(facts));
    let measured = known.map_or_else(Vec::new, |(ranks, _)| match cost {
        Some(cost) => vec![cost.measured(ranks)],
        None => parts.iter().filter_map(Measured::of).collect(),
    });
    let mut largest: BTreeMap<&str, Measured<'_>> = BTreeMap::new();
    for one in measured {
        if largest.get(one.operation).is_none_or(|other| other.bytes < one.bytes) {
            largest.insert(one.operation, one);
        }
    }
    let compared = known.map_or_else(Vec::new, |(ranks, host)| {
        largest.values().filter_map(|one| one.compared(ranks, &host.rows)).collect()
    });
    let least = compared.iter().map(|(percent, _)| *percent).min();
    facts.insert(key::RUN_NCCL_PERCENT, least.map_or(Fact::Absent, |percent| seen(step, percent)));
    let slow = compared.into_iter().filter(|(percent, _)| *percent < NOT_SLOW).map(|(_, text)| text);
    facts.insert(key::RUN_NCCL_SLOW, texts(step, slow.collect()));
}

/// The entry that was measured on GPUs of these models with as many links.
fn sound_host(facts: &Facts) -> Option<&'static SoundHost> {
    let models = facts.get(key::RUN_GPU_MODELS).value()?;
    let links = facts.get(key::RUN_NVLINK_GB_S).value()?;
    let is_of = |host: &SoundHost, model: &String| host.models.iter().any(|word| model.contains(word.as_str()));
    SOUND.iter().find(|host| host.nvlink_gb_s == *links && models.iter().all(|model| is_of(host, model)))
}

impl<'a> Measured<'a> {
    fn of(part: &'a Measurement) -> Option<Self> {
        Some(Self {
            operation: part.operation.text()?,
            bytes: part.bytes.copied()?,
            median: part.busbw()?,
            best: part.best_busbw()?,
        })
    }

    /// The share of what a sound host reaches, in percent, and the comparison in words. `None` without a row to compare with.
    fn compared(&self, ranks: i64, rows: &[SoundSpeed]) -> Option<(i64, String)> {
        let is_below =
            |row: &&SoundSpeed| row.operation == self.operation && row.ranks <= ranks && row.mib << 20 <= self.bytes;
        let row = rows.iter().filter(is_below).max_by_key(|row| (row.ranks, row.mib))?;
        let percent = whole((self.best / 1e9 / row.gb_s * 100.0).floor());
        let text = format!(
            "{} of {}: {:.1} GB/s, {percent} % of {:.0}",
            self.operation,
            size(self.bytes),
            self.median / 1e9,
            row.gb_s
        );
        Some((percent, text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::super::{JobGpus, add};
    use super::*;

    /// The facts of two H200, with these bandwidths in GB/s and these runs without variables.
    fn facts_of(speeds: &[(&str, f64)], without: &Json) -> Facts {
        facts_at(1 << 28, speeds, without)
    }

    fn facts_at(bytes: u64, speeds: &[(&str, f64)], without: &Json) -> Facts {
        let link = json!({"active": true, "speed_mbytes_per_s": 26562});
        let gpu = json!({"index": 0, "name": "NVIDIA H200", "nvlinks": vec![link; 18]});
        facts_on(&gpu, 2, bytes, speeds, without)
    }

    fn facts_on(gpu: &Json, ranks: u32, bytes: u64, speeds: &[(&str, f64)], without: &Json) -> Facts {
        // A line of the program begins with the version of the protocol.
        let line = |step: &str, event: &str, body: Json| {
            format!(r#"{{"ncclcheck":1,"event":"{event}","step":"{step}","seconds":1.0,"body":{body}}}"#)
        };
        let mut lines = vec![
            line("limits", "result", json!({"variables": {"NCCL_PROTO": "LL", "NCCL_NTHREADS": "64"}})),
            line("gpus", "result", json!({"gpus": [gpu, gpu]})),
            line("collectives", "part", json!({"kind": "setup", "world_size": ranks})),
        ];
        lines.extend(speeds.iter().map(|(operation, speed)| {
            let seconds = 0.268_435_456 / speed;
            let body = json!({"kind": "measurement", "operation": operation, "bytes": bytes, "seconds_min": seconds,
                "seconds_median": seconds, "busbw_bytes_per_second": speed * 1e9});
            line("collectives", "part", body)
        }));
        lines.push(line("collectives", "result", json!({"without_variables": without})));
        let mut facts = Facts::default();
        add(&Recording::read(lines.join("\n").as_bytes()), &JobGpus::default(), &mut facts);
        facts
    }

    fn shown(facts: &Facts, key: &Definition) -> String {
        match facts.view(key) {
            Fact::Seen { value, .. } => value.to_string(),
            Fact::Absent => "-".to_owned(),
            Fact::Unknown(gap) => format!("? {gap}"),
        }
    }

    /// A run without variables at this bandwidth of all_reduce in GB/s.
    fn run(variables: &[&str], speed: f64) -> Json {
        let seconds = 0.268_435_456 / speed;
        json!({"variables": variables, "failed": null,
            "sizes": [{"bytes": 1 << 28, "median_seconds": seconds, "samples": [seconds, seconds]}]})
    }

    #[test]
    fn operations_are_compared_with_sound_hosts() {
        let facts = facts_of(&[("all_reduce", 297.0), ("alltoall", 135.2), ("broadcast", 320.0)], &json!([]));
        let slow = "alltoall of 256 MiB: 135.2 GB/s, 51 % of 264, broadcast of 256 MiB: 320.0 GB/s, 88 % of 360";
        assert_eq!(shown(&facts, &key::RUN_NCCL_SLOW), slow);
        assert_eq!(shown(&facts, &key::RUN_NCCL_PERCENT), "51");
        let sound = facts_of(&[("all_reduce", 282.3)], &json!([]));
        assert_eq!(shown(&sound, &key::RUN_NCCL_SLOW), "-");
        assert_eq!(shown(&sound, &key::RUN_NCCL_PERCENT), "95");
    }

    #[test]
    fn gpus_are_compared_with_their_own_model_and_links() {
        let percent = |name: &str, links: usize, ranks: u32| {
            let link = json!({"active": true, "speed_mbytes_per_s": 25000});
            let gpu = json!({"index": 0, "name": name, "nvlinks": vec![link; links]});
            let facts = facts_on(&gpu, ranks, 1 << 28, &[("all_reduce", 110.5), ("broadcast", 20.0)], &json!([]));
            shown(&facts, &key::RUN_NCCL_PERCENT)
        };
        assert_eq!(percent("NVIDIA A100-SXM4-80GB", 12, 8), "50");
        for (name, links, ranks) in
            [("NVIDIA A100-SXM4-80GB", 12, 4), ("NVIDIA A100-SXM4-80GB", 8, 8), ("NVIDIA A100 80GB PCIe", 12, 8)]
        {
            assert_eq!(percent(name, links, ranks), "-", "{name} {links} {ranks}");
        }
    }

    #[test]
    fn a_variable_is_the_cause_if_the_run_without_it_is_faster() {
        let slow: &[(&str, f64)] = &[("all_reduce", 120.1), ("alltoall", 96.0)];
        let facts = facts_of(slow, &json!([run(&["NCCL_PROTO"], 296.3)]));
        assert_eq!(shown(&facts, &key::RUN_SLOWED_BY_VARIABLES), "NCCL_PROTO=LL");
        assert_eq!(shown(&facts, &key::RUN_SLOWED_PERCENT), "41");
        assert_eq!(shown(&facts, &key::RUN_NCCL_SLOW), "-");
        let mut small = run(&["NCCL_PROTO"], 296.3);
        small["sizes"][0]["bytes"] = json!(400);
        assert_eq!(shown(&facts_at(400, slow, &json!([small])), &key::RUN_SLOWED_BY_VARIABLES), "-");
        let no_gain = facts_of(slow, &json!([run(&["NCCL_PROTO"], 121.0)]));
        assert_eq!(shown(&no_gain, &key::RUN_SLOWED_BY_VARIABLES), "-");
        assert_eq!(shown(&no_gain, &key::RUN_NCCL_PERCENT), "36");
    }

    #[test]
    fn of_several_variables_those_that_alone_make_a_difference_are_named() {
        let both = ["NCCL_NTHREADS", "NCCL_PROTO"];
        let one = json!([run(&both, 297.0), run(&both[..1], 5.2), run(&both[1..], 20.8)]);
        assert_eq!(shown(&facts_of(&[("all_reduce", 5.2)], &one), &key::RUN_SLOWED_BY_VARIABLES), "NCCL_PROTO=LL");
        let together = json!([run(&both, 297.0), run(&both[..1], 5.2), run(&both[1..], 5.2)]);
        let facts = facts_of(&[("all_reduce", 5.2)], &together);
        assert_eq!(shown(&facts, &key::RUN_SLOWED_BY_VARIABLES), "NCCL_NTHREADS=64, NCCL_PROTO=LL");
    }

    #[test]
    fn the_rank_that_waits_most_for_a_cpu_counts() {
        let wait = |waits: Json| {
            let body = crate::wire::read(json!({"cpu_waits": waits}).as_object().unwrap());
            cpu_wait(&body).map_err(|gap| gap.why)
        };
        let rank = |waited: Json| json!({"rank": 0, "seconds": 2.0, "waited_seconds": waited});
        assert_eq!(wait(json!([rank(json!(0.1)), rank(json!(1.18))])), Ok(Some(59)));
        assert_eq!(wait(json!([])), Ok(None));
        let unread =
            json!({"rank": 1, "seconds": 2.0, "waited_seconds": null, "unread": {"waited_seconds": "no times"}});
        assert!(wait(json!([rank(json!(0.1)), unread])).unwrap_err().contains("no times"));
    }

    #[test]
    fn every_row_is_of_an_operation_and_has_a_source() {
        for row in SOUND.iter().flat_map(|host| &host.rows) {
            assert!(!row.source.is_empty() && row.gb_s > 0.0 && row.mib >= 64, "{row:?}");
        }
    }
}
