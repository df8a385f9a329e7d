use std::io::{self, Cursor, Read};
use std::num::NonZeroUsize;
use std::sync::{LazyLock, Mutex};

use proptest::prelude::*;

use super::super::file::RangedFile;
use super::super::pieces::Pieces;
use super::super::stored::StoredEntries;
use super::super::ztoc::Malformed;
use super::super::{Annotations, Cancel, LayerScan, Partly, ScanError, scan_partly};
use super::*;
use crate::layer::scan::extract::FileContent as _;
use crate::layer::scan::scan_layer;
use crate::model::{ImagePath, NoProgress, Progress as _};
use unpack::pipe::Pipe;
use writer::convert;

use super::super::tests::{by_index, seekable, tar};

#[path = "../../../../../tests/integration/ztoc.rs"]
mod writer;

/// A layer with the zTOC that the snapshotter's own code made.
const LAYER: &[u8] = include_bytes!("../../../../../fixtures/soci/layer.tar.gz");
const ZTOC: &[u8] = include_bytes!("../../../../../fixtures/soci/layer.ztoc");

/// Changes a zTOC before it is written.
type Edit = Box<dyn Fn(&mut writer::Ztoc)>;

type Asked = Mutex<Vec<Range<u64>>>;

/// Opens a range of a blob, and records it.
fn range(blob: &[u8], asked: &Asked, range: Range<u64>) -> io::Result<Option<Box<dyn Read + Send>>> {
    asked.lock().unwrap().push(range.clone());
    let at = |place: u64| usize::try_from(place).unwrap();
    let bytes = blob.get(at(range.start)..at(range.end)).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(Some(Box::new(Cursor::new(bytes.to_vec()))))
}

/// Reads a layer in part, and also returns the ranges read.
fn scan(blob: &[u8], ztoc: &[u8], limits: &Limits, threads: usize) -> (Result<Partly, ScanError>, Vec<Range<u64>>) {
    let (asked, annotations, cancel) = (Asked::default(), Annotations::new(), Cancel::default());
    let meter = NoProgress.begin("layer", None);
    let open = |wanted| range(blob, &asked, wanted);
    let (size, threads) = (blob.len() as u64, NonZeroUsize::new(threads).unwrap());
    let ranged = Ranged { annotations: &annotations, ztoc: Some(ztoc), size, open: &open, cost: 0, threads };
    let result = scan_partly(&ranged, limits, &*meter, &cancel);
    let asked = asked.lock().unwrap().clone();
    (result, asked)
}

fn part(blob: &[u8], ztoc: &[u8], limits: &Limits) -> Result<Partly, ScanError> {
    scan(blob, ztoc, limits, 3).0
}

fn whole(blob: &[u8]) -> LayerScan {
    scan_layer(Pipe::of(blob), &Limits::default(), false, None).unwrap()
}

fn assert_same(blob: &[u8], ztoc: &[u8]) {
    let Ok(Partly::Scanned { scan, read }) = part(blob, ztoc, &Limits::default()) else { panic!() };
    assert!(read > 0);
    assert_eq!(LayerScan { unpacked: scan.unpacked, ambiguities: None, ..whole(blob) }, scan);
}

#[test]
fn a_real_ztoc_gives_the_findings_of_the_whole_layer() {
    assert_same(LAYER, ZTOC);
    let scan = whole(LAYER);
    assert!(scan.entries.len() == 16 && scan.found.len() >= 2, "{}", scan.found.len());
}

#[test]
fn every_file_read_from_its_spans_equals_that_in_the_tar() {
    let mut bytes = Vec::new();
    io::copy(&mut flate2::read::MultiGzDecoder::new(LAYER), &mut bytes).unwrap();
    let ztoc = Ztoc::read(ZTOC).unwrap();
    let places: Vec<_> = ztoc.files().map(|file| file.unwrap()).collect();
    let (asked, annotations, cancel) = (Asked::default(), Annotations::new(), Cancel::default());
    let meter = NoProgress.begin("layer", None);
    let open = |wanted| range(LAYER, &asked, wanted);
    let (size, threads) = (LAYER.len() as u64, NonZeroUsize::MIN);
    let ranged = Ranged { annotations: &annotations, ztoc: Some(ZTOC), size, open: &open, cost: 0, threads };
    let Ok(toc) = table(&ranged, &Limits::default()) else { panic!() };
    let Streams::Spans(spans) = &toc.streams else { panic!() };
    // Blocks begin at any bit.
    assert!(spans.len() > 5 && spans.iter().filter(|span| span.bit > 0).count() > 3);
    let mut pieces =
        Pieces::new(StoredEntries::new(&ranged, toc.end, &*meter, &cancel), &toc.streams, &Limits::default());
    let mut compared = 0;
    for (member, place) in toc.members.iter().zip(&places) {
        let start = usize::try_from(place.offset).unwrap();
        let size = usize::try_from(member.entry.size).unwrap();
        let mut file = RangedFile::new(&member.entry.path, &member.chunks, &mut pieces);
        let mut content = Vec::new();
        while content.len() < size {
            let (at, some) = file.read(content.len() as u64).unwrap();
            assert!(at == content.len() as u64 && !some.is_empty());
            content.extend_from_slice(some);
        }
        assert!(file.read(size as u64).unwrap().1.is_empty());
        assert!(content == bytes[start..start + size], "{}", member.entry.path);
        compared += content.len();
    }
    assert!(compared > 400_000, "{compared}");
    // Spans share bytes, which are read only once.
    let asked = asked.lock().unwrap();
    assert!(asked.len() == 2 && asked[0] == (0..10) && asked[1] == (10..LAYER.len() as u64), "{asked:?}");
    drop(asked);
    // Reads from the middle of a file on, then from earlier positions.
    let at = toc.members.iter().position(|member| member.entry.path.as_bytes() == b"opt/words").unwrap();
    for place in [180_000, 100_000, 3] {
        let mut file = RangedFile::new(&toc.members[at].entry.path, &toc.members[at].chunks, &mut pieces);
        let (from, some) = file.read(place).unwrap();
        let from = usize::try_from(places[at].offset + from).unwrap();
        assert!(some == &bytes[from..from + some.len()]);
    }
}

#[test]
fn spans_of_every_size_give_the_findings_of_the_whole_layer() {
    for span in [700, 5000, 40_000, 1 << 20] {
        let (blob, ztoc) = convert(&tar(), span);
        assert_same(&blob, &ztoc.bytes());
    }
}

#[test]
fn spans_that_no_extractor_needs_are_not_read() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut noise = fastrand::Rng::with_seed(1);
    let content: Vec<u8> = std::iter::repeat_with(|| noise.u8(..)).take(12 << 20).collect();
    for name in ["a", "b", "c"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &*content).unwrap();
    }
    let (blob, ztoc) = convert(&builder.into_inner().unwrap(), 2 << 20);
    let (partly, asked) = scan(&blob, &ztoc.bytes(), &Limits::default(), 3);
    let Ok(Partly::Scanned { read, .. }) = partly else { panic!() };
    assert!(read < 7 << 20, "{read} of {}", blob.len());
    assert!(asked.iter().all(|range| range.end - range.start < 3 << 20) && asked.len() == 4, "{asked:?}");
}

#[test]
fn damage_is_always_reported() {
    let expected = whole(LAYER);
    let mut random = fastrand::Rng::with_seed(7);
    let mut told = 0;
    for _ in 0..200 {
        let mut blob = LAYER.to_vec();
        blob[random.usize(..LAYER.len())] ^= 1 << random.u8(..8);
        match part(&blob, ZTOC, &Limits::default()) {
            // Only bytes that no extractor needs may be damaged.
            Ok(Partly::Scanned { scan, .. }) => assert_eq!(scan.found, by_index(&expected, &scan)),
            Ok(Partly::Unusable(why)) => assert!(why.contains("does not begin with a gzip header"), "{why}"),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(": the chunk of ") && text.contains("its span has the digest sha256:"), "{text}");
                told += 1;
            }
        }
    }
    assert!(told > 50, "{told}");
}

#[test]
fn a_truncated_blob_is_damage() {
    let (blob, ztoc) = convert(&tar(), 5000);
    let size = blob.len();
    let mut ztoc = ztoc;
    ztoc.packed = i64::try_from(size).unwrap() - 3000;
    let text = match part(&blob[..size - 3000], &ztoc.bytes(), &Limits::default()) {
        Ok(Partly::Unusable(why)) => why,
        Err(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(text.contains("its span 6") || text.contains("its span has the digest"), "{text}");
}

#[test]
fn an_invalid_ztoc_is_not_used() {
    let checkpoint = |number: usize, act: fn(&mut (i64, i64, u8, Vec<u8>))| -> Edit {
        Box::new(move |ztoc| act(&mut ztoc.checkpoints[number]))
    };
    let file = |act: fn(&mut writer::File)| -> Edit { Box::new(move |ztoc| act(&mut ztoc.files[4])) };
    let cases: Vec<(Edit, &str)> = vec![
        (Box::new(|ztoc| ztoc.version = b"1.0\x1b".to_vec()), "its version '1.0"),
        (Box::new(|ztoc| ztoc.algorithm = 2), "not compressed with gzip"),
        (Box::new(|ztoc| ztoc.packed += 1), "it belongs to a layer of "),
        (Box::new(|ztoc| ztoc.packed = -1), "a number is negative at byte "),
        (Box::new(|ztoc| ztoc.last_span += 1), "digests of spans, but a different number"),
        (Box::new(|ztoc| ztoc.last_span = i32::MAX), "digests of spans, but a different number"),
        (Box::new(|ztoc| ztoc.count = Some(-1)), "digests of spans, but a different number"),
        (Box::new(|ztoc| _ = ztoc.digests.pop()), "digests of spans, but a different number"),
        (Box::new(|ztoc| _ = ztoc.checkpoints.pop()), "digests of spans, but a different number"),
        (Box::new(|ztoc| _ = ztoc.checkpoints[3].3.pop()), "digests of spans, but a different number"),
        (Box::new(|ztoc| ztoc.digests[2] = "md5:00".to_owned()), "its span 2 has no supported digest"),
        (checkpoint(0, |point| point.1 = 1), "its span 0 is invalid"),
        (checkpoint(0, |point| point.0 = 0), "begins at an invalid position"),
        (checkpoint(1, |point| point.2 = 8), "begins at an invalid position"),
        (checkpoint(1, |point| point.0 = 5), "its span 0 is invalid"),
        (checkpoint(2, |point| point.0 = i64::MAX), "its span 1 is invalid, or larger than 67108864 bytes"),
        (checkpoint(2, |point| point.0 = -1), "its span 1 is invalid"),
        (checkpoint(2, |point| point.1 = 0), "its span 1 is invalid"),
        (checkpoint(0, |point| point.0 = 200_000), "its span 0 is invalid"),
        (Box::new(|ztoc| ztoc.unpacked = 1000), "is invalid"),
        (file(|file| file.offset += 1), "lies at an invalid position"),
        (file(|file| file.offset = 512), "lies at an invalid position"),
        (file(|file| file.offset = i64::MAX & !511), "lies at an invalid position"),
        (file(|file| file.size = i64::MAX), "its files have "),
        (file(|file| file.size = 1 << 36), "lies at an invalid position"),
        (file(|file| file.size -= 1000), ""),
        (file(|file| file.kind = b"chunk".to_vec()), "has the unknown type 'chunk'"),
        (file(|file| file.kind = b"symlink".to_vec()), "a link without a target"),
        (file(|file| file.name = b"a".repeat(5000)), "a path of 5000 bytes"),
        (file(|file| file.device = 1 << 40), "has a number too large for a tar"),
        (file(|file| file.records = vec![(b"GNU.sparse.major".to_vec(), b"1".to_vec())]), "has holes"),
    ];
    for (edit, expected) in &cases {
        let (blob, mut ztoc) = convert(&tar(), 40_000);
        edit(&mut ztoc);
        match part(&blob, &ztoc.bytes(), &Limits::default()) {
            Ok(Partly::Unusable(why)) if !expected.is_empty() => {
                assert!(
                    why.starts_with("its SOCI table cannot be used: ") && why.contains(expected),
                    "{why} / {expected}"
                );
            }
            // The image's digest covers the table, so one that lists a smaller file is trusted.
            Ok(Partly::Scanned { .. }) if expected.is_empty() => {}
            other => panic!("{expected}: {other:?}"),
        }
    }
    let (blob, ztoc) = convert(&tar(), 40_000);
    let (few, little) = (Limits { entries: 3, ..Limits::default() }, Limits { unpacked: 1000, ..Limits::default() });
    for limits in [few, little] {
        let Ok(Partly::Unusable(why)) = part(&blob, &ztoc.bytes(), &limits) else { panic!("{limits:?}") };
        assert!(why.contains("--limit"), "{why}");
    }
}

#[test]
fn a_medium_without_ranges_is_read_whole() {
    let (annotations, cancel, meter) = (Annotations::new(), Cancel::default(), NoProgress.begin("layer", None));
    let open = |_: Range<u64>| Ok(None);
    let (size, threads) = (LAYER.len() as u64, NonZeroUsize::MIN);
    let ranged = Ranged { annotations: &annotations, ztoc: Some(ZTOC), size, open: &open, cost: 0, threads };
    let Ok(Partly::Unusable(why)) = scan_partly(&ranged, &Limits::default(), &*meter, &cancel) else { panic!() };
    assert!(why.contains("only provides whole blobs"), "{why}");
}

#[test]
fn wrong_checkpoints_are_damage() {
    // The digests are right, but another value is wrong, as from a defective writer.
    for (edit, expected) in [
        ((|ztoc| ztoc.checkpoints[1].1 -= 512) as fn(&mut writer::Ztoc), "a block does not end where its span does"),
        (|ztoc| ztoc.checkpoints[1].1 += 512, "its compressed data are damaged"),
        (|ztoc| ztoc.checkpoints[1].2 = 3, "its compressed data are damaged"),
    ] {
        let (blob, mut ztoc) = convert(&tar(), 40_000);
        edit(&mut ztoc);
        let points: Vec<_> = ztoc.checkpoints.iter().map(|point| point.0 - i64::from(point.2 > 0)).collect();
        let ends = ztoc.checkpoints.iter().skip(1).map(|point| point.0).chain([ztoc.packed]);
        let at = |place: i64| usize::try_from(place).unwrap();
        ztoc.digests = points.iter().zip(ends).map(|(from, to)| seekable::digest(&blob[at(*from)..at(to)])).collect();
        let error = part(&blob, &ztoc.bytes(), &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("of the blob, is corrupt: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_bomb_is_stopped() {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in [("zeros", &vec![0; 80 << 20][..]), ("etc/os-release", b"ID=debian\n")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content).unwrap();
    }
    let (blob, ztoc) = convert(&builder.into_inner().unwrap(), 100 << 20);
    let ztoc = ztoc.bytes();
    assert!(part(&blob, &ztoc, &Limits::default()).is_ok());
    let error = part(&blob, &ztoc, &Limits { expansion: 50, ..Limits::default() }).unwrap_err();
    assert!(matches!(&error, ScanError::Limit(text) if text.contains("--limit expansion=N")), "{error}");
}

#[test]
fn repeated_references_to_one_element_are_refused() {
    let (_, mut ztoc) = convert(&tar(), 40_000);
    ztoc.files.truncate(1);
    ztoc.files[0].name = b"n".repeat(4000);
    ztoc.files[0].records = vec![(b"k".to_vec(), b"v".to_vec()); 1000];
    let read = |ztoc: &writer::Ztoc| -> Result<usize, Malformed> {
        Ztoc::read(&ztoc.bytes())?.files().try_fold(0, |count, file| file.map(|_| count + 1))
    };
    assert_eq!(read(&ztoc), Ok(1));
    ztoc.copies = 1_000_000;
    let error = read(&ztoc).unwrap_err().to_string();
    assert!(error.contains("its elements exceed its size"), "{error}");
}

/// The files of a zTOC, and everything else that decoding them depends on.
fn meaning(ztoc: &[u8]) -> (Vec<String>, impl PartialEq + use<'_>) {
    let ztoc = Ztoc::read(ztoc).unwrap();
    let files = ztoc.files().map(|file| format!("{:?}", file.unwrap())).collect();
    let digests: Vec<_> = ztoc.digests().collect();
    (files, (ztoc.packed, ztoc.unpacked, digests, ztoc.checkpoints))
}

/// Checks that a scan with a changed zTOC lists its files, and has the original findings in each file whose description
/// is unchanged.
fn assert_believed(before: &[u8], after: &[u8], scan: &LayerScan, expected: &LayerScan) {
    let paths = |ztoc: &Ztoc<'_>| ztoc.files().map(|file| ImagePath::normalise(file.unwrap().name)).collect::<Vec<_>>();
    let listed: Vec<_> = scan.entries.iter().map(|entry| entry.path.clone()).collect();
    assert_eq!(listed, paths(&Ztoc::read(after).unwrap()));
    let ((files, spans), (changed_files, changed_spans)) = (meaning(before), meaning(after));
    if spans != changed_spans {
        // A changed window gives other bytes of the same span. The signer of the zTOC is responsible for that.
        return;
    }
    let same = files.iter().zip(&changed_files).enumerate().filter(|(_, (file, changed))| file == changed);
    for (index, _) in same {
        assert_eq!(scan.found.get(&index), expected.found.get(&index), "{}", expected.entries[index].path);
    }
}

/// A layer with its zTOC, and the scan of the whole layer.
static CONVERTED: LazyLock<(Vec<u8>, Vec<u8>, LayerScan)> = LazyLock::new(|| {
    let (blob, ztoc) = convert(&tar(), 100_000);
    let scan = whole(&blob);
    (blob, ztoc.bytes(), scan)
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_ztoc_is_refused_or_trusted(flips in proptest::collection::vec((0_usize..1 << 20, any::<u8>()), 1..8), cut in 0_usize..1 << 20) {
        let (blob, before, expected) = &*CONVERTED;
        let mut bytes = before.clone();
        // Most of the bytes are windows, which are irrelevant.
        let (head, tail) = (3000.min(bytes.len()), bytes.len());
        for (at, value) in flips {
            let at = if at % 2 == 0 { at / 2 % head } else { at / 2 % tail };
            bytes[at] = value;
        }
        if cut % 8 == 0 {
            bytes.truncate(cut / 8 % tail);
        }
        match part(blob, &bytes, &Limits::default()) {
            Ok(Partly::Scanned { scan, .. }) => assert_believed(before, &bytes, &scan, expected),
            Ok(Partly::Unusable(why)) => prop_assert!(why.starts_with("its SOCI table cannot be used: "), "{why}"),
            Err(ScanError::Piece(_) | ScanError::Limit(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
