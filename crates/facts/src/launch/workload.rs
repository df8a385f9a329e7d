//! The containers of documents: pods and templates of Kubernetes, services of Compose, and tasks of SkyPilot, dstack and
//! Determined.

use model::document::YamlNode;

use super::container::texts;
use super::given::{Given, Said, SharedMemory, Starter, bytes};
use super::{LaunchContainer, compose, kubernetes};

/// The containers that a document starts, each with the maps that hold its variables.
pub(super) fn containers(document: &YamlNode) -> Vec<(LaunchContainer, Vec<&YamlNode>)> {
    let services = document.get("services").map(YamlNode::entries).unwrap_or_default();
    if !services.is_empty() {
        return services.iter().map(|(name, service)| (compose::service(name, service), vec![service])).collect();
    }
    if document.get("apiVersion").is_some() || document.get("kind").is_some() {
        return kubernetes::containers(document);
    }
    task(document).map(|task| (task, vec![document])).into_iter().collect()
}

/// A task of SkyPilot (`setup` and `run`), dstack (`commands`) or Determined (`entrypoint`), whose scripts a shell of the
/// container runs.
fn task(document: &YamlNode) -> Option<LaunchContainer> {
    let script = |key: &str| document.text(key).map(ToOwned::to_owned);
    let text = match (script("run"), document.get("commands"), document.get("environment")) {
        (Some(run), ..) => script("setup").unwrap_or_default() + "\n" + &run,
        (None, Some(commands), _) => texts(commands)?.join("\n"),
        (None, None, Some(_)) => script("entrypoint")?,
        (None, None, None) => return None,
    };
    let of_sky = document.at(&["resources", "image_id"]).and_then(YamlNode::as_str);
    let of_sky = of_sky.and_then(|image| image.strip_prefix("docker:"));
    let of_determined = document.at(&["environment", "image"]);
    let of_determined =
        of_determined.and_then(|image| image.as_str().or_else(|| image.text("gpu").or_else(|| image.text("cuda"))));
    Some(LaunchContainer {
        name: script("name").unwrap_or_else(|| "task".to_owned()),
        line: document.line,
        image: of_sky.or(of_determined).map(ToOwned::to_owned).or_else(|| script("image")),
        given: given(document),
        entrypoint: Some(vec!["/bin/bash".to_owned(), "-c".to_owned(), text]),
        arguments: Some(Vec::new()),
        ..LaunchContainer::default()
    })
}

fn given(document: &YamlNode) -> Given {
    let resources = document.get("resources");
    let of = |key: &str| resources.and_then(|resources| resources.get(key));
    let gpus = of("accelerators").or_else(|| of("gpu")).and_then(|gpu| {
        let text = gpu.as_str().or_else(|| gpu.text("count")).or_else(|| gpu.entries().first()?.1.as_str())?;
        let count = text.rsplit(':').next().unwrap_or(text);
        // dstack decides within a range: `1..8`, `2..`.
        let is_range = count.contains("..") && count.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit());
        let number = || count.trim_end_matches(['.', '+']).parse().unwrap_or(1);
        Some(Said { value: (!is_range).then(number), line: gpu.line })
    });
    let slots = of("slots_per_trial").or_else(|| of("slots"));
    let shm = of("shm_size").and_then(|size| {
        Some(SharedMemory::Bytes(Said { value: Some(bytes(size.as_str()?, Starter::Docker)?), line: size.line }))
    });
    let nodes = document.get("num_nodes").or_else(|| document.get("nodes"));
    Given {
        starter: Starter::Service,
        has_gpu: true,
        gpus: gpus.or_else(|| slots.map(Said::number)),
        shm,
        nodes: nodes.map(Said::number),
        ..Given::default()
    }
}
