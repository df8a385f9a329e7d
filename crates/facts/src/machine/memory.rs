//! Memory and NUMA nodes.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;

const NODES: &str = "/sys/devices/system/node";

/// The machine's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostMemory {
    /// Total memory in KiB.
    pub total_kib: Fact<u64>,
    /// Size of /dev/shm in bytes.
    pub shm_bytes: Fact<u64>,
    /// Number of reserved huge pages.
    pub huge_pages: Fact<u64>,
    /// Size of a huge page in KiB.
    pub huge_page_kib: Fact<u64>,
    /// NUMA nodes.
    pub nodes: Fact<Vec<NumaNode>>,
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NumaNode {
    /// Number of the node.
    pub number: u32,
    /// CPUs of the node, such as `0-31,64-95`; absent if it has none.
    pub processors: Fact<String>,
    /// Memory of the node in KiB.
    pub memory_kib: Fact<u64>,
}

impl HostMemory {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let table = tree.text("/proc/meminfo");
        let entry = |name: &str| table.as_ref().and_then(|text, _| number(text, name).into());
        let total_kib = entry("MemTotal");
        Self {
            shm_bytes: shm(tree, &total_kib),
            total_kib,
            huge_pages: entry("HugePages_Total"),
            huge_page_kib: entry("Hugepagesize"),
            nodes: tree.names(NODES).map(|names| {
                let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
                numbers.sort_unstable();
                numbers.into_iter().map(|number| node(number, tree)).collect()
            }),
        }
    }
}

/// Parses `MemTotal:       16301324 kB`, also after `Node 0`.
fn number(table: &str, name: &str) -> Option<u64> {
    let line = table.lines().find(|line| line.split_whitespace().any(|word| word.strip_suffix(':') == Some(name)))?;
    line.split_once(&format!("{name}:"))?.1.split_whitespace().next()?.parse().ok()
}

fn node(number: u32, tree: &HostTree) -> NumaNode {
    let at = format!("{NODES}/node{number}");
    let processors = tree.text(&format!("{at}/cpulist"));
    let table = tree.text(&format!("{at}/meminfo"));
    NumaNode {
        number,
        processors: processors.and_then(|list, _| Some(list).filter(|list| !list.is_empty()).into()),
        memory_kib: table.and_then(|text, _| self::number(&text, "MemTotal").into()),
    }
}

/// Size of /dev/shm. A tmpfs without a size holds half of the memory (tmpfs(5)). The last of several mounts hides the
/// others.
fn shm(tree: &HostTree, total_kib: &Fact<u64>) -> Fact<u64> {
    tree.text("/proc/self/mountinfo").and_then(|table, _| {
        let line = table.lines().rfind(|line| line.split(' ').nth(4) == Some("/dev/shm"));
        let Some((_, filesystem)) = line.and_then(|line| line.split_once(" - ")) else { return Fact::Absent };
        let options = filesystem.split(' ').nth(2).unwrap_or_default();
        match options.split(',').find_map(|option| option.strip_prefix("size=")) {
            Some(size) => {
                bytes(size).map_or_else(|| Fact::unknown(format!("invalid /dev/shm size '{size}'")), Fact::known)
            }
            None => total_kib.clone().map(|kib| kib * 1024 / 2),
        }
    })
}

/// Parses a size such as `65536k`.
fn bytes(size: &str) -> Option<u64> {
    match size.strip_suffix('k') {
        Some(kib) => kib.parse::<u64>().ok()?.checked_mul(1024),
        None => size.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tables() {
        let table = "MemTotal:       16301324 kB\nHugePages_Total:       8\nHugepagesize:       2048 kB";
        assert_eq!(number(table, "MemTotal"), Some(16_301_324));
        assert_eq!(number(table, "HugePages_Total"), Some(8));
        assert_eq!(number("Node 1 MemTotal:        0 kB", "MemTotal"), Some(0));
        assert_eq!(number(table, "Hugetlb"), None);
        assert_eq!((bytes("65536k"), bytes("4096"), bytes("50%")), (Some(67_108_864), Some(4096), None));
    }
}
