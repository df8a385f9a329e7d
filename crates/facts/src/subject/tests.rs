use model::{ElfInfo, Endian, ImageConfig, NcclStrings, escape};

use super::super::Facts;
use super::*;
use crate::tests::synthetic::{collect, file, rootfs};

const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
const PROGRAM: &str = "opt/nccl-tests/build/all_reduce_perf";
const TORCH: &str = "usr/lib/python3/dist-packages/torch/version.py";

/// A file of an image under test.
enum Made<'t> {
    Text(&'t str),
    /// An ELF file with these dependencies; without a soname it is a program.
    Elf(Option<&'t str>, &'t [&'t str]),
    /// An ELF file with NCCL's code of a version.
    Nccl(Option<&'t str>, &'t str),
}

fn found(made: &Made<'_>) -> Vec<Result<Found, Gap>> {
    let elf = |soname: Option<&str>, needed: &[&str]| {
        let mut elf = ElfInfo::bare(64, Endian::Little, 62);
        elf.soname = soname.map(ToOwned::to_owned);
        elf.interpreter = soname.is_none().then(|| format!("/{LOADER}"));
        elf.needed = needed.iter().map(ToString::to_string).collect();
        Ok(Found::Elf(Box::new(elf)))
    };
    match made {
        Made::Text(text) => vec![Ok(Found::Text(text.as_bytes().into()))],
        Made::Elf(soname, needed) => vec![elf(*soname, needed)],
        Made::Nccl(soname, version) => {
            let strings = NcclStrings { version: (*version).to_owned(), cuda: "12.9".to_owned(), ..Default::default() };
            vec![elf(*soname, &[]), Ok(Found::Nccl(strings))]
        }
    }
}

/// The facts about an image with these files and this command.
fn facts_of(files: &[(&str, Made<'_>)], command: &[&str]) -> Facts {
    let files = files.iter().chain([&(LOADER, Made::Elf(Some("ld-linux-x86-64.so.2"), &[]))]);
    let environment = [("NCCL_DEBUG".to_owned(), "INFO".to_owned())].into();
    let command = command.iter().map(ToString::to_string).collect();
    let config = ImageConfig { entrypoint: command, environment, ..ImageConfig::default() };
    collect(&rootfs(files.map(|(path, made)| (file(path), found(made)))), &config)
}

fn text_of(facts: &Facts, name: &str) -> String {
    match facts.view(key::find(name).unwrap()) {
        Fact::Seen { value, .. } => escape(value.to_string().as_bytes()),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    }
}

fn all(facts: &Facts, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| text_of(facts, name)).collect()
}

const NAMES: [&str; 5] = ["subject.program", "subject.error", "nccl.loaded.path", "nccl.loaded.version", "torch.path"];

#[test]
fn a_program_that_needs_nccl_is_judged_in_place_of_torch() {
    let files = || {
        [
            (PROGRAM, Made::Elf(None, &["libnccl.so.2"])),
            ("usr/lib/libnccl.so.2", Made::Nccl(Some("libnccl.so.2"), "2.28.9")),
            (TORCH, Made::Text("__version__ = '2.9.0'\ncuda = '12.8'\n")),
        ]
    };
    let program = format!("/{PROGRAM}");
    let facts = facts_of(&files(), &[&program, "-b", "8"]);
    assert_eq!(all(&facts, &NAMES), [&program, "absent", "/usr/lib/libnccl.so.2", "2.28.9", "absent"]);
    assert!(text_of(&facts, "subject.name").starts_with(&format!("program {program}")));
    assert_eq!(text_of(&facts, "subject.loaded"), format!("/{LOADER}, /usr/lib/libnccl.so.2"));
    assert_eq!(all(&facts, &["torch.loaded", "torch.import_error"]), ["absent", "absent"]);
    // Neither a server beside torch that does not use NCCL nor a shell is a subject.
    let mut server = files();
    server[0].1 = Made::Elf(None, &[]);
    for (files, command) in [(server, program.as_str()), (files(), "/bin/sh"), (files(), "python3")] {
        let facts = facts_of(&files, &[command]);
        assert_eq!(text_of(&facts, "subject.name"), "absent", "{command}");
        assert_eq!(text_of(&facts, "torch.path"), "/usr/lib/python3/dist-packages/torch", "{command}");
    }
}

#[test]
fn a_script_leads_to_the_program_and_sets_its_variables() {
    let script = format!("#!/bin/sh\nexport LD_LIBRARY_PATH=/opt/own\nexec /usr/bin/mpirun -np 8 /{PROGRAM} -b 8\n");
    let files = [
        ("bin/sh", Made::Elf(None, &[])),
        ("usr/bin/mpirun", Made::Elf(None, &[])),
        ("start.sh", Made::Text(&script)),
        (PROGRAM, Made::Elf(None, &["libnccl.so.2"])),
        ("usr/lib/libnccl.so.2", Made::Nccl(Some("libnccl.so.2"), "2.28.9")),
        ("opt/own/libnccl.so.2", Made::Nccl(Some("libnccl.so.2"), "2.29.2")),
    ];
    let facts = facts_of(&files, &["/start.sh"]);
    let expected = [format!("/{PROGRAM}"), "/opt/own/libnccl.so.2".to_owned()];
    assert_eq!(all(&facts, &["subject.program", "nccl.loaded.path"]), expected);
}

#[test]
fn a_program_whose_nccl_is_missing_does_not_start() {
    let files = [(PROGRAM, Made::Elf(None, &["libnccl.so.2"]))];
    let facts = facts_of(&files, &[&format!("/{PROGRAM}")]);
    let error = "libnccl.so.2: cannot open shared object file: No such file or directory";
    assert_eq!(text_of(&facts, "subject.error"), error);
    assert!(text_of(&facts, "subject.loaded").starts_with("unknown: "));
    assert_eq!(text_of(&facts, "nccl.loaded.path"), "absent");
}

#[test]
fn nccl_may_be_linked_into_the_program_or_into_its_libtorch() {
    let program = format!("/{PROGRAM}");
    let facts = facts_of(&[(PROGRAM, Made::Nccl(None, "2.27.5"))], &[&program]);
    assert_eq!(text_of(&facts, "nccl.loaded.path"), program);
    assert_eq!(text_of(&facts, "nccl.loaded.route"), "linked into the program");
    let torch = "usr/lib/libtorch_cuda.so";
    let files =
        [(PROGRAM, Made::Elf(None, &["libtorch_cuda.so"])), (torch, Made::Nccl(Some("libtorch_cuda.so"), "2.21.5"))];
    let facts = facts_of(&files, &[&program]);
    assert_eq!(text_of(&facts, "nccl.loaded.path"), format!("/{torch}"));
}

#[test]
fn nccl_alone_is_judged_in_an_image_without_torch() {
    let copy = |version| Made::Nccl(Some("libnccl.so.2"), version);
    let near = "usr/lib/libnccl.so.2";
    let far = "opt/site-packages/nvidia/nccl/lib/libnccl.so.2";
    let names = ["nccl.loaded.version", "nccl.loaded.route"];
    let found = facts_of(&[(near, copy("2.28.9")), (far, copy("2.27.5"))], &["/bin/sh"]);
    assert_eq!(text_of(&found, "nccl.loaded.version"), "2.28.9");
    assert!(text_of(&found, "subject.name").starts_with("NCCL alone"));
    assert_eq!(all(&facts_of(&[(far, copy("2.27.5"))], &[]), &names), ["2.27.5", "the only copy in the image"]);
    let several = facts_of(&[(far, copy("2.27.5")), ("opt/other/libnccl.so.2", copy("2.28.9"))], &[]);
    assert!(text_of(&several, "nccl.loaded.version").contains("none of the image's 2 copies"));
    // An image of a Python program lacks torch; an image without NCCL has no subject.
    for facts in [facts_of(&[(far, copy("2.27.5"))], &["python3", "train.py"]), facts_of(&[], &["/bin/sh"])] {
        assert_eq!(all(&facts, &["subject.name", "nccl.loaded.path"]), ["absent", "absent"]);
    }
}
