//! Identities of findings that survive a rebuild of the image, so that services recognise a finding they have seen
//! before.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::Judgement;
use model::Hasher;

/// Identity of a judgement, independent of the image and the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingIdentity(String);

impl FindingIdentity {
    /// The [fingerprint](Judgement::fingerprint) of the finding, or the rule alone if there is no finding.
    pub fn of(judgement: &Judgement<'_>) -> Self {
        Self(judgement.fingerprint().unwrap_or_else(|| format!("unknown {}", judgement.rule.id)))
    }

    /// 64 hexadecimal digits, stable across rebuilds for the same finding, image and hosts. `image` is a name from
    /// [`distinct_names`].
    pub fn fingerprint(&self, image: &str, hosts: &[String]) -> String {
        let mut hasher = Hasher::sha256();
        for part in [&*self.0, image].into_iter().chain(hosts.iter().map(|host| &**host)) {
            hasher.update(part.as_bytes());
            hasher.update(b"\0");
        }
        hasher.finish().hex().to_owned()
    }
}

/// Returns a distinct name for each image: the stable names if they all differ, else the full names, with a number
/// appended to repeated ones. Each image is a pair of its stable name, which outlives a build, and its full name.
pub fn distinct_names(images: &[(String, String)]) -> Vec<String> {
    let columns: [Vec<&str>; 2] =
        [images.iter().map(|(stable, _)| &**stable).collect(), images.iter().map(|(_, full)| &**full).collect()];
    let [_, full] = &columns;
    let is_distinct = |names: &&Vec<&str>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    match columns.iter().find(is_distinct) {
        Some(names) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => numbered(full),
    }
}

/// The names, with a number appended to each that an earlier image has.
fn numbered(names: &[&str]) -> Vec<String> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut numbered = Vec::with_capacity(names.len());
    for name in names.iter().copied() {
        let number = seen.entry(name).or_default();
        *number += 1;
        numbered.push(if *number == 1 { name.to_owned() } else { format!("{name} #{number}") });
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_images_share_a_name() {
        let names = |images: &[(&str, &str)]| {
            let images: Vec<_> =
                images.iter().map(|(stable, full)| ((*stable).to_owned(), (*full).to_owned())).collect();
            distinct_names(&images)
        };
        assert_eq!(names(&[]), [""; 0]);
        assert_eq!(names(&[("torch", "torch:1"), ("jax", "jax:1")]), ["torch", "jax"]);
        assert_eq!(
            names(&[("torch", "torch:1"), ("torch", "torch:2"), ("jax", "jax:1")]),
            ["torch:1", "torch:2", "jax:1"]
        );
        assert_eq!(
            names(&[("torch", "torch:1"), ("torch", "torch:1"), ("jax", "jax:1")]),
            ["torch:1", "torch:1 #2", "jax:1"]
        );
    }

    #[test]
    fn a_fingerprint_depends_on_finding_image_and_hosts() {
        let identity = FindingIdentity("a/rule".to_owned());
        let hosts = ["h100".to_owned()];
        let of = |image, hosts: &[String]| identity.fingerprint(image, hosts);
        assert_eq!(of("torch", &hosts), of("torch", &hosts));
        assert_eq!(of("torch", &[]).len(), 64);
        assert_ne!(of("torch", &hosts), of("torch", &[]));
        assert_ne!(of("torch", &hosts), of("jax", &hosts));
        assert_ne!(of("torch", &hosts), FindingIdentity("a/other".to_owned()).fingerprint("torch", &hosts));
    }
}
