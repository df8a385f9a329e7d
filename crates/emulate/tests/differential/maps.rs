//! Tests of functions that return a `std::map<std::string, std::string>` of literals, like the options of a build.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use emulate::{ElfImage, StringAbi, call};
use fastrand::Rng;

use super::toolchain::{Driver, Toolchain, toolchain};

type Map = BTreeMap<String, String>;

/// Maximum length of literals. All shorter lengths occur, because compilers store short literals as numbers, and copy long ones in
/// steps of many sizes.
const LENGTHS: usize = 112;

/// Entries of one map.
const ENTRIES: usize = 28;

fn text(random: &mut Rng, length: usize) -> String {
    (0..length)
        .map(|_| *random.choice(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_=,./+").unwrap())
        .map(char::from)
        .collect()
}

/// Maps with keys and values of all lengths, unordered; then a map of one entry, an empty one, and one with long texts.
fn expected() -> Vec<Map> {
    let mut random = Rng::with_seed(11);
    let mut lengths: Vec<_> = (0..LENGTHS).collect();
    random.shuffle(&mut lengths);
    let entry = |random: &mut Rng, length: usize| {
        let key = random.usize(1..40);
        (text(random, key), text(random, length))
    };
    let mut maps: Vec<Map> = lengths
        .chunks(ENTRIES)
        .map(|lengths| lengths.iter().map(|length| entry(&mut random, *length)).collect())
        .collect();
    maps.push(Map::from([("CUDA".to_owned(), "12.8".to_owned())]));
    maps.push(Map::new());
    maps.push([300, 1023, 4096, 20_000].into_iter().map(|length| entry(&mut random, length)).collect());
    maps
}

/// Entries in source order, which is not sorted.
fn source(maps: &[Map]) -> String {
    let mut source = "#include <map>\n#include <string>\ntypedef std::map<std::string, std::string> Map;\n".to_owned();
    for (number, map) in maps.iter().enumerate() {
        write!(source, "extern \"C\" const Map &f{number}() {{ static const Map map = {{").unwrap();
        let mut entries: Vec<_> = map.iter().collect();
        Rng::with_seed(number as u64).shuffle(&mut entries);
        for (key, value) in entries {
            write!(source, "{{\"{key}\", \"{value}\"}}, ").unwrap();
        }
        source.push_str("}; return map; }\n");
    }
    source
}

/// The maps that the driver printed.
fn parse(printed: &str) -> Vec<Map> {
    let text = |digits: &str| -> String {
        digits
            .as_bytes()
            .chunks(2)
            .map(|pair| char::from(u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()))
            .collect()
    };
    let mut maps: Vec<Map> = Vec::new();
    for line in printed.lines() {
        match line.split_once('=') {
            Some((key, value)) => drop(maps.last_mut().unwrap().insert(text(key), text(value))),
            None => maps.push(Map::new()),
        }
    }
    maps
}

/// The compiler option for an ABI.
const fn define(abi: StringAbi) -> &'static str {
    match abi {
        StringAbi::Cxx11 => "-D_GLIBCXX_USE_CXX11_ABI=1",
        StringAbi::Old => "-D_GLIBCXX_USE_CXX11_ABI=0",
    }
}

fn compare(toolchain: &Toolchain, abi: StringAbi, options: &[&str], driver: Option<&Driver>) {
    let maps = expected();
    let library = toolchain.library(&source(&maps), &[options, &[define(abi)]].concat());
    if let Some(driver) = driver {
        assert!(parse(&driver.run(&library)) == maps, "{} {options:?}", toolchain.machine);
    }
    let bytes = &*library.bytes;
    let image = ElfImage::open(&bytes).unwrap();
    for (number, expected) in maps.iter().enumerate() {
        let what = format!("{} {options:?} {abi:?} f{number}", toolchain.machine);
        let entry = image.function(&format!("f{number}")).unwrap().unwrap();
        let mut returned = call(&image, entry).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = returned.map(abi).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(found == *expected, "{what}: {found:?}");
    }
}

fn maps(machine: &str, abi: StringAbi, level: &str) {
    let Some(toolchain) = toolchain(machine) else { return };
    let driver = toolchain.driver("maps.cc", &[define(abi)]);
    compare(toolchain, abi, &[level], Some(&driver));
}

/// Each configuration is a test of its own, so that they run in parallel.
macro_rules! tests {
    ($($name:ident: $machine:literal, $abi:expr, $level:literal;)*) => {
        $(#[test]
        fn $name() {
            maps($machine, $abi, $level);
        })*
    };
}

tests! {
    x86_64_maps_unoptimized: "x86_64", StringAbi::Cxx11, "-O0";
    x86_64_maps_at_o2: "x86_64", StringAbi::Cxx11, "-O2";
    x86_64_maps_at_o3: "x86_64", StringAbi::Cxx11, "-O3";
    x86_64_maps_of_the_old_abi_unoptimized: "x86_64", StringAbi::Old, "-O0";
    x86_64_maps_of_the_old_abi_at_o2: "x86_64", StringAbi::Old, "-O2";
    x86_64_maps_of_the_old_abi_at_o3: "x86_64", StringAbi::Old, "-O3";
    aarch64_maps_unoptimized: "aarch64", StringAbi::Cxx11, "-O0";
    aarch64_maps_at_o2: "aarch64", StringAbi::Cxx11, "-O2";
    aarch64_maps_at_o3: "aarch64", StringAbi::Cxx11, "-O3";
    aarch64_maps_of_the_old_abi_unoptimized: "aarch64", StringAbi::Old, "-O0";
    aarch64_maps_of_the_old_abi_at_o2: "aarch64", StringAbi::Old, "-O2";
    aarch64_maps_of_the_old_abi_at_o3: "aarch64", StringAbi::Old, "-O3";
}

#[test]
fn x86_64_maps_that_are_copied_by_wide_vectors_are_followed() {
    let Some(toolchain) = toolchain("x86_64") else { return };
    // Some processors cannot run this code.
    compare(toolchain, StringAbi::Cxx11, &["-O3", "-mavx2"], None);
}
