//! The image configuration and the distribution.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::table;
use model::{Fact, Gap, ImageConfig, ImagePath, Site, Table, UnknownConfig, is_secret_name};

use super::key::{Definition, definitions};
use super::{Context, Facts, key, pattern, text};

pattern!(PRETTY_NAME, r#"(?m)^PRETTY_NAME="?([^"\n]*)"?$"#);

/// The variables to show: `rules/tables/shown.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShownVariables {
    prefixes: Vec<String>,
    names: Vec<String>,
}

pub(crate) static SHOWN: Table<ShownVariables> = table!("shown");

/// The facts that come from the configuration alone.
pub(super) const FROM_CONFIG: &[&Definition] = definitions![
    IMAGE_PLATFORM,
    IMAGE_USER,
    IMAGE_ENTRYPOINT,
    IMAGE_COMMAND,
    IMAGE_WORKING_DIRECTORY,
    IMAGE_LABELS,
    IMAGE_ENV,
    IMAGE_OTHER_ENV,
    NVIDIA_VISIBLE_DEVICES,
    NVIDIA_DRIVER_CAPABILITIES,
    NVIDIA_REQUIRE,
];

/// Why the variables, the user and the command of a folder or of a squashfs file are unknown. Variables of the launch stand
/// for the whole environment.
pub(super) fn no_configuration() -> Gap {
    Gap::new("a file system alone has no image configuration")
        .settled_by("check the image that it comes from, or give all of the job's variables with -e NAME=VALUE")
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let os = text(context.rootfs, &ImagePath::from("etc/os-release")).and_then(|bytes, at| {
        match PRETTY_NAME.captures(bytes) {
            Some(captures) => Fact::Seen { value: String::from_utf8_lossy(&captures[1]).into_owned(), at },
            None => Fact::Absent,
        }
    });
    facts.insert(key::IMAGE_OS, os);

    let config = || match context.config {
        Some(config) => Fact::known(config),
        None => Fact::Unknown(no_configuration()),
    };
    // Not every kind of image declares all parts of the configuration.
    let unless = |gap: fn(&UnknownConfig) -> Option<&Gap>| {
        config().and_then(|config, at| match gap(&config.unknown) {
            Some(gap) => Fact::Unknown(gap.clone()),
            None => Fact::Seen { value: config, at },
        })
    };
    let user = || unless(|unknown| unknown.user.as_ref());
    let start = || unless(|unknown| unknown.command.as_ref());
    let list = |key: &'static str, values: &[String]| {
        if values.is_empty() { Fact::Absent } else { Fact::seen(values.to_vec(), [Site::Config(key.to_owned())]) }
    };
    let line = |key: &'static str, value: &str| {
        if value.is_empty() { Fact::Absent } else { Fact::seen(value.to_owned(), [Site::Config(key.to_owned())]) }
    };
    // Launch settings override the image's own variables, and later ones those before.
    let given = context.launch.iter().filter(|setting| setting.value.is_some());
    let given: BTreeMap<_, _> = given.map(|setting| (&*setting.name, &setting.site)).collect();
    let place =
        |name: &str| given.get(name).map_or_else(|| Site::Config(format!("Env {name}")), |site| Site::clone(site));
    let variable = |config: &ImageConfig, name: &str| -> Option<(String, Site)> {
        config.environment.get(name).map(|value| (value.clone(), place(name)))
    };

    facts.insert(
        key::IMAGE_PLATFORM,
        config().and_then(|config, _| {
            config.platform.as_ref().map_or(Fact::Absent, |platform| line("architecture", &platform.to_string()))
        }),
    );
    facts.insert(key::IMAGE_USER, user().and_then(|config, _| line("User", &config.user)));
    facts.insert(key::IMAGE_ENTRYPOINT, start().and_then(|config, _| list("Entrypoint", &config.entrypoint)));
    facts.insert(key::IMAGE_COMMAND, start().and_then(|config, _| list("Cmd", &config.command)));
    facts.insert(
        key::IMAGE_WORKING_DIRECTORY,
        user().and_then(|config, _| line("WorkingDir", &config.working_directory)),
    );
    facts.insert(
        key::IMAGE_LABELS,
        config().and_then(|config, _| {
            if config.labels.is_empty() {
                Fact::Absent
            } else {
                Fact::seen(config.labels.clone(), [Site::Config("Labels".to_owned())])
            }
        }),
    );
    facts.insert(
        key::IMAGE_ENV,
        unless(|unknown| unknown.any(is_shown)).and_then(|config, _| {
            let shown: BTreeMap<_, _> = config
                .environment
                .iter()
                .filter(|(name, _)| is_shown(name))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            let at: Vec<_> = shown.keys().map(|name| place(name)).collect();
            Fact::Seen { value: shown, at }
        }),
    );
    facts.insert(
        key::IMAGE_OTHER_ENV,
        unless(|unknown| unknown.any(|name| !is_shown(name))).and_then(|config, _| {
            list("Env", &config.environment.keys().filter(|name| !is_shown(name)).cloned().collect::<Vec<_>>())
        }),
    );
    facts.insert(
        key::NVIDIA_VISIBLE_DEVICES,
        unless(|unknown| unknown.any(|name| name == "NVIDIA_VISIBLE_DEVICES")).and_then(|config, _| {
            variable(config, "NVIDIA_VISIBLE_DEVICES").map_or(Fact::Absent, |(value, at)| Fact::seen(value, [at]))
        }),
    );
    facts.insert(
        key::NVIDIA_DRIVER_CAPABILITIES,
        unless(|unknown| unknown.any(|name| name == "NVIDIA_DRIVER_CAPABILITIES")).and_then(|config, _| {
            variable(config, "NVIDIA_DRIVER_CAPABILITIES").map_or(Fact::Absent, |(value, at)| {
                let capabilities: Vec<_> =
                    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect();
                Fact::seen(capabilities, [at])
            })
        }),
    );
    facts.insert(
        key::NVIDIA_REQUIRE,
        unless(|unknown| unknown.any(|name| name.starts_with("NVIDIA_REQUIRE_"))).and_then(|config, _| {
            let conditions: BTreeMap<_, _> = config
                .environment
                .iter()
                .filter(|(name, _)| name.starts_with("NVIDIA_REQUIRE_"))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            let at: Vec<_> = conditions.keys().map(|name| place(name)).collect();
            if conditions.is_empty() { Fact::Absent } else { Fact::Seen { value: conditions, at } }
        }),
    );
}

/// Returns true when a variable concerns this check and does not have the name of a secret. Values of other variables may be secrets, so
/// they are neither kept nor shown.
pub fn is_shown(name: &str) -> bool {
    (SHOWN.names.iter().any(|shown| shown == name) || is_of_library(name)) && !is_secret_name(name)
}

/// Returns true when a library for GPUs or communication, or the dynamic loader, reads the variable.
pub(super) fn is_of_library(name: &str) -> bool {
    SHOWN.prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_may_be_secrets_are_not_shown() {
        for (name, shown) in [
            ("NCCL_DEBUG", true),
            ("PATH", true),
            ("HF_TOKEN", false),
            ("PATHS", false),
            ("MY_NCCL_", false),
            ("NVIDIA_API_KEY", false),
            ("TORCH_HUB_TOKEN", false),
            ("CUDA_PASSWORD", false),
        ] {
            assert_eq!(is_shown(name), shown, "{name}");
        }
    }

    #[test]
    fn no_known_name_is_that_of_a_secret() {
        let fields = crate::KEYS.iter().flat_map(|key| key.kind.fields());
        for name in crate::variable_names("").into_iter().chain(fields.copied()) {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
