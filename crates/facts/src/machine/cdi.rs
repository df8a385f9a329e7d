//! Specifications of the Container Device Interface (CDI), which describe devices to engines and runtimes
//! (<https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md>).

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;
use model::document::{Document, YamlNode};

/// Folders of specifications; /var/run is another name of /run.
const FOLDERS: &[&str] = &["/etc/cdi", "/run/cdi"];
/// The driver's library, whose name ends with the driver's version.
const LIBCUDA: &str = "libcuda.so.";

/// CDI specifications of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cdi {
    /// One per file; absent without a folder of specifications.
    pub specifications: Fact<Vec<Specification>>,
}

/// A CDI specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Specification {
    /// Path of its file.
    pub file: String,
    /// Kind of its devices, such as `nvidia.com/gpu`; unknown if the file cannot be read.
    pub kind: Fact<String>,
    /// Names of its devices.
    pub devices: Vec<String>,
    /// Host files and device nodes that it names and that do not exist.
    pub missing: Vec<String>,
    /// Version of the driver whose `libcuda.so.VERSION` it mounts; absent where it mounts none.
    pub driver: Fact<String>,
}

impl Specification {
    /// What makes it useless beside this driver, if anything does: engines cannot read it, or it comes from another driver.
    pub fn fault(&self, driver: &Fact<String>) -> Option<String> {
        match (&self.kind, self.driver.value(), driver.value()) {
            (Fact::Unknown(gap), ..) => return Some(gap.why.clone()),
            (_, Some(named), Some(loaded)) if named != loaded => {
                return Some(format!("it names {LIBCUDA}{named}, and the driver is {loaded}"));
            }
            _ => {}
        }
        match self.missing.as_slice() {
            [] => None,
            [first] => Some(format!("{first} is missing")),
            [first, rest @ ..] => Some(format!("{first} and {} more are missing", rest.len())),
        }
    }
}

impl Cdi {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let mut specifications: Fact<Vec<Specification>> = Fact::Absent;
        for folder in FOLDERS {
            match tree.names(folder) {
                Fact::Absent => {}
                Fact::Unknown(why) => return Self { specifications: Fact::Unknown(why) },
                Fact::Seen { value: names, .. } => {
                    let is_one = |name: &&String| matches!(name.rsplit_once('.'), Some((_, "yaml" | "json")));
                    let read = names.iter().filter(is_one).map(|name| specification(format!("{folder}/{name}"), tree));
                    let before = specifications.value().cloned().unwrap_or_default();
                    specifications = Fact::known(before.into_iter().chain(read).collect());
                }
            }
        }
        Self { specifications }
    }
}

fn specification(file: String, tree: &HostTree) -> Specification {
    // YAML is a superset of JSON.
    let document = tree.text(&file).and_then(|text, _| {
        let document = Document { name: &file, text: &text }.parse::<YamlNode>();
        document.map_or_else(|mistake| Fact::unknown(format!("line {}: {}", mistake.line, mistake.what)), Fact::known)
    });
    let kind = document.clone().and_then(|document, _| {
        let kind = document.text("kind").map(ToOwned::to_owned);
        kind.map_or_else(|| Fact::unknown("the specification has no `kind`"), Fact::known)
    });
    let mut specification = Specification { file, kind, devices: Vec::new(), missing: Vec::new(), driver: Fact::Absent };
    let Fact::Seen { value: document, .. } = document else { return specification };
    let mut edits = vec![document.get("containerEdits")];
    for device in list(&document, "devices") {
        specification.devices.extend(device.text("name").map(ToOwned::to_owned));
        edits.push(device.get("containerEdits"));
    }
    for path in edits.into_iter().flatten().flat_map(host_paths) {
        if let Some(version) = driver_version(path) {
            specification.driver = Fact::known(version.to_owned());
        }
        if tree.has(path) == Fact::known(false) && !specification.missing.iter().any(|known| known == path) {
            specification.missing.push(path.to_owned());
        }
    }
    specification
}

/// Host paths that the edits refer to. A device node without `hostPath` has the same path on the host as in the
/// container.
fn host_paths(edits: &YamlNode) -> impl Iterator<Item = &str> {
    let mounts = list(edits, "mounts").filter_map(|mount| mount.text("hostPath"));
    mounts.chain(list(edits, "deviceNodes").filter_map(|node| node.text("hostPath").or_else(|| node.text("path"))))
}

/// The version of the driver in the name of its `libcuda`. The names `libcuda.so.1` and, on Jetson and WSL, `libcuda.so.1.1` have none.
fn driver_version(path: &str) -> Option<&str> {
    let version = path.rsplit_once('/')?.1.strip_prefix(LIBCUDA)?;
    let major = version.split('.').next()?;
    (major.len() >= 3 && major.bytes().all(|byte| byte.is_ascii_digit())).then_some(version)
}

fn list<'n>(value: &'n YamlNode, name: &str) -> impl Iterator<Item = &'n YamlNode> {
    value.get(name).map(YamlNode::list).unwrap_or_default().iter()
}
