//! What this program reads and did not write, as functions of bytes: each target ends without a panic, whatever the bytes are. libFuzzer
//! runs them for hours (`fuzz/run`), and `cargo test` for a moment.

use std::cell::RefCell;
use std::{fs, path::Path};

use ncclcheck::check::probed::Probed;
use ncclcheck::image::dockerfile::Dockerfile;
use ncclcheck::judge::{PolicyText, Rulebook};
use ncclcheck::layer::cache::{DEFAULT_BOUND, LocalCache, ScanCache, ScanKey};
use ncclcheck::model::{BlobRef, Limits};
use ncclcheck::nccllog::find_symptoms;
use ncclcheck::probe::expect::ExpectedRun;
use ncclcheck::probe::recording::Recording;
use ncclcheck::report::{Stored, StoredRules};
use unpack::pipe::Pipe;

use super::engine::{self, Engine};
use super::world::{self, ENTRYPOINT, Part, World, digest};

/// A reader of hostile bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it reads.
    pub input: Input,
    /// What it starts from, besides what a part is in the world itself.
    pub seeds: &'static [Seed],
}

/// What a target reads.
#[derive(Clone, Copy)]
pub enum Input {
    /// A part of an image, which is then judged.
    Part(Part),
    /// Something else.
    Other(fn(&[u8])),
}

/// An input that a target starts from.
#[derive(Clone, Copy)]
pub enum Seed {
    /// A file of this repository.
    File(&'static str),
    /// A text.
    Text(&'static str),
    /// Bytes that this program writes itself.
    Written(fn() -> Vec<u8>),
}

/// Expands to a path in the folder of Python's packages.
macro_rules! package {
    ($path:literal) => {
        concat!("usr/local/lib/python3.11/dist-packages/", $path)
    };
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "layer", input: Input::Part(Part::Layer), seeds: &[] },
    Target { name: "index", input: Input::Part(Part::Index), seeds: &[] },
    Target { name: "manifest", input: Input::Part(Part::Manifest), seeds: &[] },
    Target { name: "config", input: Input::Part(Part::Config), seeds: &[] },
    Target {
        name: "entrypoint",
        input: Input::Part(Part::File(ENTRYPOINT)),
        seeds: &[Seed::Text(
            "#!/bin/sh\nset -e\nif [ -n \"${DEBUG:-}\" ]; then export NCCL_DEBUG=INFO; fi\nfor name in a b; do\n  case $name in a*) N=$((1 + 2));; esac\ndone\n\
         run() { local x=\"$1\"; echo \"${x%%.*}\" | sed 's/a/b/'; }\nexport LD_LIBRARY_PATH=/opt/lib:${LD_LIBRARY_PATH}\ncat <<EOF\n$(run one)\nEOF\nexec \"$@\"\n",
        )],
    },
    Target { name: "loader_cache", input: Input::Part(Part::File("etc/ld.so.cache")), seeds: &[] },
    Target { name: "loader_configuration", input: Input::Part(Part::File("etc/ld.so.conf")), seeds: &[] },
    Target {
        name: "nccl_conf",
        input: Input::Part(Part::File("etc/nccl.conf")),
        seeds: &[Seed::Text("# comment\nNCCL_DEBUG=INFO\nNCCL_SOCKET_IFNAME=^lo,docker\nNCCL_IB_HCA==mlx5_0:1\n")],
    },
    Target { name: "provider", input: Input::Part(Part::File("etc/libibverbs.d/mlx5.driver")), seeds: &[] },
    Target { name: "dpkg_status", input: Input::Part(Part::File("var/lib/dpkg/status")), seeds: &[] },
    Target {
        name: "torch_library",
        input: Input::Part(Part::File(package!("torch/lib/libtorch_cuda.so"))),
        seeds: &[],
    },
    Target {
        name: "nccl_library",
        input: Input::Part(Part::File(package!("nvidia/nccl/lib/libnccl.so.2"))),
        seeds: &[],
    },
    Target { name: "torch_version", input: Input::Part(Part::File(package!("torch/version.py"))), seeds: &[] },
    Target { name: "metadata", input: Input::Part(Part::File(package!("torch-2.9.0.dist-info/METADATA"))), seeds: &[] },
    Target {
        name: "record",
        input: Input::Part(Part::File(package!("nvidia_nccl_cu12-2.27.5.dist-info/RECORD"))),
        seeds: &[],
    },
    Target {
        name: "pth",
        input: Input::Part(Part::File(package!("hostile.pth"))),
        seeds: &[Seed::Text("import sys; sys.path.insert(0, '/opt/x')\n/opt/site\n../other\n")],
    },
    Target {
        name: "dockerfile",
        input: Input::Other(dockerfile),
        seeds: &[Seed::Text(
            "# syntax=docker/dockerfile:1\nARG BASE=debian\nFROM ${BASE}:12 AS build\nENV NCCL_P2P_DISABLE=1 A=\"b c\"\nRUN pip install torch==2.9.0 \\\n && rm -rf /x\n\
         COPY --from=build /opt /opt\nENTRYPOINT [\"/entry.sh\"]\nRUN <<EOF\nexport X=1\nEOF\n",
        )],
    },
    Target {
        name: "launch",
        input: Input::Other(launch),
        seeds: &[
            Seed::Text("services:\n  train:\n    image: a\n    environment:\n      NCCL_DEBUG: INFO\n"),
            Seed::Text(
                "#!/bin/bash\n#SBATCH -N 2\nexport NCCL_IB_HCA=mlx5\nsrun --export=ALL,NCCL_DEBUG=WARN python train.py\n",
            ),
            Seed::Text("NCCL_DEBUG=INFO\nNCCL_ALGO='Ring'\n"),
            Seed::Text(
                "kind: ConfigMap\nmetadata: {name: f}\ndata: {NCCL_DEBUG: INFO}\n---\nkind: Pod\ncontainers:\n- command: [sh, -c]\n  args: ['. x']\n  \
                 envFrom: [{configMapRef: {name: f}}]\n",
            ),
        ],
    },
    Target {
        name: "policy",
        input: Input::Other(policy),
        seeds: &[
            Seed::File("fixtures/policies/audit/ncclcheck.yaml"),
            Seed::File("fixtures/policies/ci/ncclcheck.yaml"),
            Seed::File("fixtures/policies/cluster/ncclcheck.yaml"),
            Seed::Text(
                "profile: cluster\nrules:\n  nccl/gid-scan: {severity: error}\nrequire:\n  - {id: a, check: \"has(nccl.loaded.version)\"}\n",
            ),
        ],
    },
    Target {
        name: "rule",
        input: Input::Other(rule),
        seeds: &[
            Seed::File("rules/nccl/gid-scan.yaml"),
            Seed::File("rules/runtime/gpu-held-by-mode.yaml"),
            Seed::File("rules/env/nvls-disabled.yaml"),
        ],
    },
    Target {
        name: "recording",
        input: Input::Other(recording),
        seeds: &[Seed::File("fixtures/probe/h200-x2/hang.jsonl"), Seed::File("fixtures/probe/gloo/wrong-values.jsonl")],
    },
    Target {
        name: "log",
        input: Input::Other(log),
        seeds: &[Seed::File("fixtures/probe/nccl-log/isolated-ipc-host-fails.log")],
    },
    Target { name: "report", input: Input::Other(report), seeds: &[Seed::Written(a_report)] },
    Target { name: "cache_entry", input: Input::Other(cache_entry), seeds: &[Seed::Written(a_cache_entry)] },
    Target { name: "engine", input: Input::Other(engine), seeds: &[Seed::Text(engine::ANSWER)] },
];

impl Target {
    /// Inputs to start from: real ones, where there are any.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let of_world = match self.input {
            Input::Part(part) => world::seeds(part),
            Input::Other(_) => Vec::new(),
        };
        let others = self.seeds.iter().map(|seed| match seed {
            Seed::File(file) => fs::read(repository().join(file)).expect("a file of this repository"),
            Seed::Text(text) => text.as_bytes().to_vec(),
            Seed::Written(write) => write(),
        });
        of_world.into_iter().chain(others).collect()
    }

    /// Reads the bytes.
    pub fn read(&self, bytes: &[u8]) {
        thread_local! {
            static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
        }
        match self.input {
            Input::Part(part) => {
                WORLD.with_borrow_mut(|world| drop(world.get_or_insert_with(World::new).judge(part, bytes)));
            }
            Input::Other(read) => read(bytes),
        }
    }
}

fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    if here.ends_with("fuzz") { here.parent().unwrap_or(here) } else { here }
}

fn dockerfile(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(file) = Dockerfile::parse("Dockerfile".to_owned(), &text) {
        file.variables().into_iter().for_each(|name| _ = file.value(name));
    }
}

fn launch(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // The name decides whether a text without the keys of Kubernetes and Compose is a document.
    for name in ["job", "job.yaml"] {
        let _ = ncclcheck::launch::read(name, &text);
    }
}

fn policy(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let policy = PolicyText::fetch("oci://registry/policy@sha256:0", |_| Ok(text.clone()));
    let bases = |_: &str| Err("it cannot be reached".to_owned());
    if let Ok(Some(policy)) = policy
        && let Ok(policies) = policy.with_bases(&bases)
    {
        let _ = Rulebook::new(ncclcheck::shipped(), None, &policies);
    }
}

/// A rule in a folder that a policy names.
fn rule(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let policy = folder.path().join("ncclcheck.yaml");
    fs::create_dir_all(folder.path().join("rules/own")).expect("a folder");
    fs::write(&policy, "rules:\n  folders: [rules]\n").expect("room for a file");
    fs::write(folder.path().join("rules/own/hostile.yaml"), bytes).expect("room for a file");
    let policy = PolicyText::read(&policy).expect("a policy");
    let _ = Rulebook::new(ncclcheck::shipped(), None, [&policy]);
}

fn recording(bytes: &[u8]) {
    if let Ok(recording) = Recording::replay(bytes) {
        drop(Probed::of_job(vec![recording], &ExpectedRun::default()));
    }
}

fn log(bytes: &[u8]) {
    drop(find_symptoms(&String::from_utf8_lossy(bytes)));
}

/// The report on an image of the world.
fn a_report() -> Vec<u8> {
    World::new().judge(Part::File("etc/nccl.conf"), b"NCCL_DEBUG=INFO")
}

/// Lines of stored JSON reports.
fn report(bytes: &[u8]) {
    let mut rules = StoredRules::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = rules.add(line);
        if let Ok(Stored::Report(report)) = Stored::read(line, &rules) {
            let _ = report.report().verdict();
        }
    }
}

/// What an engine answers.
fn engine(answer: &[u8]) {
    thread_local! {
        static ENGINE: Engine = Engine::new();
    }
    ENGINE.with(|engine| engine.search(answer));
}

thread_local! {
    static CACHE: RefCell<Option<Cache>> = const { RefCell::new(None) };
}

/// A cache with the scan of one layer.
struct Cache {
    scans: ScanCache,
    folder: tempfile::TempDir,
    blob: BlobRef,
}

impl Cache {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let scans = ScanCache::new(Some(LocalCache::new(folder.path(), DEFAULT_BOUND)), None);
        let tar = world::seeds(Part::Layer).pop().expect("a layer");
        let blob = BlobRef { digest: digest(&tar).parse().expect("a digest"), size: tar.len() as u64 };
        let scan = ncclcheck::layer::scan::scan_layer(Pipe::of(&tar), &Limits::default(), true, None);
        let made = Self { scans, folder, blob };
        made.scans.put(&made.key(&Limits::default()), &scan.expect("a layer"));
        made
    }

    const fn key<'a>(&'a self, limits: &'a Limits) -> ScanKey<'a> {
        ScanKey { blob: &self.blob, limits }
    }

    /// The only file of the cache.
    fn entry(&self) -> std::path::PathBuf {
        let mut place = self.folder.path().to_owned();
        while place.is_dir() {
            let entry = fs::read_dir(&place).expect("a folder").next().expect("an entry");
            place = entry.expect("an entry").path();
        }
        place
    }
}

/// What the cache keeps of the layer.
fn a_cache_entry() -> Vec<u8> {
    CACHE.with_borrow_mut(|cache| fs::read(cache.get_or_insert_with(Cache::new).entry()).expect("an entry"))
}

fn cache_entry(bytes: &[u8]) {
    CACHE.with_borrow_mut(|cache| {
        let cache = cache.get_or_insert_with(Cache::new);
        let entry = cache.entry();
        fs::write(&entry, bytes).expect("room for a file");
        drop(cache.scans.get(&cache.key(&Limits::default())));
        if !entry.exists() {
            fs::write(&entry, bytes).expect("room for a file");
        }
    });
}
