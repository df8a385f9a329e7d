//! `--host`: hosts that an image is judged for, typed or in a file.

use std::collections::BTreeMap;
use std::fs;

use crate::document::Document;
use crate::model::{Host, HostError};

use super::Failure;

/// All hosts, in the order in which they were given.
pub(super) fn hosts(texts: &[String]) -> Result<Vec<Host>, Failure> {
    let mut hosts: Vec<Host> = Vec::new();
    for text in texts {
        for host in one(text).map_err(|why| Failure::Usage(format!("--host {text}: {why}")))? {
            if hosts.iter().any(|other| other.name == host.name) {
                return Err(Failure::Usage(format!("--host {text}: two hosts are called '{host}'")));
            }
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// `KEY=VALUE,…`, or a file's path, which may have an `@` before it.
fn one(text: &str) -> Result<Vec<Host>, String> {
    match text.strip_prefix('@') {
        None if text.contains('=') => Ok(vec![text.parse().map_err(|error: HostError| error.to_string())?]),
        file => {
            let content = fs::read_to_string(file.unwrap_or(text)).map_err(|error| error.to_string())?;
            listed(Document { name: file.unwrap_or(text), text: &content })
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
        let error = hosts(&[text.clone(), text]).unwrap_err().to_string();
        assert!(error.contains("two hosts are called 'gpu=t4'"), "{error}");
        let error = hosts(&["/nonexistent/hosts.yaml".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("--host /nonexistent/hosts.yaml: No such file"), "{error}");
    }
}
