//! Where stores are (containers-storage.conf(5)).

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::source::{SourceError, read_bounded};
use model::{Environment, Limits, open_configured, printable, without_content};

/// The store of the system's engines.
const SYSTEM: &str = "/var/lib/containers/storage";

/// The stores that an engine of this user would use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stores {
    /// Folders, the engine's own first.
    pub(super) roots: Vec<PathBuf>,
    /// Name of the storage driver, if it is configured.
    pub(super) driver: Option<String>,
}

/// A store that a reference names: `[[DRIVER@]ROOT[+RUNROOT][:OPTIONS]]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedStore<'a> {
    driver: Option<&'a str>,
    root: &'a str,
}

/// Splits a target into the store and the name of an image.
pub(super) fn named(text: &str) -> Result<(Option<NamedStore<'_>>, &str), SourceError> {
    let Some(inner) = text.strip_prefix('[') else { return Ok((None, text)) };
    let wrong = |why: &str| {
        let what = format!("containers-storage:{}: {why}", printable(text));
        let hint = "write containers-storage:[overlay@/FOLDER]NAME".to_owned();
        SourceError::invalid(what).with_hint(hint)
    };
    let (place, name) = inner.split_once(']').ok_or_else(|| wrong("the bracket is not closed"))?;
    let (driver, rest) = place.split_once('@').map_or((None, place), |(driver, rest)| (Some(driver), rest));
    let root = rest.split(['+', ':']).next().unwrap_or_default();
    if !root.starts_with('/') {
        return Err(wrong("the folder of the store is not absolute"));
    }
    if name.is_empty() {
        return Err(wrong("the name of the image is missing"));
    }
    Ok((Some(NamedStore { driver: driver.filter(|driver| !driver.is_empty()), root }), name))
}

#[derive(Debug, Default, Deserialize)]
struct StorageConf {
    #[serde(default)]
    storage: StorageTable,
}

#[derive(Debug, Default, Deserialize)]
struct StorageTable {
    driver: Option<String>,
    graphroot: Option<String>,
    rootless_storage_path: Option<String>,
    #[serde(default)]
    options: StorageOptions,
}

#[derive(Debug, Default, Deserialize)]
struct StorageOptions {
    #[serde(default)]
    additionalimagestores: Vec<PathBuf>,
}

/// The user's or the system's stores, or the one that a reference names with the additional ones.
pub(super) fn stores(
    place: Option<NamedStore<'_>>,
    environment: &Environment,
    limits: &Limits,
) -> Result<Stores, SourceError> {
    // The owner of this process, as the kernel sees it.
    let user = fs::metadata("/proc/self").map(|process| process.uid());
    let user = user.map_err(|error| SourceError::io("reading /proc/self", error))?;
    // In the user namespace of `podman unshare` the user is root.
    let is_rootless = user != 0 || environment.get("_CONTAINERS_USERNS_CONFIGURED").is_some();
    let configured = files(is_rootless, environment).iter().find_map(|path| read(path, limits).transpose());
    let (is_users, conf) = configured.transpose()?.unwrap_or_default();
    chosen(place, is_rootless, is_users, user, conf.storage, environment)
}

/// The files that say where stores are.
pub(super) fn configuration(environment: &Environment) -> impl Iterator<Item = PathBuf> {
    files(true, environment).into_iter().map(|(_, path)| path)
}

/// Configuration files, of which the first that exists counts; true for one of the user.
fn files(is_rootless: bool, environment: &Environment) -> Vec<(bool, PathBuf)> {
    if let Some(path) = environment.get("CONTAINERS_STORAGE_CONF") {
        return vec![(true, path.into())];
    }
    let home = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(environment.get("HOME")?).join(".config")));
    let own = home.filter(|_| is_rootless).map(|folder| (true, folder.join("containers/storage.conf")));
    let system = ["/etc/containers/storage.conf", "/usr/share/containers/storage.conf"];
    own.into_iter().chain(system.map(|path| (false, path.into()))).collect()
}

fn read((is_users, path): &(bool, PathBuf), limits: &Limits) -> Result<Option<(bool, StorageConf)>, SourceError> {
    let what = format!("reading {}", path.display());
    let file = match open_configured(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SourceError::io(what, error)),
    };
    let bytes = read_bounded(file, limits.document, &what)?;
    let conf = toml::from_str(&String::from_utf8_lossy(&bytes));
    let conf = conf.map_err(|error| {
        SourceError::invalid(format!("{} is malformed: {}", path.display(), without_content(error.message())))
    })?;
    Ok(Some((*is_users, conf)))
}

fn chosen(
    place: Option<NamedStore<'_>>,
    is_rootless: bool,
    is_users: bool,
    user: u32,
    conf: StorageTable,
    environment: &Environment,
) -> Result<Stores, SourceError> {
    let driver = place.as_ref().and_then(|place| place.driver).map(str::to_owned);
    let driver = driver.or_else(|| environment.get("STORAGE_DRIVER").map(str::to_owned));
    let driver = driver.or(conf.driver).filter(|driver| !driver.is_empty());
    let expand = |path: &str| {
        let home = environment.get("HOME").unwrap_or_default();
        PathBuf::from(path.replace("$HOME", home).replace("$UID", &user.to_string()))
    };
    let root = match place {
        Some(place) => place.root.into(),
        // The system's folder is not for engines without root.
        None if is_rootless && !is_users => match conf.rootless_storage_path {
            Some(path) => expand(&path),
            None => data_folder(environment)?,
        },
        None => match conf.graphroot.filter(|root| !root.is_empty()) {
            Some(root) => expand(&root),
            None if is_rootless => data_folder(environment)?,
            None => SYSTEM.into(),
        },
    };
    let others = conf.options.additionalimagestores.into_iter().filter(|other| *other != root);
    let others: Vec<_> = others.collect();
    Ok(Stores { roots: std::iter::once(root).chain(others).collect(), driver })
}

/// The default store of an engine without root.
fn data_folder(environment: &Environment) -> Result<PathBuf, SourceError> {
    let data = environment.get("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(Path::new(environment.get("HOME")?).join(".local/share")));
    let missing = || SourceError::invalid("HOME is not set: write containers-storage:[overlay@/FOLDER]NAME");
    data.map(|folder| folder.join("containers/storage")).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn references_name_a_store() {
        let store = |driver, root| Some(NamedStore { driver, root });
        for (text, expected) in [
            ("debian:12", (None, "debian:12")),
            ("[/srv/store]debian", (store(None, "/srv/store"), "debian")),
            ("[overlay@/srv+/run/x:a=b,c=d]debian@sha256:0", (store(Some("overlay"), "/srv"), "debian@sha256:0")),
        ] {
            assert_eq!(named(text).unwrap(), expected);
        }
        for (text, why) in [
            ("[/srv", "the bracket is not closed"),
            ("[overlay@srv]x", "is not absolute"),
            ("[/srv]", "the name of the image is missing"),
        ] {
            let error = named(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("help: write"), "{error}");
        }
    }

    #[test]
    fn the_store_is_the_one_that_podman_uses() {
        let home = environment(&[("HOME", "/home/u")]);
        let conf = |text: &str| toml::from_str::<StorageConf>(text).unwrap().storage;
        let own = "[storage]\ndriver = \"overlay\"\ngraphroot = \"$HOME/x\"\n[storage.options]\nadditionalimagestores = [\"/a\"]\n";
        for (is_rootless, is_users, text, roots, driver) in [
            (false, false, "", &[SYSTEM][..], None),
            (false, false, "[storage]\ngraphroot = \"/srv\"\n", &["/srv"], None),
            (true, false, "[storage]\ngraphroot = \"/srv\"\n", &["/home/u/.local/share/containers/storage"], None),
            (true, false, "[storage]\nrootless_storage_path = \"/big/$UID\"\n", &["/big/7"], None),
            (true, true, own, &["/home/u/x", "/a"], Some("overlay")),
            (false, false, "[storage]\ndriver = \"\"\n", &[SYSTEM], None),
        ] {
            let found = chosen(None, is_rootless, is_users, 7, conf(text), &home).unwrap();
            let roots: Vec<_> = roots.iter().map(PathBuf::from).collect();
            assert_eq!(found, Stores { roots, driver: driver.map(str::to_owned) }, "{text}");
        }
        let place = named("[vfs@/srv]x").unwrap().0;
        let found = chosen(place, true, true, 7, conf(own), &home).unwrap();
        assert_eq!(found, Stores { roots: vec!["/srv".into(), "/a".into()], driver: Some("vfs".to_owned()) });
        let error = chosen(None, true, false, 7, conf(""), &environment(&[])).unwrap_err();
        assert!(error.to_string().contains("HOME is not set"), "{error}");
        let xdg = environment(&[("HOME", "/home/u"), ("XDG_DATA_HOME", "/d"), ("STORAGE_DRIVER", "vfs")]);
        let found = chosen(None, true, false, 7, conf(""), &xdg).unwrap();
        assert_eq!((found.roots, found.driver.as_deref()), (vec!["/d/containers/storage".into()], Some("vfs")));
    }

    #[test]
    fn configuration_files_are_those_of_the_user_first() {
        let found = files(true, &environment(&[("HOME", "/home/u")]));
        assert_eq!(found[0], (true, "/home/u/.config/containers/storage.conf".into()));
        assert_eq!(files(false, &environment(&[("HOME", "/root")]))[0], (false, "/etc/containers/storage.conf".into()));
        assert_eq!(files(true, &environment(&[("CONTAINERS_STORAGE_CONF", "/x")])), [(true, "/x".into())]);
    }
}
