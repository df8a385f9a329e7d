//! The dynamic loader's search, shown as a tree and as JSON.

use crate::support::{run, stderr, world};

/// The output of `inspect` for a small test image, and its exit status.
fn inspect(name: &str, arguments: &[&str]) -> (String, Option<i32>) {
    let image = world(name).display().to_string();
    let output = run(&[&["inspect", "--quiet", &image], arguments].concat(), None);
    (String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output), output.status.code())
}

#[test]
fn the_winner_and_its_rule() {
    let (text, status) = inspect("shadowed-nccl", &["--explain", "libnccl.so.2"]);
    assert_eq!(status, Some(0));
    insta::assert_snapshot!(text, @"
    In a process of /usr/bin/python3.11 that imports torch:

    libnccl.so.2 → /opt/nccl/lib/libnccl.so.2
      needed by /usr/local/lib/python3.11/dist-packages/torch/lib/libtorch_cuda.so
      ╰─ LD_LIBRARY_PATH
         ╰─ /opt/nccl/lib: taken
              = /opt/nccl/lib/libnccl.so.2

    it fails: /usr/local/lib/python3.11/dist-packages/torch/lib/libtorch_cuda.so:
      undefined symbol: ncclGroupSimulateEnd
    ");
}

#[test]
fn the_loser_and_its_reason() {
    let (text, _) = inspect("no-nccl", &["--explain", "libnccl.so.2"]);
    for part in [
        "libnccl.so.2 → not found",
        "$ORIGIN/../../nvidia/nccl/lib: not found",
        "├─ /etc/ld.so.cache",
        "╰─ /usr/lib: not found",
        "it fails: libnccl.so.2: cannot open shared object file",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_file_and_a_name_that_no_library_needs() {
    let file = "/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5";
    let (text, _) = inspect("two-nccl", &["--explain", file, "--explain", "libibverbs.so.1"]);
    let wheel = "/usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2";
    assert!(text.contains(&format!("{file} →\n  {wheel}")), "{text}");
    assert!(text.contains("No library needs it before NCCL runs"), "{text}");
    assert!(text.contains("libibverbs.so.1 → /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.44.0"), "{text}");
}

#[test]
fn explanations_as_json() {
    let (text, _) = inspect("two-nccl", &["--format", "json", "--explain", "libnccl.so.2"]);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let answer = &value["processes"][0]["answers"][0];
    assert_eq!(answer["found"], "/usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib/libnccl.so.2");
    assert_eq!(answer["searches"][0]["steps"][0]["end"], "taken");
}

#[test]
fn errors_of_explanations() {
    let (text, status) = inspect("no-torch", &["--explain", "libnccl.so.2"]);
    assert!(text.contains("there is no torch in the image") && status == Some(3), "{text}");
    let (text, status) = inspect("good", &["--explain", "libx.so", "--caller", "/usr/lib/libnone.so"]);
    assert!(text.contains("is not mapped by this process") && status == Some(3), "{text}");
    let (text, status) = inspect("good", &["--program", "/usr/bin/python3"]);
    assert!(text.contains("--explain") && status == Some(2), "{text}");
    // Any program can be explained, even without torch.
    let (text, status) = inspect("no-torch", &["--explain", "libc.so.6", "--program", "/usr/bin/python3"]);
    assert!(text.contains("needed by /usr/bin/python3.11") && status == Some(0), "{text}");
}
