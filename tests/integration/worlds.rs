//! Each small test image has one fault, and exactly the rules for it do not pass.

use crate::support::{check, run, stderr, world};

#[test]
fn each_fault_is_found_and_nothing_else() {
    for (world, exit, expected) in [
        ("good", 0, &[][..]),
        ("cpu-only", 1, &["torch/cpu-only"]),
        ("no-nccl", 1, &["nccl/missing-library"]),
        ("use-nccl-off", 1, &["torch/no-nccl"]),
        ("two-nccl", 0, &["nccl/several-copies"]),
        (
            "shadowed-nccl",
            1,
            &["library/shadowed", "nccl/several-copies", "nccl/shadowed-by-ld-library-path", "nccl/symbol-missing"],
        ),
        ("no-verbs", 0, &["rdma/libibverbs-missing"]),
        ("no-provider", 0, &["rdma/no-provider"]),
        ("env-disabled", 1, &["env/ib-disabled", "env/p2p-disabled"]),
        ("env-unknown", 0, &["env/unknown-nccl-variable"]),
        ("debug-on", 0, &["env/debug-on"]),
        ("gpu-hidden", 1, &["cuda/driver-capabilities", "cuda/visible-devices"]),
        ("cudart-mix", 0, &["cuda/cudart-major-mix"]),
        ("no-torch", 1, &["torch/not-found"]),
        ("library-removed", 1, &["library/removed", "torch/import-fails"]),
        ("library-shadowed", 1, &["library/shadowed", "torch/import-fails"]),
        ("library-too-new", 1, &["library/too-new", "torch/import-fails"]),
        ("compat-configured", 0, &["cuda/compat-in-ld-path"]),
    ] {
        let (report, status) = check(&self::world(world).display().to_string(), None);
        let failed: Vec<&str> = report["judgements"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|judgement| matches!(judgement["outcome"].as_str(), Some("fail" | "unknown")))
            .map(|judgement| judgement["rule"].as_str().unwrap())
            .collect();
        assert_eq!(failed, expected, "{world}");
        assert_eq!(status, exit, "{world}");
    }
}

#[test]
fn launch_variables_override_those_of_the_image() {
    let image = world("debug-on").display().to_string();
    let debug = |arguments: &[&str]| {
        let output = run(&[&["inspect", "--format", "json", &image], arguments].concat(), None);
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        report["facts"]["image.env"]["value"]["NCCL_DEBUG"].clone()
    };
    assert_eq!(debug(&[]), "INFO");
    assert_eq!(debug(&["-e", "NCCL_DEBUG=WARN"]), "WARN");
}

#[test]
fn the_code_of_torch_agrees_with_its_header() {
    for world in ["good", "cpu-only", "use-nccl-off"] {
        let (report, _) = check(&crate::support::world(world).display().to_string(), None);
        let [code, header, both] =
            ["torch.build_code", "torch.build_header", "torch.build"].map(|name| &report["facts"][name]["value"]);
        assert!(code["TORCH_VERSION"].is_string(), "{world}: {code}");
        assert_eq!(code, header, "{world}");
        assert_eq!(code, both, "{world}");
    }
}
