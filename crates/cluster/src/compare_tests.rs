use serde_json::{Value, json};

use super::super::reading::{Entries, Place};
use super::super::table::Source;
use super::*;

/// A node whose steps gave these bodies.
fn node(name: &str, bodies: &[(&str, Value)]) -> NodeRecord {
    let steps: Vec<_> = bodies.iter().map(|(step, _)| step).collect();
    let hello = json!({"event": "hello", "plan": {"steps": steps}});
    let mut events = vec![hello];
    for (step, body) in bodies {
        let start = json!({"event": "start", "step": step, "deadline": 1.0});
        let end = match body.get("skipped") {
            Some(why) => json!({"event": "skipped", "step": step, "why": why}),
            None => json!({"event": "result", "step": step, "seconds": 1.0, "body": body}),
        };
        events.extend([start, end]);
    }
    let line = |event: &Value| event.to_string().replacen('{', "{\"ncclcheck\":1,", 1) + "\n";
    let text: String = events.iter().map(line).collect();
    let recording = Recording::replay(text.as_bytes()).unwrap();
    NodeRecord { name: name.to_owned(), recording, is_whole: true }
}

fn limits(mtu: &Value) -> Value {
    json!({"interfaces": [
        {"name": "eth0", "ipv4": "10.0.0.1/8", "mtu_bytes": mtu},
        {"name": "eth1", "ipv4": "10.0.0.1/8", "mtu_bytes": mtu},
        {"name": "docker0", "ipv4": "172.17.0.1/16", "mtu_bytes": mtu},
        {"name": "veth1", "ipv4": null, "mtu_bytes": mtu},
    ]})
}

/// The comparison of a row, if any node has it.
fn of_row(nodes: &[NodeRecord], id: &str) -> Option<Comparison<'static>> {
    let mut found: Vec<_> = compare(nodes).into_iter().filter(|comparison| comparison.row.id == id).collect();
    assert!(found.len() <= 1, "{found:?}");
    found.pop()
}

fn mtu(values: &[Value]) -> Comparison<'static> {
    let nodes: Vec<_> =
        values.iter().enumerate().map(|(index, mtu)| node(&format!("n{index}"), &[("limits", limits(mtu))])).collect();
    of_row(&nodes, "mtu").unwrap()
}

fn sizes(groups: &[Group]) -> Vec<(&str, usize)> {
    groups.iter().map(|group| (group.value.as_str(), group.nodes.len())).collect()
}

#[test]
fn the_nodes_that_differ_from_most_are_odd() {
    let three = mtu(&[json!(9000), json!(1500), json!(9000)]);
    assert_eq!((three.agreement, three.odd().collect::<Vec<_>>()), (Agreement::Odd, vec!["n1"]));
    assert_eq!((three.value().as_str(), sizes(&three.groups)), ("MTU of eth0, eth1", vec![("9000", 2), ("1500", 1)]));
    assert_eq!(three.fix(), "sudo ip link set dev eth0 mtu 9000\nsudo ip link set dev eth1 mtu 9000");
    let same = mtu(&[json!(9000), json!(9000)]);
    assert_eq!((same.agreement, same.fix().as_str()), (Agreement::Same, ""));
}

#[test]
fn halves_name_no_node() {
    for values in
        [vec![json!(1), json!(2)], vec![json!(1), json!(1), json!(2), json!(2)], vec![json!(1), json!(2), json!(3)]]
    {
        let split = mtu(&values);
        assert_eq!(
            (split.agreement, split.odd().count(), split.fix().as_str()),
            (Agreement::Split, 0, ""),
            "{values:?}"
        );
    }
    // Two of four are not a majority while one is unknown.
    let unread = mtu(&[json!(1), json!(1), json!(2), Value::Null]);
    assert_eq!(sizes(&unread.groups)[0], ("1", 2));
    assert_eq!(unread.agreement, Agreement::Split);
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let rlimits = |memlock: Value| json!({"rlimits": memlock});
    let nodes = [
        node("a", &[("limits", rlimits(json!({"memlock": {"soft": -1}})))]),
        node("b", &[("limits", rlimits(json!({"memlock": {"soft": 65536}})))]),
        node("c", &[("limits", json!({"rlimits": null, "unread": {"rlimits": "EPERM"}}))]),
        node("d", &[("limits", json!({"skipped": "no Python"}))]),
        node("e", &[("limits", json!({}))]),
        node("f", &[("storage", json!({}))]),
    ];
    let memlock = of_row(&nodes, "memlock").unwrap();
    assert_eq!(sizes(&memlock.groups), [("64 KiB", 1), ("unlimited", 1)]);
    let unknown =
        [("EPERM", 1), ("its program does not report rlimits", 1), ("the step limits was skipped: no Python", 1)];
    assert_eq!(sizes(&memlock.unknown), unknown);
    // A node that did not come to its end is reported as such, and not again for each value.
    let [_, _, c, ..] = nodes;
    let cut = NodeRecord { is_whole: false, ..node("g", &[("limits", json!({"skipped": "killed"}))]) };
    assert_eq!(of_row(&[cut], "memlock"), None);
    assert!(of_row(&[c], "memlock").is_some());
}

#[test]
fn what_only_newer_programs_report_is_compared_once_one_does() {
    let clock = |name, body| node(name, &[("limits", body)]);
    let old = [clock("a", json!({})), clock("b", json!({}))];
    assert_eq!(of_row(&old, "clock"), None);
    let new = json!({"clock_synchronised": true, "sysctls": {"net.core.rmem_max": "212992"}});
    let mixed = of_row(&[clock("a", json!({})), clock("b", new)], "clock").unwrap();
    assert_eq!(sizes(&mixed.unknown), [("its program does not report clock_synchronised", 1)]);
}

#[test]
fn lists_and_maps_are_compared_by_their_entries() {
    let rdma = |names: &[&str], rate: &str| {
        let device = |name: &&str| json!({"name": name, "ports": [{"port": 1, "rate": rate}]});
        json!({"devices": names.iter().map(device).collect::<Vec<_>>()})
    };
    let nodes = [
        node(
            "a",
            &[("rdma", rdma(&["mlx5_0", "mlx5_1"], "400")), ("limits", json!({"variables": {"NCCL_ALGO": "Ring"}}))],
        ),
        node(
            "b",
            &[
                ("rdma", rdma(&["mlx5_1", "mlx5_0"], "400")),
                ("limits", json!({"variables": {"CUDA_VISIBLE_DEVICES": "1"}})),
            ],
        ),
        node(
            "c",
            &[("rdma", rdma(&["mlx5_0", "mlx5_1"], "200")), ("limits", json!({"variables": {"NCCL_ALGO": "Ring"}}))],
        ),
    ];
    let order = of_row(&nodes, "rdma-devices").unwrap();
    assert_eq!(sizes(&order.groups), [("mlx5_0, mlx5_1", 2), ("mlx5_1, mlx5_0", 1)]);
    let rate = of_row(&nodes, "rdma-rate").unwrap();
    assert_eq!((rate.value().as_str(), rate.odd().collect::<Vec<_>>()), ("rate of port mlx5_0:1, mlx5_1:1", vec!["c"]));
    let variables = of_row(&nodes, "variables").unwrap();
    assert_eq!((variables.value().as_str(), variables.odd().collect::<Vec<_>>()), ("variable NCCL_ALGO", vec!["b"]));
    assert_eq!(sizes(&variables.groups), [("Ring", 2), ("unset", 1)]);
    let gpus = |count: usize| json!({"gpus": vec![json!({"name": "H200", "index": 0}); count]});
    let nodes = [4, 4, 3].map(|count| node(&count.to_string(), &[("gpus", gpus(count))]));
    assert_eq!(sizes(&of_row(&nodes, "gpu-models").unwrap().groups), [("4 × H200", 2), ("3 × H200", 1)]);
}

#[test]
fn sound_nodes_do_not_differ() {
    let recorded = |name: &str| {
        let path = format!("{}/../../fixtures/probe/h100-x2/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let recording = Recording::replay(&std::fs::read(path).unwrap()).unwrap();
        NodeRecord { name: name.to_owned(), recording, is_whole: true }
    };
    let differences = |names: [&str; 2]| -> Vec<_> {
        let compared = compare(&names.map(recorded));
        assert!(compared.len() > 20, "{}", compared.len());
        let differs = compared.into_iter().filter(|comparison| comparison.agreement != Agreement::Same);
        differs.map(|comparison| comparison.row.id.clone()).collect()
    };
    // The launches of the two differ only in the size of /dev/shm.
    assert_eq!(differences(["both-healthy", "shm-small"]), ["shm"]);
}

#[test]
fn every_row_reads_what_the_program_writes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../probe/src/payload/events.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let definitions = &schema["$defs"];
    let mut seen = BTreeSet::new();
    for row in rows() {
        assert!(seen.insert(&row.id) && !row.why.is_empty() && !row.references.is_empty(), "{}", row.id);
        if let Source::Read(Place { step, path }) = &row.source {
            let mut at = resolved(&definitions[step], definitions);
            for segment in path {
                let field = at["properties"].get(&segment.field).unwrap_or(&at["additionalProperties"]);
                at = resolved(field, definitions);
                assert!(at.is_object(), "{}: {} of {step}", row.id, segment.field);
                match &segment.entries {
                    Entries::Itself => {}
                    Entries::Keys => assert!(at.get("additionalProperties").is_some(), "{}", row.id),
                    Entries::By(_) | Entries::All => at = resolved(&at["items"], definitions),
                }
                if let Entries::By(field) = &segment.entries {
                    assert!(at["properties"][field].is_object(), "{}: {field}", row.id);
                }
            }
        }
    }
}

/// The schema behind a reference, or the part of a choice that is not null.
fn resolved(schema: &Value, definitions: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return resolved(&definitions[reference.trim_start_matches("#/$defs/")], definitions);
    }
    let choices = schema["anyOf"].as_array();
    let choice = choices.and_then(|all| all.iter().find(|one| one["type"] != "null"));
    choice.map_or_else(|| schema.clone(), |choice| resolved(choice, definitions))
}
