use serde_json::{Map, Value, json};

use super::super::read;
use super::*;

fn map(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is not a map") };
    map
}

/// A file with the keys for its first container, and for the pod.
fn keys(text: &str, own: Value, pod: Value) -> Option<String> {
    let file = read("a.yaml", text).unwrap();
    with_keys(&file, &file.containers[0], &map(own), &map(pod))
}

#[test]
fn keys_join_those_of_a_service() {
    let compose = |service: &str| keys(&format!("services:\n  a:\n{service}"), json!({"ipc": "host"}), json!({}));
    for (before, expected) in [
        ("    image: x # y\n    gpus: all\n", Some("    image: x # y\n    ipc: host\n    gpus: all\n")),
        ("    image: x", Some("    image: x\n    ipc: host\n")),
        ("    image: x\r\n    tty: true\r\n", Some("    image: x\r\n    ipc: host\r\n    tty: true\r\n")),
        ("    build: {context: .}\n", Some("    ipc: host\n    build: {context: .}\n")),
        ("    # c\n    image: >-\n      x\n", Some("    # c\n    ipc: host\n    image: >-\n      x\n")),
        ("    ipc: \"private\"  # old\n", Some("    ipc: \"host\"  # old\n")),
        ("    ipc: host\n", Some("    ipc: host\n")),
        ("    ipc: [a]\n", None),
        ("    {image: x}\n", None),
    ] {
        let expected = expected.map(|service| format!("services:\n  a:\n{service}"));
        assert_eq!(compose(before), expected, "{before}");
    }
}

#[test]
fn a_map_joins_a_list_of_assignments() {
    let wanted = json!({"environment": {"MASTER_ADDR": "127.0.0.1"}});
    let service = |list: &str| keys(&format!("services: {{a: {{environment: {list}}}}}\n"), wanted.clone(), json!({}));
    for (before, expected) in [
        ("[A=1, MASTER_ADDR=a]", Some("[A=1, MASTER_ADDR=127.0.0.1]")),
        ("['MASTER_ADDR=a']", Some("['MASTER_ADDR=127.0.0.1']")),
        ("[MASTER_ADDR]", Some("[MASTER_ADDR=127.0.0.1]")),
        ("[MASTER_ADDR_OF=a, A]", Some("[MASTER_ADDR_OF=a, A, MASTER_ADDR=127.0.0.1]")),
        ("[{MASTER_ADDR: a}]", None),
    ] {
        let expected = expected.map(|list| format!("services: {{a: {{environment: {list}}}}}\n"));
        assert_eq!(service(before), expected, "{before}");
    }
    let lines = "services:\n  a:\n    environment:\n    - A=1\n    - MASTER_ADDR=a # first\n    image: x\n";
    assert_eq!(keys(lines, wanted, json!({})), Some(lines.replace("=a #", "=127.0.0.1 #")));
}

#[test]
fn nested_keys_and_items_join_what_is_there() {
    let wanted = json!({"ulimits": {"memlock": -1}, "devices": ["/dev/infiniband"], "networks": null});
    let service = |more: &str| keys(&format!("services:\n  a:\n    image: x\n{more}"), wanted.clone(), json!({}));
    for (before, expected) in [
        ("", Some("    devices:\n    - /dev/infiniband\n    ulimits:\n      memlock: -1\n")),
        (
            "    ulimits: {stack: 1}\n    devices: [/dev/x]\n",
            Some("    ulimits: {memlock: -1, stack: 1}\n    devices: [/dev/x, /dev/infiniband]\n"),
        ),
        (
            "    ulimits:\n      stack: 1\n    devices:\n      - /dev/x # x\n    # end\n",
            Some(
                "    ulimits:\n      stack: 1\n      memlock: -1\n    devices:\n      - /dev/x # x\n      \
                 - /dev/infiniband\n    # end\n",
            ),
        ),
        ("    ulimits: {}\n    devices: []\n", Some("    ulimits: {memlock: -1}\n    devices: [/dev/infiniband]\n")),
        ("    ulimits: {memlock: {soft: 1}}\n", None),
        ("    ulimits:\n", None),
        ("    networks: [a]\n", None),
    ] {
        let expected = expected.map(|more| format!("services:\n  a:\n    image: x\n{more}"));
        assert_eq!(service(before), expected, "{before}");
    }
}

#[test]
fn what_several_services_share_is_not_edited() {
    let wanted = || json!({"ulimits": {"memlock": -1}});
    let shared =
        "x-all: &all\n  ulimits: {stack: 1}\nservices:\n  a:\n    <<: *all\n    image: x\n  b:\n    <<: *all\n";
    assert_eq!(keys(shared, wanted(), json!({})), None);
    let own = shared.replace("ulimits: {stack: 1}", "tty: true");
    let expected = own.replacen("    image: x\n", "    image: x\n    ulimits:\n      memlock: -1\n", 1);
    assert_eq!(keys(&own, wanted(), json!({})), Some(expected));
}

#[test]
fn a_volume_joins_a_pod() {
    let own = || json!({"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]});
    let pod = || json!({"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]});
    let text = "kind: Pod\nspec:\n  containers:\n  - name: a\n    image: x\n";
    let expected = "kind: Pod\nspec:\n  volumes:\n  - name: shm\n    emptyDir:\n      medium: Memory\n  containers:\n  - name: a\n    \
                    volumeMounts:\n    - name: shm\n      mountPath: /dev/shm\n    image: x\n";
    assert_eq!(keys(text, own(), pod()).as_deref(), Some(expected));
    assert_eq!(keys(expected, own(), pod()).as_deref(), Some(expected), "it is there");
    for taken in
        ["    volumeMounts: [{name: b, mountPath: /dev/shm}]\n", "  volumes: [{name: shm, hostPath: {path: /x}}]\n"]
    {
        assert_eq!(keys(&format!("{text}{taken}"), own(), pod()), None, "{taken}");
    }
    let without = || json!({"volumeMounts": {"without": {"mountPath": "/dev/infiniband"}}});
    let mounts = |more: &str| format!("{text}    volumeMounts:\n    - name: c\n      mountPath: /c\n{more}");
    let mounted = mounts("    - name: ib\n      mountPath: /dev/infiniband\n");
    assert_eq!(keys(&mounted, without(), json!({})), Some(mounts("")));
    assert_eq!(keys(text, without(), json!({})).as_deref(), Some(text));
    assert_eq!(keys("kind: Pod\nspec: {containers: [{image: x}]}\n", own(), pod()), None);
}

#[test]
fn a_volume_joins_the_template_of_a_workflow() {
    let changed = |text: &str| {
        let mount = json!({"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]});
        keys(text, mount, json!({"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}))
    };
    let volume = "    volumes:\n    - name: shm\n      emptyDir:\n        medium: Memory\n";
    let mount = "      volumeMounts:\n      - name: shm\n        mountPath: /dev/shm\n";
    let head = "kind: Workflow\nspec:\n  templates:\n  - name: a\n";
    for key in ["container:\n", "script:\n      source: a\n"] {
        let text = format!("{head}    {key}      image: x\n");
        let (key, first) = key.split_once('\n').unwrap();
        let (first, last) = if first.is_empty() { ("      image: x\n", "") } else { (first, "      image: x\n") };
        let expected = format!("{head}{volume}    {key}\n{first}{mount}{last}");
        assert_eq!(changed(&text), Some(expected), "{key}");
    }
    let set = "    containerSet:\n      containers:\n      - image: x\n";
    let mount = "        volumeMounts:\n        - name: shm\n          mountPath: /dev/shm\n";
    assert_eq!(changed(&format!("{head}{set}")), Some(format!("{head}{volume}{set}{mount}")));
    assert_eq!(changed("kind: TrainJob\nspec:\n  trainer:\n    image: x\n"), None);
}

#[test]
fn options_join_a_run_line() {
    let options = |text: &str, options: &[&str]| {
        let file = read("a.sh", text).unwrap();
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        with_options(&file, &file.containers[0], &options)
    };
    for (before, wanted, expected) in [
        ("docker run x # docker run", "--ipc=host", Some("docker run --ipc=host x # docker run")),
        ("sudo docker run \\\n  x\n", "--device /dev/a", Some("sudo docker run --device /dev/a \\\n  x\n")),
        ("A=1 \\\nnerdctl container run x\n", "--ipc=host", None),
        ("docker run \\\n --ipc=private x\n", "--ipc=host", Some("docker run \\\n --ipc=host x\n")),
        ("docker run --net 'bridge' x", "--network=host", Some("docker run --net 'host' x")),
        ("D=docker\n$D run --gpus all x", "--ipc=host", Some("D=docker\n$D run --ipc=host --gpus all x")),
    ] {
        if expected.is_some() {
            assert_eq!(options(before, &[wanted]).as_deref(), expected, "{before}");
        } else {
            assert!(read("a.sh", before).unwrap().containers.is_empty(), "{before}");
        }
    }
    let step = "srun --container-image=x python3 a.py\n";
    let mounts = "--container-mounts=/dev/infiniband";
    let expected = "srun --container-mounts=/dev/infiniband --container-image=x python3 a.py\n";
    assert_eq!(options(step, &[mounts]).as_deref(), Some(expected));
    let batch = "#!/bin/bash\n#SBATCH --container-image=x\n#SBATCH --container-mounts=/a:/b\npython3 a.py\n";
    let expected = batch.replace("/a:/b", "/a:/b,/dev/infiniband");
    assert_eq!(options(batch, &[mounts]), Some(expected));
}

#[test]
fn a_text_is_replaced_in_the_part_of_one_container() {
    let text = "kind: Pod\nspec:\n  containers:\n  - name: a\n    args: [--n=8]\n\n    env: []\n  - name: b\n    args: [--n=8]\n";
    let file = read("a.yaml", text).unwrap();
    let replaced = |index: usize| with_replaced(&file, &file.containers[index], r"--n=(\d)", "4");
    assert_eq!(replaced(0), Some(text.replacen("--n=8", "--n=4", 1)));
    assert_eq!(replaced(1), Some(text.replacen("  - name: b\n    args: [--n=8", "  - name: b\n    args: [--n=4", 1)));
    assert_eq!(with_replaced(&file, &file.containers[0], "--m=(8)", "4"), None);
}

#[test]
fn a_variable_is_removed_where_the_rest_is_complete() {
    let removed = |name: &str, text: &str, line: usize| with_variable(&read(name, text).unwrap(), line, "NCCL_A", None);
    for (name, before, line, expected) in [
        ("a.env", "NCCL_A=1\nNCCL_B=2\n", 1, Some("NCCL_B=2\n")),
        ("a.sh", "export NCCL_A=\"1 2\"\nexport NCCL_B=2\nsrun x\n", 1, Some("export NCCL_B=2\nsrun x\n")),
        ("a.sh", "export NCCL_B=2 NCCL_A=1\nsrun x\n", 1, None),
        ("a.sh", "export NCCL_A=1; rm x\nsrun x\n", 1, None),
        ("a.sh", "export NCCL_A=1\nsrun x $NCCL_A\n", 1, None),
        ("a.sh", "if a; then\n  export NCCL_A=1\nfi\nsrun x\n", 2, None),
        ("a.sh", "docker run -e NCCL_A=1 -e NCCL_B=1 x\n", 1, Some("docker run -e NCCL_B=1 x\n")),
        ("a.sh", "docker run \\\n -e NCCL_A=1 \\\n x\n", 2, Some("docker run \\\n x\n")),
        ("a.sh", "docker run \\\n x \\\n  a\nexport NCCL_A=1\n", 4, Some("docker run \\\n x \\\n  a\n")),
        ("a.sh", "mpirun -x NCCL_A=1 a\n", 1, Some("mpirun a\n")),
        ("a.sh", "mpirun a \\\n -x NCCL_A=1\nb\n", 2, Some("mpirun a \\\n\nb\n")),
        (
            "a.yaml",
            "services:\n  a:\n    environment:\n      NCCL_A: 1\n    image: x\n",
            4,
            Some("services:\n  a:\n    image: x\n"),
        ),
        ("a.yaml", "services: {a: {image: x, environment: [NCCL_A=1]}}\n", 1, None),
    ] {
        assert_eq!(removed(name, before, line).as_deref(), expected, "{before}");
    }
    let pod = |env: &str| format!("kind: Pod\nspec:\n  containers:\n  - image: x\n    env:\n{env}");
    let other = "    - {name: NCCL_B, value: b}\n";
    for own in ["    - name: NCCL_A\n      value: a\n", "    - {name: NCCL_A, value: a}\n"] {
        assert_eq!(removed("a.yaml", &pod(&format!("{own}{other}")), 6), Some(pod(other)), "{own}");
    }
}

#[test]
fn a_variable_gets_another_value() {
    let changed = |name: &str, text: &str| with_variable(&read(name, text).unwrap(), 1, "NCCL_A", Some("b"));
    for (name, before, expected) in [
        ("a.env", "NCCL_A=a\n", Some("NCCL_A=b\n")),
        (
            "a.sh",
            "export NCCL_B=a NCCL_A='a' # $NCCL_A\nsrun x\n",
            Some("export NCCL_B=a NCCL_A='b' # $NCCL_A\nsrun x\n"),
        ),
        ("a.yaml", "env: {NCCL_A: \"a\"}\n", Some("env: {NCCL_A: \"b\"}\n")),
        ("a.yaml", "env: [{name: NCCL_A,\n  value: a}]\n", Some("env: [{name: NCCL_A,\n  value: b}]\n")),
        ("a.sh", "srun x\n", None),
    ] {
        assert_eq!(changed(name, before).as_deref(), expected, "{before}");
    }
}
