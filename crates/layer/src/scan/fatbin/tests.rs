use std::collections::BTreeMap;

use super::super::sections::number;
use super::walker::{CONTAINER_HEADER, ENTRY_HEADER, MAGIC, STEP};
use super::*;

/// Output of the toolkit's own compiler (see `fixtures/elf/gpu-code/build`), and its `cuobjdump` listing.
const LIBRARIES: [(&[u8], &str); 2] = [
    (
        include_bytes!("../../../../../fixtures/elf/gpu-code/gpu-code.so"),
        include_str!("../../../../../fixtures/elf/gpu-code/gpu-code.txt"),
    ),
    // Only device-linked code counts.
    (
        include_bytes!("../../../../../fixtures/elf/gpu-code/gpu-code-linked.so"),
        include_str!("../../../../../fixtures/elf/gpu-code/gpu-code-linked.txt"),
    ),
];

/// The finding in pieces of a file, each with its offset.
fn found(pieces: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Result<Option<GpuCode>, String> {
    let mut walk = Box::new(Walk::new("lib.so".to_owned()));
    for (offset, piece) in pieces {
        walk.push(offset, &piece).unwrap();
        assert!(walk.walker.rest.len() < STEP, "{} bytes are kept", walk.walker.rest.len());
    }
    match walk.finish() {
        Ok(None) => Ok(None),
        Ok(Some(Found::GpuCode(code))) => code.map(Some).map_err(|gap| gap.to_string()),
        other => panic!("{other:?}"),
    }
}

fn whole(bytes: &[u8]) -> Result<Option<GpuCode>, String> {
    found([(0, bytes.to_vec())])
}

fn listed(text: &str) -> GpuCode {
    let mut code = GpuCode::default();
    let lines: Vec<&str> = text.lines().collect();
    for entry in lines.chunks(3) {
        let [kind, arch, version] = *entry else { panic!("{entry:?}") };
        let arch = arch.strip_prefix("arch = ").unwrap().parse().unwrap();
        if kind == "Fatbin elf code:" {
            code.cubin.insert(arch);
        } else {
            let version = version.strip_prefix("code version = [").and_then(|text| text.strip_suffix(']')).unwrap();
            let (major, minor) = version.split_once(',').unwrap();
            code.add_ptx(arch, (major.parse().unwrap(), minor.parse().unwrap()));
        }
    }
    code
}

/// A container with these entries: kind, architecture, flags and size of the payload.
pub(super) fn container(entries: &[(u16, u32, u64, usize)]) -> Vec<u8> {
    let mut body = Vec::new();
    for &(kind, arch, flags, payload) in entries {
        let mut entry = vec![0; ENTRY_HEADER + payload];
        entry[0..2].copy_from_slice(&kind.to_le_bytes());
        entry[2..4].copy_from_slice(&0x0101_u16.to_le_bytes());
        entry[4..8].copy_from_slice(&64_u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(payload as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&arch.to_le_bytes());
        entry[40..48].copy_from_slice(&flags.to_le_bytes());
        body.extend(entry);
    }
    [&MAGIC[..], &(body.len() as u64).to_le_bytes(), &body].concat()
}

fn cubins(found: Result<Option<GpuCode>, String>) -> String {
    match found {
        Ok(Some(code)) => code.cubin.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        Ok(None) => "nothing".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn real_libraries_have_the_code_that_cuobjdump_lists_for_any_chunking() {
    for (library, text) in LIBRARIES {
        let listed = listed(text);
        assert_eq!(whole(library), Ok(Some(listed.clone())));
        for size in [1, 2, 7, 63, 64, 79, 80, 81, 100, 4096, 8191] {
            let pieces = library.chunks(size).scan(0, |at, piece| {
                let offset = *at;
                *at += piece.len() as u64;
                Some((offset, piece.to_vec()))
            });
            assert_eq!(found(pieces), Ok(Some(listed.clone())), "pieces of {size}");
        }
        for cut in (1..library.len()).step_by(37) {
            let (first, second) = library.split_at(cut);
            let pieces = [(0, first.to_vec()), (cut as u64, second.to_vec())];
            assert_eq!(found(pieces), Ok(Some(listed.clone())), "cut at {cut}");
        }
    }
}

/// LLD puts the names far before the section headers, patchelf the headers far behind the names.
#[test]
fn section_names_may_be_anywhere() {
    for (library, text) in LIBRARIES {
        let table = usize::try_from(number(library, 40, 8).unwrap()).unwrap();
        let moved = library.len() + (1 << 20);
        let mut far = [library, &vec![0; 1 << 20], &library[table..]].concat();
        far[40..48].copy_from_slice(&(moved as u64).to_le_bytes());
        assert_eq!(whole(&far), Ok(Some(listed(text))));
    }
}

#[test]
fn without_section_headers_only_code_of_one_kind_is_certain() {
    let without = |library: &[u8]| {
        let mut library = library.to_vec();
        library[40..48].fill(0);
        whole(&library)
    };
    let [(one, text), (two, _)] = LIBRARIES;
    assert_eq!(without(one), Ok(Some(listed(text))));
    let said = cubins(without(two));
    assert!(said.contains("no section headers show which"), "{said}");
    // The input of the device linker often follows its output directly.
    let adjacent = [container(&[(2, 80, 0, 8)]), container(&[(2, 80, 0, 8), (1, 80, 0, 8)])].concat();
    assert!(cubins(whole(&adjacent)).contains("no section headers show which"));
    assert_eq!(cubins(whole(&container(&[(2, 80, 0, 8)]).repeat(3))), "80");
}

#[test]
fn the_contents_of_a_container_are_skipped() {
    let inner = container(&[(2, 75, 0, 8)]);
    let mut outer = container(&[(2, 90, 0x10_0000, inner.len()), (1, 90, 0, 8)]);
    outer[CONTAINER_HEADER + ENTRY_HEADER..][..inner.len()].copy_from_slice(&inner);
    assert_eq!(cubins(whole(&outer)), "90a");
    outer.extend(container(&[(2, 80, 0, 0)]));
    assert!(cubins(whole(&outer)).contains("no section headers show which"), "the next container is found");
}

#[test]
fn kinds_that_no_driver_loads_are_ignored() {
    assert_eq!(cubins(whole(&container(&[(8, 80, 0, 16), (2, 90, 0, 0)]))), "90");
    assert_eq!(cubins(whole(&container(&[(8, 80, 0, 16)]))), "nothing");
}

#[test]
fn the_magic_alone_is_no_container() {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(100_u64.to_le_bytes());
    bytes.extend([0xaa; 200]);
    assert_eq!(cubins(whole(&bytes)), "nothing");
    // A valid container that begins inside a false one is found.
    bytes.extend(container(&[(2, 80, 0, 8)]));
    assert_eq!(cubins(whole(&bytes)), "80");
    bytes.truncate(16);
    bytes.extend(container(&[(2, 80, 0, 8)]));
    assert_eq!(cubins(whole(&bytes)), "80");
}

#[test]
fn damage_is_reported_and_never_ignored() {
    let good = container(&[(2, 80, 0, 8), (2, 90, 0, 8)]);
    for (at, value) in [(18, 2), (20, 1), (24, 9), (44, 3), (45, 200), (90, 7), (96, 200), (100, 5), (117, 9)] {
        let mut bad = good.clone();
        bad[at] = value;
        let said = cubins(whole(&bad));
        assert!(said == "nothing" || said.contains("is damaged at"), "byte {at}: {said}");
    }
    for length in 1..good.len() {
        let said = cubins(whole(&good[..length]));
        assert!(said == "nothing" || said.contains("is damaged at"), "{length} bytes: {said}");
    }
    let said = cubins(found([(0, good[..100].to_vec()), (300, vec![0; 100])]));
    assert!(said.contains("lib.so: the container of GPU code at 0x0 is damaged at 0x58"), "{said}");
    let end_of_numbers = [&MAGIC[..], &u64::MAX.to_le_bytes(), &good[16..]].concat();
    assert_eq!(cubins(whole(&end_of_numbers)), "nothing");
}

/// Damage that overlaps the relevant sections counts, wherever it begins; damage elsewhere does not.
#[test]
fn damage_counts_in_the_sections_that_it_overlaps() {
    let (library, text) = LIBRARIES[1];
    let mut bad = container(&[(2, 80, 0, 8), (2, 80, 0, 8)]);
    bad[16 + 72] = 9;
    bad[16 + 74] = 9;
    // The program headers, which are not read here, directly follow the file header.
    let mut with = |size: u64| {
        bad[8..16].copy_from_slice(&size.to_le_bytes());
        let mut library = library.to_vec();
        library[64..64 + bad.len()].copy_from_slice(&bad);
        whole(&library)
    };
    assert_eq!(with(144), Ok(Some(listed(text))));
    assert!(cubins(with(0x4000)).contains("is damaged at"));
}

/// The place of each container of a library whose containers lie in one section.
fn containers(library: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(library, &MAGIC).collect()
}

/// Whatever the section headers name as GPU code is read, or reported.
#[test]
fn sections_without_a_container_that_can_be_read_are_damaged() {
    let (library, text) = LIBRARIES[0];
    let places = containers(library);
    assert!(!places.is_empty());
    for place in &places {
        let mut bad = library.to_vec();
        bad[place + CONTAINER_HEADER + 2] = 7;
        let said = cubins(whole(&bad));
        assert!(said.contains(&format!("code at {place:#x} does not begin with a valid entry")), "{said}");
    }
    let with_magic = |magic: [u8; 8]| {
        let mut other = library.to_vec();
        for place in &places {
            other[*place..place + 8].copy_from_slice(&magic);
        }
        other
    };
    let next_version = with_magic([0x50, 0xed, 0x55, 0xba, 2, 0, 16, 0]);
    let said = cubins(whole(&next_version));
    assert!(said.contains("holds none of a known form"), "{said}");
    // Elsewhere the first bytes of a container are only data of the library.
    let beside = [library, &MAGIC, &[0xaa; 100]].concat();
    assert_eq!(whole(&beside), Ok(Some(listed(text))));
}

/// As in a file of debugging information, which keeps the headers of all sections.
#[test]
fn a_section_without_bytes_in_the_file_holds_no_code() {
    let (library, _) = LIBRARIES[0];
    let place = containers(library)[0] as u64;
    let table = usize::try_from(number(library, 40, 8).unwrap()).unwrap();
    let mut stripped = library.to_vec();
    let header = (table..library.len()).step_by(64).find(|at| number(library, at + 24, 8) == Some(place)).unwrap();
    stripped[header + 4] = 8;
    for place in containers(library) {
        stripped[place] = 0;
    }
    assert_eq!(whole(&stripped), Ok(None));
}

/// Section headers may name one range many times: reading it costs as much as once.
#[test]
fn ranges_that_overlap_are_one() {
    assert_eq!(disjoint(vec![5..9, 3..3, 0..2, 1..4, 4..5, 6..7]), [0..4, 4..5, 5..9]);
}

#[test]
fn a_hole_between_containers_is_no_damage() {
    let one = container(&[(2, 80, 0, 8)]);
    let two = container(&[(2, 90, 0, 8)]);
    let said = cubins(found(BTreeMap::from([(0, one), (1 << 40, two)])));
    assert!(said.contains("no section headers show which"), "{said}");
    // A hole inside a payload is not damage either.
    let large = container(&[(2, 80, 0, 1000), (2, 90, 0, 8)]);
    assert_eq!(cubins(found([(0, large[..200].to_vec()), (900, large[900..].to_vec())])), "80 90");
}
