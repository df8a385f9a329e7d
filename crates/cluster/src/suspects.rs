//! RDMA WRITEs between a suspect and a sound node: what they are compared with, and where a slowness comes from by them.

use std::collections::BTreeSet;

use blame::{Direction, Pair, Part, State, Verdict};
use probe::wire::between_nodes::{PortWrites, TestAnswer};
use serde::{Deserialize, Serialize};

use super::between::{BetweenNodes, rate};
use super::failed_test;
use super::rounds::whole;

/// RDMA WRITEs between two nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WritesTest {
    /// Numbers of the nodes; that of the sound one first, if there is one.
    pub pair: Pair,
    /// The pairs of ports.
    pub ports: Vec<PortRates>,
    /// Why there are none.
    pub failure: Option<String>,
}

/// RDMA WRITEs between a port of each node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortRates {
    /// Names and numbers of the ports, such as `mlx5_0:1`.
    pub names: [String; 2],
    /// Bytes per second from the first node to the second and back.
    pub rates: [Option<u64>; 2],
    /// Why a rate is missing.
    pub why: Option<String>,
    /// True if both ends were ready to connect, so that a missing rate is a failure of the writes.
    #[serde(default)]
    pub is_tried: bool,
}

/// Where the slowness of a part comes from, by RDMA WRITEs.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// These ports are slow without GPU and NCCL, too.
    Ports(Vec<SlowPort>),
    /// Writes fail through a port that NCCL uses, for this reason, and do not between sound nodes.
    Failing(String),
    /// All ports that NCCL uses are as fast as sound ones.
    AbovePorts,
    /// It is unknown, for this reason.
    Unknown(String),
}

/// A port that is slow in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowPort {
    /// Name and number of the suspect's port.
    pub name: String,
    /// The direction, seen from the suspect.
    pub direction: Direction,
    /// Bytes per second.
    pub rate: u64,
    /// Bytes per second of the same writes between sound nodes.
    pub reference: u64,
}

/// Most suspects that are tested.
const MOST: usize = 8;

/// The pairs to test, of nodes that take tests: each suspect with a sound node, on the same leaf if possible, and that one
/// with another sound node.
pub(super) fn pairs(between: &BetweenNodes, verdict: &Verdict, leaf_of: &[usize], takes_tests: &[bool]) -> Vec<Pair> {
    let suspects = between.suspects(verdict);
    let is_sound = |node: usize| is_sound(node, verdict, &suspects);
    let testable: Vec<_> =
        takes_tests.iter().enumerate().filter_map(|(node, takes_tests)| takes_tests.then_some(node)).collect();
    let sound: Vec<_> = testable.iter().copied().filter(|node| is_sound(*node)).collect();
    let mut pairs = Vec::new();
    for &part in suspects.iter().take(MOST) {
        let (suspect, partner) = match part {
            Part::Link(a, b) if is_sound(a) => (b, Some(a)),
            Part::Link(a, b) => (a, Some(b)),
            Part::Node(node) | Part::Uplink(node) => {
                let near = sound.iter().find(|other| leaf_of.get(**other) == leaf_of.get(node));
                (node, near.or(sound.first()).copied())
            }
        };
        let Some(partner) = partner.or_else(|| testable.iter().copied().find(|other| *other != suspect)) else {
            continue;
        };
        if ![partner, suspect].iter().all(|node| testable.contains(node)) {
            continue;
        }
        pairs.push((partner, suspect));
        let reference = sound
            .iter()
            .map(|other| (partner, *other))
            .find(|pair| ![partner, suspect].contains(&pair.1) && is_sound_pair(*pair, verdict, &suspects));
        pairs.extend(reference);
    }
    let mut seen = BTreeSet::new();
    pairs.retain(|pair| seen.insert(*pair));
    pairs
}

/// True if the node is as fast as others, and not a suspect.
fn is_sound(node: usize, verdict: &Verdict, suspects: &[Part]) -> bool {
    matches!(verdict.nodes.get(node), Some(State::Sound { .. })) && !suspects.contains(&Part::Node(node))
}

/// True if neither node nor their link is a suspect, and both nodes are sound.
fn is_sound_pair((a, b): Pair, verdict: &Verdict, suspects: &[Part]) -> bool {
    is_sound(a, verdict, suspects)
        && is_sound(b, verdict, suspects)
        && !suspects.contains(&Part::Link(a.min(b), a.max(b)))
}

/// The test by what its nodes answered.
pub(super) fn writes_test(pair: Pair, nodes: [(&str, Option<&TestAnswer>); 2]) -> WritesTest {
    let why = |of: &dyn Fn(&TestAnswer) -> Option<String>| {
        let mut reasons = nodes.iter().filter_map(|(name, answer)| Some(format!("{name}: {}", of((*answer)?)?)));
        reasons.next()
    };
    let unread = |answer: &TestAnswer| answer.writes.known().err().map(|gap| gap.why);
    let failure = failed_test::failure(&nodes).map(|error| error.why).or_else(|| why(&unread));
    let [first, second] = nodes.map(|(_, answer)| answer.map_or(&[][..], |answer| answer.writes.list()));
    let port = |(number, (one, two)): (usize, (&PortWrites, &PortWrites))| {
        let name = |place: usize| one.ports.list().get(place).cloned().unwrap_or_default();
        let received = |port: &PortWrites| whole(port.received_bytes_per_second.copied()?);
        let unread = |answer: &TestAnswer| {
            answer.writes.list().get(number)?.received_bytes_per_second.known().err().map(|gap| gap.why)
        };
        PortRates {
            names: [name(0), name(1)],
            rates: [received(two), received(one)],
            why: why(&unread),
            is_tried: one.tried.copied().unwrap_or_default(),
        }
    };
    WritesTest { pair, ports: first.iter().zip(second).enumerate().map(port).collect(), failure }
}

/// Where the slowness of a node or link comes from, and the indices of the tests that show it. None if it was not tested.
/// `used` has the ports of the suspect that NCCL uses, and is none if the tests did not use RDMA or that is unknown.
pub fn cause(
    part: Part,
    between: &BetweenNodes,
    verdict: &Verdict,
    used: &dyn Fn(usize) -> Option<BTreeSet<String>>,
) -> Option<(Cause, Vec<usize>)> {
    let is_suspect = |test: &WritesTest| match part {
        Part::Node(node) => test.pair.1 == node,
        Part::Link(a, b) => [(a, b), (b, a)].contains(&test.pair),
        Part::Uplink(_) => false,
    };
    let suspects = between.suspects(verdict);
    // A pair with the partner of a suspect is a reference.
    let (number, test) = between.writes.iter().enumerate().find(|(_, test)| is_suspect(test))?;
    let (partner, suspect) = test.pair;
    let is_reference = |other: &WritesTest| {
        other.pair.0 == partner && other.pair != test.pair && is_sound_pair(other.pair, verdict, &suspects)
    };
    let reference = between.writes.iter().enumerate().find(|(_, other)| is_reference(other));
    let tests = std::iter::once(number).chain(reference.map(|(number, _)| number)).collect();
    let cause = compared(test, reference.map(|(_, test)| test), verdict.unseen_loss, used(suspect));
    Some((cause, tests))
}

/// Where the slowness comes from by the suspect's writes and those of a sound pair.
fn compared(
    test: &WritesTest,
    reference: Option<&WritesTest>,
    unseen_loss: f64,
    used: Option<BTreeSet<String>>,
) -> Cause {
    if let Some(why) = &test.failure {
        return Cause::Unknown(why.clone());
    }
    let Some(reference) = reference else {
        return Cause::Unknown("no other pair of sound nodes shows how fast RDMA writes are".to_owned());
    };
    let mut slow = Vec::new();
    let mut open: Option<String> = None;
    let mut failing: Option<String> = None;
    let mut sound = BTreeSet::new();
    for port in &test.ports {
        let name = &port.names[1];
        if used.as_ref().is_some_and(|used| !used.contains(name)) {
            continue;
        }
        let same = reference.ports.iter().find(|other| other.names[0] == port.names[0]);
        let levels = same.and_then(|same| Some([same.rates[0]?, same.rates[1]?]));
        let (Some([there, back]), Some(levels)) = ((port.rates[0].zip(port.rates[1])).map(|(a, b)| [a, b]), levels)
        else {
            let why = port.why.clone().or_else(|| same?.why.clone());
            let unknown = if port.is_tried && levels.is_some() { &mut failing } else { &mut open };
            unknown.get_or_insert(why.unwrap_or_else(|| format!("{name} was not measured")));
            continue;
        };
        let [least, most] = [levels[0].min(levels[1]), levels[0].max(levels[1])];
        for (found, direction) in [(there, Direction::Receives), (back, Direction::Sends)] {
            if rate(found) < (1.0 - unseen_loss) * rate(least) {
                slow.push(SlowPort { name: name.clone(), direction, rate: found, reference: least });
            } else if rate(found) < (1.0 - unseen_loss / 2.0) * rate(most) {
                open.get_or_insert(format!("{name} is neither clearly slow nor clearly fast"));
            } else {
                sound.insert(name.clone());
            }
        }
    }
    let open = match (failing, &used) {
        (Some(why), Some(_)) if slow.is_empty() => return Cause::Failing(why),
        (Some(why), None) => {
            Some(format!("RDMA writes fail, too, and it is unknown whether the tests used the port: {why}"))
        }
        _ => open,
    };
    match (slow.is_empty(), used, open) {
        (false, Some(_), _) => Cause::Ports(slow),
        (false, None, _) => {
            Cause::Unknown("a port is slow for RDMA, too, and it is unknown whether the tests used it".to_owned())
        }
        (true, _, Some(why)) => Cause::Unknown(why),
        (true, None, None) => {
            Cause::Unknown("the ports are fast, and it is unknown whether the tests used them".to_owned())
        }
        (true, Some(used), None) if used.is_subset(&sound) => Cause::AbovePorts,
        (true, Some(_), None) => Cause::Unknown("a port that NCCL uses was not measured".to_owned()),
    }
}

#[cfg(test)]
#[path = "suspects_tests.rs"]
mod tests;
