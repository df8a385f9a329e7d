//! Settings that do not suit what a launch gives the container.

use model::Fact;

use super::super::*;
use crate::{Facts, key};

fn facts_of(name: &str, text: &str) -> Facts {
    let file = read(name, text).unwrap();
    Facts::of_containers(&file, &file.containers, &[])
}

#[test]
fn cuda_counts_the_gpus_of_the_container() {
    for (options, expected) in [
        ("--gpus '\"device=4,5\"' -e CUDA_VISIBLE_DEVICES=4,5", Some("CUDA_VISIBLE_DEVICES=4,5")),
        ("--gpus 2 -e CUDA_VISIBLE_DEVICES=2", Some("CUDA_VISIBLE_DEVICES=2")),
        ("--gpus 2 -e CUDA_VISIBLE_DEVICES=1,2", None),
        ("--gpus all -e CUDA_VISIBLE_DEVICES=4,5", None),
        ("--gpus 2 -e CUDA_VISIBLE_DEVICES=GPU-4", None),
        ("--gpus 2 -e CUDA_VISIBLE_DEVICES=-1", None),
        ("--gpus 2 --privileged -e CUDA_VISIBLE_DEVICES=4", None),
        ("--gpus $N -e CUDA_VISIBLE_DEVICES=0", None),
        ("--gpus all -e CUDA_VISIBLE_DEVICES=$N", None),
        ("--gpus 2", None),
    ] {
        let facts = facts_of("job.sh", &format!("#!/bin/bash\ndocker run {options} x"));
        let found = facts.get(key::CONTAINER_ABSENT_GPUS).value().map(|list| list.join(" "));
        assert_eq!(found.as_deref(), expected, "{options}");
    }
    for options in ["--gpus 2 -e CUDA_VISIBLE_DEVICES=$N", "--gpus $N -e CUDA_VISIBLE_DEVICES=4"] {
        let computed = facts_of("job.sh", &format!("#!/bin/bash\ndocker run {options} x"));
        assert!(matches!(computed.get(key::CONTAINER_ABSENT_GPUS), Fact::Unknown(_)), "{options}");
    }
    let of_slurm =
        facts_of("job.sh", "#!/bin/bash\n#SBATCH --gres=gpu:2\nCUDA_VISIBLE_DEVICES=4 srun --container-image=x a");
    assert_eq!(*of_slurm.get(key::CONTAINER_ABSENT_GPUS), Fact::Absent, "Slurm may show every GPU of the node");
}

#[test]
fn the_first_rank_is_on_this_host_at_a_loopback_address_or_in_a_service() {
    for (address, expected) in
        [("localhost", true), ("127.0.1.1", true), ("'::1'", true), ("b", true), ("10.0.0.1", false), ("node-0", false)]
    {
        let service = "{image: x, gpus: all, environment: {MASTER_ADDR: ADDRESS}}".replace("ADDRESS", address);
        let facts = facts_of("compose.yaml", &format!("services: {{a: {service}, b: {service}}}"));
        let found = facts.get(key::CONTAINER_LOCAL_ADDRESS).value();
        assert_eq!(found.map(String::as_str), expected.then_some(address.trim_matches('\'')), "{address}");
    }
    for (name, text, is_unknown) in [
        ("compose.yaml", "services: {a: {image: x, gpus: all, environment: {MASTER_ADDR: $A}}}", true),
        ("job.sh", "#!/bin/bash\ndocker run --gpus all -e MASTER_ADDR=$(hostname) x", false),
    ] {
        let found = facts_of(name, text);
        assert_eq!(matches!(found.get(key::CONTAINER_LOCAL_ADDRESS), Fact::Unknown(_)), is_unknown, "{name}");
    }
}

#[test]
fn each_rdma_device_that_is_named_has_a_node() {
    for (value, is_short) in
        [("mlx5_0", false), ("mlx5_0,mlx5_1:1", true), ("=mlx5_0:1,mlx5_0:2", false), ("^a,b", false)]
    {
        let line = format!("docker run --gpus all --device /dev/infiniband/uverbs0 -e NCCL_IB_HCA={value} x");
        let facts = facts_of("job.sh", &format!("#!/bin/bash\n{line}"));
        assert_eq!(facts.get(key::CONTAINER_RDMA_NODES_FEW).value().is_some(), is_short, "{value}");
    }
}
