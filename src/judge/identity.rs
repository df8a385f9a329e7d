//! Identities that survive a rebuild of the image: services recognise by them a finding that they have seen before.

use super::rules::Judgement;
use crate::model::Hasher;

/// What a judgement is about, without the image and the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingIdentity(String);

impl FindingIdentity {
    /// The [fingerprint](Judgement::fingerprint) of what is wrong, or the rule alone where that is unknown.
    pub fn of(judgement: &Judgement<'_>) -> Self {
        Self(judgement.fingerprint().unwrap_or_else(|| format!("unknown {}", judgement.rule.id)))
    }

    /// 64 hexadecimal digits, equal for the same finding of the same image on the same hosts after a rebuild. `image` is a name
    /// from [`distinct_names`].
    pub fn fingerprint(&self, image: &str, hosts: &[String]) -> String {
        let mut hasher = Hasher::sha256();
        for part in [&*self.0, image].into_iter().chain(hosts.iter().map(|host| &**host)) {
            hasher.update(part.as_bytes());
            hasher.update(b"\0");
        }
        hasher.finish().hex().to_owned()
    }
}

/// Names images so that no two share a name: by their stable names if these differ, else by their full names, and where two
/// full names agree, by a number behind the later one. Each image brings its stable name, which outlives a build, and its full
/// one.
pub fn distinct_names(images: &[(String, String)]) -> Vec<String> {
    let columns: [Vec<&str>; 2] =
        [images.iter().map(|(stable, _)| &**stable).collect(), images.iter().map(|(_, full)| &**full).collect()];
    let [_, full] = &columns;
    match columns.iter().find(|names| (0..names.len()).all(|index| earlier(names, index) == 0)) {
        Some(names) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => (0..full.len()).map(|index| numbered(full, index)).collect(),
    }
}

/// Number of images before this one that have its name.
fn earlier(names: &[&str], index: usize) -> usize {
    let name = names.get(index);
    names.iter().take(index).filter(|other| Some(*other) == name).count()
}

fn numbered(names: &[&str], index: usize) -> String {
    let name = names.get(index).copied().unwrap_or_default();
    match earlier(names, index) {
        0 => name.to_owned(),
        before => format!("{name} #{}", before + 1),
    }
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
    fn a_fingerprint_is_of_the_finding_the_image_and_the_hosts() {
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
