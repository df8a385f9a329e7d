//! Benchmark of a call: `cargo bench -p ncclcheck-emulate`. It compiles the library first, so it needs g++.

#![allow(missing_docs, clippy::unwrap_used, reason = "a program, on data that is known")]

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::process::Command;

use criterion::{Criterion, criterion_group, criterion_main};
use emulate::{ElfImage, StringAbi, call};

/// A function that returns a map of `count` literals.
fn source(entries: usize) -> String {
    let mut source = "#include <map>\n#include <string>\ntypedef std::map<std::string, std::string> Map;
        extern \"C\" const Map &options() { static const Map map = {"
        .to_owned();
    for number in 0..entries {
        write!(source, "{{\"option {number}\", \"{}\"}}, ", "value ".repeat(number)).unwrap();
    }
    source + "}; return map; }\n"
}

#[expect(clippy::disallowed_methods, reason = "a compiler makes what is measured")]
fn library() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (code, library) = (folder.path().join("library.cc"), folder.path().join("library.so"));
    fs::write(&code, source(40)).unwrap();
    let status = Command::new("g++").args(["-O2", "-shared", "-fPIC", "-o"]).args([&library, &code]).status().unwrap();
    assert!(status.success(), "g++ failed");
    fs::read(library).unwrap()
}

fn calls(criterion: &mut Criterion) {
    let library = library();
    let bytes = &*library;
    let image = ElfImage::open(&bytes).unwrap();
    let entry = image.function("options").unwrap().unwrap();
    criterion.bench_function("open", |bencher| bencher.iter(|| ElfImage::open(black_box(&bytes)).unwrap()));
    criterion.bench_function("call", |bencher| bencher.iter(|| call(&image, black_box(entry)).unwrap().value()));
    criterion.bench_function("map", |bencher| {
        bencher.iter(|| call(&image, black_box(entry)).unwrap().map(StringAbi::Cxx11).unwrap().len());
    });
}

criterion_group!(benches, calls);
criterion_main!(benches);
