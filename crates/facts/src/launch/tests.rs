use model::{Fact, Site, Value};

use super::*;
use crate::Facts;

/// The variables that the containers of a file get, as `NAME=VALUE@line`, with `?` for what is unknown.
fn shown(text: &str) -> Vec<String> {
    shown_of("job", text)
}

/// The same of a file with this name.
fn shown_of(name: &str, text: &str) -> Vec<String> {
    let launch = Launched { files: vec![read(name, text).unwrap()], ..Launched::default() };
    let shown = |setting: Setting| {
        let Site::Launch { line, .. } = setting.site else { panic!("{setting:?}") };
        let value = setting.value.unwrap_or_else(|| "?".to_owned());
        format!("{}={value}@{}", setting.name, line.map_or("?".to_owned(), |line| line.to_string()))
    };
    launch.all_settings().into_iter().map(shown).collect()
}

#[test]
fn placeholders_are_unknown() {
    let script = "#SBATCH --account=<account>\nexport NCCL_SOCKET_IFNAME=<your interface> NCCL_IB_HCA=mlx5\n\
                  sort <in >out\nsrun --container-image=<image> --container-workdir /w python a.py\n";
    assert_eq!(shown(script), ["NCCL_SOCKET_IFNAME=?@2", "NCCL_IB_HCA=mlx5@2"]);
    for text in [
        script,
        "docker run --gpus all team/<image>:1 python a.py",
        "docker run --gpus all '' python a.py",
        "services: {a: {image: <registry>/a, gpus: all}}",
    ] {
        let name = if text.starts_with("services") { "compose.yaml" } else { "job" };
        let launch = Launched { files: vec![read(name, text).unwrap()], ..Launched::default() };
        assert_eq!(launch.files[0].containers.len(), 1, "{text}");
        assert_eq!(launch.images(), [], "{text}");
    }
}

#[test]
fn a_preflight_is_not_the_job() {
    let preflight = "image: x, entrypoint: [/opt/ncclcheck, preflight, --in-place], gpus: all";
    for (text, expected) in [
        (format!("services: {{a: {{{preflight}}}, b: {{image: x, gpus: all, command: [python]}}}}"), "b"),
        (format!("services: {{a: {{{preflight}}}}}"), "a"),
    ] {
        let containers = read("compose.yaml", &text).unwrap().containers;
        assert_eq!(containers.iter().map(|container| &*container.name).collect::<Vec<_>>(), [expected], "{text}");
    }
    let script = "docker run --entrypoint /opt/ncclcheck --gpus all x preflight --in-place\ndocker run --gpus all x python a.py\n";
    assert_eq!(read("job", script).unwrap().containers.len(), 1);
}

#[test]
fn a_slurm_script() {
    let script = r#"#!/bin/bash
#SBATCH --nodes=2 --export=ALL,NCCL_DEBUG=WARN
# export NCCL_COMMENTED=1
export NCCL_IB_HCA=mlx5_0:1,mlx5_1:1 NCCL_SOCKET_IFNAME="$(ip route | awk '{print $5}')"
NCCL_NOT_EXPORTED=1
NCCL_LATER=2; export NCCL_LATER
if true; then export NCCL_P2P_LEVEL='NVL'; fi
NCCL_ALGO=Ring srun --export=ALL,NCCL_PROTO=Simple,UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 \
    docker run --gpus all -e NCCL_IB_TC=106 --env=NCCL_DEBUG_SUBSYS=INIT,NET -e NCCL_LATER image \
    mpirun -np 16 -x NCCL_IB_GID_INDEX=3 -x NCCL_LATER -x PATH -genv FI_PROVIDER efa \
    bash -c 'export NCCL_NET=IB; python train.py'
srun bash <<EOF
export NCCL_CROSS_NIC=$X
export NCCL_MIN_CTAS=8
EOF
cat <<'EOF' > note
export NCCL_NOT_RUN=1
EOF
env -u FOO NCCL_BUFFSIZE=0x400000 torchrun train.py --x -e NCCL_NO=1
set -a
NCCL_MAX_CTAS="16"
"#;
    assert_eq!(
        shown(script),
        [
            "NCCL_DEBUG=WARN@2",
            "NCCL_IB_HCA=mlx5_0:1,mlx5_1:1@4",
            "NCCL_SOCKET_IFNAME=?@4",
            "NCCL_LATER=2@6",
            "NCCL_P2P_LEVEL=NVL@7",
            "NCCL_ALGO=Ring@8",
            "NCCL_PROTO=Simple@8",
            "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1@8",
            "NCCL_IB_TC=106@9",
            "NCCL_DEBUG_SUBSYS=INIT,NET@9",
            "NCCL_LATER=2@9",
            "NCCL_IB_GID_INDEX=3@10",
            "NCCL_LATER=2@10",
            "PATH=?@10",
            "FI_PROVIDER=efa@10",
            "NCCL_NET=IB@11",
            "NCCL_CROSS_NIC=?@13",
            "NCCL_MIN_CTAS=8@14",
            "NCCL_BUFFSIZE=0x400000@19",
            "NCCL_MAX_CTAS=16@21",
        ]
    );
}

#[test]
fn quotes_and_expansions() {
    for (line, expected) in [
        ("export A='a b'\"c\\\"d\"e\\ f", "A=a bc\"de f@1"),
        ("export A=\"x${Y:-z}w\" B=1", "A=?@1 B=1@1"),
        ("export A=`date +%s` B=2", "A=?@1 B=2@1"),
        ("export A=$((1 + (2)))x B=3", "A=?@1 B=3@1"),
        ("export A=$(echo ')' \"}\") B=4", "A=?@1 B=4@1"),
        ("export A=5$ B=\\$X", "A=5$@1 B=$X@1"),
        ("export A=1>/dev/null 2>&1 B=6", "A=1@1 B=6@1"),
        ("export A=a#b # c=d", "A=a#b@1"),
        ("export \\\n  A=7", "A=7@2"),
        ("A=8 cmd & B=9 cmd && C=10", "A=8@1 B=9@1"),
        ("export A='unclosed", "A=unclosed\n@1"),
        ("declare -x A=11; setenv B 12", "A=11@1 B=12@1"),
        ("export 1A=13 -n", ""),
    ] {
        let script = format!("{line}\n");
        assert_eq!(script_shown(&script), expected, "{line}");
    }
}

fn script_shown(text: &str) -> String {
    let shown = |given: Assignment| {
        format!("{}={}@{}", given.name, given.value.as_deref().unwrap_or("?"), given.line.unwrap_or_default())
    };
    script(text).into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[test]
fn manifests() {
    let kubernetes = r#"
apiVersion: v1
kind: Secret
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
            - name: pytorch
              # NCCL_DEBUG used to be INFO
              env:
                - {name: NCCL_DEBUG, value: WARN}
                - name: NCCL_IB_DISABLE
                  value: "1"
                - name: NCCL_SOCKET_IFNAME
                  valueFrom: {fieldRef: {fieldPath: metadata.name}}
                - name: NCCL_HOSTID
                  value: $(NODE_NAME)
                - name: NCCL_EMPTY
              command: [mpirun, -x, NCCL_ALGO=Ring, bash, -c, "export NCCL_PROTO=LL && train"]
"#;
    assert_eq!(
        shown(kubernetes),
        [
            "NCCL_DEBUG=WARN@16",
            "NCCL_IB_DISABLE=1@17",
            "NCCL_SOCKET_IFNAME=?@19",
            "NCCL_HOSTID=?@21",
            "NCCL_EMPTY=@23",
            "NCCL_ALGO=Ring@24",
            "NCCL_PROTO=LL@24",
        ]
    );
    let compose = "services:\n  a:\n    environment:\n      NCCL_DEBUG: INFO\n      NCCL_NTHREADS: 256\n      NCCL_NET:\n  b:\n    \
                   environment:\n      - NCCL_DEBUG=${LEVEL:-WARN}\n      - UCX_TLS=rc,$$x\n      - FI_PROVIDER\n";
    assert_eq!(
        shown(compose),
        [
            "NCCL_DEBUG=INFO@4",
            "NCCL_NTHREADS=256@5",
            "NCCL_NET=?@6",
            "NCCL_DEBUG=?@9",
            "UCX_TLS=rc,$x@10",
            "FI_PROVIDER=?@11"
        ]
    );
    assert_eq!(shown("{\"kind\": \"Pod\", \"env\": [{\"name\": \"A\", \"value\": \"1\"}]}"), ["A=1@1"]);
    assert!(read("job", "kind: Pod\n  x: [\n").unwrap_err().to_string().starts_with("job:2:4: invalid YAML: "));
}

#[test]
fn a_container_is_given_config_maps_and_a_command_in_parts() {
    let text = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: fabric}
data:
  NCCL_IB_HCA: mlx5
  NCCL_DEBUG: INFO
---
kind: Job
spec:
  template:
    spec:
      containers:
        - command: [bash, -euxc]
          args: ["export NCCL_DEBUG=TRACE && train"]
          env:
            - {name: NCCL_DEBUG, value: WARN}
            - name: NCCL_SOCKET_IFNAME
              valueFrom: {configMapKeyRef: {name: fabric, key: NCCL_IB_HCA}}
            - name: NCCL_ALGO
              valueFrom: {configMapKeyRef: {name: other, key: ALGO}}
          envFrom:
            - {configMapRef: {name: fabric}, prefix: A_}
            - configMapRef: {name: elsewhere}
            - secretRef: {name: token}
"#;
    let launch = read("job", text).unwrap();
    assert_eq!(
        shown(text),
        [
            "A_NCCL_DEBUG=INFO@7",
            "A_NCCL_IB_HCA=mlx5@6",
            "NCCL_DEBUG=WARN@17",
            "NCCL_SOCKET_IFNAME=mlx5@18",
            "NCCL_ALGO=?@20",
            "NCCL_DEBUG=TRACE@15",
        ]
    );
    assert_eq!(
        launch.notes,
        [
            "the variables of the ConfigMap 'elsewhere' are unknown: the file does not hold it",
            "the variables of the Secret 'token' are unknown: the file does not hold it",
        ]
    );
}

#[test]
fn what_a_script_takes_from_elsewhere_is_noted() {
    let script = "#!/bin/bash\nsource /opt/venv/bin/activate\n. $HOME/fabric.sh --all\nmodule purge\nmodule load nccl/2.27\nml cuda\nexport A=1\n";
    let noted =
        |command: &str| format!("what `{command}` sets is unknown: --launch reads scripts, and --env sets a variable");
    let expected = [". … --all", "module load nccl/2.27", "ml cuda"].map(noted);
    assert_eq!(read("job", script).unwrap().notes, expected);
    let sky = "run: |\n  source env.sh\n  torchrun train.py\n";
    assert_eq!(read("sky.yaml", sky).unwrap().notes, [noted("source env.sh")]);
}

#[test]
fn documents_of_other_launchers() {
    let twice = "kind: Pod\nspec:\n  containers:\n    - env: &all [{name: NCCL_ALGO, value: Ring}]\n    - env: *all\n";
    assert_eq!(shown(twice), ["NCCL_ALGO=Ring@4"]);
    let sky = "num_nodes: 2\nenvs:\n  NCCL_ALGO: Ring\n  TOKEN:\nrun: |\n  export NCCL_PROTO=LL\n  torchrun train.py\n";
    assert_eq!(shown_of("sky.yaml", sky), ["NCCL_ALGO=Ring@3", "TOKEN=?@4", "NCCL_PROTO=LL@6"]);
    let ray = "kind: RayJob\nspec:\n  runtimeEnvYAML: |\n    env_vars:\n      NCCL_ALGO: Tree\n";
    assert_eq!(shown(ray), ["NCCL_ALGO=Tree@5"]);
    let broken = read("job", &ray.replace("Tree", "[")).unwrap();
    assert!(broken.notes[0].starts_with("the variables of runtimeEnvYAML are unknown: invalid YAML: "), "{broken:?}");
    let determined = "environment:\n  image: a/b\n  environment_variables:\n    - NCCL_ALGO=Ring\n";
    assert_eq!(shown_of("job.yaml", determined), ["NCCL_ALGO=Ring@4"]);
    let dstack = "type: task\nenv:\n  - NCCL_ALGO=Ring\ncommands:\n  - export NCCL_PROTO=LL\n  - torchrun train.py\n";
    assert_eq!(shown_of("task.yml", dstack), ["NCCL_ALGO=Ring@3", "NCCL_PROTO=LL@5"]);
    let nothing = read("job.yaml", "resources: {accelerators: H100}\n").unwrap();
    assert_eq!(nothing.notes, ["it sets no variable"]);
}

#[test]
fn lists_of_lines() {
    assert_eq!(shown("# a note\nNCCL_DEBUG=INFO\n\nNCCL_NET=\"IB\"\n"), ["NCCL_DEBUG=INFO@2", "NCCL_NET=IB@4"]);
    // A script does not export its own variables to its children.
    assert_eq!(shown("NCCL_DEBUG=INFO\npython train.py\n"), Vec::<String>::new());
}

#[test]
fn what_containers_take_from_config_maps_is_bounded() {
    let manifest = |containers: usize, length: usize| {
        let map = format!("kind: ConfigMap\nmetadata: {{name: m}}\ndata: {{A: {}}}\n---\n", "a".repeat(length));
        let taken = "  - {name: c, envFrom: [{configMapRef: {name: m}}]}\n".repeat(containers);
        let keys =
            "  - {name: c, env: [{name: B, valueFrom: {configMapKeyRef: {name: m, key: A}}}]}\n".repeat(containers);
        [taken, keys].map(|containers| read("job.yaml", &format!("{map}kind: Pod\nspec:\n  containers:\n{containers}")))
    };
    for launch in manifest(5, 1_000_000) {
        let of_containers = launch.unwrap().containers.into_iter().map(|container| container.settings.len());
        assert_eq!(of_containers.sum::<usize>(), 5);
    }
    for launch in manifest(20, 1_000_000) {
        let why = launch.unwrap_err().what;
        assert_eq!(why, "its containers take more than 16 MiB of variables from ConfigMaps");
    }
}

#[test]
fn scripts_and_documents_in_texts_are_bounded() {
    let script = |count: usize| "#".repeat(count) + "\nexport A=1; true\n";
    assert_eq!(read("job.sh", &script(1_000)).unwrap().settings.len(), 1);
    let why = "a script has 2000018 bytes, of which at most 1048576 are read";
    assert_eq!(read("job.sh", &script(2_000_000)).unwrap_err().what, why);
    let manifest = format!("run: '{}'\n", "a".repeat(2_000_018));
    assert_eq!(read("job.yaml", &manifest).unwrap_err().what, why);
    let texts = |count: usize| "- runtimeEnvYAML: 'env_vars: {A: a}'\n".repeat(count);
    assert_eq!(read("job.yaml", &texts(20)).unwrap().settings.len(), 20);
    assert_eq!(read("job.yaml", &texts(21)).unwrap_err().what, "of the values of runtimeEnvYAML, at most 20 are read");
}

/// The command that a file gives a container of the image `team/train:1`: its words, with `|` between what replaces the
/// entrypoint and what replaces the command.
fn command_of(name: &str, text: &str) -> String {
    let launch = Launched { files: vec![read(name, text).unwrap()], ..Launched::default() };
    let words = |words: Option<Vec<String>>| words.map_or("own".to_owned(), |words| words.join(" "));
    match launch.command("docker:team/train:1") {
        None => "none".to_owned(),
        Some(Err(gap)) => gap.why,
        Some(Ok(command)) => {
            let directory = command.directory.map(|directory| format!(" in {directory}")).unwrap_or_default();
            format!("{} | {}{directory}", words(command.entrypoint), words(command.arguments))
        }
    }
}

#[test]
fn the_command_of_a_pod_replaces_that_of_the_image() {
    let pod = |containers: &str| {
        command_of(
            "job.yaml",
            &format!(
                "apiVersion: v1\nkind: Pod\nspec:\n  initContainers: [{{command: [sh]}}]\n  containers: {containers}\n"
            ),
        )
    };
    assert_eq!(pod("[{command: [torchrun, a.py], args: [--x], workingDir: /w}]"), "torchrun a.py | --x in /w");
    assert_eq!(pod("[{command: [torchrun, a.py]}]"), "torchrun a.py | ");
    assert_eq!(pod("[{args: [a.py]}]"), "own | a.py");
    assert_eq!(pod("[{name: x}]"), "none");
    let expanded = "[{args: [$(A), \"$$(A)\", \"--b=$(B)\", \"echo $(date) $(A)\"], env: [{name: A, value: x}, {name: B, valueFrom: {}}]}]";
    assert_eq!(pod(expanded), "own | x $(A) --b=${B} echo $(date) x");
    let several = "job.yaml starts containers with 2 different commands";
    assert_eq!(pod("[{command: [a]}, {command: [b]}]"), several);
    assert_eq!(pod("[{command: [a]}, {name: own}]"), several);
    assert_eq!(pod("[{command: [a]}, {command: [a]}]"), "a | ");
    assert_eq!(pod("[{command: [a]}, {command: [b], image: team/train:1}]"), "b | ");
    assert_eq!(pod("[{command: [a]}, {command: [b], resources: {limits: {nvidia.com/gpu: 8}}}]"), "b | ");
    let template = "apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec:\n  mpiReplicaSpecs:\n    Launcher: {template: {spec: {containers: [{command: [mpirun, a]}]}}}\n    Worker: {template: {spec: {containers: [{name: w, resources: {limits: {nvidia.com/gpu: 8}}}]}}}\n";
    assert_eq!(command_of("job.yaml", template), "mpirun a | ");
}

#[test]
fn the_command_of_a_service_or_a_task_replaces_that_of_the_image() {
    for (text, expected) in [
        ("services: {train: {command: python -m x 'a b'}}", "own | python -m x a b"),
        ("services: {train: {entrypoint: /run.sh, working_dir: /w}}", "/run.sh |  in /w"),
        ("services: {train: {command: [sh, -c, \"echo $$A $B\"]}}", "own | sh -c echo $A ${B}"),
        ("services: {db: {command: postgres}, train: {command: python a.py, gpus: all}}", "own | python a.py"),
        (
            "services: {db: {command: postgres}, train: {command: python a.py, image: team/train:1}}",
            "own | python a.py",
        ),
        (
            "services: {db: {command: postgres}, train: {command: a}}",
            "job.yaml starts containers with 2 different commands",
        ),
        (
            "resources: {image_id: docker:team/train:1}\nsetup: pip install x\nrun: |\n  cd /w\n  torchrun a.py\n",
            "/bin/bash -c pip install x\ncd /w\ntorchrun a.py\n | ",
        ),
        ("type: task\ncommands: [cd /w, python a.py]\n", "/bin/bash -c cd /w\npython a.py | "),
        ("NCCL_DEBUG: INFO\n", "none"),
    ] {
        assert_eq!(command_of("job.yaml", text), expected, "{text}");
    }
}

#[test]
fn the_command_of_a_step_replaces_that_of_the_image() {
    for (script, expected) in [
        (
            "srun -N 2 --container-image=t.sqsh --container-workdir /w /opt/v/bin/torchrun a.py",
            "/opt/v/bin/torchrun a.py |  in /w",
        ),
        (
            "IMG=t.sqsh\nCMD=\"torchrun a.py\"\nsrun --container-image=$IMG $CMD --nodes=$N",
            "torchrun a.py --nodes=${N} | ",
        ),
        (
            "srun --container-image t bash -c \"cd /w; torchrun --nnodes=$SLURM_NNODES a.py\"",
            "bash -c cd /w; torchrun --nnodes=${SLURM_NNODES} a.py | ",
        ),
        ("srun --container-image=t bash <<E\ntorchrun a.py\nE\n", "bash -c torchrun a.py\n | "),
        (
            "#SBATCH --container-image=t\ntorchrun a.py",
            "/bin/bash -c #!/bin/bash\n#SBATCH --container-image=t\ntorchrun a.py | ",
        ),
        ("srun apptainer exec --nv -B /d:/d t.sif python3 a.py", "python3 a.py | "),
        ("mpirun -np 8 singularity exec --nv t.sif python3 a.py", "python3 a.py | "),
        ("apptainer run --nv t.sif a.py", "own | a.py"),
        ("apptainer run --nv t.sif", "none"),
        ("docker run --rm --gpus all -v a:b -w /w team/train:1 python a.py", "own | python a.py in /w"),
        ("docker run --entrypoint python team/train:1 a.py", "python | a.py"),
        (
            "srun --container-image=t nvidia-smi\nsrun --container-image=t python prep.py\nsrun --container-image=t torchrun a.py",
            "torchrun a.py | ",
        ),
        (
            "srun --container-image=t python a.py\nsrun --container-image=u python b.py",
            "job.sh starts containers with 2 different commands",
        ),
        (
            "if [ $X ]; then srun --container-image=t a; else srun --container-image=t b; fi",
            "job.sh starts containers with 2 different commands",
        ),
        ("srun torchrun a.py", "none"),
        ("docker build . && docker pull x", "none"),
    ] {
        assert_eq!(command_of("job.sh", &format!("#!/bin/bash\n{script}")), expected, "{script}");
    }
}

/// What a file gives its container, as the names and values of facts.
fn given_by(name: &str, text: &str) -> String {
    let launch = Launched { files: vec![read(name, text).unwrap()], ..Launched::default() };
    let facts = Facts::default().with_launch(&launch, "docker:team/train:1");
    let shown = |(name, fact): (&str, &Fact)| match fact {
        Fact::Seen { value: Value::Bool(false), .. } | Fact::Absent => None,
        Fact::Seen { value, .. } => Some(format!("{}={value}", name.strip_prefix("container.")?)),
        Fact::Unknown(_) => Some(format!("{}=?", name.strip_prefix("container.")?)),
    };
    facts.iter().filter(|(name, _)| *name != "container.name").filter_map(shown).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_line_gives_a_container_what_its_options_say() {
    for (line, expected) in [
        ("docker run --gpus all x", "network=bridge shm_bytes=67108864 starter=docker"),
        (
            "docker run --gpus '\"device=0,1\"' --shm-size=16g --network host --device /dev/infiniband --ulimit memlock=-1 -m 64g x",
            "gpus=2 locks_memory=true memory_bytes=68719476736 network=host rdma=/dev/infiniband shm_bytes=17179869184 starter=docker",
        ),
        (
            "N=4\ndocker run --gpus $N --ipc=host --privileged -v /opt/nccl:/usr/lib/nccl:ro x torchrun --nproc-per-node 8 a.py",
            "gpus=4 locks_memory=true mounts=/opt/nccl:/usr/lib/nccl network=bridge ranks=8 rdma=privileged runs_torch=true starter=docker",
        ),
        ("docker run --gpus $N --shm-size $S x", "gpus=? network=bridge shm_bytes=? starter=docker"),
        ("podman run --device nvidia.com/gpu=all x", "network=bridge shm_bytes=65536000 starter=docker"),
        (
            "docker run --gpus all --cpus 1.5 --cap-add CAP_SYS_NICE --security-opt seccomp=unconfined --runtime runc -h a --cpuset-cpus 0-3 -w /w x",
            "capabilities=SYS_NICE cpu_set=0-3 cpus=2 directory=/w host_name=a network=bridge runtime=runc security=seccomp=unconfined \
             shm_bytes=67108864 starter=docker",
        ),
        ("ssh n1 \"docker run --gpus 2 x\"", "gpus=2 network=bridge shm_bytes=67108864 starter=docker"),
        (
            "ssh n1 bash <<E\ncd /w && docker run --gpus 2 x\nE\n",
            "gpus=2 network=bridge shm_bytes=67108864 starter=docker",
        ),
        (
            "ssh -p 22 -i k n1 <<E\ndocker run --gpus 2 --network net x\nE\n",
            "gpus=2 network=own shm_bytes=67108864 starter=docker",
        ),
        ("sudo bash -c 'docker run --gpus 2 --ipc=host x'", "gpus=2 network=bridge starter=docker"),
        ("echo \"docker run --gpus 2 x\"", ""),
        ("bash -s a <<E\ndocker run --gpus 2 x\nE\n", "gpus=2 network=bridge shm_bytes=67108864 starter=docker"),
        ("ssh n1 tee a.sh <<E\ndocker run --gpus 2 x\nE\n", ""),
        ("docker run x", ""),
        ("docker run --gpus 'all,capabilities=utility' x", "network=bridge shm_bytes=67108864 starter=docker"),
        (
            "docker run --gpus all --network=host \"${ARGS[@]}\" $IMAGE serve",
            "locks_memory=? network=host rdma=? shm_bytes=? starter=docker",
        ),
        // A default without a dash is the image.
        (
            "docker run --gpus all ${IMAGE:-train:7} -c torchrun",
            "network=bridge runs_torch=true shm_bytes=67108864 starter=docker",
        ),
        (
            "docker run --gpus all ${MORE:---ipc=host} train:7",
            "locks_memory=? network=? rdma=? shm_bytes=? starter=docker",
        ),
        (
            "#SBATCH --gres=gpu:h100:8 --ntasks-per-node 4\n#SBATCH -N 3\nsrun --container-image=t python a.py",
            "gpus=8 locks_memory=true network=host nodes=3 ranks=4 rdma=the devices of the host starter=scheduler",
        ),
        (
            "srun -N 2 --container-image=t torchrun --nproc_per_node=8 a.py",
            "locks_memory=true network=host nodes=2 ranks=8 rdma=the devices of the host runs_torch=true starter=scheduler",
        ),
        (
            "export NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5\ndocker run --gpus 1 -e NCCL_DEBUG x",
            "gpus=1 network=bridge not_passed=NCCL_IB_HCA shm_bytes=67108864 starter=docker",
        ),
        (
            "docker run -d --gpus 1 --name c x\nexport NCCL_IB_HCA=mlx5\ndocker exec \"${env[@]}\" c python a.py",
            "gpus=1 network=bridge not_passed=? shm_bytes=67108864 starter=docker",
        ),
        (
            "docker run -d --gpus 1 --name c x\nexport NCCL_IB_HCA=mlx5\ndocker exec -it c python a.py \"$ARGS\"",
            "gpus=1 network=bridge not_passed=NCCL_IB_HCA shm_bytes=67108864 starter=docker",
        ),
    ] {
        assert_eq!(given_by("job.sh", &format!("#!/bin/bash\n{line}")), expected, "{line}");
    }
}

#[test]
fn a_service_gets_what_its_keys_say() {
    for (service, expected) in [
        ("{runtime: nvidia}", "network=own runtime=nvidia shm_bytes=67108864 starter=compose"),
        ("{image: x}", ""),
        ("{gpus: all, ipc: shareable}", "network=own shm_bytes=67108864 starter=compose"),
        (
            "{gpus: all, ipc: 'service:a', cap_add: [ipc_lock]}",
            "capabilities=IPC_LOCK locks_memory=true network=own shm_bytes=? starter=compose",
        ),
        (
            "{gpus: all, devices: ['/dev/a:/dev/infiniband/uverbs0']}",
            "network=own rdma=/dev/infiniband/uverbs0 shm_bytes=67108864 starter=compose",
        ),
        ("{gpus: all, ipc: host, extends: base}", "locks_memory=? network=? rdma=? starter=compose"),
        (
            "{gpus: all, shm_size: 8gb, network_mode: host, devices: [/dev/infiniband], cap_add: [IPC_LOCK]}",
            "capabilities=IPC_LOCK locks_memory=true network=host rdma=/dev/infiniband shm_bytes=8589934592 starter=compose",
        ),
        (
            "{gpus: all, cpus: '8', cap_add: [CAP_SYS_NICE], security_opt: [seccomp:unconfined], hostname: h, cpuset: '${S}', working_dir: /w}",
            "capabilities=SYS_NICE cpu_set=? cpus=8 directory=/w host_name=h network=own security=seccomp:unconfined shm_bytes=67108864 starter=compose",
        ),
        (
            "{deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 2, capabilities: [gpu]}]}}}, ipc: host}",
            "gpus=2 network=own starter=compose",
        ),
        (
            "{gpus: [{device_ids: ['0'], capabilities: [gpu]}], tmpfs: ['/dev/shm:size=1g'], ulimits: {memlock: {soft: -1}}}",
            "gpus=1 locks_memory=true network=own shm_bytes=1073741824 starter=compose",
        ),
    ] {
        assert_eq!(given_by("compose.yaml", &format!("services: {{train: {service}}}\n")), expected, "{service}");
    }
    let two = "services:\n  a: {gpus: all, network_mode: host, command: serve --port=8000}\n  b: {gpus: all, network_mode: host, command: serve --port 8000}\n";
    assert!(!given_by("c.yaml", &two.replace("gpus", "profiles: [x], gpus")).contains("colliding"));
    assert!(given_by("c.yaml", two).contains("colliding_ports=--port 8000 of a and b"), "{}", given_by("c.yaml", two));
}

#[test]
fn a_pod_gets_what_its_containers_and_its_template_say() {
    let pod = |spec: &str| given_by("job.yaml", &format!("kind: Pod\nspec: {spec}\n"));
    let gpus = "resources: {limits: {nvidia.com/gpu: 8";
    assert_eq!(
        pod(&format!("{{containers: [{{image: x, {gpus}}}}}}}]}}")),
        "gpus=8 network=own shm_bytes=67108864 starter=kubernetes"
    );
    let requested = "{containers: [{image: x, resources: {requests: {nvidia.com/gpu: 8, memory: 1Gi}}}]}";
    assert_eq!(pod(requested), "gpus=8 network=own shm_bytes=67108864 starter=kubernetes");
    let rich = "{hostNetwork: true, containers: [{image: x, resources: {limits: {nvidia.com/gpu: 8, rdma/hca: 1, memory: 64Gi}}, \
                securityContext: {capabilities: {add: [IPC_LOCK]}}, volumeMounts: [{name: shm, mountPath: /dev/shm}]}], \
                volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 32Gi}}]}";
    assert_eq!(
        pod(rich),
        "capabilities=IPC_LOCK gpus=8 locks_memory=true memory_bytes=68719476736 network=host rdma=rdma/hca shm_bytes=34359738368 starter=kubernetes"
    );
    let detailed = "{runtimeClassName: nvidia, securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{image: x, workingDir: /w, \
                    resources: {limits: {nvidia.com/mig-1g.10gb: 1, cpu: 500m, hugepages-2Mi: 5Gi}, claims: [{name: imex}]}}]}";
    assert_eq!(
        pod(detailed),
        "claims=imex cpus=1 directory=/w gpus=1 huge_pages=2Mi: 5Gi network=own rdma=? runtime=nvidia security=RuntimeDefault shm_bytes=67108864 \
         starter=kubernetes"
    );
    assert_eq!(
        pod(
            "{containers: [{image: x, resources: {limits: {nvidia.com/gpumem: 1024, nvidia.com/gpu: 2, nvidia.com/gpucores: 30}}}]}"
        ),
        "gpus=2 network=own shm_bytes=67108864 starter=kubernetes"
    );
    let group = "kind: PyTorchJob\nspec: {pytorchReplicaSpecs: {Worker: {replicas: 4, template: {spec: {containers: [{image: t, resources: {limits: {nvidia.com/gpu: 1}}}]}}}}}\n";
    assert_eq!(given_by("job.yaml", group), "gpus=1 network=own nodes=4 shm_bytes=67108864 starter=kubernetes");
    let container = "containers: [{image: x, resources: {limits: {nvidia.com/gpu: 1}}}]";
    let service =
        format!("kind: Deployment\nspec: {{replicas: 3, selector: {{}}, template: {{spec: {{{container}}}}}}}\n");
    assert_eq!(given_by("job.yaml", &service), "gpus=1 network=own shm_bytes=67108864 starter=kubernetes");
    let custom = service.replace("Deployment", "ModelService").replace("selector: {}, ", "");
    assert_eq!(given_by("job.yaml", &custom), "gpus=1 network=own shm_bytes=67108864 starter=kubernetes");
    let set = format!(
        "kind: LeaderWorkerSet\nspec: {{replicas: 2, leaderWorkerTemplate: {{size: 4, workerTemplate: {{spec: {{{container}}}}}}}}}\n"
    );
    assert_eq!(given_by("job.yaml", &set), "gpus=1 network=own nodes=4 shm_bytes=67108864 starter=kubernetes");
    let two = "kind: Pod\nspec: {containers: [{name: a, image: x, resources: {limits: {nvidia.com/gpu: 1}}}, {name: b, image: x, resources: {limits: {nvidia.com/gpu: 2}}}]}\n";
    assert_eq!(given_by("job.yaml", two), "gpus=? network=own shm_bytes=67108864 starter=kubernetes");
}

#[test]
fn charliecloud_and_enroot() {
    let charliecloud = read("job.sh", "srun -N2 ch-run -b /data:/data --cd=/w ./image -- torchrun a.py").unwrap();
    let container = &charliecloud.containers[0];
    assert_eq!((container.image.as_deref(), container.directory.as_deref()), (Some("./image"), Some("/w")));
    assert_eq!(container.entrypoint.as_deref().unwrap(), ["torchrun", "a.py"]);
    let step =
        "srun --container-image=a.sqsh --container-mounts=/dev/infiniband/uverbs0:/dev/infiniband/uverbs0 python3 a.py";
    let rdma = |text: &str| read("job.sh", text).unwrap().containers[0].given.rdma("job.sh");
    assert_eq!(rdma(step).value().unwrap().len(), 2);
    let restricted = format!("export ENROOT_RESTRICT_DEV=y NCCL_IB_HCA=mlx5_5,mlx5_6\n{step}");
    assert_eq!(rdma(&restricted).value().unwrap(), &["/dev/infiniband/uverbs0"]);
    let launch = Launched { files: vec![read("job.sh", &restricted).unwrap()], ..Launched::default() };
    let (file, containers) = &launch.groups()[0];
    let facts = Facts::of_containers(file, containers, &[]);
    let few = facts.get(crate::key::CONTAINER_RDMA_NODES_FEW);
    assert_eq!(few.value().unwrap(), &["NCCL_IB_HCA=mlx5_5,mlx5_6: /dev/infiniband/uverbs0"]);
    let whole = restricted.replace("uverbs0:/dev/infiniband/uverbs0", "uverbs0,/dev/infiniband/uverbs1");
    let launch = Launched { files: vec![read("job.sh", &whole).unwrap()], ..Launched::default() };
    let (file, containers) = &launch.groups()[0];
    assert_eq!(*Facts::of_containers(file, containers, &[]).get(crate::key::CONTAINER_RDMA_NODES_FEW), Fact::Absent);
}

#[test]
fn a_container_runs_as_the_user_that_its_file_names() {
    let user = |name: &str, text: &str| {
        let launched = Launched { files: vec![read(name, text).unwrap()], options: Vec::new() };
        match launched.user("x") {
            None => "the image's".to_owned(),
            Some(Err(gap)) => gap.why,
            Some(Ok(user)) => {
                let number = user.group.map(|group| format!(" group {group}")).unwrap_or_default();
                format!("{}{number} {}", user.name.unwrap_or_default(), user.more.join(" ")).trim_end().to_owned()
            }
        }
    };
    for (pod, container, expected) in [
        ("{}", "{}", "the image's"),
        ("{runAsUser: 1000, fsGroup: 2000, supplementalGroups: [7, 8]}", "{}", "1000 2000 7 8"),
        ("{runAsUser: 1000, runAsGroup: 5}", "{runAsUser: 0}", "0 group 5"),
        ("{}", "{runAsGroup: 5}", " group 5"),
        ("{runAsUser: \"${UID}\"}", "{}", "j.yaml:2: the user is computed when the job starts"),
        ("{fsGroup: 2000}", "{}", " 2000"),
    ] {
        let pod = format!(
            "kind: Pod\nspec: {{securityContext: {pod}, containers: [{{image: x, securityContext: {container}}}]}}\n"
        );
        assert_eq!(user("j.yaml", &pod), expected, "{pod}");
    }
    for (service, expected) in [
        ("{image: x}", "the image's"),
        ("{image: x, user: '1000:5', group_add: [video]}", "1000:5 video"),
        ("{image: x, user: '${UID}'}", "c.yaml:1: the user is computed when the job starts"),
    ] {
        assert_eq!(user("c.yaml", &format!("services: {{t: {service}}}\n")), expected, "{service}");
    }
    for (script, expected) in [
        ("docker run --gpus all x", "the image's"),
        ("podman run -u 1000 --group-add 5 --group-add video x", "1000 5 video"),
        ("docker run --user=ann:users x python3 a.py -u 7", "ann:users"),
        ("docker run -u $(id -u):$(id -g) x", "j.sh:2: the user is computed when the job starts"),
        ("apptainer exec x python3 a.py", "j.sh:2: apptainer runs a container as the user who calls it"),
        ("docker run -u 1 x\ndocker run -u 2 x a", "2"),
        ("if a; then docker run -u 1 x; else docker run -u 2 x; fi", "j.sh starts containers as different users"),
    ] {
        assert_eq!(user("j.sh", &format!("#!/bin/bash\n{script}\n")), expected, "{script}");
    }
}

#[test]
fn mounts_may_bring_modules_that_the_image_lacks() {
    let absent = |volume: &str| {
        let run = format!("docker run --gpus all -v {volume} team/train:1\n");
        let launch = Launched { files: vec![read("run.sh", &run).unwrap()], ..Launched::default() };
        let mut facts = Facts::default();
        facts.insert(crate::key::START_ABSENT_MODULES, Fact::known(vec!["b (/work/train.py, line 2)".to_owned()]));
        let searched = ["/work", "/usr/lib/python3/dist-packages"].map(ToOwned::to_owned);
        facts.insert(crate::key::START_MODULES_SEARCHED, Fact::known(searched.to_vec()));
        let facts = facts.with_launch(&launch, "docker:team/train:1");
        facts.get(crate::key::START_ABSENT_MODULES).value().is_some()
    };
    assert!(absent("/data:/data"));
    for volume in ["/src:/work", "/src:/work/b", "./train.py:/work/train.py", "/lib:/usr/lib/python3"] {
        assert!(!absent(volume), "{volume}");
    }
}

#[test]
fn a_launch_names_numa_nodes() {
    for (script, expected) in [
        ("docker run --gpus all --cpuset-mems 0,1 x a", "0,1"),
        ("docker run --gpus all x numactl --cpunodebind=1 -m 0-1 -C 3 -l python3 a.py -N 7", "1 0-1"),
        ("docker run --gpus all x numactl --membind all -N !0 a", ""),
        ("docker run --gpus all x a numactl", ""),
        ("srun --cpu-bind=verbose,map_ldom:0,2 --mem-bind=mask_mem:0x1 --container-image=x a", "0,2"),
        ("srun --mem-bind map_mem:3 --container-image=x a", "3"),
    ] {
        let launch = Launched { files: vec![read("j.sh", &format!("{script}\n")).unwrap()], ..Launched::default() };
        let (file, containers) = &launch.groups()[0];
        let facts = Facts::of_containers(file, containers, &[]);
        let nodes = facts.get(crate::key::CONTAINER_NUMA_NODES).value().cloned().unwrap_or_default();
        assert_eq!(nodes.join(" "), expected, "{script}");
    }
}

#[test]
fn the_memory_of_the_host_counts_before_a_size() {
    for script in ["docker run --ipc=host --shm-size=64m x", "docker run --shm-size=64m -v /dev/shm:/dev/shm x"] {
        let file = read("j.sh", script).unwrap();
        assert_eq!(file.containers[0].given.shm_bytes("j.sh", 1), Fact::Absent, "{script}");
    }
}

mod pods;
mod settings;
