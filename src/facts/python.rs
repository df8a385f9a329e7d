//! Which Python the image starts, and where that imports from (CPython, `Modules/getpath.py`; Debian Python Policy,
//! section "Module Path"; PEP 405).

use crate::model::{Fact, Gap, ImageConfig, ImagePath, Site};
use crate::rootfs::RootFs;

use super::{Context, Facts, key, pattern};

pattern!(MINOR, r"^python(3\.\d+)$");

/// What an image without `PATH` gets from container runtimes.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The interpreter of the image.
#[derive(Debug)]
pub(super) struct Python {
    /// As `PATH` finds it, and the file that it is.
    interpreter: Option<(ImagePath, Site)>,
    /// Existing folders that packages are imported from, in order.
    pub(super) site_packages: Vec<ImagePath>,
}

impl Python {
    pub(super) fn find(rootfs: &RootFs, config: Option<&ImageConfig>) -> Self {
        let path = config.and_then(|config| config.environment.get("PATH")).map_or(DEFAULT_PATH, String::as_str);
        let candidates = path
            .split(':')
            .flat_map(|directory| ["python3", "python"].map(|name| ImagePath::from(directory).join(name.as_bytes())));
        let Some((name, real, file)) = candidates.into_iter().find_map(|name| {
            let (real, file) = rootfs.open(&name).ok()?;
            Some((name, real, file))
        }) else {
            return Self { interpreter: None, site_packages: Vec::new() };
        };
        let mut site_packages: Vec<_> = config
            .and_then(|config| config.environment.get("PYTHONPATH"))
            .map(|list| list.split(':').filter(|part| !part.is_empty()).map(ImagePath::from).collect())
            .unwrap_or_default();
        // A virtual environment is known by the file beside or above the name that was called, not by where it leads.
        let environment = name.parent().parent();
        let is_virtual = rootfs.open(&environment.join(b"pyvenv.cfg")).is_ok();
        let prefix = if is_virtual { environment } else { real.parent().parent() };
        let minor = MINOR.captures(real.file_name()).map(|captures| String::from_utf8_lossy(&captures[1]).into_owned());
        for version in minor.map_or_else(|| versions(rootfs, &prefix), |minor| vec![format!("python{minor}")]) {
            // Debian's own interpreter looks below /usr/local first, and in dist-packages.
            if prefix == ImagePath::from("usr") {
                site_packages.push(ImagePath::from("usr/local/lib").join(version.as_bytes()).join(b"dist-packages"));
                site_packages.push(ImagePath::from("usr/lib/python3/dist-packages"));
            }
            let lib = prefix.join(b"lib").join(version.as_bytes());
            site_packages.extend([lib.join(b"site-packages"), lib.join(b"dist-packages")]);
            site_packages.push(prefix.join(b"lib64").join(version.as_bytes()).join(b"site-packages"));
        }
        site_packages.retain(|directory| rootfs.is_directory(directory));
        let site = file.site(&real, None);
        Self { interpreter: Some((name, site)), site_packages }
    }
}

/// `python3.N` folders of a prefix, for an interpreter whose file name does not tell.
fn versions(rootfs: &RootFs, prefix: &ImagePath) -> Vec<String> {
    let lib = prefix.join(b"lib");
    let names = rootfs.names(&lib).filter(|name| MINOR.is_match(name));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let python = &context.python;
    let interpreter =
        python.interpreter.as_ref().map_or(Fact::Absent, |(name, site)| Fact::seen(name.to_string(), [site.clone()]));
    facts.insert(key::PYTHON_PATH, interpreter);
    let folders: Vec<_> = python.site_packages.iter().map(ToString::to_string).collect();
    let folders = match (&python.interpreter, folders.is_empty()) {
        (None, _) => Fact::Absent,
        (Some((name, _)), true) => {
            Fact::Unknown(Gap::new(format!("{name} was found, and no folder that it would import packages from")))
        }
        (Some((_, site)), false) => Fact::seen(folders, [site.clone()]),
    };
    facts.insert(key::PYTHON_SITE_PACKAGES, folders);
}
