//! Hosts that an image is judged for: described as text or in a file, or recorded on the host itself.

use std::collections::BTreeMap;
use std::path::Path;

use facts::Facts;
use facts::machine::Host;
use facts::machine::Record;
use model::Limits;
use model::document::{Document, read_text};

/// What a host is, for those who gave another file.
pub const HOST_FORM: &str =
    "`ncclcheck host --format json=FILE` records a host; driver=550.54,gpu=h100x8 describes one";

/// A host, described by the user or recorded by `ncclcheck host`.
#[derive(Debug)]
pub struct HostDescription {
    /// The host's description, from the user or derived from the record.
    pub host: Host,
    record: Option<Record>,
}

/// Reason why a host cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option}: {why}")]
#[non_exhaustive]
pub struct HostsError {
    /// The command-line option and its value: `--host TEXT`.
    pub option: String,
    /// Description of the problem.
    pub why: String,
}

impl From<Host> for HostDescription {
    fn from(host: Host) -> Self {
        Self { host, record: None }
    }
}

impl From<Record> for HostDescription {
    fn from(record: Record) -> Self {
        Self { host: record.host(), record: Some(record) }
    }
}

impl HostDescription {
    /// The record, if the host was recorded.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Adds the facts about this host, and about the image on it, to the facts about an image.
    pub(super) fn add_to(&self, facts: &Facts) -> Facts {
        match &self.record {
            Some(record) => facts.on_recorded(&self.host, record),
            None => facts.on(&self.host),
        }
    }
}

/// Reads hosts in the order of the arguments. A text is `KEY=VALUE,…` or the path of a file: a list of such maps, or a
/// record that `ncclcheck host` wrote. Two hosts with the same name are an error.
pub fn read_hosts(texts: &[String]) -> Result<Vec<HostDescription>, HostsError> {
    let mut hosts: Vec<HostDescription> = Vec::new();
    let mut add = |option: String, found: Result<Vec<HostDescription>, String>| {
        let failed = |why| HostsError { option: option.clone(), why };
        for described in found.map_err(failed)? {
            if hosts.iter().any(|other| other.host.name == described.host.name) {
                return Err(failed(format!("two hosts are named '{}'", described.host)));
            }
            hosts.push(described);
        }
        Ok(())
    };
    for text in texts {
        add(format!("--host {text}"), one(text))?;
    }
    Ok(hosts)
}

/// Parses `KEY=VALUE,…`, or reads the file at a path, which may follow an `@`.
fn one(text: &str) -> Result<Vec<HostDescription>, String> {
    let described = |hosts: Vec<Host>| hosts.into_iter().map(HostDescription::from).collect();
    match text.strip_prefix('@') {
        None if text.contains('=') => Ok(vec![text.parse::<Host>()?.into()]),
        file => {
            let name = file.unwrap_or(text);
            let text = read_text(Path::new(name), &Limits::default()).map_err(|error| {
                let help = match format!("gpu={name}").parse::<Host>() {
                    Ok(_) => format!("a host with this GPU is gpu={name}"),
                    Err(why) => match why.rsplit_once("did you mean ") {
                        Some((_, near)) => format!("did you mean gpu={near}"),
                        None => "a host is KEY=VALUE,... such as driver=550.54,gpu=h100x8, or a file".to_owned(),
                    },
                };
                format!("{}\n  help: {help}", error.why)
            })?;
            let document = Document { name, text: &text };
            let hosts = if Record::is_one(&text) {
                let record = Record::parse(document);
                record
                    .map(|record| vec![record.into()])
                    .map_err(|why| format!("not a record of `ncclcheck host`: {why}"))
            } else {
                listed(document).map(described)
            };
            hosts.map_err(|why| if why.contains("\n  help: ") { why } else { format!("{why}\n  help: {HOST_FORM}") })
        }
    }
}

/// Parses a file with a list of maps, or one map.
fn listed(document: Document<'_>) -> Result<Vec<Host>, String> {
    // Versions are read as text, since a number would lose a trailing zero: 535.10 is not 535.1.
    type Pairs = BTreeMap<String, String>;
    let pairs: Vec<Pairs> = match document.parse() {
        Ok(pairs) => pairs,
        // If the document is neither, the error for the list is reported, since a list is the usual form.
        Err(why) => match document.parse::<Pairs>() {
            Ok(pairs) => vec![pairs],
            Err(_) => return Err(format!("not a list of hosts: {why}")),
        },
    };
    if pairs.is_empty() {
        return Err("the file contains no hosts".to_owned());
    }
    let host = |(index, pairs): (usize, &Pairs)| {
        let host = Host::from_pairs(pairs.iter().map(|(key, value)| (&**key, &**value)));
        host.map_err(|error| format!("host {}: {error}", index + 1))
    };
    pairs.iter().enumerate().map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Vec<Host>, String> {
        listed(Document { name: "hosts.yaml", text })
    }

    #[test]
    fn files_of_hosts() {
        let hosts = of("- name: old\n  driver: 535.10\n  gpu: a100x8\n- {gpu: h100, rdma: none}\n").unwrap();
        assert_eq!(hosts[0].driver.as_ref().unwrap().as_str(), "535.10");
        assert_eq!(hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), ["old", "gpu=h100,rdma=none"]);
        assert_eq!(of("driver: '550.54'\n").unwrap().len(), 1);
        for (yaml, why) in [
            ("- driver: 5\n", "host 1: invalid version driver=5"),
            ("- [a]\n", "not a list of hosts"),
            ("[]", "the file contains no hosts"),
            ("", "the file contains no hosts"),
        ] {
            let error = of(yaml).unwrap_err();
            assert!(error.contains(why), "{yaml}: {error}");
        }
    }

    #[test]
    fn two_hosts_may_not_share_a_name() {
        let text = "gpu=t4".to_owned();
        let error = read_hosts(&[text.clone(), text]).unwrap_err().to_string();
        assert!(error.contains("two hosts are named 'gpu=t4'"), "{error}");
        let error = read_hosts(&["/nonexistent/hosts.yaml".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("--host /nonexistent/hosts.yaml: no such file"), "{error}");
    }

    #[test]
    fn a_name_that_is_no_file_gets_help() {
        for (text, help) in [
            ("h100x8", "a host with this GPU is gpu=h100x8"),
            ("h1000x8", "did you mean gpu=h100x8?"),
            ("rack.yaml", "a host is KEY=VALUE,... such as driver=550.54,gpu=h100x8, or a file"),
        ] {
            let error = read_hosts(&[text.to_owned()]).unwrap_err().to_string();
            assert!(error.ends_with(&format!("\n  help: {help}")), "{error}");
        }
    }
}
