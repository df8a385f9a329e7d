//! NCCL's plugins: the interfaces of each, which of them this NCCL opens, and which interfaces it accepts
//! (`src/plugin/plugin_open.cc`, `src/plugin/net.cc`; before 2.26 `src/net.cc` and `src/misc/tuner.cc`).

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::launch::Setting;
use crate::table;
use model::{DynamicSymbol, Fact, Gap, ImagePath, NcclStrings, Site, Table, Version};
use rootfs::RootFile;
use rootfs::loader::elf;

use super::super::records::NcclPlugin;
use super::super::{Context, Facts, key, pattern, settings};
use super::{loaded_strings, strings};

pattern!(INTERFACE, r"^nccl(?:(?:Net|CollNet|Tuner|Env|Gin|Rma)Plugin|Profiler)_v\d+$");
pattern!(FILE_NAME, r"^libnccl-(?:net|tuner|profiler|env|gin|rma)[^/]*\.so(?:\.|$)");

/// A kind of plugin: a row of the table `plugins.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginKind {
    /// The variable that names the plugin.
    variable: String,
    /// The file is `LIBRARY.so`, or `LIBRARY-NAME.so`.
    library: String,
    /// The symbol, without its version.
    symbol: String,
    /// First release that accepts several plugins, separated by commas.
    list_since: Option<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
}

pub(crate) static KINDS: Table<Vec<PluginKind>> = table!("plugins");

/// Results of opening the plugins.
#[derive(Default)]
struct Outcomes {
    /// Paths of the opened files, with the variables that selected them.
    opened: BTreeMap<ImagePath, Vec<&'static str>>,
    network: Option<(ImagePath, String)>,
    refused: Vec<(String, Site)>,
    broken: Vec<String>,
    not_found: Vec<String>,
    gap: Option<Gap>,
    /// True if a setting chooses a built-in network.
    declines: bool,
}

/// The inputs for opening plugins as NCCL does.
struct Opener<'c, 'a> {
    context: &'c Context<'a>,
    /// The object that calls dlopen.
    caller: ImagePath,
    copy: &'a NcclStrings,
    version: Option<Version>,
    environment: BTreeMap<String, Setting>,
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let copy = loaded_strings(context, facts);
    let interfaces = copy.clone().map(|copy| copy.interfaces.iter().cloned().collect::<Vec<_>>());
    facts.insert(
        key::NCCL_PLUGIN_INTERFACES,
        interfaces.and_then(|names, at| if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names, at } }),
    );
    let caller = facts.get(key::NCCL_LOADED_PATH).value().cloned();
    let outcomes = match (&copy, caller) {
        (Fact::Seen { value: copy, .. }, Some(caller)) => {
            let version = Version::parse(&copy.version);
            let environment = settings::effective(context, version.as_ref());
            Opener { context, caller, copy, version, environment }.open_all()
        }
        (Fact::Unknown(gap), _) => Outcomes { gap: Some(gap.clone()), ..Outcomes::default() },
        _ => Outcomes::default(),
    };

    let plugins: Vec<_> = context.rootfs.read_files().filter(|(path, file)| is_plugin(path, file)).collect();
    let records = plugins.iter().map(|(path, file)| record(context, path, file, copy.value().copied(), &outcomes));
    let at = plugins.iter().map(|(path, file)| file.site(path, None)).collect();
    facts.insert(
        key::NCCL_PLUGINS,
        if plugins.is_empty() { Fact::Absent } else { Fact::Seen { value: records.collect(), at } },
    );

    // Without a plugin in the image, gaps about NCCL do not matter.
    let gap = outcomes.gap.as_ref().filter(|_| !plugins.is_empty());
    let list = |texts: Vec<String>, at: Vec<Site>| match gap {
        _ if !texts.is_empty() => Fact::Seen { value: texts, at },
        Some(gap) => Fact::Unknown(gap.clone()),
        None => Fact::Absent,
    };
    let site = |path: &ImagePath| context.rootfs.open(path).ok().map(|(real, file)| file.site(&real, None));
    facts.insert(
        key::NCCL_NET_PLUGIN,
        match (&outcomes.network, gap) {
            (Some((path, interface)), _) => Fact::seen(format!("{path} ({interface})"), site(path)),
            (None, Some(gap)) => Fact::Unknown(gap.clone()),
            (None, None) => Fact::Absent,
        },
    );
    let unopened = match gap {
        Some(gap) => Fact::Unknown(gap.clone()),
        None => unopened(context, &plugins, &outcomes),
    };
    facts.insert(key::NCCL_UNOPENED_FOLDERS, unopened.clone().map(|(_, folders)| folders));
    facts.insert(key::NCCL_UNOPENED_NET_PLUGIN, unopened.map(|(path, _)| path));
    let (refused, at) = outcomes.refused.into_iter().unzip();
    facts.insert(key::NCCL_PLUGINS_REFUSED, list(refused, at));
    facts.insert(key::NCCL_PLUGINS_BROKEN, list(outcomes.broken, Vec::new()));
    facts.insert(key::NCCL_PLUGINS_NOT_FOUND, list(outcomes.not_found, Vec::new()));
}

/// The first network plugin that is not opened, and the folders that the loader needs for it; absent if another one is opened,
/// or cannot be, or if a setting chooses a built-in network.
fn unopened(
    context: &Context<'_>,
    plugins: &[(&ImagePath, RootFile<'_>)],
    outcomes: &Outcomes,
) -> Fact<(ImagePath, String)> {
    if outcomes.network.is_some() || outcomes.declines || !outcomes.broken.is_empty() || !outcomes.refused.is_empty() {
        return Fact::Absent;
    }
    let is_network = |file: &RootFile<'_>| {
        let symbols = elf(file).and_then(|elf| elf.symbols.as_deref().ok()).unwrap_or_default();
        exports(symbols).iter().any(|name| name.starts_with("ncclNetPlugin"))
    };
    let Some((path, file)) = plugins.iter().find(|(_, file)| is_network(file)) else { return Fact::Absent };
    let mut folders = vec![path.parent()];
    for name in elf(file).into_iter().flat_map(|elf| &elf.needed) {
        let is_found = elf(file).is_some_and(|elf| matches!(context.loader.find(name, path, elf), Ok(Some(_))));
        let named = |own: &[u8]| own == name.as_bytes();
        let folder = context.rootfs.files_named(named).map(|(path, _)| path.parent()).next();
        folders.extend(folder.filter(|folder| !is_found && !folders.contains(folder)));
    }
    let folders: Vec<_> = folders.iter().map(ToString::to_string).collect();
    Fact::seen(((*path).clone(), folders.join(":")), [file.site(path, None)])
}

fn is_plugin(path: &ImagePath, file: &RootFile<'_>) -> bool {
    let exports = || elf(file).is_some_and(|elf| !exports(elf.symbols.as_deref().unwrap_or_default()).is_empty());
    let has_name = || FILE_NAME.is_match(path.file_name()) && elf(file).is_some();
    strings(file).is_none() && (has_name() || exports())
}

/// Plugin interfaces that a library defines.
fn exports(symbols: &[DynamicSymbol]) -> Vec<&str> {
    let mut names: Vec<_> = symbols
        .iter()
        .filter(|symbol| symbol.defined && INTERFACE.is_match(symbol.name.as_bytes()))
        .map(|symbol| symbol.name.as_str())
        .collect();
    names.sort_by_key(|name| (name.trim_end_matches(|c: char| c.is_ascii_digit()), number(name)));
    names
}

fn number(interface: &str) -> u32 {
    interface.rsplit_once("_v").and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
}

fn record(
    context: &Context<'_>,
    path: &ImagePath,
    file: &RootFile<'_>,
    copy: Option<&NcclStrings>,
    outcomes: &Outcomes,
) -> NcclPlugin {
    let symbols = elf(file).and_then(|elf| elf.symbols.as_deref().ok()).unwrap_or_default();
    let offered = exports(symbols);
    let needed = elf(file).map(|elf| elf.needed.as_slice()).unwrap_or_default();
    let accepted = copy.filter(|copy| !copy.interfaces.is_empty()).map(|copy| {
        let names: Vec<_> = offered.iter().copied().filter(|name| copy.interfaces.contains(*name)).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    });
    NcclPlugin {
        path: Some(path.to_string()),
        exports: Some(if offered.is_empty() { "nothing".to_owned() } else { offered.join(" ") }),
        accepted,
        opened: Some(outcomes.opened.get(path).map_or("no".to_owned(), |kinds| kinds.join(", "))),
        libfabric: needed.iter().find(|soname| soname.starts_with("libfabric.so")).cloned(),
        owner: context.packages.owner(path),
    }
}

impl Opener<'_, '_> {
    fn open_all(&self) -> Outcomes {
        let network = self.environment.get("NCCL_NET").and_then(|setting| setting.value.as_deref());
        let declines = network.is_some_and(|name| ["Socket", "IB"].iter().any(|own| own.eq_ignore_ascii_case(name)));
        let mut outcomes = Outcomes { declines, ..Outcomes::default() };
        if self.copy.interfaces.is_empty() {
            outcomes.gap = Some(Gap::new(format!("{} contains no names of plugin interfaces", self.caller)));
        }
        for kind in KINDS.iter().filter(|kind| self.copy.interfaces.iter().any(|name| name.starts_with(&kind.symbol))) {
            let setting = self.environment.get(&kind.variable);
            if setting.is_some_and(|setting| setting.value.is_none()) {
                let why = format!("{} is computed when the job starts", kind.variable);
                outcomes.gap.get_or_insert(Gap::new(why));
                continue;
            }
            let value = setting.and_then(|setting| setting.value.as_deref());
            outcomes.declines |= kind.library == "libnccl-net" && value.is_some_and(|value| value == "none");
            for names in self.names(kind, value) {
                self.open(kind, value, &names, &mut outcomes);
            }
        }
        outcomes
    }

    fn is_from(&self, release: &str) -> bool {
        let first = Version::parse(release);
        self.version.as_ref().is_none_or(|version| first.is_some_and(|first| *version >= first))
    }

    /// The plugins that NCCL looks for, each with the names that it tries.
    fn names(&self, kind: &PluginKind, value: Option<&str>) -> Vec<Vec<String>> {
        let takes_list = kind.list_since.as_ref().is_some_and(|first| self.is_from(first));
        let value = match value {
            Some("") if !takes_list => None,
            other => other,
        };
        let Some(value) = value else { return vec![vec![format!("{}.so", kind.library)]] };
        // Before 2.28, `none` was an ordinary name, but no library has it.
        if value.is_empty() || value.eq_ignore_ascii_case("none") || value.eq_ignore_ascii_case("STATIC_PLUGIN") {
            return Vec::new();
        }
        let several = value.split(',').filter(|name| !name.is_empty());
        let wanted: Vec<&str> = if takes_list { several.collect() } else { vec![value] };
        wanted.into_iter().map(|name| self.spellings(kind, name)).collect()
    }

    /// The names for one plugin: the given one, and the one made with NCCL's pattern.
    fn spellings(&self, kind: &PluginKind, name: &str) -> Vec<String> {
        let inside = format!("{}-{name}.so", kind.library);
        #[expect(clippy::case_sensitive_file_extension_comparisons, reason = "as NCCL compares it")]
        let is_file = name.contains('/') || (name.starts_with("lib") && name.ends_with(".so"));
        if kind.library == "libnccl-net" && !self.is_from("2.21.5") {
            vec![inside]
        } else if is_file && self.is_from("2.26.2") {
            vec![name.to_owned()]
        } else {
            vec![name.to_owned(), inside]
        }
    }

    fn open(&self, kind: &'static PluginKind, value: Option<&str>, names: &[String], outcomes: &mut Outcomes) {
        for name in names {
            match self.context.loader.dlopen(&self.caller, &[name]) {
                Fact::Seen { value: Ok(path), .. } => return self.judge(kind, path, outcomes),
                // dlerror names the missing file.
                Fact::Seen { value: Err(why), .. } if why.starts_with(&format!("{name}: ")) => {}
                Fact::Seen { value: Err(why), .. } => return outcomes.broken.push(format!("{name}: {why}")),
                Fact::Absent => {}
                Fact::Unknown(gap) => {
                    outcomes.gap.get_or_insert(gap);
                }
            }
        }
        if let Some(value) = value {
            outcomes.not_found.push(format!("{}={value} (no {})", kind.variable, names.join(", no ")));
        }
    }

    fn judge(&self, kind: &'static PluginKind, path: ImagePath, outcomes: &mut Outcomes) {
        outcomes.opened.entry(path.clone()).or_default().push(&kind.variable);
        let Ok((_, file)) = self.context.rootfs.open(&path) else { return };
        let symbols = match elf(&file).map(|elf| &elf.symbols) {
            Some(Ok(symbols)) => symbols.as_slice(),
            Some(Err(gap)) => {
                outcomes.gap.get_or_insert_with(|| gap.clone());
                return;
            }
            None => &[],
        };
        let of_kind = |names: Vec<&str>| -> Vec<String> {
            names.into_iter().filter(|name| name.starts_with(&kind.symbol)).map(ToOwned::to_owned).collect()
        };
        let offered = of_kind(exports(symbols));
        let mut wanted = of_kind(self.copy.interfaces.iter().map(String::as_str).collect());
        wanted.sort_by_key(|name| number(name));
        let best = offered.iter().rfind(|name| wanted.contains(name));
        match best {
            Some(interface) if kind.library == "libnccl-net" && outcomes.network.is_none() => {
                outcomes.network = Some((path, interface.clone()));
            }
            Some(_) => {}
            None => {
                let offered = if offered.is_empty() { format!("no {}N", kind.symbol) } else { offered.join(", ") };
                let text = format!("{path} exports {offered}, and NCCL looks for {}", wanted.join(", "));
                outcomes.refused.push((text, file.site(&path, Some("dynamic symbols"))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_sound() {
        let mut seen = BTreeSet::new();
        for kind in KINDS.iter() {
            assert!(seen.insert(&kind.variable) && seen.insert(&kind.library) && seen.insert(&kind.symbol), "{kind:?}");
            assert!(INTERFACE.is_match(format!("{}1", kind.symbol).as_bytes()), "{kind:?}");
            assert!(FILE_NAME.is_match(format!("{}.so", kind.library).as_bytes()), "{kind:?}");
            assert!(kind.list_since.as_ref().is_none_or(|first| Version::parse(first).is_some()), "{kind:?}");
            assert!(kind.source.starts_with("src/"), "{kind:?}");
        }
    }
}
