//! `--host` and `--host-facts`: hosts that an image is judged for, typed, in a file, or recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::document::Document;
use crate::facts::Facts;
use crate::host::Record;
use crate::model::{Host, HostError, Limits};

use super::{Failure, files};

/// A host, as somebody described it or as it was recorded.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) host: Host,
    record: Option<Record>,
}

impl Described {
    /// The facts about an image, with those about this host and about the image on it.
    pub(super) fn add_to(&self, facts: &Facts) -> Facts {
        match &self.record {
            Some(record) => facts.on_recorded(&self.host, record),
            None => facts.on(&self.host),
        }
    }
}

/// All hosts, in the order in which they were given, the described ones first.
pub(super) fn hosts(texts: &[String], records: &[PathBuf]) -> Result<Vec<Described>, Failure> {
    let mut hosts: Vec<Described> = Vec::new();
    let mut add = |option: &str, found: Result<Vec<Described>, String>| {
        for described in found.map_err(|why| Failure::Usage(format!("{option}: {why}")))? {
            if hosts.iter().any(|other| other.host.name == described.host.name) {
                return Err(Failure::Usage(format!("{option}: two hosts are called '{}'", described.host)));
            }
            hosts.push(described);
        }
        Ok(())
    };
    for text in texts {
        let described = |host| Described { host, record: None };
        add(&format!("--host {text}"), one(text).map(|hosts| hosts.into_iter().map(described).collect()))?;
    }
    for path in records {
        add(&format!("--host-facts {}", path.display()), recorded(path).map(|host| vec![host]))?;
    }
    Ok(hosts)
}

/// A record's file.
fn recorded(path: &Path) -> Result<Described, String> {
    let text = files::text(path, &Limits::default())?;
    let name = path.display().to_string();
    let record = Record::parse(Document { name: &name, text: &text })
        .map_err(|mistake| format!("it is no record as `ncclcheck host` writes it: {mistake}"))?;
    Ok(Described { host: record.host(), record: Some(record) })
}

/// `KEY=VALUE,…`, or a file's path, which may have an `@` before it.
fn one(text: &str) -> Result<Vec<Host>, String> {
    match text.strip_prefix('@') {
        None if text.contains('=') => Ok(vec![text.parse().map_err(|error: HostError| error.to_string())?]),
        file => {
            let name = file.unwrap_or(text);
            listed(Document { name, text: &files::text(Path::new(name), &Limits::default())? })
        }
    }
}

/// A file's hosts: a list of maps, or one map.
fn listed(document: Document<'_>) -> Result<Vec<Host>, String> {
    // As text, a version keeps what a number would lose: 535.10 is not 535.1.
    type Pairs = BTreeMap<String, String>;
    let pairs: Vec<Pairs> = match document.parse() {
        Ok(pairs) => pairs,
        // What is wrong is told of the list: one map is the lesser form.
        Err(why) => match document.parse::<Pairs>() {
            Ok(pairs) => vec![pairs],
            Err(_) => return Err(format!("it is no list of hosts: {why}")),
        },
    };
    if pairs.is_empty() {
        return Err("there is no host in it".to_owned());
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
            ("- driver: 5\n", "host 1: driver=5 is no version"),
            ("- [a]\n", "it is no list of hosts"),
            ("[]", "there is no host in it"),
            ("", "there is no host in it"),
        ] {
            let error = of(yaml).unwrap_err();
            assert!(error.contains(why), "{yaml}: {error}");
        }
    }

    #[test]
    fn hosts_have_names_of_their_own() {
        let text = "gpu=t4".to_owned();
        let error = hosts(&[text.clone(), text], &[]).unwrap_err().to_string();
        assert!(error.contains("two hosts are called 'gpu=t4'"), "{error}");
        let error = hosts(&["/nonexistent/hosts.yaml".to_owned()], &[]).unwrap_err().to_string();
        assert!(error.contains("--host /nonexistent/hosts.yaml: No such file"), "{error}");
    }
}
