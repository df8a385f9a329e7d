//! Jobs, by their logs: the facts that a log shows.

mod given;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use facts::Facts;
use facts::key::{self, Definition, definitions};
use facts::records::JobHost;
use flate2::bufread::MultiGzDecoder;
use model::{Fact, Gap, ImageSummary, Site, cause};
use nccllog::{Failure, HostStory, Job, JobReader, TextError, is_local, ranks};

pub use given::Given;

/// Reason why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A log could not be read to its end.
    #[error("{log}: {}", reason(why))]
    Read {
        /// The log.
        log: String,
        /// The reason.
        why: TextError,
    },
    /// There is nothing to judge.
    #[error("{0}: is empty\n  help: give what the job printed, on standard output and on standard error")]
    Empty(String),
    /// The log is of another library.
    #[error("{log}: is a log of {library}, not of NCCL, and is not judged")]
    Other {
        /// The log.
        log: String,
        /// The library.
        library: &'static str,
    },
}

/// Why a text cannot be read, without the number of an error of the system.
fn reason(why: &TextError) -> String {
    match why {
        TextError::Read(error) if error.kind() == io::ErrorKind::NotFound => {
            format!(
                "{}\n  help: name the file that has what the job printed, such as slurm-JOBID.out; - is standard input",
                cause(error)
            )
        }
        TextError::Read(error) => cause(error),
        TextError::Utf16 | TextError::Binary(_) => why.to_string(),
    }
}

/// Reads the logs of a job, plain or compressed with gzip; `-` is standard input. A log may hold several jobs, one after the
/// other.
pub fn read<P: AsRef<Path>>(logs: &[P]) -> Result<Vec<Job>, LogError> {
    let mut reader = JobReader::default();
    for log in logs.iter().map(AsRef::as_ref) {
        let name = if log == Path::new("-") { "standard input".to_owned() } else { log.display().to_string() };
        let read = open(log).map_err(TextError::from).and_then(|source| reader.read(&name, source));
        read.map_err(|why| LogError::Read { log: name, why })?;
    }
    checked(reader.finish())
}

/// Reads a log that is a text.
pub fn read_text(name: &str, text: &str) -> Result<Vec<Job>, LogError> {
    let mut reader = JobReader::default();
    reader.read(name, text.as_bytes()).map_err(|why| LogError::Read { log: name.to_owned(), why })?;
    checked(reader.finish())
}

/// Jobs of which each can be judged.
fn checked(jobs: Vec<Job>) -> Result<Vec<Job>, LogError> {
    for job in &jobs {
        let log = job.logs.join(", ");
        if job.lines == 0 {
            return Err(LogError::Empty(log));
        }
        if let Some(library) = job.other_library {
            return Err(LogError::Other { log, library });
        }
    }
    Ok(jobs)
}

/// Opens a log. Of a file that grows, only what is there now is read.
fn open(log: &Path) -> io::Result<Box<dyn BufRead>> {
    const BUFFER: usize = 256 << 10;
    let source: Box<dyn Read> = if log == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(log)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder; name the logs in it"));
        }
        if metadata.is_file() { Box::new(file.take(metadata.len())) } else { Box::new(file) }
    };
    let mut source = BufReader::with_capacity(BUFFER, source);
    let is_gzip = source.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip { Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(source))) } else { Box::new(source) })
}

/// The job, as a report names it. `number` is its place among several.
pub fn summary(job: &Job, number: Option<usize>) -> ImageSummary {
    let logs = match &*job.logs {
        [one] => one.clone(),
        several => {
            format!("{} and {} more logs", several.first().map_or("", |first| first), several.len().saturating_sub(1))
        }
    };
    let reference = number.map_or_else(|| logs.clone(), |number| format!("{logs}, job {number}"));
    ImageSummary { reference, notes: notes(job), ..ImageSummary::default() }
}

/// What the logs cannot show, and what would.
fn notes(job: &Job) -> Vec<String> {
    let quiet = !has_information(job);
    quiet.then(|| format!("the log does not show what NCCL used; run the job again with {MORE}")).into_iter().collect()
}

/// Variables with which NCCL says what it does.
const MORE: &str = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH";

/// Returns true if lines of level INFO show the networks of a job.
fn has_information(job: &Job) -> bool {
    let shows = |host: &HostStory| {
        !host.log.network.is_empty() || !host.log.bootstrap.is_empty() || !host.log.gpu_direct.is_empty()
    };
    job.hosts.iter().any(shows)
}

/// Facts that need no line of level INFO.
const OF_FAILURES: &[&Definition] = definitions![
    JOB_LINES,
    JOB_FIRST,
    JOB_CAUSES,
    JOB_CONSEQUENCES,
    JOB_SILENT_RANKS,
    JOB_UNMATCHED_NAMES,
    JOB_BUSBW,
    JOB_BUSBW_DROP,
    JOB_WRONG_VALUES
];

/// The facts of a job.
pub fn facts(job: &Job, given: &Given<'_>) -> Facts {
    let mut facts = Facts::default();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    facts.insert(key::JOB_LINES, known(i64::try_from(job.lines).unwrap_or(i64::MAX)));
    facts.insert(key::JOB_FIRST, job.causes.first().map_or(Fact::Absent, |first| known(first.kind.clone())));
    facts.insert(key::JOB_CAUSES, by_kind(&job.causes));
    facts.insert(key::JOB_CONSEQUENCES, by_kind(&job.consequences));
    facts.insert(key::JOB_SILENT_RANKS, if job.silent.is_empty() { Fact::Absent } else { known(ranks(&job.silent)) });
    for (key, value) in [
        (key::JOB_BUSBW, &job.busbw),
        (key::JOB_BUSBW_DROP, &job.busbw_drop),
        (key::JOB_WRONG_VALUES, &job.wrong_values),
    ] {
        facts.insert(key, value.clone().map_or(Fact::Absent, known));
    }
    facts.insert(key::JOB_UNMATCHED_NAMES, list(given::unmatched_names(job, given).into_iter()));
    if !has_information(job) {
        let settle = Some(format!("run the job with {MORE}"));
        let gap = Gap { settle, ..Gap::new("the log has no line of NCCL at level INFO") };
        let of_information = key::KEYS.iter().copied().filter(|key| key.is_of_job() && !OF_FAILURES.contains(key));
        of_information.for_each(|key| facts.insert_value(key, Fact::Unknown(gap.clone())));
        return facts;
    }
    let of_hosts = |texts: &dyn Fn(&HostStory) -> Vec<String>| {
        list(job.hosts.iter().flat_map(|host| {
            texts(host).into_iter().map(|text| format!("{text} on {}", host.name)).collect::<Vec<_>>()
        }))
    };
    let all_started = job.ranks.is_some_and(|ranks| count(job.started.len()) == i64::from(ranks));
    let several = job.hosts.len() > 1 || job.nodes.is_some_and(|nodes| nodes > 1);
    facts.insert(key::JOB_HOSTS, known(job.hosts.iter().map(host_record).collect()));
    let is_known = several || job.nodes.is_some() || all_started;
    let gap = || Fact::unknown("the logs do not show on how many hosts the ranks run");
    facts.insert(key::JOB_SEVERAL_HOSTS, if is_known { known(several) } else { gap() });
    facts.insert(key::JOB_RANKS, job.ranks.map_or(Fact::Absent, |ranks| known(i64::from(ranks))));
    facts.insert(key::JOB_NODES, job.nodes.map_or(Fact::Absent, |nodes| known(i64::from(nodes))));
    let miscounted = job.nodes.filter(|nodes| all_started && i64::from(*nodes) > count(job.hosts.len()));
    let miscounted = miscounted.map(|nodes| format!("{nodes} in place of {}", job.hosts.len()));
    facts.insert(key::JOB_MISCOUNTED, miscounted.map_or(Fact::Absent, known));
    let releases = job.hosts.iter().flat_map(|host| &host.nccl).chain(&job.releases);
    facts.insert(key::JOB_RELEASES, list(releases.cloned()));
    facts.insert(key::JOB_NETWORKS, list(job.hosts.iter().flat_map(|host| host.log.network.clone())));
    facts.insert(key::JOB_RDMA_MEANT, of_hosts(&rdma_meant));
    let refused_at = job.hosts.iter().filter_map(|host| host.refused_at.clone());
    let refused_at = refused_at.map(|(file, line)| Site::Log { file, line, entry: "refused".to_owned() });
    facts.insert(key::JOB_RDMA_REFUSED, of_hosts(&rdma_refused).and_then(|texts, _| Fact::seen(texts, refused_at)));
    facts.insert(key::JOB_DIFFERENCES, list(differences(job).into_iter()));
    facts.insert(key::JOB_VIRTUAL_INTERFACES, of_hosts(&virtual_interfaces));
    facts.insert(key::JOB_SHARED_ADDRESSES, list(shared_addresses(job).into_iter()));
    facts.insert(
        key::JOB_GPU_DIRECT_OFF,
        of_hosts(&|host| {
            host.log.gpu_direct.iter().filter(|(_, is_on)| !**is_on).map(|(device, _)| device.clone()).collect()
        }),
    );
    facts.insert(
        key::JOB_THROUGH_MEMORY,
        of_hosts(&|host| {
            let pairs = host.log.pairs.iter().filter(|(_, transports)| transports.contains("SHM"));
            pairs.map(|((from, to), _)| format!("{from} -> {to}")).collect()
        }),
    );
    facts.insert(
        key::JOB_IGNORED_SETTINGS,
        of_hosts(&|host| {
            host.log
                .invalid_variables
                .iter()
                .chain(&host.log.plugin_errors)
                .chain(&host.log.unopened_files)
                .cloned()
                .collect()
        }),
    );
    facts.insert(key::JOB_UNREAD_SETTINGS, list(given::unread_settings(job, given).into_iter()));
    let missing: Vec<u32> = (0..job.ranks.unwrap_or_default()).filter(|rank| !job.started.contains(rank)).collect();
    let is_unfinished = job.completed.is_empty() && !job.started.is_empty();
    let text =
        |ranks_of: Vec<u32>| if is_unfinished && !ranks_of.is_empty() { known(ranks(&ranks_of)) } else { Fact::Absent };
    facts.insert(key::JOB_UNSTARTED, text(missing));
    facts.insert(key::JOB_UNCOMPLETED, text(job.started.clone()));
    facts
}

fn known<T>(value: T) -> Fact<T> {
    Fact::seen(value, [])
}

/// A list of distinct texts in their order; absent if empty.
fn list(texts: impl Iterator<Item = String>) -> Fact<Vec<String>> {
    let mut seen = BTreeSet::new();
    let texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    if texts.is_empty() { Fact::Absent } else { known(texts) }
}

/// Failures by kind, each with its line.
fn by_kind(failures: &[Failure]) -> Fact<BTreeMap<String, String>> {
    if failures.is_empty() {
        return Fact::Absent;
    }
    let mut texts = BTreeMap::new();
    for failure in failures {
        texts.entry(failure.kind.clone()).or_insert_with(|| text_of(failure));
    }
    let site = |failure: &Failure| {
        let (file, line) = failure.at.clone()?;
        Some(Site::Log { file, line, entry: failure.kind.clone() })
    };
    Fact::seen(texts, failures.iter().filter_map(site))
}

/// Characters of a message that are shown.
const LONGEST: usize = 400;

/// A failure in one line: the message, its rank and host, and the ranks that report the same.
fn text_of(failure: &Failure) -> String {
    let place = match (failure.rank, &failure.host) {
        (Some(rank), Some(host)) => format!(" (rank {rank} on {host})"),
        (Some(rank), None) => format!(" (rank {rank})"),
        (None, Some(host)) => format!(" (on {host})"),
        (None, None) => String::new(),
    };
    let others: Vec<u32> = failure.more_ranks.iter().copied().filter(|rank| failure.rank != Some(*rank)).collect();
    let others = if others.is_empty() { String::new() } else { format!("; also {}", ranks(&others)) };
    let message: String = failure.message.chars().take(LONGEST).collect();
    format!("{message}{place}{others}")
}

fn host_record(host: &HostStory) -> JobHost {
    let joined = |texts: &BTreeSet<String>| texts.iter().cloned().collect::<Vec<_>>().join(", ");
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let addressed = |interfaces: &BTreeSet<String>| {
        let text = |interface: &String| match host.log.addresses.get(interface) {
            Some(address) => format!("{interface} {address}"),
            None => interface.clone(),
        };
        some(interfaces.iter().map(text).collect::<Vec<_>>().join(", "))
    };
    let uses_nvls = host.log.channels.is_some_and(|(_, nvls, _)| nvls > 0);
    let transports = host.log.transports().into_iter().chain(uses_nvls.then_some("NVLS"));
    let direct = host.log.gpu_direct.iter().filter(|(_, is_on)| **is_on).map(|(device, _)| device.clone());
    JobHost {
        name: Some(host.name.clone()),
        ranks: if host.ranks.is_empty() { None } else { Some(ranks(&host.ranks)) },
        nccl: some(joined(&host.nccl)),
        cuda: host.log.cuda.clone(),
        driver_cuda: host.log.driver_cuda.clone(),
        network: some(joined(&host.log.network)),
        plugins: some(joined(&host.log.plugins)),
        bootstrap: addressed(&host.log.bootstrap),
        sockets: addressed(&host.log.sockets),
        devices: some(joined(&host.log.ib_devices)),
        gpu_direct: some(direct.collect::<Vec<_>>().join(", ")),
        gids: some(joined(&host.log.gids)),
        rails: some(host.log.rails.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        settings: some(
            host.log.variables.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", "),
        ),
        transports: some(transports.collect::<Vec<_>>().join(", ")),
        init: host.log.slowest_init.clone(),
    }
}

/// Settings that disable RDMA.
fn rdma_disabled(host: &HostStory) -> impl Iterator<Item = String> {
    let disabling = [("NCCL_IB_DISABLE", "1"), ("NCCL_NET", "Socket")];
    let is_set = |(name, value): &(&str, &str)| host.log.variables.get(*name).is_some_and(|own| own == value);
    disabling.into_iter().filter(is_set).map(|(name, value)| format!("{name}={value}"))
}

/// What shows that a host was to use RDMA; nothing where a setting disables it.
fn rdma_meant(host: &HostStory) -> Vec<String> {
    if rdma_disabled(host).next().is_some() {
        return Vec::new();
    }
    let settings = ["NCCL_IB_HCA", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_GID_INDEX"];
    let is_meant = |(name, value): &(&String, &String)| {
        settings.contains(&name.as_str()) && !matches!(value.as_str(), "none" | "")
    };
    let settings = host.log.variables.iter().filter(is_meant).map(|(name, value)| format!("{name}={value}"));
    settings.chain(host.log.plugins.iter().cloned()).chain(host.log.ib_devices.iter().cloned()).collect()
}

/// Why a host uses no RDMA, in NCCL's words.
fn rdma_refused(host: &HostStory) -> Vec<String> {
    let log = &host.log;
    let plugins = log.uninitialized.iter().filter(|name| *name != "IB");
    let plugins = plugins.map(|name| format!("{name} cannot be initialized"));
    let missing = log.ib_none.iter().map(|why| why.trim_end_matches('.').to_owned());
    missing.chain(plugins).chain(log.plugin_errors.iter().cloned()).chain(rdma_disabled(host)).collect()
}

/// Interfaces in use that reach no other host.
fn virtual_interfaces(host: &HostStory) -> Vec<String> {
    let used: BTreeSet<&String> = host.log.bootstrap.iter().chain(host.log.sockets.iter()).collect();
    let address = |interface: &String| host.log.addresses.get(interface).map_or("", |address| address);
    let local = used.into_iter().filter(|interface| is_local(interface, address(interface)));
    local.map(|interface| format!("{interface} {}", address(interface)).trim_end().to_owned()).collect()
}

/// Addresses that several hosts announce.
fn shared_addresses(job: &Job) -> Vec<String> {
    let mut hosts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for host in &job.hosts {
        for address in host.log.addresses.values().filter(|address| !address.starts_with("127.") && *address != "::1") {
            hosts.entry(address).or_default().insert(&host.name);
        }
    }
    let shared = hosts.into_iter().filter(|(_, hosts)| hosts.len() > 1);
    shared
        .map(|(address, hosts)| format!("{address} of {}", hosts.into_iter().collect::<Vec<_>>().join(", ")))
        .collect()
}

/// What differs between hosts and must not.
fn differences(job: &Job) -> Vec<String> {
    // Settings of which every rank needs the same, and which NCCL does not compare.
    const SAME: [&str; 9] = [
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NCCL_BUFFSIZE",
        "NCCL_NTHREADS",
        "NCCL_MIN_NCHANNELS",
        "NCCL_MAX_NCHANNELS",
        "NCCL_CROSS_NIC",
        "NCCL_NVLS_ENABLE",
        "NCCL_CUMEM_HOST_ENABLE",
    ];
    let compare = |what: &str, value: &dyn Fn(&HostStory) -> Option<String>| {
        let mut hosts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for host in &job.hosts {
            if let Some(value) = value(host) {
                hosts.entry(value).or_default().push(&host.name);
            }
        }
        let texts = || hosts.iter().map(|(value, hosts)| format!("{value} on {}", some_of(hosts))).collect::<Vec<_>>();
        (hosts.len() > 1).then(|| format!("{what}: {}", texts().join("; ")))
    };
    let joined = |texts: &BTreeSet<String>| {
        Some(texts.iter().cloned().collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
    };
    let mut found: Vec<String> = compare("NCCL", &|host| joined(&host.nccl)).into_iter().collect();
    let of_several = job.hosts.iter().filter(|host| host.nccl.len() > 1);
    found.extend(of_several.filter_map(|host| Some(format!("NCCL: {} on {}", joined(&host.nccl)?, host.name))));
    if job.releases.len() > 1 {
        found.extend(joined(&job.releases).map(|releases| format!("NCCL: {releases}, in lines that name no host")));
    }
    // The communicators of one host may use different networks.
    found.extend(compare("network", &|host| joined(&host.log.network).filter(|_| host.log.network.len() == 1)));
    // A setting that a log does not have may be set all the same.
    found.extend(SAME.iter().filter_map(|name| compare(name, &|host| host.log.variables.get(*name).cloned())));
    found
}

/// The first of some hosts, and the number of the others.
fn some_of(hosts: &[&str]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<&str> = hosts.iter().take(SHOWN).copied().collect();
    match hosts.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use judge::Rulebook;
    use judge::rules::{Outcome, Rule};

    use super::*;
    use crate::check::Check;

    /// The rules that fail for a log of the fixtures, with severity warning or error.
    fn findings(name: &str) -> Vec<String> {
        let rulebook = Rulebook::builtin(crate::shipped()).unwrap().only(Rule::is_of_job);
        let jobs = read(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/logs").join(name)]).unwrap();
        let rules = jobs.iter().flat_map(|job| {
            let assessment = Check::new(&rulebook).assess(facts(job, &Given::default()), None, &summary(job, None));
            let judgements = assessment.judgements.unwrap_or_default();
            let failed = judgements.into_iter().filter(|judgement| matches!(judgement.outcome, Outcome::Fail(_)));
            failed.map(|judgement| judgement.rule.id.trim_start_matches("job/").to_owned()).collect::<Vec<_>>()
        });
        rules.collect()
    }

    #[test]
    fn causes_of_logs() {
        let expected = std::fs::read_to_string("fixtures/logs/expected.tsv").unwrap();
        for line in expected.lines().filter(|line| !line.starts_with('#')) {
            let (name, rules) = line.split_once('\t').unwrap();
            assert_eq!(findings(name).join(" "), rules, "{name}");
        }
    }

    /// Every kind of failure has a rule, so that no cause goes without a finding.
    #[test]
    fn every_kind_has_a_rule() {
        let rulebook = Rulebook::builtin(crate::shipped()).unwrap();
        let conditions: Vec<String> = rulebook.rules().iter().map(|rule| rule.conditions().1.to_owned()).collect();
        for kind in nccllog::failure_kinds() {
            let has_rule = conditions.iter().any(|condition| condition.contains(&format!("'{kind}' in job.causes")));
            assert!(has_rule, "{kind}");
        }
    }
}
