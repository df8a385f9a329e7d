//! Sources of an audit that list images: repositories and catalogs of registries, running pods, an engine.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde_json::Value;

use crate::audit::{AuditItem, repository};
use crate::cli::args::audit::AuditPlanArgs;
use crate::cli::plan::read_input;
use crate::cli::{CliError, say};
use image::source::AccessOptions;
use image::survey::{engine_images, repositories, tags};
use model::{Limits, counted, without_content};

/// Largest list of pods, in bytes. One takes 5 to 20 KB.
const MOST_PODS: u64 = 1 << 30;

/// The images that were listed.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// References.
    pub(super) images: BTreeSet<String>,
    /// Those that are tags of a repository.
    tagged: BTreeSet<String>,
    /// Repositories of which only the newest images are kept.
    limited: BTreeSet<String>,
    newest: Option<usize>,
    /// The pods of an image, by its reference.
    pods: BTreeMap<String, BTreeSet<String>>,
}

impl Sources {
    /// Lists the images of every source.
    pub(super) fn read(asked: &AuditPlanArgs, options: &AccessOptions) -> Result<Self, CliError> {
        let mut sources = Self { newest: asked.newest, ..Self::default() };
        let wanted = globs("--tags", &asked.tags)?;
        let failed = |error: image::source::SourceError| CliError::Image(error.into());
        let mut all: BTreeSet<String> = asked.repository.iter().cloned().collect();
        for registry in &asked.registry {
            let (host, pattern) = registry.split_once('/').unwrap_or((registry, "**"));
            let pattern = globs("--registry", &[pattern.to_owned()])?;
            let found = repositories(host, options).map_err(failed)?;
            let count = all.len();
            all.extend(found.iter().filter(|name| pattern.is_match(name)).map(|name| format!("{host}/{name}")));
            if all.len() == count {
                say(&format!("--registry {registry}: none of {} repositories matches", found.len()));
            }
        }
        for name in all {
            let found = tags(&name, options).map_err(failed)?;
            let is_wanted = |tag: &&String| asked.tags.is_empty() || wanted.is_match(tag);
            let images: Vec<_> = found.iter().filter(is_wanted).map(|tag| format!("docker://{name}:{tag}")).collect();
            if images.is_empty() {
                say(&format!("{name}: none of {} tags matches", found.len()));
            }
            sources.tagged.extend(images.iter().cloned());
            sources.images.extend(images);
            sources.limited.insert(name);
        }
        if let Some(path) = &asked.pods {
            sources.add_pods(path, options)?;
        }
        if asked.engine {
            let found = engine_images(options).map_err(failed)?;
            sources.images.extend(found.into_iter().map(|name| format!("docker-daemon:{name}")));
        }
        Ok(sources)
    }

    fn add_pods(&mut self, path: &Path, options: &AccessOptions) -> Result<(), CliError> {
        let limits = Limits { text_file: MOST_PODS, document: MOST_PODS, ..options.limits.clone() };
        let text = read_input(path, &limits)?;
        let wrong = |why: &str| {
            let what = format!("--pods {}: not a list of pods: {why}", path.display());
            CliError::Usage(format!("{what}\n  help: kubectl get pods --all-namespaces -o json"))
        };
        let list: Value = serde_json::from_str(&text).map_err(|error| wrong(&without_content(&error.to_string())))?;
        let pods = list.get("items").and_then(Value::as_array);
        for pod in pods.ok_or_else(|| wrong("it has no list of items"))? {
            let name = |field: &str| pod.get("metadata").and_then(|data| data.get(field)?.as_str()).unwrap_or_default();
            let name = format!("{}/{}", name("namespace"), name("name"));
            for reference in images_of(pod) {
                self.pods.entry(reference.clone()).or_default().insert(name.clone());
                self.images.insert(reference);
            }
        }
        Ok(())
    }

    /// Leaves out artifacts that are tags of a repository, as signatures of its images are. All others stay unresolved.
    pub(super) fn leave_out(&self, artifacts: BTreeMap<String, String>, unresolved: &mut BTreeMap<String, String>) {
        let (tagged, named): (BTreeMap<_, _>, _) =
            artifacts.into_iter().partition(|(name, _)| self.tagged.contains(name));
        if let Some(first) = tagged.keys().next() {
            let count = counted(tagged.len(), "tag of an artifact", "tags of artifacts");
            say(&format!("left out {count}, such as {first}"));
        }
        unresolved.extend(named);
    }

    /// The items of images that were resolved, with the time of their build: the newest of each repository that is
    /// limited, and all others. Items found in pods have their names.
    pub(super) fn items(&self, found: Vec<(AuditItem, Option<String>)>) -> Vec<AuditItem> {
        let mut groups: BTreeMap<String, Vec<(Option<String>, AuditItem)>> = BTreeMap::new();
        let mut items = Vec::new();
        for (mut item, created) in found {
            for name in &item.names {
                let pods = self.pods.get(&format!("docker://{name}"));
                item.pods.extend(pods.into_iter().flatten().cloned());
            }
            let limited = item.names.iter().map(|name| repository(name)).find(|name| self.limited.contains(*name));
            match limited.filter(|_| self.newest.is_some()) {
                Some(name) => groups.entry(name.to_owned()).or_default().push((created, item)),
                None => items.push(item),
            }
        }
        for (_, mut group) in groups {
            // Builds that are reproducible have one time: then the names decide.
            group.sort_by_key(|(created, item)| Reverse((created.clone(), item.names.clone())));
            // The platforms of one image count once.
            let mut names = BTreeSet::new();
            for (_, item) in group {
                let is_kept = names.contains(&item.names) || Some(names.len()) < self.newest;
                if is_kept {
                    names.insert(item.names.clone());
                    items.push(item);
                }
            }
        }
        items
    }
}

/// References of the images of a pod's containers, by digest if the kubelet reports one.
fn images_of(pod: &Value) -> BTreeSet<String> {
    let list = |part: &'static str, names: [&'static str; 3]| {
        names.into_iter().filter_map(move |name| pod.get(part)?.get(name)?.as_array()).flatten()
    };
    let statuses = || list("status", ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"]);
    let reference = |container: &Value| {
        let image = container["image"].as_str()?;
        let running = statuses().find(|status| status["name"] == container["name"]);
        // `docker-pullable://` is how dockershim wrote it.
        let digest = running.and_then(|status| {
            let id = status["imageID"].as_str()?;
            id.strip_prefix("docker-pullable://").unwrap_or(id).split_once('@').map(|(_, digest)| digest)
        });
        // An image of an index that runs has the digest of the index or of the manifest.
        Some(match digest {
            Some(digest) => format!("docker://{}@{digest}", repository(image)),
            None => format!("docker://{image}"),
        })
    };
    list("spec", ["containers", "initContainers", "ephemeralContainers"]).filter_map(reference).collect()
}

fn globs(option: &str, patterns: &[String]) -> Result<GlobSet, CliError> {
    let wrong = |error: globset::Error| CliError::Usage(format!("{option}: {error}"));
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).map_err(wrong)?);
    }
    set.build().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_pods() {
        let text = r#"{"items": [
            {"metadata": {"name": "a", "namespace": "n"},
             "spec": {"containers": [{"name": "c", "image": "reg.example/train:1"}],
                      "initContainers": [{"name": "i", "image": "reg.example/init"}]},
             "status": {"containerStatuses": [
                {"name": "c", "image": "reg.example/train:1", "imageID": "reg.example/train@sha256:00"}]}},
            {"metadata": {"name": "pending", "namespace": "n"}, "spec": {"containers": [{"name": "c", "image": "x:2"}]}}
        ]}"#;
        let list: Value = serde_json::from_str(text).unwrap();
        let images: Vec<_> = list["items"].as_array().unwrap().iter().flat_map(images_of).collect();
        assert_eq!(images, ["docker://reg.example/init", "docker://reg.example/train@sha256:00", "docker://x:2"]);
    }
}
