//! `std::map` of libstdc++: a red-black tree (`bits/stl_tree.h`, `bits/stl_map.h`). Its colours only keep it balanced, which a
//! small and short-lived tree does not need.

use std::collections::BTreeMap;

use super::Arguments;
use super::error::ExecutionError;
use super::libstdcxx_string::StringAbi;
use super::memory::Memory;

/// Maximum number of entries of a map. `GetBuildOptions()` of torch 2.15 has 39.
const MOST_ENTRIES: u64 = 4096;

// _Rb_tree_node_base: colour, parent, left, right; the value follows. In the header, parent is the root, left the leftmost node,
// right the rightmost node, and the count follows.
const PARENT: u64 = 8;
const LEFT: u64 = 16;
const RIGHT: u64 = 24;
const BEHIND: u64 = 32;

/// `std::map` starts with the comparator, which is empty and padded.
const HEADER: u64 = 8;

/// Calls a function of `tree.cc`; `None` for an unknown name.
pub(super) fn call(name: &str, arguments: &Arguments, memory: &mut Memory<'_>) -> Result<Option<u64>, ExecutionError> {
    let &[first, second, third, fourth, ..] = arguments;
    match name {
        // _Rb_tree_insert_and_rebalance(bool left, node, parent, header)
        "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_" => {
            insert(first & 0xff != 0, second, third, fourth, memory).map(|()| Some(0))
        }
        "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base" | "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base" => {
            step(first, LEFT, RIGHT, memory).map(Some)
        }
        // The rightmost node is before the end, which is the header.
        "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base" | "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base" => {
            let is_header = memory.load(first, 4)? == 0 && {
                let root = memory.pointer(first.wrapping_add(PARENT))?;
                root != 0 && memory.pointer(root.wrapping_add(PARENT))? == first
            };
            if is_header {
                return memory.pointer(first.wrapping_add(RIGHT)).map(Some);
            }
            step(first, RIGHT, LEFT, memory).map(Some)
        }
        _ => Ok(None),
    }
}

fn insert(left: bool, node: u64, parent: u64, header: u64, memory: &mut Memory<'_>) -> Result<(), ExecutionError> {
    memory.store(node.wrapping_add(PARENT), 8, parent)?;
    memory.store(node.wrapping_add(LEFT), 8, 0)?;
    memory.store(node.wrapping_add(RIGHT), 8, 0)?;
    // Only the header is red and never inserted, which distinguishes it from the root.
    memory.store(node, 4, 1)?;
    memory.store(parent.wrapping_add(if left { LEFT } else { RIGHT }), 8, node)?;
    if parent == header {
        memory.store(header.wrapping_add(PARENT), 8, node)?;
        memory.store(header.wrapping_add(LEFT), 8, node)?;
        return memory.store(header.wrapping_add(RIGHT), 8, node);
    }
    for side in [LEFT, RIGHT] {
        let outermost = memory.pointer(header.wrapping_add(side))?;
        if outermost == parent && left == (side == LEFT) {
            memory.store(header.wrapping_add(side), 8, node)?;
        }
    }
    Ok(())
}

/// The next node in order (`towards` right) or the previous one (`towards` left).
fn step(node: u64, back: u64, towards: u64, memory: &mut Memory<'_>) -> Result<u64, ExecutionError> {
    let mut at = memory.pointer(node.wrapping_add(towards))?;
    if at != 0 {
        for _ in 0..MOST_ENTRIES {
            match memory.pointer(at.wrapping_add(back))? {
                0 => return Ok(at),
                next => at = next,
            }
        }
        return Err(ExecutionError::Excess("a map is cyclic or too large".to_owned()));
    }
    let mut child = node;
    at = memory.pointer(node.wrapping_add(PARENT))?;
    for _ in 0..MOST_ENTRIES {
        if memory.pointer(at.wrapping_add(towards))? != child {
            return Ok(at);
        }
        child = at;
        at = memory.pointer(at.wrapping_add(PARENT))?;
        // From the rightmost node, the path goes over the root to the header, whose parent is the root.
        if memory.pointer(at.wrapping_add(PARENT))? == child && memory.load(child, 4)? == 0 {
            return Ok(child);
        }
    }
    Err(ExecutionError::Excess("a map is cyclic or too large".to_owned()))
}

fn not_map(why: &str) -> ExecutionError {
    ExecutionError::NotMap(format!("the returned value is not a map: {why}"))
}

/// The entries of a `std::map<std::string, std::string>`.
pub(super) fn read(
    map: u64,
    abi: StringAbi,
    memory: &mut Memory<'_>,
) -> Result<BTreeMap<String, String>, ExecutionError> {
    let header = map.wrapping_add(HEADER);
    let count = memory.pointer(header.wrapping_add(BEHIND))?;
    if count > MOST_ENTRIES {
        return Err(ExecutionError::Excess(format!("the returned map has {count} entries, which is too many")));
    }
    let mut entries = BTreeMap::new();
    let mut waiting = vec![memory.pointer(header.wrapping_add(PARENT))?];
    while let Some(node) = waiting.pop() {
        if node == 0 {
            continue;
        }
        if entries.len() as u64 >= count {
            return Err(not_map("it has more nodes than its entry count"));
        }
        let mut text = |at: u64| -> Result<String, ExecutionError> {
            let bytes = abi.read(at, memory)?;
            String::from_utf8(bytes).map_err(|_utf8| {
                ExecutionError::NotMap("the returned map has a key or value that is not UTF-8".to_owned())
            })
        };
        let name = text(node.wrapping_add(BEHIND))?;
        let value = text(node.wrapping_add(BEHIND + abi.size()))?;
        if entries.insert(name, value).is_some() {
            return Err(not_map("two nodes have the same key"));
        }
        waiting.push(memory.pointer(node.wrapping_add(LEFT))?);
        waiting.push(memory.pointer(node.wrapping_add(RIGHT))?);
    }
    if entries.len() as u64 != count {
        return Err(not_map(&format!("it has {} nodes, but an entry count of {count}", entries.len())));
    }
    Ok(entries)
}
