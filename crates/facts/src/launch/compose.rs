//! Services of Compose files.

use model::StartUser;
use model::document::{YamlNode, YamlValue};
use shell::name_length;

use super::LaunchContainer;
use super::container::texts;
use super::details::Detail;
use super::given::{Given, Said, SharedMemory, Starter, Unread, bytes, cpus, is_computed};

/// A service.
pub(super) fn service(name: &str, service: &YamlNode) -> LaunchContainer {
    // Compose splits a text into words as a shell does, and runs no shell.
    let words = |key: &str| -> Option<Vec<String>> {
        let node = service.get(key)?;
        let words = match &node.value {
            YamlValue::Scalar(text) => split(text),
            _ => texts(node)?,
        };
        Some(words.iter().map(|word| interpolated(word)).collect())
    };
    let entrypoint = words("entrypoint");
    let arguments = words("command");
    LaunchContainer {
        name: name.to_owned(),
        line: service.line,
        image: service.text("image").map(ToOwned::to_owned),
        is_optional: service.get("profiles").is_some(),
        given: given(service),
        arguments: if entrypoint.is_some() { Some(arguments.unwrap_or_default()) } else { arguments },
        entrypoint,
        directory: service.text("working_dir").map(ToOwned::to_owned),
        user: user(service),
        ..LaunchContainer::default()
    }
}

/// The user of a service, and the groups that it has beside its own.
fn user(service: &YamlNode) -> Option<Said<StartUser>> {
    let name = service.get("user").map(said);
    let more = service.get("group_add");
    let line = name.as_ref().map(|name| name.line).or(more.map(|more| more.line))?;
    let more: Vec<_> = more.map(YamlNode::list).unwrap_or_default().iter().map(said).collect();
    let is_computed = name.iter().chain(&more).any(|said| said.value.is_none());
    let more = more.into_iter().filter_map(|group| group.value).collect();
    let user = StartUser { name: name.and_then(|name| name.value), more, ..StartUser::default() };
    Some(Said { value: (!is_computed).then_some(user), line })
}

fn given(service: &YamlNode) -> Given {
    let size =
        |node: &YamlNode| Said { value: bytes(node.as_str().unwrap_or_default(), Starter::Compose), line: node.line };
    let list = |key: &str| service.get(key).map(YamlNode::list).unwrap_or_default();
    let limited = |own: &str, deployed: &str| {
        service.get(own).or_else(|| service.at(&["deploy", "resources", "limits", deployed]))
    };
    let mut given = Given {
        starter: Starter::Compose,
        has_gpu: service.get("gpus").is_some() || service.text("runtime") == Some("nvidia"),
        shm: service.get("shm_size").map(|node| SharedMemory::Bytes(size(node))),
        network: service.get("network_mode").map(said),
        has_more_networks: service.get("networks").is_some_and(|node| node.list().len() + node.entries().len() > 1),
        is_privileged: service.text("privileged") == Some("true"),
        memory: limited("mem_limit", "memory").map(size),
        cpus: limited("cpus", "cpus").map(|node| Said { value: node.as_str().and_then(cpus), line: node.line }),
        unread: service
            .get("extends")
            .map(|node| Said::new(Unread::elsewhere("`extends` takes keys of another service"), node.line)),
        ..Given::default()
    };
    if let Some(ipc) = service.get("ipc") {
        given.ipc(ipc.as_str().unwrap_or_default(), ipc.line);
    }
    gpus(service, &mut given);
    for device in list("devices") {
        let name = device.as_str().or_else(|| device.text("source"));
        given.device(name.unwrap_or_default(), device.line);
    }
    for node in list("cap_add") {
        given.capability(node.as_str().unwrap_or_default(), node.line);
    }
    for (detail, key) in [
        (Detail::Security, "security_opt"),
        (Detail::Runtime, "runtime"),
        (Detail::HostName, "hostname"),
        (Detail::Directory, "working_dir"),
        (Detail::CpuSet, "cpuset"),
    ] {
        given.details.add_node(detail, service.get(key));
    }
    let locked = service.at(&["ulimits", "memlock"]);
    given.locks_memory |= locked.is_some_and(|node| node.as_str().or_else(|| node.text("soft")) == Some("-1"));
    for volume in list("volumes") {
        let parts: Vec<_> = volume.as_str().unwrap_or_default().split(':').collect();
        match (parts.as_slice(), volume.text("source"), volume.text("target")) {
            ([source, target, ..], ..) => given.mount(source, target, volume.line),
            (_, source, Some(target)) => given.mount(source.unwrap_or_default(), target, volume.line),
            _ => {}
        }
    }
    let tmpfs = service.get("tmpfs");
    for node in tmpfs.into_iter().flat_map(|node| std::iter::once(node).chain(node.list())) {
        given.tmpfs(node.as_str().unwrap_or_default(), node.line);
    }
    given
}

/// The GPUs of `gpus` and of `deploy`: `count`, or a list of devices.
fn gpus(service: &YamlNode, given: &mut Given) {
    let reserved = service.at(&["deploy", "resources", "reservations", "devices"]);
    let asked = service.get("gpus").into_iter().chain(reserved);
    for request in asked.flat_map(YamlNode::list) {
        let names_gpu =
            request.get("capabilities").is_some_and(|all| all.list().iter().any(|word| word.as_str() == Some("gpu")));
        if !names_gpu && request.text("driver").is_none_or(|driver| driver != "nvidia") {
            continue;
        }
        given.has_gpu = true;
        if let Some(ids) = request.get("device_ids").filter(|ids| !ids.list().is_empty()) {
            given.gpus = i64::try_from(ids.list().len()).ok().map(|count| Said::new(count, ids.line));
        } else if let Some(count) = request.get("count").filter(|count| count.as_str() != Some("all")) {
            given.gpus = Some(Said { value: count.as_str().and_then(|text| text.parse().ok()), line: count.line });
        }
    }
}

fn said(node: &YamlNode) -> Said<String> {
    let value = node.as_str().filter(|text| !is_computed(text)).map(ToOwned::to_owned);
    Said { value, line: node.line }
}

fn split(text: &str) -> Vec<String> {
    let words = shell::commands(text, 1).flat_map(|command| command.words);
    // An expansion is Compose's own, and stands for itself here.
    words.map(|word| word.plain().unwrap_or_else(|| "${computed}".to_owned())).collect()
}

/// `$$` is a dollar sign, and any other `$` refers to the environment of Compose.
fn interpolated(word: &str) -> String {
    let part = |part: &str| {
        let mut names = part.split('$');
        let first = names.next().unwrap_or_default().to_owned();
        names.fold(first, |whole, rest| match rest.split_at(name_length(rest)) {
            ("", rest) => whole + "$" + rest,
            (name, rest) => whole + "${" + name + "}" + rest,
        })
    };
    word.split("$$").map(part).collect::<Vec<_>>().join("$")
}
