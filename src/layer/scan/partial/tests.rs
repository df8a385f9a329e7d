use std::io::Cursor;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::layer::scan::scan_layer;
use crate::model::{NoProgress, Progress as _};
use seekable::{Form, Layer, convert};
use unpack::pipe::Pipe;

#[path = "../../../../tests/integration/seekable.rs"]
pub(super) mod seekable;

const BOTH: [Form; 2] = [Form::EStargz, Form::ZstdChunked];

/// Changes a table before it is sealed.
type Edit = Box<dyn Fn(&mut Value)>;

/// GPU code between the two ends of a library of any size.
const LIBRARY: &[u8] = include_bytes!("../../../../fixtures/elf/gpu-code/gpu-code.so");

/// A tar with every kind of entry.
pub(super) fn tar() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut noise = fastrand::Rng::with_seed(1);
    let noise: Vec<u8> = std::iter::repeat_with(|| noise.u8(..)).take(300_000).collect();
    let files: [(&str, &[u8]); 6] = [
        ("opt/torch/version.py", b"__version__ = '2.9.0'\n"),
        ("opt/lib/libgpu.so", LIBRARY),
        ("opt/empty", b""),
        (".prefetch.landmark", b"\x0f"),
        ("opt/noise", &noise),
        ("etc/os-release", b"ID=debian\n"),
    ];
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o100_755);
        builder.append_data(&mut header, name, content).unwrap();
    }
    for (name, kind) in [
        ("usr/link", tar::EntryType::Symlink),
        ("usr/hard", tar::EntryType::Link),
        ("usr/lib/", tar::EntryType::Directory),
        ("usr/.wh.gone", tar::EntryType::Regular),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_mode(0o644);
        builder.append_link(&mut header, name, "opt/lib/libgpu.so").unwrap();
    }
    builder.into_inner().unwrap()
}

/// Reads a layer in part, and also returns the ranges read.
fn part(layer: &Layer, limits: &Limits) -> (Result<Partly, ScanError>, Vec<Range<u64>>) {
    let asked = Mutex::new(Vec::new());
    let open = |range: Range<u64>| -> io::Result<Option<Box<dyn Read + Send>>> {
        asked.lock().unwrap().push(range.clone());
        let at = |place: u64| usize::try_from(place).unwrap();
        let bytes = layer.blob.get(at(range.start)..at(range.end)).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Some(Box::new(Cursor::new(bytes.to_vec()))))
    };
    let blob = Ranged {
        annotations: &layer.annotations,
        ztoc: None,
        size: layer.blob.len() as u64,
        open: &open,
        cost: 0,
        threads: NonZeroUsize::new(3).unwrap(),
    };
    let meter = NoProgress.begin("layer", None);
    let result = scan_partly(&blob, limits, &*meter, &Cancel::default());
    (result, asked.into_inner().unwrap())
}

fn scanned(layer: &Layer) -> (LayerScan, u64) {
    match part(layer, &Limits::default()).0 {
        Ok(Partly::Scanned { scan, read, .. }) => (scan, read),
        other => panic!("{other:?}"),
    }
}

fn whole(layer: &Layer) -> LayerScan {
    scan_layer(Pipe::of(&layer.blob), &Limits::default(), true, None).unwrap()
}

#[test]
fn the_findings_equal_those_of_the_whole_layer() {
    for form in BOTH {
        for chunk in [63, 1000, 4096, 1 << 20] {
            // Writers put more into their tables than is needed.
            let layer = convert(&tar(), form, chunk, &|table| {
                table["entries"][0]["xattrs"] = json!({"user.a": "AAAA"});
            });
            let (found, _) = scanned(&layer);
            let mut all = whole(&layer);
            assert_eq!(all.diff_id.take().unwrap().as_str(), layer.diff_id);
            let own = |entry: &crate::model::Entry| {
                form == Form::EStargz && matches!(entry.path.as_bytes(), b"stargz.index.json" | b".prefetch.landmark")
            };
            let by_path = |scan: &LayerScan| -> BTreeMap<_, _> {
                let entries = scan.entries.iter().enumerate().filter(|(_, entry)| !own(entry));
                entries
                    .map(|(index, entry)| (entry.path.clone(), (entry.clone(), scan.found.get(&index).cloned())))
                    .collect()
            };
            assert_eq!(by_path(&found), by_path(&all), "{form:?} {chunk}");
            assert_eq!(found.compression, all.compression);
            let code = found.found.values().flatten().filter(|found| matches!(found, Ok(Found::GpuCode(Ok(_)))));
            assert_eq!(code.count(), 1);
        }
    }
}

#[test]
fn pieces_that_no_extractor_needs_are_not_read() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut noise = fastrand::Rng::with_seed(1);
    let content: Vec<u8> = std::iter::repeat_with(|| noise.u8(..)).take(12 << 20).collect();
    for name in ["a", "b", "c"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &*content).unwrap();
    }
    let tar = builder.into_inner().unwrap();
    for form in BOTH {
        let layer = convert(&tar, form, 64 << 10, &|_| {});
        let (scan, read) = scanned(&layer);
        assert_eq!(scan.entries.len(), 3);
        assert!(read < 4 << 20, "{read} of {}", layer.blob.len());
        let (_, asked) = part(&layer, &Limits::default());
        assert_eq!(asked.iter().filter(|range| range.end - range.start == 1 << 20).count(), 3, "{asked:?}");
    }
}

#[test]
fn damage_is_reported_with_file_chunk_and_position() {
    for (form, chunk, least) in BOTH.into_iter().flat_map(|form| [(form, 4096, 10), (form, 1 << 20, 250)]) {
        let layer = convert(&tar(), form, chunk, &|_| {});
        let expected = whole(&layer);
        let mut told = Vec::new();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..300 {
            let at = random.usize(..layer.blob.len());
            let mut blob = layer.blob.clone();
            blob[at] ^= 1 << random.u8(..8);
            let damaged = Layer { blob, annotations: layer.annotations.clone(), diff_id: String::new() };
            match part(&damaged, &Limits::default()).0 {
                // Unused bytes may be damaged: tar headers, which the table repeats, and skipped ranges.
                Ok(Partly::Scanned { scan, .. }) => assert_eq!(scan.found, by_index(&expected, &scan)),
                Ok(Partly::Unusable(why)) => assert!(why.contains("footer"), "{why}"),
                Err(error) => told.push(error.to_string()),
            }
        }
        assert!(told.len() > least, "{form:?} {chunk}: {}", told.len());
        for text in &told {
            let chunk = text.contains(": the chunk of ") && text.contains(" of the blob, is corrupt: ");
            assert!(chunk || text.starts_with("the table of contents at byte "), "{text}");
        }
        let noise = format!("/opt/noise: the chunk of {} bytes at its byte 0, stored at byte ", chunk.min(300_000));
        assert!(told.iter().any(|text| text.starts_with(&noise)), "{told:?}");
    }
}

/// The findings of a whole layer, by the indexes of the entries in another scan of it.
pub(super) fn by_index(all: &LayerScan, other: &LayerScan) -> BTreeMap<usize, Vec<Result<Found, crate::model::Gap>>> {
    let place = |index: usize| other.entries.iter().position(|entry| entry.path == all.entries[index].path).unwrap();
    all.found.iter().map(|(index, found)| (place(*index), found.clone())).collect()
}

#[test]
fn an_invalid_table_is_not_used() {
    let set = |index: usize, key: &'static str, value: Value| {
        move |table: &mut Value| {
            table["entries"][index][key] = value.clone();
        }
    };
    let cases: Vec<(Edit, &str)> = vec![
        (Box::new(set(0, "size", json!(-1))), "invalid value: integer `-1`"),
        (Box::new(set(0, "size", json!(1_u64 << 50))), "files have"),
        (
            Box::new(|table: &mut Value| {
                table["entries"][0]["chunkSize"] = json!(22);
                table["entries"][0]["size"] = json!(10_000);
                let digest = table["entries"][0]["digest"].clone();
                table["entries"][0]["chunkDigest"] = digest;
            }),
            "do not cover it",
        ),
        (Box::new(set(0, "chunkOffset", json!(1))), "does not follow the previous one"),
        (Box::new(set(0, "chunkSize", json!(1_u64 << 40))), "does not follow the previous one"),
        (Box::new(set(0, "offset", json!(1_u64 << 40))), "lies at an invalid position"),
        (Box::new(set(1, "offset", json!(0))), "lies at an invalid position"),
        (Box::new(set(0, "innerOffset", json!(u64::MAX))), "lies at an invalid position"),
        (Box::new(set(0, "chunkDigest", json!("md5:00"))), "has no digest"),
        (Box::new(set(0, "name", json!("a".repeat(5000)))), "a path of 5000 bytes"),
        (Box::new(set(0, "name", json!("a\u{fffd}b"))), "the real name of"),
        (Box::new(set(0, "type", json!("door"))), "unknown type 'door'"),
        (Box::new(set(0, "type", json!("symlink"))), "a link without a target"),
        (Box::new(set(0, "type", json!("chunk"))), "follows no file"),
        (Box::new(|table: &mut Value| table["version"] = json!(2)), "not of version 1"),
        (Box::new(|table: &mut Value| table["entries"] = json!({})), "a list of entries"),
        (Box::new(|table: &mut Value| *table = json!("\u{1b}[31m")), "a table of contents"),
    ];
    for form in BOTH {
        for (edit, expected) in &cases {
            let layer = convert(&tar(), form, 1 << 20, edit);
            match part(&layer, &Limits::default()).0 {
                Ok(Partly::Unusable(why)) => assert!(why.contains(expected), "{why} / {expected}"),
                other => panic!("{expected}: {other:?}"),
            }
        }
        let layer = convert(&tar(), form, 1 << 20, &|_| {});
        for limits in [Limits { toc: 100, ..Limits::default() }, Limits { entries: 3, ..Limits::default() }] {
            let Ok(Partly::Unusable(why)) = part(&layer, &limits).0 else { panic!("{limits:?}") };
            assert!(why.contains("--limit"), "{why}");
        }
    }
}

#[test]
fn the_last_of_two_entries_with_one_name_counts_as_in_a_tar() {
    for form in BOTH {
        let layer = convert(&tar(), form, 1 << 20, &|table| {
            let copy = table["entries"][8].clone();
            table["entries"].as_array_mut().unwrap().push(copy);
        });
        let (scan, _) = scanned(&layer);
        let links = scan.entries.iter().filter(|entry| entry.path.as_bytes() == b"usr/lib").count();
        assert_eq!(links, 2, "the merge of layers decides, as for a tar");
    }
}

#[test]
fn random_numbers_in_a_table_cause_no_panic_and_no_wrong_findings() {
    const KEYS: [&str; 6] = ["size", "offset", "innerOffset", "chunkOffset", "chunkSize", "mode"];
    let numbers = [0, 1, 22, 23, 4096, 1 << 32, i64::MAX as u64, u64::MAX];
    let mut random = fastrand::Rng::with_seed(3);
    let mut became = [0; 3];
    for form in BOTH {
        let expected = whole(&convert(&tar(), form, 100_000, &|_| {}));
        for _ in 0..150 {
            let (key, number, place) =
                (random.choice(KEYS).unwrap(), *random.choice(&numbers).unwrap(), random.usize(..));
            let layer = convert(&tar(), form, 100_000, &|table| {
                let entries = table["entries"].as_array_mut().unwrap();
                let entry = place % entries.len();
                entries[entry][key] = json!(number);
            });
            match part(&layer, &Limits::default()).0 {
                Ok(Partly::Scanned { scan, .. }) => {
                    became[0] += 1;
                    let found = by_index(&expected, &scan);
                    // A file with size 0 has no content.
                    assert!(
                        scan.found.iter().all(|(index, answers)| found.get(index) == Some(answers)),
                        "{key} {number}"
                    );
                }
                Ok(Partly::Unusable(_)) => became[1] += 1,
                Err(ScanError::Piece(_)) => became[2] += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(became.iter().all(|count| *count > 10), "{became:?}");
}

#[test]
fn a_table_with_the_wrong_digest_is_damage() {
    for form in BOTH {
        let mut layer = convert(&tar(), form, 1 << 20, &|_| {});
        for value in layer.annotations.values_mut().filter(|value| value.starts_with("sha256:")) {
            *value = format!("sha256:{}", "0".repeat(64));
        }
        let error = part(&layer, &Limits::default()).0.unwrap_err().to_string();
        assert!(error.contains("is corrupt: it has the digest sha256:"), "{error}");
    }
}

#[test]
fn a_chunk_with_the_wrong_digest_or_size_is_damage() {
    for form in BOTH {
        for (key, value, expected) in [
            ("chunkDigest", json!(seekable::digest(b"other")), "the table of contents says"),
            ("size", json!(21), "the table of contents says"),
            ("size", json!(400_000_000), "it "),
            ("innerOffset", json!(400_000), "damaged"),
        ] {
            let layer = convert(&tar(), form, 1 << 20, &|table| {
                table["entries"][0][key] = value.clone();
                if key == "size" {
                    let digest = table["entries"][0]["digest"].clone();
                    table["entries"][0]["chunkDigest"] = digest;
                }
            });
            let error = part(&layer, &Limits::default()).0.unwrap_err().to_string();
            assert!(error.starts_with("/opt/torch/version.py: the chunk of") && error.contains(expected), "{error}");
        }
    }
}

#[test]
fn a_bomb_is_stopped() {
    let mut builder = tar::Builder::new(Vec::new());
    let zeros = vec![0; 80 << 20];
    let mut header = tar::Header::new_gnu();
    header.set_size(zeros.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, "zeros", &*zeros).unwrap();
    let layer = convert(&builder.into_inner().unwrap(), Form::ZstdChunked, 1 << 30, &|_| {});
    let error = part(&layer, &Limits::default()).0.unwrap_err();
    assert!(matches!(&error, ScanError::Limit(text) if text.contains("--limit expansion=N")), "{error}");
}

#[test]
fn a_medium_without_ranges_is_read_whole() {
    let layer = convert(&tar(), Form::EStargz, 1 << 20, &|_| {});
    let open = |_: Range<u64>| Ok(None);
    let blob = Ranged {
        annotations: &layer.annotations,
        ztoc: None,
        size: layer.blob.len() as u64,
        open: &open,
        cost: 0,
        threads: NonZeroUsize::new(3).unwrap(),
    };
    let meter = NoProgress.begin("layer", None);
    let Ok(Partly::Unusable(why)) = scan_partly(&blob, &Limits::default(), &*meter, &Cancel::default()) else {
        panic!()
    };
    assert!(why.contains("only provides whole blobs"), "{why}");
}
