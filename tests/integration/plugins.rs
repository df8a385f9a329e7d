//! NCCL plugins and libibverbs providers, as the NCCL in an image would find them. A compiler builds the libraries in
//! the root file system of a small test image.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{layout, run, stderr};

const NCCL: &str = "usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2";
const LIB: &str = "usr/lib/x86_64-linux-gnu";

/// The unpacked file system of the image `good`, whose NCCL knows plugins as 2.27.5 does.
fn root() -> tempfile::TempDir {
    let layout = layout("good");
    let root = tempfile::tempdir().unwrap();
    let read = |path: &str| fs::read(layout.path().join(path)).unwrap();
    let blob =
        |descriptor: &Value| read(&format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/")));
    let index: Value = serde_json::from_slice(&read("index.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
    for layer in manifest["layers"].as_array().unwrap() {
        let bytes = blob(layer);
        tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice())).unpack(root.path()).unwrap();
    }
    let mut nccl = fs::OpenOptions::new().append(true).open(root.path().join(NCCL)).unwrap();
    nccl.write_all(b"\0ncclNetPlugin_v6\0ncclNetPlugin_v10\0ncclTunerPlugin_v4\0IBVERBS_1.16\0MLX5_1.25\0").unwrap();
    root
}

/// Builds a library that defines `symbols` and needs `needed`.
fn library(path: &Path, symbols: &[&str], needed: &[&Path]) {
    let source = symbols.iter().fold(String::new(), |text, symbol| text + "int " + symbol + "[4] = {1};\n");
    let file = path.with_extension("c");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&file, source).unwrap();
    let soname = format!("-Wl,-soname,{}", path.file_name().unwrap().to_str().unwrap());
    let options = ["-shared", "-fPIC", "-nostdlib", "-Wl,--no-as-needed,--allow-shlib-undefined", &soname, "-o"];
    let made = Command::new("cc").args(options).arg(path).arg(&file).args(needed).status().unwrap();
    assert!(made.success());
}

fn facts(root: &Path, arguments: &[&str]) -> Value {
    let image = format!("root:{}", root.display());
    let output = run(&[&["inspect", "--format", "json", &image, "-e", "PATH=/usr/bin"], arguments].concat(), None);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    report["facts"].clone()
}

#[test]
fn a_plugin_is_used_if_this_nccl_supports_its_version() {
    let root = root();
    let plugin = root.path().join("opt/ofi/lib/libnccl-net.so");
    for (symbols, expected) in [
        (&["ncclNetPlugin_v10", "ncclNetPlugin_v6"][..], json!("/opt/ofi/lib/libnccl-net.so (ncclNetPlugin_v10)")),
        (&["ncclNetPlugin_v5"], Value::Null),
        (&[], Value::Null),
    ] {
        library(&plugin, symbols, &[]);
        let facts = facts(root.path(), &["-e", "LD_LIBRARY_PATH=/opt/ofi/lib"]);
        assert_eq!(facts["nccl.net_plugin"]["value"], expected);
        assert_eq!(facts["nccl.plugins_refused"]["state"] == "seen", expected.is_null());
        // The tuner has its own plugin file.
        assert_eq!(facts["nccl.plugins"]["value"][0]["opened"], "NCCL_NET_PLUGIN");
    }
    let nowhere = facts(root.path(), &[]);
    assert_eq!(nowhere["nccl.plugins"]["value"][0]["opened"], "no");
    assert_eq!(nowhere["nccl.plugins_refused"]["state"], "absent");
}

#[test]
fn a_plugin_is_reported_as_found_or_missing() {
    let root = root();
    let fabric = root.path().join("elsewhere/libfabric.so.1");
    library(&fabric, &["fi_getinfo"], &[]);
    library(&root.path().join("opt/ofi/lib/libnccl-net-ofi.so"), &["ncclNetPlugin_v10"], &[&fabric]);
    let ofi = ["-e", "NCCL_NET_PLUGIN=ofi", "-e", "LD_LIBRARY_PATH=/opt/ofi/lib"];
    let broken = facts(root.path(), &ofi);
    let why = "libnccl-net-ofi.so: libfabric.so.1: cannot open shared object file: No such file or directory";
    assert_eq!(broken["nccl.plugins_broken"]["value"], json!([why]));
    let whole = facts(root.path(), &["-e", "NCCL_NET_PLUGIN=ofi", "-e", "LD_LIBRARY_PATH=/opt/ofi/lib:/elsewhere"]);
    assert_eq!(whole["nccl.net_plugin"]["value"], "/opt/ofi/lib/libnccl-net-ofi.so (ncclNetPlugin_v10)");
    assert_eq!(whole["nccl.plugins"]["value"][0]["libfabric"], "libfabric.so.1");
    let by_path = facts(
        root.path(),
        &["-e", "NCCL_NET_PLUGIN=/opt/ofi/lib/libnccl-net-ofi.so", "-e", "LD_LIBRARY_PATH=/elsewhere"],
    );
    assert_eq!(by_path["nccl.net_plugin"]["value"], "/opt/ofi/lib/libnccl-net-ofi.so (ncclNetPlugin_v10)");
    let missed = facts(root.path(), &["-e", "NCCL_NET_PLUGIN=ucx"]);
    assert_eq!(
        missed["nccl.plugins_not_found"]["value"],
        json!(["NCCL_NET_PLUGIN=ucx (no ucx, no libnccl-net-ucx.so)"])
    );
    let none = facts(root.path(), &["-e", "NCCL_NET_PLUGIN=none"]);
    assert_eq!(none["nccl.plugins_not_found"]["state"], "absent");
}

#[test]
fn providers_must_match_their_libibverbs() {
    let root = root();
    let facts = |root: &tempfile::TempDir| facts(root.path(), &["-e", "NCCL_DEBUG=WARN"]);
    let good = facts(&root);
    assert_eq!(good["rdma.version"]["value"], "44.0");
    assert_eq!(good["rdma.origin"]["value"], "rdma-core");
    assert_eq!(good["rdma.private_abi"]["value"], "34");
    assert_eq!(good["rdma.providers"]["value"], json!(["mlx5"]));
    assert_eq!(good["rdma.broken_providers"]["state"], "absent");
    assert_eq!(good["rdma.runtime_needs"]["value"].as_array().unwrap().len(), 3);
    assert_eq!(
        good["rdma.missing_versions"]["value"],
        json!([
            "IBVERBS_1.16 (the port speed that newer devices report)",
            "MLX5_1.25 (Data Direct, and DMA-BUF over it)"
        ])
    );

    let folder = root.path().join(LIB).join("libibverbs");
    fs::rename(folder.join("libmlx5-rdmav34.so"), folder.join("libmlx5-rdmav25.so")).unwrap();
    let other = facts(&root);
    assert_eq!(other["rdma.providers"]["state"], "absent");
    let why = "/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav25.so is for a libibverbs with IBVERBS_PRIVATE_25, and /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0 has 34";
    assert_eq!(other["rdma.broken_providers"]["value"], json!([why]));

    fs::rename(folder.join("libmlx5-rdmav25.so"), folder.join("libmlx5-rdmav34.so")).unwrap();
    fs::write(root.path().join("etc/libibverbs.d/efa.driver"), "driver efa\n").unwrap();
    let lost = root.path().join("lost/libefa-base.so.1");
    library(&lost, &["efa"], &[]);
    library(&folder.join("libefa-rdmav34.so"), &["efadv"], &[&lost]);
    let broken = facts(&root);
    let why = broken["rdma.broken_providers"]["value"][0].as_str().unwrap();
    assert!(
        why.ends_with("libefa-rdmav34.so does not load: libefa-base.so.1: cannot open shared object file: No such file or directory"),
        "{why}"
    );
}
