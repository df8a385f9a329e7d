//! Variables of plugins that the image does not have.

use crate::launch::Setting;
use crate::model::Gap;

use super::super::{Context, Facts, key};
use super::list::SettingList;
use super::name::Name;
use super::vocabulary::PluginFamily;

pub(super) fn produce(context: &Context<'_>, judged: &[(&Setting, Name)], gap: Option<&Gap>, facts: &mut Facts) {
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
