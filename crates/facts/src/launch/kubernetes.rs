//! Containers of Kubernetes: pods, and resources with a template of pods.

use model::document::{YamlNode, YamlValue};
use model::{StartUser, is_among};
use shell::name_length;

use super::LaunchContainer;
use super::container::texts;
use super::details::Detail;
use super::given::{Given, Said, SharedMemory, Starter, Unread, bytes, cpus, is_computed, is_rdma_resource};

/// Keys that say how many pods a template makes. Where several are above each other, their product counts.
const COPIES: &[&str] = &["replicas", "parallelism", "size", "numNodes"];

/// Words in the kinds of resources whose replicas are one job. Those of other kinds serve requests side by side.
const JOBS: &[&str] = &["Job", "Ray", "LeaderWorkerSet", "Workflow", "TrainingRuntime"];

/// Annotations that attach more networks to a pod.
const NETWORKS: &[&str] = &["k8s.v1.cni.cncf.io/networks", "networking.gke.io/interfaces"];

/// The containers of a resource, each with the maps that hold its variables. Those that run before the job's own are left out.
pub(super) fn containers(document: &YamlNode) -> Vec<(LaunchContainer, Vec<&YamlNode>)> {
    let replicas = document.at(&["spec", "mpiReplicaSpecs"]);
    let Some(launcher) = replicas.and_then(|replicas| replicas.get("Launcher")) else { return below(document) };
    // The launcher of an MPIJob starts the processes in the workers.
    let worker =
        replicas.and_then(|replicas| replicas.get("Worker")).and_then(|worker| below(worker).into_iter().next());
    let with_worker = |(launcher, nodes): (LaunchContainer, Vec<_>)| match worker.clone() {
        Some((LaunchContainer { name, line, image, given, .. }, more)) => {
            (LaunchContainer { name, line, image, given, ..launcher }, [more, nodes].concat())
        }
        None => (launcher, nodes),
    };
    below(launcher).into_iter().map(with_worker).collect()
}

fn below(node: &YamlNode) -> Vec<(LaunchContainer, Vec<&YamlNode>)> {
    let mut found = Vec::new();
    let is_applied =
        node.text("kind").is_some_and(|kind| is_among(kind, "DaemonSet Deployment ReplicaSet StatefulSet"));
    let is_patch = is_applied && node.at(&["spec", "selector"]).is_none();
    walk(node, &Above { is_patch, ..Above::default() }, &mut found);
    found
}

/// The pod is in a file that is not read.
const RUNTIME: Unread = Unread {
    what: "the runtime of a TrainJob has the rest of its pods",
    help: "see the TrainingRuntime in the cluster: kubectl get clustertrainingruntimes -o yaml",
};
/// The container is a part of one that another file has.
pub(super) const PATCH: Unread = Unread {
    what: "a part of a pod, as in a patch: no image and no command, or a resource without a selector",
    help: "judge the whole: kubectl kustomize FOLDER | ncclcheck check --launch -",
};
const POD_PATCH: Unread = Unread::elsewhere("`podSpecPatch` changes the pod");

/// The maps that make up a pod: the key of an earlier one counts.
struct Pod<'d>(Vec<&'d YamlNode>);

impl<'d> Pod<'d> {
    fn get(&self, key: &str) -> Option<&'d YamlNode> {
        self.0.iter().find_map(|map| map.get(key))
    }

    fn at(&self, path: &[&str]) -> Option<&'d YamlNode> {
        self.0.iter().find_map(|map| map.at(path))
    }

    fn volume(&self, name: &str) -> Option<&'d YamlNode> {
        let volumes = self.0.iter().filter_map(|map| map.get("volumes")).flat_map(YamlNode::list);
        volumes.into_iter().find(|volume| volume.text("name") == Some(name))
    }
}

/// What the maps above a pod's containers say.
#[derive(Clone, Default)]
struct Above<'d> {
    /// The key of the replica group: `Worker`.
    group: Option<&'d str>,
    metadata: Option<&'d YamlNode>,
    copies: Option<Said<i64>>,
    /// The maps with more keys of the pod: the template and the specification of Argo's Workflow, the overrides of a TrainJob.
    pods: Vec<&'d YamlNode>,
    /// True in a resource that lacks what the cluster needs to take it.
    is_patch: bool,
    /// True in a resource whose kind is not that of a job.
    is_service: bool,
}

fn walk<'d>(node: &'d YamlNode, above: &Above<'d>, found: &mut Vec<(LaunchContainer, Vec<&'d YamlNode>)>) {
    node.list().iter().for_each(|value| walk(value, above, found));
    let mut here = above.clone();
    here.metadata = node.get("metadata").or(above.metadata);
    here.is_service = node.text("kind").map_or(above.is_service, |kind| !JOBS.iter().any(|word| kind.contains(word)));
    // The replicas of a service, and the groups of a LeaderWorkerSet, are jobs of their own.
    let is_several = here.is_service || node.get("selector").is_some() || node.get("leaderWorkerTemplate").is_some();
    for count in COPIES.iter().filter(|key| !is_several || **key != "replicas").filter_map(|key| node.get(key)) {
        let before = here.copies.as_ref().map_or(Some(1), |copies| copies.value);
        let count_here = count.as_str().and_then(|text| text.parse::<i64>().ok());
        let value = before.zip(count_here).and_then(|(before, count)| before.checked_mul(count));
        here.copies = Some(Said { value, line: count.line });
    }
    for (key, value) in node.entries() {
        match (key.as_str(), &value.value) {
            ("containers", YamlValue::List(containers)) => {
                found.extend(containers.iter().map(|item| (container(item, node, &here), vec![item])));
            }
            ("container", YamlValue::Map(_)) => found.push((container(value, node, &here), vec![value])),
            ("script", YamlValue::Map(_)) if value.get("source").is_some() => {
                found.push((container(value, node, &here), vec![value]));
            }
            // A TrainJob overrides the pods of a runtime, which another file has.
            ("trainer", YamlValue::Map(_)) => found.push(trainer(value, node, &here)),
            ("podTemplateOverrides" | "runtimePatches", _) if node.get("trainer").is_some() => {}
            ("initContainers", _) => {}
            _ => {
                let is_group = key.starts_with(char::is_uppercase);
                let mut below = Above { group: if is_group { Some(key) } else { here.group }, ..here.clone() };
                if matches!(key.as_str(), "templates" | "containerSet") {
                    below.pods.insert(0, node);
                }
                walk(value, &below, found);
            }
        }
    }
}

/// The container of a TrainJob, with what its overrides say of the containers in the pods of its training.
fn trainer<'d>(trainer: &'d YamlNode, job: &'d YamlNode, above: &Above<'d>) -> (LaunchContainer, Vec<&'d YamlNode>) {
    let list = |key: &str| job.get(key).map(YamlNode::list).unwrap_or_default().iter();
    let names = |one: &'d YamlNode| one.get("targetJobs").map(YamlNode::list).unwrap_or_default();
    let is_node = |job: &&YamlNode| job.text("name") == Some("node");
    let overrides = list("podTemplateOverrides").filter(|one| names(one).iter().any(|job| is_node(&job)));
    let jobs = &["trainingRuntimeSpec", "template", "spec", "replicatedJobs"];
    let patches = list("runtimePatches").filter_map(|patch| patch.at(jobs)).flat_map(YamlNode::list).filter(is_node);
    let patches = patches.filter_map(|job| job.at(&["template", "spec", "template", "spec"]));
    let pods: Vec<_> = overrides.filter_map(|one| one.get("spec")).chain(patches).collect();
    let containers: Vec<_> = pods.iter().filter_map(|pod| pod.get("containers")).flat_map(YamlNode::list).collect();
    let copies = trainer.get("numNodes").map(Said::number);
    let above = Above { copies, pods, ..above.clone() };
    let mut container = container(trainer, job, &above);
    let given = &mut container.given;
    given.unread = Some(Said::new(RUNTIME, trainer.line));
    let mounts = containers.iter().filter_map(|one| one.get("volumeMounts")).flat_map(YamlNode::list);
    mounts.for_each(|mount| volume(mount, &Pod(above.pods.clone()), given));
    (container, [containers, vec![trainer]].concat())
}

fn container(container: &YamlNode, pod: &YamlNode, above: &Above<'_>) -> LaunchContainer {
    let words = |key: &str| Some(texts(container.get(key)?)?.iter().map(|word| expanded(word, container)).collect());
    let entrypoint: Option<Vec<String>> = words("command");
    // Argo gives the command a file with the script.
    let script = || Some(vec!["-c".to_owned(), container.text("source")?.to_owned()]);
    let arguments = words("args").or_else(script);
    let pod = &Pod(std::iter::once(pod).chain(above.pods.iter().copied()).collect());
    let own = container.text("name").unwrap_or("container");
    LaunchContainer {
        name: above.group.map_or_else(|| own.to_owned(), |group| format!("{group}, {own}")),
        line: container.line,
        image: container.text("image").map(ToOwned::to_owned),
        given: given(container, pod, above),
        // `command` alone replaces the image's command as well.
        arguments: if entrypoint.is_some() { Some(arguments.unwrap_or_default()) } else { arguments },
        entrypoint,
        directory: container.text("workingDir").map(ToOwned::to_owned),
        user: user(container, pod),
        ..LaunchContainer::default()
    }
}

/// The user of a container: a key of its own context counts before that of the pod.
fn user(container: &YamlNode, pod: &Pod<'_>) -> Option<Said<StartUser>> {
    let pod = pod.get("securityContext");
    let key = |name: &str| {
        let own = container.get("securityContext").and_then(|own| own.get(name));
        own.or_else(|| pod?.get(name)).filter(|node| node.as_str().is_some())
    };
    let more = ["fsGroup", "supplementalGroups"].iter().filter_map(|name| pod?.get(name));
    let more = more.flat_map(|node| std::iter::once(node).chain(node.list())).filter(|node| node.as_str().is_some());
    let more: Vec<&YamlNode> = more.collect();
    let numbers = [key("runAsUser"), key("runAsGroup")];
    let line = numbers.iter().flatten().chain(&more).next()?.line;
    let number = |node: &YamlNode| node.as_str()?.parse::<u32>().ok();
    let all = numbers.iter().flatten().chain(&more);
    if all.map(|node| number(node)).any(|number| number.is_none()) {
        return Some(Said { value: None, line });
    }
    let [name, group] = numbers.map(|node| node.and_then(number));
    let more = more.iter().filter_map(|node| number(node)).map(|id| id.to_string()).collect();
    Some(Said::new(StartUser { name: name.map(|id| id.to_string()), group, more, at: None }, line))
}

fn given(container: &YamlNode, pod: &Pod<'_>, above: &Above<'_>) -> Given {
    let annotations = above.metadata.and_then(|metadata| metadata.get("annotations"));
    let is_true = |node: Option<&YamlNode>| node.and_then(YamlNode::as_str) == Some("true");
    let network = pod.get("hostNetwork").map(|node| {
        let word = match node.as_str() {
            Some("true") => Some("host"),
            Some(text) if is_computed(text) => None,
            _ => Some("own"),
        };
        Said { value: word.map(ToOwned::to_owned), line: node.line }
    });
    let security = container.get("securityContext");
    let mut given = Given {
        starter: Starter::Kubernetes,
        network,
        has_more_networks: annotations.is_some_and(|all| NETWORKS.iter().any(|name| all.get(name).is_some())),
        is_privileged: is_true(security.and_then(|context| context.get("privileged"))),
        copies: above.copies.clone(),
        unread: unread(container, pod, above),
        ..Given::default()
    };
    let added = security.and_then(|context| context.at(&["capabilities", "add"])).map(YamlNode::list);
    for name in added.unwrap_or_default() {
        given.capability(name.as_str().unwrap_or_default(), name.line);
    }
    details(container, pod, &mut given);
    if is_true(pod.get("hostIPC")) {
        given.shm = Some(SharedMemory::Large);
    }
    for mount in container.get("volumeMounts").map(YamlNode::list).unwrap_or_default() {
        volume(mount, pod, &mut given);
    }
    resources(container, &mut given);
    given
}

/// What makes up the pod beside the file.
fn unread(container: &YamlNode, pod: &Pod<'_>, above: &Above<'_>) -> Option<Said<Unread>> {
    let is_part = above.is_patch || container.get("image").is_none() && container.get("command").is_none();
    let of_argo = pod.get("podSpecPatch").map(|patch| Said::new(POD_PATCH, patch.line));
    of_argo.or_else(|| is_part.then(|| Said::new(PATCH, container.line)))
}

/// Profiles in the security context of a container or of its pod.
const PROFILES: &[&[&str]] = &[
    &["securityContext", "seccompProfile", "type"],
    &["securityContext", "appArmorProfile", "type"],
    &["securityContext", "seLinuxOptions", "type"],
];

fn details(container: &YamlNode, pod: &Pod<'_>, given: &mut Given) {
    let profiles = PROFILES.iter().filter_map(|path| container.at(path).or_else(|| pod.at(path)));
    profiles.for_each(|profile| given.details.add_node(Detail::Security, Some(profile)));
    given.details.add_node(Detail::Runtime, pod.get("runtimeClassName"));
    given.details.add_node(Detail::HostName, pod.get("hostname"));
    given.details.add_node(Detail::Directory, container.get("workingDir"));
    let claims = container.at(&["resources", "claims"]).map(YamlNode::list).unwrap_or_default();
    for claim in claims {
        given.details.add_node(Detail::Claims, claim.get("name"));
    }
}

/// Reads the requests before the limits, which count. Only a limit bounds memory and CPUs.
fn resources(container: &YamlNode, given: &mut Given) {
    let resources = container.get("resources").or_else(|| container.get("resourcesPerNode"));
    if let Some(limit) = resources.and_then(|resources| resources.at(&["limits", "memory"])) {
        let value = limit.as_str().and_then(|text| bytes(text, Starter::Kubernetes));
        given.memory = Some(Said { value, line: limit.line });
    }
    if let Some(limit) = resources.and_then(|resources| resources.at(&["limits", "cpu"])) {
        given.cpus = Some(Said { value: limit.as_str().and_then(cpus), line: limit.line });
    }
    let pages = resources.and_then(|resources| resources.get("limits")).map(YamlNode::entries).unwrap_or_default();
    for (name, amount) in pages {
        if let Some(size) = name.strip_prefix("hugepages-") {
            let text = format!("{size}: {}", amount.as_str().unwrap_or_default());
            given.details.add(Detail::HugePages, &text, amount.line);
        }
    }
    let kinds = ["requests", "limits"].iter().filter_map(|kind| resources?.get(kind));
    for (name, amount) in kinds.flat_map(YamlNode::entries) {
        if name.contains(".com/") && (name.contains("gpu") || name.contains("/mig-")) {
            given.has_gpu = true;
            // Others are parts of GPUs: nvidia.com/gpumem, nvidia.com/gpu.shared.
            if name.ends_with("/gpu") || name.contains("/mig-") {
                given.gpus = Some(Said::number(amount));
            }
        } else if is_rdma_resource(name) && amount.as_str() != Some("0") {
            given.rdma.retain(|said| said.value.as_deref() != Some(name.as_str()));
            given.rdma.push(Said::new(name.clone(), amount.line));
        }
    }
    // Dynamic resource allocation: which devices a claim has, another resource says.
    given.has_gpu |= resources.is_some_and(|resources| resources.get("claims").is_some());
}

fn volume(mount: &YamlNode, pod: &Pod<'_>, given: &mut Given) {
    let Some(target) = mount.text("mountPath") else { return };
    let Some(name) = mount.text("name") else { return };
    let Some(volume) = pod.volume(name) else {
        if target == "/dev/shm" {
            given.shm = Some(SharedMemory::Bytes(Said { value: None, line: mount.line }));
        }
        return;
    };
    let host_path = volume.at(&["hostPath", "path"]).and_then(YamlNode::as_str);
    let limit = volume.at(&["emptyDir", "sizeLimit"]).filter(|_| target == "/dev/shm");
    match (host_path, limit) {
        (_, Some(limit)) => {
            let value = limit.as_str().and_then(|text| bytes(text, Starter::Kubernetes));
            given.shm = Some(SharedMemory::Bytes(Said { value, line: limit.line }));
        }
        (Some(source), None) => given.mount(source, target, mount.line),
        (None, None) if target == "/dev/shm" => given.shm = Some(SharedMemory::Large),
        (None, None) => given.mount("a volume", target, mount.line),
    }
}

/// Replaces `$(NAME)` by the value in the container's `env`, and `$$(NAME)` by `$(NAME)`, as Kubernetes does. Another name in
/// a word without blanks becomes `${NAME}`, which only the cluster knows; elsewhere it stays, for a shell.
fn expanded(word: &str, container: &YamlNode) -> String {
    let mut whole = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once("$(") {
        let Some((name, end)) = after.split_once(')').filter(|(name, _)| name_length(name) == name.len()) else {
            whole = whole + before + "$(";
            rest = after;
            continue;
        };
        rest = end;
        if let Some(before) = before.strip_suffix('$') {
            whole = whole + before + "$(" + name + ")";
            continue;
        }
        whole += before;
        match variable(container, name) {
            Some(value) => whole += &value,
            None if word.contains(char::is_whitespace) => whole = whole + "$(" + name + ")",
            None => whole = whole + "${" + name + "}",
        }
    }
    whole + rest
}

/// The value of a container's variable, if the document has it as a text.
fn variable(container: &YamlNode, name: &str) -> Option<String> {
    let variables = container.get("env")?.list();
    let value = variables.iter().rev().find(|variable| variable.text("name") == Some(name))?.text("value")?;
    (!is_computed(value)).then(|| value.to_owned())
}
