//! Runs each fuzz target for some seconds: on its seeds, and on changes of them that do not differ between runs. `fuzz/run` looks for
//! inputs as long as it may, guided by coverage.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    clippy::disallowed_methods,
    reason = "a test that cannot continue fails"
)]

#[path = "../../fuzz/engine.rs"]
mod engine;
#[path = "../../fuzz/targets.rs"]
mod targets;
#[path = "../../fuzz/world.rs"]
mod world;

use targets::{Input, TARGETS};

/// The largest input, in bytes.
const LARGEST: usize = 100_000;

macro_rules! tests {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            // The program reads its inputs on its main thread, whose stack has this size.
            let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(|| run(stringify!($target)));
            thread.unwrap().join().unwrap();
        })*

        #[test]
        fn every_target_has_a_test() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($target)),*]);
        }
    };
}

tests! {
    layer index manifest config entrypoint loader_cache loader_configuration nccl_conf provider dpkg_status torch_library
    nccl_library torch_version metadata record pth dockerfile launch policy rule recording log report
    cache_entry engine
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = target.seeds();
    assert!(!seeds.is_empty(), "{name} has no seed");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for seed in &seeds {
        target.read(seed);
    }
    let inputs = match (name, target.input) {
        ("policy" | "rule", _) => 12, // each reads all built-in rules
        ("log", _) => 100,
        (_, Input::Part(_)) => 50,
        (_, Input::Other(..)) => 500,
    };
    for _ in 0..inputs {
        let mut input = seeds[numbers.below(seeds.len())].clone();
        for _ in 0..=numbers.below(4) {
            change(&mut input, &seeds, &mut numbers);
        }
        input.truncate(LARGEST);
        target.read(&input);
    }
}

/// Changes one place of the input.
fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], numbers: &mut Numbers) {
    const TOKENS: &[&[u8]] = &[
        b"0",
        b"-1",
        b"4294967296",
        b"18446744073709551615",
        b"99999999999999999999",
        b"\0",
        b"\n",
        b"\xff\xff\xff\xff",
        b"\x1b[2J",
        b"../../",
        b"${",
        b"$(",
        b"{{",
        b"[[[[[[[[",
        b"\"",
        b"\\",
        b"&a *a",
        b"\xe2\x80\xae",
    ];
    let from = numbers.below(input.len() + 1);
    let to = (from + 1 + numbers.below(16)).min(input.len());
    match numbers.below(7) {
        0 if from < input.len() => input[from] ^= 1 << numbers.below(8),
        1 if from < input.len() => input[from] = [0, 1, 0x7f, 0x80, 0xff][numbers.below(5)],
        2 => drop(input.drain(from.min(to)..to)),
        3 => {
            let again = input[from.min(to)..to].repeat(1 + numbers.below(200));
            drop(input.splice(from..from, again));
        }
        4 => {
            let other = &seeds[numbers.below(seeds.len())];
            let cut = numbers.below(other.len() + 1);
            input.truncate(from);
            input.extend_from_slice(&other[cut..]);
        }
        5 => input.truncate(from),
        _ => drop(input.splice(from..from, TOKENS[numbers.below(TOKENS.len())].iter().copied())),
    }
}

/// Numbers of an xorshift generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }
}
