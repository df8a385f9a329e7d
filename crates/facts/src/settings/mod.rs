//! All places that set variables for the processes of a job: the launch, the image's configuration, and files of the
//! image.

mod conf_file;
mod conf_text;
mod number;

use std::collections::{BTreeMap, BTreeSet};

use crate::launch::{self, Assignment, Setting};
use model::{Fact, Gap, ImagePath, Site, Version};
use rootfs::RootFs;

use super::image::{is_of_library, no_configuration};
use super::{Context, text};

pub(super) use number::{CNumber, number, strtoll};

/// The variables of an NCCL process, including those from NCCL's own files.
pub(super) fn effective(context: &Context<'_>, version: Option<&Version>) -> BTreeMap<String, Setting> {
    let settings = Settings::gather(context, version);
    settings.effective().into_values().map(|setting| (setting.name.clone(), setting.clone())).collect()
}

/// Maximum settings of variables. Images of NVIDIA, PyTorch and vLLM have fewer than 100.
const MOST: usize = 10_000;

/// All settings, and a gap if some could not be read.
pub(super) struct Settings {
    pub(super) all: Vec<Setting>,
    pub(super) gap: Option<Gap>,
    /// Why settings are missing that could be the ones that count: there are too many.
    pub(super) excess: Option<Gap>,
    /// NCCL's own configuration files.
    pub(super) files: conf_file::ConfFiles,
    /// The lines of scripts that set variables of the process before it starts.
    scripts: BTreeSet<Site>,
}

impl Settings {
    /// `version` is the version of the NCCL that would be loaded.
    pub(super) fn gather(context: &Context<'_>, version: Option<&Version>) -> Self {
        let mut settings = Self {
            all: context.launch.to_vec(),
            gap: None,
            excess: None,
            files: conf_file::ConfFiles::default(),
            scripts: BTreeSet::new(),
        };
        settings.configuration(context);
        settings.shell_files(context);
        settings.files = conf_file::ConfFiles::read(context, version, &settings.effective());
        settings.all.extend(settings.files.settings.iter().cloned());
        settings.gap = settings.gap.take().or_else(|| settings.files.any_gap().cloned());
        settings.bound();
        settings
    }

    /// Drops the settings after the first [`MOST`], so that their records take little memory.
    fn bound(&mut self) {
        if self.all.len() > MOST {
            self.all.truncate(MOST);
            let why = format!("more than {MOST} settings of variables were found, and only the first were read");
            self.excess = Some(Gap::new(why));
            self.gap.clone_from(&self.excess);
        }
    }

    /// The initial environment of a process in a container, plus NCCL's additions. If several places set a name, the
    /// first one in this order counts.
    pub(super) fn effective(&self) -> BTreeMap<&str, &Setting> {
        let mut effective = BTreeMap::new();
        // The last launch setting counts: later files and options override earlier ones.
        let (launch, others): (Vec<_>, Vec<_>) =
            self.all.iter().partition(|setting| matches!(setting.site, Site::Launch { .. }));
        let is_read = |setting: &&Setting| match &setting.site {
            Site::Config(_) => true,
            Site::File { .. } => self.files.is_of(&setting.site),
            Site::Launch { .. } | Site::Probe(_) | Site::Log { .. } => false,
        };
        // What a script of the image sets replaces what the launch gave it.
        let (scripted, others): (Vec<&Setting>, Vec<&Setting>) =
            others.into_iter().partition(|setting| self.scripts.contains(&setting.site));
        let given = launch.into_iter().rev();
        for setting in scripted.into_iter().chain(given).chain(others.into_iter().filter(is_read)) {
            effective.entry(setting.name.as_str()).or_insert(setting);
        }
        effective
    }

    /// Why the value of one variable is unknown. What the environment sets does not depend on NCCL's files.
    pub(super) fn gap_of(&self, name: &str) -> Option<Gap> {
        let effective = self.effective();
        let setting = effective.get(name);
        if let Some(Setting { value: None, site, .. }) = setting {
            return Some(computed(name, site));
        }
        let own = self.files.gap_of(name, setting.copied()).cloned();
        own.or_else(|| self.environment_gap())
    }

    /// The value of one variable in the process's environment, which NCCL's files do not change, or why it is unknown.
    pub(super) fn in_environment(&self, name: &str) -> Result<Option<&str>, Gap> {
        match self.effective().get(name).filter(|setting| !self.files.is_of(&setting.site)) {
            Some(Setting { value: None, site, .. }) => Err(computed(name, site)),
            Some(setting) => Ok(setting.value.as_deref()),
            None => self.environment_gap().map_or(Ok(None), Err),
        }
    }

    /// Why the environment may have more variables. Gaps of NCCL's files do not concern it.
    fn environment_gap(&self) -> Option<Gap> {
        self.gap.clone().filter(|gap| Some(gap) != self.files.any_gap())
    }

    /// Variables of the image configuration that the launch does not override, and those that the command sets.
    fn configuration(&mut self, context: &Context<'_>) {
        let Some(config) = context.start.config.as_ref() else {
            self.gap = Some(no_configuration());
            return;
        };
        let changed = context.python.as_ref().map(|python| &python.changed);
        let of_program = |name: &str| Some(&changed?.values.get(name)?.1);
        // A rank or an address that a script computes leaves the libraries' own variables known.
        self.gap = config.unknown.any(|name| is_of_library(name) && of_program(name).is_none()).cloned();
        self.gap = self.gap.take().or_else(|| changed?.gap.clone());
        for name in config.unknown.variables.keys() {
            if let Some(site) = of_program(name) {
                self.scripts.insert(site.clone());
                self.all.push(Setting { name: name.clone(), value: None, site: site.clone() });
            }
        }
        let given: BTreeSet<_> =
            context.launch.iter().filter(|set| set.value.is_some()).map(|set| set.name.as_str()).collect();
        let origins = context.start.call.as_ref().map(|call| &call.state.origins);
        let origin = |name: &str| origins.and_then(|origins| origins.get(name)).cloned();
        for (name, value) in &config.environment {
            let origin = origin(name);
            let is_of_image = context.config.is_some_and(|config| config.environment.contains_key(name));
            // Container runtimes set these two themselves.
            let is_of_runtime = !is_of_image && matches!(name.as_str(), "HOME" | "PATH");
            if origin.is_none() && (given.contains(name.as_str()) || is_of_runtime) {
                continue;
            }
            let place = if is_of_image { format!("Env {name}") } else { "Entrypoint and Cmd".to_owned() };
            self.scripts.extend(origin.clone());
            let site = origin.unwrap_or(Site::Config(place));
            self.all.push(Setting { name: name.clone(), value: Some(value.clone()), site });
        }
    }

    /// `/etc/environment`, which logins read (pam_env(8)), and the scripts that login shells and `conda activate`
    /// source.
    fn shell_files(&mut self, context: &Context<'_>) {
        let mut known = self.all.iter().map(|set| (set.name.clone(), set.site.clone())).collect();
        self.file(context, &ImagePath::from("etc/environment"), launch::lines, &mut known);
        for path in &context.shell_files {
            self.file(context, path, launch::script, &mut known);
            // [`Self::bound`] drops the rest.
            if self.all.len() > MOST {
                return;
            }
        }
    }

    fn file(
        &mut self,
        context: &Context<'_>,
        path: &ImagePath,
        read: fn(&str) -> Vec<Assignment>,
        known: &mut BTreeSet<(String, Site)>,
    ) {
        match text(context.rootfs, path) {
            Fact::Seen { value, at } => {
                let Some(site) = at.first() else { return };
                let settings = read(&String::from_utf8_lossy(value)).into_iter().map(|given| Setting {
                    site: in_line(site, given.line),
                    name: given.name,
                    value: given.value,
                });
                self.all.extend(settings.filter(|set| known.insert((set.name.clone(), set.site.clone()))));
            }
            Fact::Absent => {}
            Fact::Unknown(gap) => self.gap = self.gap.take().or(Some(gap)),
        }
    }
}

/// The scripts that login shells and `conda activate` source.
pub(super) fn shell_files(rootfs: &RootFs) -> Vec<ImagePath> {
    let is_sourced =
        |folder: &ImagePath| folder.as_bytes() == b"etc/profile.d" || folder.ends_with("etc/conda/activate.d");
    let scripts = rootfs.files_named(|name| name.ends_with(b".sh")).map(|(path, _)| path);
    scripts.filter(|path| is_sourced(&path.parent())).collect()
}

/// The site of one line of a file.
fn in_line(site: &Site, line: Option<usize>) -> Site {
    match (site, line) {
        (Site::File { layer, path, .. }, Some(line)) => {
            Site::File { layer: *layer, path: path.clone(), within: Some(format!("line {line}")) }
        }
        _ => site.clone(),
    }
}

/// Why the value of a variable is unknown that something computes at this site.
pub(super) fn computed(name: &str, site: &Site) -> Gap {
    let how = format!("-e {name}=VALUE with the value that the job gets");
    Gap::new(format!("{site} computes {name}")).settled_by(how)
}
