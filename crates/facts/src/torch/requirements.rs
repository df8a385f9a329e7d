//! Python packages that torch requires (`Requires-Dist` of its metadata), and those without which `import torch` fails.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::{Fact, ImagePath, Version};
use rootfs::RootFs;

use super::super::python::Python;
use super::super::words::Installer;
use super::super::{Context, Facts, key, pattern};
use super::interpreter::{machine_of, with_python};
use super::marker::{MarkerEnvironment, is_met};

pattern!(REQUIREMENT, r"(?m)^Requires-Dist: *([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])? *([^;\r\n]*)(?:;([^\r\n]*))?");
pattern!(TYPING_EXTENSIONS, r"(?m)^(?:from typing_extensions import (\([^)]*\)|[^\r\n]*)|import typing_extensions\b)");
pattern!(NAME, r"(\w+)(?: +as +\w+)?");

/// The module that `torch/__init__.py` imports before anything else of other packages. It imports no other required
/// package itself: without SymPy, NetworkX, Jinja2, fsspec or filelock the import succeeds (torch 2.9.0), and only what
/// uses them fails.
const MODULE: &str = "typing_extensions";

/// Names that torch imports from [`MODULE`], with the first release that has them (typing_extensions' change log).
const NAMES: &[(&str, &str)] = &[
    ("ParamSpec", "3.10"),
    ("TypeAlias", "3.10"),
    ("TypeGuard", "3.10"),
    ("Self", "4.0"),
    ("Never", "4.1"),
    ("deprecated", "4.5"),
    ("TypeIs", "4.10"),
];

/// Most requirements that are read. Releases of torch have some 30.
const MOST_REQUIREMENTS: usize = 20_000;

/// Version of an installed package.
#[derive(Clone)]
enum InstalledVersion {
    Known(String),
    /// The package has no metadata, or its directory does not name a version.
    Unknown,
}

/// One requirement.
struct PackageRequirement {
    name: String,
    specifier: String,
}

pub(super) fn produce(context: &Context<'_>, metadata: Fact<&[u8]>, facts: &mut Facts) {
    let missing = metadata.and_then(|metadata, at| {
        let count = headers(metadata).filter(|line| line.starts_with(b"Requires-Dist:")).count();
        if count > MOST_REQUIREMENTS {
            let why = format!("torch's metadata has {count} requirements, and at most {MOST_REQUIREMENTS} are read");
            return Fact::unknown(why);
        }
        let package = context.torch.imported_as.as_ref();
        let missing = package.and_then(|package| {
            with_python(context.rootfs, context.config, context.python.as_ref(), package, |python| {
                missing(context.rootfs, python, metadata)
            })
        });
        match missing.flatten() {
            None => Fact::unknown("the Python that imports torch is unknown, so which packages it finds is unknown"),
            Some(list) if list.is_empty() => Fact::Absent,
            Some(value) => Fact::Seen { value, at },
        }
    });
    facts.insert(key::TORCH_MISSING_REQUIREMENTS, missing);
    // Conda and distributions build torch for their own NumPy.
    let is_wheel = matches!(facts.get(key::TORCH_INSTALLER).value(), Some(Installer::Pip | Installer::Uv));
    let package = context.torch.imported_as.as_ref().filter(|_| is_wheel);
    let numpy = package.and_then(|package| {
        with_python(context.rootfs, context.config, context.python.as_ref(), package, |python| {
            InstalledPackages::on(context.rootfs, &python.path).version("numpy")
        })
    });
    let numpy = match numpy.flatten() {
        Some(InstalledVersion::Known(version)) => Version::parse(&version),
        Some(InstalledVersion::Unknown) | None => None,
    };
    facts.insert(key::TORCH_NUMPY, Fact::from(numpy));
}

/// The requirements that no installed package fulfills; `None` if Python's version is unknown. NVIDIA's packages are
/// left out: the loader finds out whether their libraries are missing, wherever they come from.
fn missing(rootfs: &RootFs, python: &Python, metadata: &[u8]) -> Option<Vec<String>> {
    let packages = InstalledPackages::on(rootfs, &python.path);
    let environment = MarkerEnvironment { minor: python.minor?, machine: machine_of(rootfs, python) };
    let applies = |line: &[u8]| {
        let captures = REQUIREMENT.captures(line)?;
        let text = |part: usize| captures.get(part).map(|part| String::from_utf8_lossy(part.as_bytes()).into_owned());
        let is_accepted = text(3).is_none_or(|marker| environment.accepts(&marker) == Some(true));
        let specifier = text(2)?.replace(['(', ')', ' '], "");
        is_accepted.then_some(PackageRequirement { name: text(1)?, specifier })
    };
    let requirements =
        headers(metadata).filter_map(applies).filter(|one| !normal(one.name.as_bytes()).starts_with("nvidia_"));
    Some(requirements.filter_map(|requirement| requirement.unmet(&packages)).collect())
}

/// The lines of the headers of metadata.
fn headers(metadata: &[u8]) -> impl Iterator<Item = &[u8]> {
    metadata.split(|&byte| byte == b'\n').take_while(|line| !line.trim_ascii().is_empty())
}

impl PackageRequirement {
    /// The requirement and what is installed instead; `None` if it is met.
    fn unmet(&self, packages: &InstalledPackages<'_>) -> Option<String> {
        let Self { name, specifier } = self;
        match packages.version(name) {
            None => Some(format!("{name}{specifier} (not installed)")),
            Some(InstalledVersion::Known(version)) => {
                (!meets(&version, specifier)).then(|| format!("{name}{specifier} ({version} is installed)"))
            }
            Some(InstalledVersion::Unknown) => None,
        }
    }
}

/// The packages and modules in the directories of a path.
struct InstalledPackages<'a> {
    /// The versions that directories name, by the normal name: the first on the path counts.
    versions: BTreeMap<String, InstalledVersion>,
    /// Modules, which count as installed without metadata.
    modules: BTreeSet<&'a [u8]>,
}

impl<'a> InstalledPackages<'a> {
    fn on(rootfs: &'a RootFs, path: &[ImagePath]) -> Self {
        let mut packages = Self { versions: BTreeMap::new(), modules: BTreeSet::new() };
        let mut known = BTreeSet::new();
        // Many entries can be links to one directory.
        let folders = path.iter().filter_map(|folder| rootfs.real_directory(folder));
        for folder in folders.filter(|folder| known.insert(folder.clone())) {
            rootfs.names(&folder).for_each(|name| packages.add(rootfs, &folder, name));
        }
        packages
    }

    fn add(&mut self, rootfs: &RootFs, folder: &ImagePath, file: &'a [u8]) {
        let is_file = |path: ImagePath| rootfs.open(&path).is_ok();
        let stem = file.strip_suffix(b".dist-info").or_else(|| file.strip_suffix(b".egg-info"));
        if let Some(stem) = stem {
            let mut parts = stem.splitn(2, |&byte| byte == b'-');
            let name = normal(parts.next().unwrap_or_default());
            let version = parts.next().map(|part| part.split(|&byte| byte == b'-').next().unwrap_or(part));
            let version = version.map(|version| String::from_utf8_lossy(version).into_owned());
            let version = version.map_or(InstalledVersion::Unknown, InstalledVersion::Known);
            self.versions.entry(name).or_insert(version);
        } else if let Some(module) = file.strip_suffix(b".py").or_else(|| file.strip_suffix(b".pyc"))
            && is_file(folder.join(file))
        {
            self.modules.insert(module);
        }
        let package = folder.join(file);
        if [&b"__init__.py"[..], b"__init__.pyc"].into_iter().any(|code| is_file(package.join(code))) {
            self.modules.insert(file);
        }
    }

    /// The installed version of a package, if its directory names one.
    fn version(&self, name: &str) -> Option<InstalledVersion> {
        let wanted = normal(name.as_bytes());
        let module = || self.modules.contains(wanted.as_bytes()).then_some(InstalledVersion::Unknown);
        self.versions.get(&wanted).cloned().or_else(module)
    }
}

/// A package's name without differences in spelling (PyPA specifications, "Names and normalization").
fn normal(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name).to_lowercase();
    let parts = text.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

/// The file of a module, in the first directory that has it.
fn module(rootfs: &RootFs, path: &[ImagePath], name: &str) -> Option<ImagePath> {
    let names =
        [format!("{name}/__init__.py"), format!("{name}.py"), format!("{name}/__init__.pyc"), format!("{name}.pyc")];
    let files = path.iter().flat_map(|folder| names.iter().map(|name| folder.join(name.as_bytes())));
    files.into_iter().find(|file| rootfs.open(file).is_ok())
}

/// Returns true if a version meets a specifier such as `>=1.0,!=1.3` (PEP 440). What cannot be compared counts as met.
fn meets(version: &str, specifier: &str) -> bool {
    let Some(have) = Version::parse(version) else { return true };
    specifier.split(',').filter(|clause| !clause.is_empty()).all(|clause| {
        let end = clause.find(|c: char| !"<>=!~".contains(c)).unwrap_or(clause.len());
        let (operator, wanted) = clause.split_at(end);
        if let Some(prefix) = wanted.strip_suffix(".*") {
            let is_within = version == prefix || version.starts_with(&format!("{prefix}."));
            return if operator == "!=" { !is_within } else { is_within };
        }
        let Some(order) = Version::parse(wanted).map(|wanted| have.cmp(&wanted)) else { return true };
        match operator {
            "~=" => {
                let prefix = wanted.rsplit_once('.').map_or(wanted, |(prefix, _)| prefix);
                order != Ordering::Less && version.starts_with(prefix)
            }
            _ => is_met(operator, order).unwrap_or(true),
        }
    })
}

/// Python's message if the first import of `torch/__init__.py` from another package fails, and its position in the file.
pub(super) fn failure(rootfs: &RootFs, python: &Python, init: &[u8]) -> Option<(usize, String)> {
    let captures = TYPING_EXTENSIONS.captures(init)?;
    Some((captures.get(0)?.start(), of_typing_extensions(rootfs, python, &captures)?))
}

fn of_typing_extensions(rootfs: &RootFs, python: &Python, captures: &regex::bytes::Captures<'_>) -> Option<String> {
    let Some(file) = module(rootfs, &python.path, MODULE) else {
        return Some(format!("ModuleNotFoundError: No module named '{MODULE}'"));
    };
    let packages = InstalledPackages::on(rootfs, &python.path);
    let Some(InstalledVersion::Known(version)) = packages.version(MODULE) else { return None };
    let imported = NAME.captures_iter(captures.get(1)?.as_bytes());
    let mut imported = imported.filter_map(|name| std::str::from_utf8(name.get(1)?.as_bytes()).ok());
    let is_missing = |name: &&str| {
        let first = NAMES.iter().find(|(known, _)| known == name).map(|(_, first)| *first);
        first.is_some_and(|first| !meets(&version, &format!(">={first}")))
    };
    let name = imported.find(is_missing)?;
    Some(format!("ImportError: cannot import name '{name}' from '{MODULE}' ({file})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_meet_specifiers() {
        for (version, specifier, expected) in [
            ("1.13.1", ">=1.13.3", false),
            ("1.14.0", ">=1.13.3", true),
            ("1.13.1", "==1.13.1", true),
            ("3.5.0", "==3.5.*", true),
            ("3.50.0", "==3.5.*", false),
            ("4.2", ">=4,<5", true),
            ("5.0", ">=4,<5", false),
            ("2.1", "~=2.0", true),
            ("3.0", "~=2.0", false),
            ("1.0", "!=1.0", false),
            ("1.0", "", true),
            ("local", ">=1", true),
        ] {
            assert_eq!(meets(version, specifier), expected, "{version} {specifier}");
        }
    }

    #[test]
    fn spellings_of_one_name() {
        for name in ["typing-extensions", "typing_extensions", "Typing.Extensions", "typing--extensions"] {
            assert_eq!(normal(name.as_bytes()), "typing_extensions");
        }
    }

    #[test]
    fn a_requirement_has_a_name_a_specifier_and_a_marker() {
        let parts = |line: &str| -> Vec<String> {
            let captures = REQUIREMENT.captures(line.as_bytes()).unwrap();
            let text = |part| captures.get(part).map_or("", |part| std::str::from_utf8(part.as_bytes()).unwrap());
            [1, 2, 3].map(|part| text(part).trim().to_owned()).to_vec()
        };
        assert_eq!(parts("Requires-Dist: jinja2\r"), ["jinja2", "", ""]);
        assert_eq!(parts("Requires-Dist: sympy (>=1.13.3)"), ["sympy", "(>=1.13.3)", ""]);
        assert_eq!(
            parts("Requires-Dist: setuptools[core] >=70 ; python_version >= \"3.12\""),
            ["setuptools", ">=70", "python_version >= \"3.12\""]
        );
    }
}
