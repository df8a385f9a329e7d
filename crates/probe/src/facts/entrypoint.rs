//! Facts about the image's entrypoint: whether it started the program, and what it changed for it.

use std::collections::{BTreeMap, BTreeSet};

use facts::{Facts, Handover, is_shown, key};
use model::{Fact, Gap};

use super::super::recording::Recording;
use super::super::wire::entrypoint::{EntrypointLaunch, GivenProcess};
use super::super::wire::events::Hello;
use super::none_of;

/// Variables that runtimes add to those of the engine's account: Docker's `CreateDaemonEnvironment` and `setNVIDIAGPUs`,
/// Podman, and specifications of the Container Device Interface.
const OF_RUNTIME: &[&str] =
    &["HOME", "HOSTNAME", "TERM", "container", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"];
/// Variables that every shell sets for the programs that it starts (bash(1), "Shell Variables").
const OF_SHELL: &[&str] = &["_", "OLDPWD", "PWD", "SHLVL"];
/// The variable that Python sets for itself in the C locale (PEP 538).
const OF_PYTHON: &str = "LC_CTYPE";
/// `PATH` that runtimes set if neither the image nor the launch does (moby, `system.DefaultPathEnv`).
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let entrypoint = recording.launch.as_ref().and_then(|launch| launch.entrypoint.as_ref());
    let keys =
        key::definitions![RUN_ENTRYPOINT, RUN_ENTRYPOINT_BYPASSED, RUN_ENTRYPOINT_ERROR, RUN_ENTRYPOINT_CHANGES,];
    none_of(keys, &Fact::Absent, facts);
    let Some(entrypoint) = entrypoint else { return };
    if let Some(why) = &entrypoint.bypassed {
        return facts.insert(key::RUN_ENTRYPOINT_BYPASSED, Fact::seen(why.clone(), []));
    }
    facts.insert(key::RUN_ENTRYPOINT, Fact::seen(entrypoint.command(), []));
    let error = entrypoint.failure.clone().map_or(Fact::Absent, |failure| Fact::seen(failure, []));
    facts.insert(key::RUN_ENTRYPOINT_ERROR, error);
    if let Some(hello) = &recording.hello {
        facts.insert(key::RUN_ENTRYPOINT_CHANGES, changes(entrypoint, hello));
    }
}

/// The differences between what the engine gave the entrypoint and what the program got from it.
fn changes(entrypoint: &EntrypointLaunch, hello: &Hello) -> Fact<Vec<String>> {
    let Some(given) = &entrypoint.given else {
        return Fact::Unknown(Gap::new("the engine did not report the container's variables and user"));
    };
    hello.environment.fact().as_ref().and_then(|environment, _| {
        let mut changes = variables(given, environment);
        changes.extend(user(given, hello));
        changes.extend(folder(given, hello));
        list(changes)
    })
}

fn variables(given: &GivenProcess, found: &BTreeMap<String, Option<String>>) -> Vec<String> {
    let mut before = given.environment.clone();
    before.entry("PATH".to_owned()).or_insert_with(|| Some(DEFAULT_PATH.to_owned()));
    let names: BTreeSet<_> = before.keys().chain(found.keys()).collect();
    let change = |name: &String| match (before.get(name), found.get(name)) {
        (_, None) => Some(format!("unsets {name}")),
        (None, Some(_)) if OF_RUNTIME.contains(&name.as_str()) || name == OF_PYTHON => None,
        (None, Some(None)) => Some(format!("sets {name}")),
        (None, Some(Some(value))) => Some(format!("sets {name}={value}")),
        (Some(Some(before)), Some(Some(value))) if before != value => Some(format!("sets {name}={value}")),
        (Some(_), Some(_)) => None,
    };
    names.into_iter().filter(|name| !OF_SHELL.contains(&name.as_str())).filter_map(change).collect()
}

/// Another user than the given one. A name can be compared with a name only, and the program reports numbers.
fn user(given: &GivenProcess, hello: &Hello) -> Option<String> {
    let name = given.user.split(':').next().unwrap_or_default();
    let before = if name.is_empty() || name == "root" { Some(0) } else { name.parse::<i64>().ok() };
    let before = before?;
    let now = hello.uid.copied()?;
    (before != now).then(|| format!("changes the user from {before} to {now}"))
}

fn folder(given: &GivenProcess, hello: &Hello) -> Option<String> {
    let before = if given.directory.is_empty() { "/" } else { given.directory.trim_end_matches('/') };
    let before = if before.is_empty() { "/" } else { before };
    let now = hello.working_folder.text()?;
    (before != now).then(|| format!("changes the working directory from {before} to {now}"))
}

/// Compares what the program got with what the check predicts of the entrypoint.
pub(super) fn unpredicted(recording: &Recording, predicted: &Result<Handover, Gap>) -> Fact<Vec<String>> {
    let launch = recording.launch.as_ref().and_then(|launch| launch.entrypoint_in_use());
    let (Some(_), Some(hello)) = (launch, &recording.hello) else { return Fact::Absent };
    let predicted = match predicted {
        Ok(predicted) => predicted,
        Err(gap) => return Fact::Unknown(gap.clone()),
    };
    hello.environment.fact().as_ref().and_then(|environment, _| {
        let mut differences = other_variables(predicted, environment);
        if let (Ok(Some(user)), Some(found)) = (&predicted.user, hello.uid.copied())
            && i64::from(*user) != found
        {
            differences.push(format!("the user is {found}, predicted {user}"));
        }
        if let Some(folder) = hello.working_folder.text().filter(|folder| *folder != predicted.directory) {
            differences.push(format!("the working directory is {folder}, predicted {}", predicted.directory));
        }
        list(differences)
    })
}

/// Variables with another value than the predicted one, or that are set or not set against the prediction. An unknown
/// prediction is no other one.
fn other_variables(predicted: &Handover, found: &BTreeMap<String, Option<String>>) -> Vec<String> {
    let names: BTreeSet<_> = predicted.variables.keys().chain(found.keys()).collect();
    let difference = |name: &String| match (predicted.variables.get(name), found.get(name)) {
        (Some(Ok(value)), None) => Some(format!("{name} is not set, predicted {value}")),
        (Some(Ok(value)), Some(Some(found))) if value != found => Some(format!("{name} is {found}, predicted {value}")),
        (None, Some(Some(found))) if predicted.gap.is_none() => Some(format!("{name} is {found}, predicted not set")),
        _ => None,
    };
    let is_compared = |name: &&String| is_shown(name) && !OF_RUNTIME.contains(&name.as_str());
    names.into_iter().filter(is_compared).filter_map(difference).collect()
}

/// A list, absent if it is empty.
fn list(texts: Vec<String>) -> Fact<Vec<String>> {
    if texts.is_empty() { Fact::Absent } else { Fact::seen(texts, []) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::wire::events::LaunchEvent;
    use super::*;

    /// A recording behind an entrypoint that got `given`, of a program that found `found`.
    fn recording(given: Value, found: Value) -> Recording {
        let launch = EntrypointLaunch {
            words: vec!["/entry.sh".to_owned(), "-v".to_owned()],
            given: Some(serde_json::from_value(given).unwrap()),
            ..EntrypointLaunch::default()
        };
        let mut recording = Recording::default();
        recording.launch = Some(LaunchEvent { entrypoint: Some(launch), ..LaunchEvent::default() });
        recording.hello = Some(serde_json::from_value(found).unwrap());
        recording
    }

    fn changes_of(given: Value, found: Value) -> Fact<Vec<String>> {
        let mut facts = Facts::default();
        produce(&recording(given, found), &mut facts);
        assert_eq!(facts.get(key::RUN_ENTRYPOINT).value().unwrap(), "/entry.sh -v");
        facts.get(key::RUN_ENTRYPOINT_CHANGES).clone()
    }

    #[test]
    fn changes_are_variables_user_and_directory() {
        let given = json!({"environment": {"NCCL_DEBUG": "WARN", "LD_PRELOAD": "/x.so", "TOKEN": null}, "user": "", "directory": ""});
        let found = json!({"uid": 1000, "working_folder": "/srv", "environment": {
            "NCCL_DEBUG": "INFO", "TOKEN": null, "SECRET": null, "NCCL_ALGO": "Ring", "PATH": "/opt/bin",
            "HOME": null, "NVIDIA_VISIBLE_DEVICES": "void", "PWD": null, "SHLVL": null}});
        assert_eq!(
            changes_of(given, found).value().unwrap(),
            &[
                "unsets LD_PRELOAD",
                "sets NCCL_ALGO=Ring",
                "sets NCCL_DEBUG=INFO",
                "sets PATH=/opt/bin",
                "sets SECRET",
                "changes the user from 0 to 1000",
                "changes the working directory from / to /srv",
            ]
        );
    }

    #[test]
    fn what_runtimes_and_shells_add_is_no_change() {
        let given = json!({"environment": {"NCCL_DEBUG": "WARN"}, "user": "1000:1000", "directory": "/app/"});
        let found = json!({"uid": 1000, "working_folder": "/app", "environment": {
            "NCCL_DEBUG": "WARN", "PATH": DEFAULT_PATH, "HOSTNAME": null, "OLDPWD": null, "_": null, "LC_CTYPE": null}});
        assert_eq!(changes_of(given.clone(), found), Fact::Absent);
        let unread = changes_of(given, json!({"uid": 1000, "environment": 7}));
        assert!(matches!(unread, Fact::Unknown(_)), "{unread:?}");
    }

    #[test]
    fn a_failure_and_a_bypass_are_facts() {
        let mut recording = recording(json!({"environment": {}, "user": "", "directory": ""}), json!({}));
        recording.hello = None;
        let mut facts = Facts::default();
        let entrypoint = |recording: &mut Recording| recording.launch.as_mut().unwrap().entrypoint.take().unwrap();
        let failed = EntrypointLaunch { failure: Some("it ended".to_owned()), ..entrypoint(&mut recording) };
        recording.launch.as_mut().unwrap().entrypoint = Some(failed.clone());
        produce(&recording, &mut facts);
        assert_eq!(facts.get(key::RUN_ENTRYPOINT_ERROR).value().unwrap(), "it ended");
        let bypassed = EntrypointLaunch { bypassed: Some("why".to_owned()), ..failed };
        recording.launch.as_mut().unwrap().entrypoint = Some(bypassed);
        produce(&recording, &mut facts);
        assert_eq!(facts.get(key::RUN_ENTRYPOINT_BYPASSED).value().unwrap(), "why");
        assert_eq!(
            (facts.get(key::RUN_ENTRYPOINT), facts.get(key::RUN_ENTRYPOINT_ERROR)),
            (&Fact::Absent, &Fact::Absent)
        );
    }

    fn predicted(variables: &[(&str, Result<&str, &str>)]) -> Handover {
        let pair = |(name, value): &(&str, Result<&str, &str>)| {
            ((*name).to_owned(), value.map(ToOwned::to_owned).map_err(Gap::new))
        };
        let variables = variables.iter().map(pair).collect();
        Handover { variables, gap: None, user: Ok(Some(1000)), directory: "/srv".to_owned() }
    }

    #[test]
    fn a_prediction_is_compared_with_what_the_program_found() {
        let handover = predicted(&[
            ("NCCL_DEBUG", Ok("INFO")),
            ("NCCL_ALGO", Ok("Ring")),
            ("NCCL_HOSTID", Err("it depends on the machine")),
            ("TOKEN", Ok("x")),
        ]);
        let given = json!({"environment": {}, "user": "", "directory": ""});
        let found = json!({"uid": 0, "working_folder": "/", "environment": {
            "NCCL_DEBUG": "WARN", "NCCL_HOSTID": "7", "NCCL_PROTO": "LL", "OTHER": null, "NVIDIA_VISIBLE_DEVICES": "void"}});
        assert_eq!(
            unpredicted(&recording(given.clone(), found), &Ok(handover.clone())).value().unwrap(),
            &[
                "NCCL_ALGO is not set, predicted Ring",
                "NCCL_DEBUG is WARN, predicted INFO",
                "NCCL_PROTO is LL, predicted not set",
                "the user is 0, predicted 1000",
                "the working directory is /, predicted /srv",
            ]
        );
        let same = json!({"uid": 1000, "working_folder": "/srv", "environment": {
            "NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring", "NCCL_HOSTID": "7"}});
        let same = recording(given, same);
        assert_eq!(unpredicted(&same, &Ok(handover)), Fact::Absent);
        let unknown = unpredicted(&same, &Err(Gap::new("why")));
        assert!(matches!(unknown, Fact::Unknown(gap) if gap.why == "why"));
    }
}
