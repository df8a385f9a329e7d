//! Files and plugins that variables name, and that the image does not have.

use crate::launch::Setting;
use model::{Gap, Site};

use super::super::settings::Settings;
use super::super::{Context, Facts, key};
use super::conflicts::Effective;
use super::list::SettingList;
use super::name::Name;
use super::vocabulary::PluginFamily;

/// A topology file that the image sets but does not contain. NCCL continues without it.
pub(super) fn topology(context: &Context<'_>, settings: &Settings, facts: &mut Facts) {
    let mut list = SettingList::default();
    if let Some((text, site)) = missing_file(context, &settings.effective(), "NCCL_TOPO_FILE") {
        list.push(text, [site]);
    }
    facts.insert(key::ENV_TOPOLOGY_FILES_MISSING, list.fact(settings.gap.as_ref()));
}

/// A graph file that the image sets but does not contain. NCCL does not start without it.
pub(super) fn graph(context: &Context<'_>, effective: &Effective<'_>) -> Option<(String, Site)> {
    let (text, site) = missing_file(context, effective, "NCCL_GRAPH_FILE")?;
    Some((format!("{text} (the image does not contain the file)"), site))
}

/// A variable of the image that names a file which the image does not contain. A path that a job sets may be mounted.
fn missing_file(context: &Context<'_>, effective: &Effective<'_>, name: &str) -> Option<(String, Site)> {
    let setting = effective.get(name).filter(|setting| !matches!(setting.site, Site::Launch { .. }))?;
    let value = setting.value.as_deref().filter(|value| !value.is_empty())?;
    let folder = context.config.map_or("", |config| config.working_directory.as_str());
    let path = if value.starts_with('/') { value.to_owned() } else { format!("{folder}/{value}") };
    context.rootfs.open_raw(path.as_bytes()).is_err().then(|| (format!("{name}={value}"), setting.site.clone()))
}

/// Variables of plugins that the image does not have.
pub(super) fn plugins(context: &Context<'_>, judged: &[(&Setting, Name)], gap: Option<&Gap>, facts: &mut Facts) {
    let mut list = SettingList::default();
    for (setting, name) in judged {
        let Some(plugin) = name.plugin.filter(|plugin| !is_in_image(context, plugin)) else { continue };
        list.push(format!("{} ({})", setting.name, plugin.reader), [setting.site.clone()]);
    }
    facts.insert(key::ENV_PLUGIN_MISSING, list.fact(gap));
}

/// Returns true when the image has a file with the name of the plugin's. Plugins of different makers share a name.
fn is_in_image(context: &Context<'_>, plugin: &PluginFamily) -> bool {
    let is_own = |file: &[u8]| plugin.libraries.iter().any(|library| file.starts_with(library.as_bytes()));
    context.rootfs.files_named(is_own).next().is_some()
}
