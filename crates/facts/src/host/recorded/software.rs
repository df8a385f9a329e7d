//! Container engines, limits and services of a recorded host.

use crate::machine::Record;
use crate::machine::limits::Limit;
use model::{Fact, Gap};

use super::super::super::{Facts, key};
use super::list;

pub(super) fn produce(record: &Record, facts: &mut Facts) {
    let containers = &record.containers;
    facts.insert(key::HOST_ENGINES, list(engines(record)));
    facts.insert(key::HOST_CONTAINER_TOOLKIT, container_toolkit(record));
    facts.insert(key::HOST_ENGINE_MEMLOCK, containers.memlock().map(soft));
    facts.insert(key::HOST_ENGINE_NOFILE, containers.nofile().map(soft));
    let shell = || if containers.engines.is_empty() { record.limits.stack.clone() } else { Fact::Absent };
    facts.insert(key::HOST_STACK, containers.stack().or_else(shell).map(soft));
    facts.insert(key::HOST_REMOVE_IPC, remove_ipc(record));
}

fn soft(limit: Limit) -> i64 {
    limit.soft
}

/// The running engines. In a container the engines of the host cannot be seen.
fn engines(record: &Record) -> Fact<Vec<String>> {
    match &record.system.container {
        Fact::Seen { value: engine, .. } => {
            Fact::unknown(format!("the record was made in a container ({engine}), which hides the host's engines"))
        }
        _ => Fact::known(record.containers.engines.keys().cloned().collect()),
    }
}

/// The toolkit's files, a runtime of Docker's configuration, or a CDI specification for GPUs.
fn container_toolkit(record: &Record) -> Fact<bool> {
    let runtimes = record.containers.docker.value().map(|docker| docker.runtimes.as_slice()).unwrap_or_default();
    let specifications = record.cdi.specifications.value().map(Vec::as_slice).unwrap_or_default();
    let has_runtime = runtimes.iter().any(|runtime| runtime == "nvidia");
    let has_specification =
        specifications.iter().any(|of| of.kind.value().is_some_and(|kind| kind == "nvidia.com/gpu"));
    if has_runtime || has_specification {
        return Fact::known(true);
    }
    let unread = [record.containers.docker.as_ref().map(|_| ()), record.cdi.specifications.as_ref().map(|_| ())];
    match (&record.containers.nvidia_runtime, unread.into_iter().find(|item| matches!(item, Fact::Unknown(_)))) {
        (Fact::Seen { value: false, .. }, Some(Fact::Unknown(gap))) => Fact::Unknown(gap),
        (toolkit, _) => toolkit.clone(),
    }
}

/// Whether systemd-logind removes the shared memory of users who log out; absent without logind.
fn remove_ipc(record: &Record) -> Fact<bool> {
    let unread = || {
        Gap::new("no configuration file of systemd-logind sets RemoveIPC, and distributions differ in its default")
            .settled_by("set it in /etc/systemd/logind.conf")
    };
    record.settings.logind.as_ref().and_then(|_, _| match &record.settings.remove_ipc {
        Fact::Seen { value, .. } => boolean(value).map_or_else(|| Fact::Unknown(unread()), Fact::known),
        Fact::Absent => Fact::Unknown(unread()),
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
    })
}

/// A boolean as systemd reads it (parse_boolean, src/basic/parse-util.c).
fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Some(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{record, said};
    use super::*;

    #[test]
    fn engines_give_containers_gpus_through_the_toolkit_or_a_specification() {
        let rest = "docker: null, nvidia_runtime";
        for (text, expected) in [
            (format!("containers: {{{rest}: false}}\ncdi: {{specifications: null}}"), "false"),
            (format!("containers: {{{rest}: true}}\ncdi: {{specifications: null}}"), "true"),
            (format!("containers: {{{rest}: false}}\ncdi: {{specifications: [{{kind: nvidia.com/gpu}}]}}"), "true"),
            (format!("containers: {{{rest}: false}}\ncdi: {{specifications: [{{kind: vendor.com/nic}}]}}"), "false"),
            ("containers: {docker: {runtimes: [nvidia]}, nvidia_runtime: false}".to_owned(), "true"),
            (format!("containers: {{{rest}: false}}"), "unknown: not in the record"),
        ] {
            assert_eq!(said(container_toolkit(&record(&text))), expected, "{text}");
        }
    }

    #[test]
    fn engines_are_hidden_in_a_container() {
        assert_eq!(
            said(engines(&record("system: {container: null}\ncontainers: {engines: {crio: {}}}"))),
            r#"["crio"]"#
        );
        assert_eq!(said(engines(&record("system: {container: null}"))), "[]");
        assert!(said(engines(&record("system: {container: Docker}"))).starts_with("unknown"));
    }

    #[test]
    fn shared_memory_is_removed_where_logind_runs() {
        for (text, expected) in [
            ("{logind: 700, remove_ipc: 'yes'}", "true"),
            ("{logind: 700, remove_ipc: 'On'}", "true"),
            ("{logind: 700, remove_ipc: 'no'}", "false"),
            ("{logind: 700, remove_ipc: '0'}", "false"),
            ("{logind: null, remove_ipc: 'yes'}", "absent"),
        ] {
            assert_eq!(said(remove_ipc(&record(&format!("settings: {text}")))), expected, "{text}");
        }
        for text in ["{logind: 700, remove_ipc: null}", "{logind: 700, remove_ipc: maybe}"] {
            let said = said(remove_ipc(&record(&format!("settings: {text}"))));
            assert!(said.starts_with("unknown: no configuration file of systemd-logind sets"), "{text}: {said}");
        }
    }

    #[test]
    fn the_shells_stack_limit_counts_without_an_engine() {
        let stack = |text: &str| {
            let mut facts = Facts::default();
            produce(&record(text), &mut facts);
            facts.get(key::HOST_STACK).value().copied()
        };
        let shell = "limits: {stack: {soft: -1, hard: -1}}";
        assert_eq!(stack(&format!("{shell}\ncontainers: {{docker: null}}")), Some(-1));
        let engine = "containers: {docker: null, engines: {containerd: {stack: {soft: 8388608, hard: -1}}}}";
        assert_eq!(stack(&format!("{shell}\n{engine}")), Some(8_388_608));
    }
}
