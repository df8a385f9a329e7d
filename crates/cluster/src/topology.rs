//! Which nodes share a leaf switch, in the words of Slurm: a `topology.conf`, or the output of `scontrol show topology`.

use std::collections::BTreeMap;

use super::between::Network;

/// Most names of one list.
const MOST_NAMES: usize = 1 << 16;

/// Reads the leaves of these nodes.
///
/// # Errors
/// A node is on no leaf, or on two.
pub fn leaves(text: &str, nodes: &[String]) -> Result<Network, String> {
    let mut leaves: Vec<String> = Vec::new();
    let mut leaf_of: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default()) {
        let field = |name: &str| {
            let fields = line.split_whitespace().filter_map(|word| word.split_once('='));
            fields.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        // A switch above others lists all nodes below it.
        let (Some(name), Some(list), None) =
            (field("SwitchName"), field("Nodes"), field("Switches").filter(|switches| !switches.is_empty()))
        else {
            continue;
        };
        for node in expand(list) {
            if let Some(other) = leaf_of.insert(node.clone(), leaves.len()).and_then(|other| leaves.get(other)) {
                return Err(format!("the node {node} is on {other} and on {name}"));
            }
        }
        leaves.push(name.to_owned());
    }
    let of_node = |node: &String| leaf_of.get(node).copied().ok_or_else(|| format!("the node {node} is on no switch"));
    Ok(Network { leaf_of: nodes.iter().map(of_node).collect::<Result<_, _>>()?, leaves, expected: None })
}

/// The names in a list such as `a,n[1-3,07]-ib`.
fn expand(list: &str) -> Vec<String> {
    let mut depth = 0;
    let words = list.split(|letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    });
    words.filter(|word| !word.is_empty()).flat_map(expand_word).take(MOST_NAMES).collect()
}

fn expand_word(word: &str) -> Vec<String> {
    let Some((prefix, rest)) = word.split_once('[') else { return vec![word.to_owned()] };
    let Some((ranges, suffix)) = rest.split_once(']') else { return vec![word.to_owned()] };
    let endings = expand_word(suffix);
    let numbers = ranges.split(',').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let ends = first.parse::<usize>().ok().zip(last.parse().ok());
        let numbers = ends.into_iter().flat_map(|(first, last)| first..=last);
        numbers.take(MOST_NAMES).map(|number| format!("{number:0width$}", width = first.len()))
    });
    numbers.flat_map(|number| endings.iter().map(move |ending| format!("{prefix}{number}{ending}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn lists_are_expanded_as_slurm_does() {
        assert_eq!(expand("a,n[1-3,07]-ib"), ["a", "n1-ib", "n2-ib", "n3-ib", "n07-ib"]);
        assert_eq!(expand("r[0-1]n[08-10]"), ["r0n08", "r0n09", "r0n10", "r1n08", "r1n09", "r1n10"]);
        assert_eq!(expand("n[5-3],n[x]"), [""; 0]);
    }

    #[test]
    fn leaves_are_the_switches_without_switches() {
        let shown = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3] # rack 2\n\
                     SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n";
        let network = leaves(shown, &nodes(&["n3", "n0", "n1"])).unwrap();
        assert_eq!(network.leaves, ["s0", "s1"]);
        assert_eq!(network.leaf_of, [1, 0, 0]);
        assert_eq!(leaves(shown, &nodes(&["n9"])).unwrap_err(), "the node n9 is on no switch");
        let twice = "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n[1-2]";
        assert_eq!(leaves(twice, &nodes(&["n1"])).unwrap_err(), "the node n1 is on a and on b");
    }
}
