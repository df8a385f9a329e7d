use std::io::{self, Read, Write as _};

use super::*;
use crate::tar::TarErrorKind;
use unpack::DecodeError;
use unpack::inflate::GzipError;
use unpack::pipe::{Cancel, with_pipe};
use unpack::unzstd::ZstdError;

fn tar_with(path: &str, content: &[u8]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, path, content).unwrap();
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn scan(bytes: &[u8]) -> Result<LayerScan, ScanError> {
    scan_layer(Pipe::of(bytes), &Limits::default(), true, None)
}

/// The empty member that ends an eStargz layer (stargz-snapshotter, `docs/estargz.md`).
const ESTARGZ_FOOTER: &[u8] =
    b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x1a\0SG\x16\x000000000000000000STARGZ\x01\0\0\xff\xff\0\0\0\0\0\0\0\0";

/// A layer of eStargz or zstd:chunked is a gzip or zstd stream, and is read as one.
#[test]
fn compression_is_detected_from_bytes() {
    let tar = tar_with("opt/torch/version.py", b"__version__ = '2.9.0'\n");
    let (first, second) = tar.split_at(700);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0], &b"skip"[..]].concat();
    let frame = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let blobs = [
        (Compression::None, tar.clone()),
        (Compression::Gzip, gzip(&tar)),
        (Compression::Gzip, [gzip(first), gzip(second)].concat()),
        (Compression::Gzip, [gzip(&tar), ESTARGZ_FOOTER.to_vec()].concat()),
        (Compression::Zstd, frame(&tar)),
        (Compression::Zstd, [&*skippable, &frame(first), &frame(second), &skippable].concat()),
    ];
    for (compression, blob) in blobs {
        let scan = scan(&blob).unwrap();
        assert_eq!(scan.compression, compression);
        assert_eq!(scan.unpacked, tar.len() as u64);
        let Some([Ok(Found::Text(text))]) = scan.found.get(&0).map(Vec::as_slice) else { panic!("{:?}", scan.found) };
        assert!(text.starts_with(b"__version__"));
    }
}

/// A medium that fails after these bytes.
struct BrokenMedium<'b>(&'b [u8]);

impl Read for BrokenMedium<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::new(io::ErrorKind::ConnectionReset, "gone")),
            count => Ok(count),
        }
    }
}

#[test]
fn decoders_return_errors_of_the_medium_unchanged() {
    // The medium has more than the pipe passes on at once, so that the decoders have started.
    let mut noise = fastrand::Rng::with_seed(1);
    let tar = tar_with("a", &std::iter::repeat_with(|| noise.u8(..)).take(3 << 20).collect::<Vec<_>>());
    let run = |source: &[u8], cancel: &Cancel| {
        let scan = |pipe| scan_layer(pipe, &Limits::default(), false, None);
        match with_pipe(BrokenMedium(source), |_| {}, cancel, scan) {
            Err(ScanError::Read(error)) => (error.kind(), error.to_string()),
            other => panic!("{other:?}"),
        }
    };
    for blob in [&tar, &gzip(&tar), &zstd::encode_all(tar.as_slice(), 1).unwrap()] {
        assert_eq!(run(&blob[..2 << 20], &Cancel::default()), (io::ErrorKind::ConnectionReset, "gone".to_owned()));
        let cancelled = Cancel::default();
        cancelled.cancel();
        assert_eq!(run(blob, &cancelled), (io::ErrorKind::Interrupted, "cancelled".to_owned()));
    }
}

#[test]
fn damage_has_the_error_type_of_its_decoder() {
    let tar = tar_with("a", &[7; 5000]);
    let gzip = scan(&gzip(&tar)[..30]).unwrap_err();
    let ScanError::Compression(CompressionError::Decode(DecodeError::Gzip(gzip))) = gzip else { panic!("{gzip:?}") };
    assert_eq!(gzip, GzipError::Truncated { length: 30 });
    let zstd = scan(&zstd::encode_all(tar.as_slice(), 1).unwrap()[..20]).unwrap_err();
    let ScanError::Compression(CompressionError::Decode(DecodeError::Zstd(zstd))) = zstd else { panic!("{zstd:?}") };
    assert!(matches!(zstd, ZstdError::Truncated { length: 20 }), "{zstd}");
    let bzip2 = scan(b"BZh91AY").unwrap_err();
    assert!(matches!(bzip2, ScanError::Compression(CompressionError::Unsupported("bzip2"))), "{bzip2:?}");
    let ScanError::Tar(error) = scan(&tar[..700]).unwrap_err() else { panic!("a tar that is cut off") };
    assert!(error.offset == 700 && matches!(error.what, TarErrorKind::Malformed(_)), "{error}");
}

#[test]
fn damage_is_reported() {
    let mut noise = fastrand::Rng::with_seed(1);
    let tar = tar_with("a", &std::iter::repeat_with(|| noise.u8(..b'z')).take(5000).collect::<Vec<_>>());
    let mut broken_sum = gzip(&tar);
    let crc = broken_sum.len() - 8;
    broken_sum[crc] ^= 1;
    for (blob, text) in [
        (gzip(&tar)[..30].to_vec(), "the gzip data end early, after 30 bytes"),
        (broken_sum, "the gzip data are damaged near byte"),
        (zstd::encode_all(tar.as_slice(), 1).unwrap()[..20].to_vec(), "the zstd data end early, after 20 bytes"),
        (b"BZh91AY".to_vec(), "compressed with bzip2"),
        (b"hello, I am not a layer".to_vec(), "in the middle of a header block"),
        (vec![b'x'; 600], "this is not a tar"),
    ] {
        let error = scan(&blob).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_bomb_is_stopped() {
    let mut zeros = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let tar = tar_with("a", b"");
    zeros.write_all(&tar[..512]).unwrap();
    for _ in 0..300 {
        zeros.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let error = scan(&zeros.finish().unwrap()).unwrap_err();
    assert!(
        matches!(
            &error,
            ScanError::Limit(text) if text.contains("the limit is 1100\n  help: raise it with --limit expansion=N")
        ),
        "{error}"
    );
}

/// A tar of these headers, each with its type, name and a PAX record for it, if any.
fn tar_of(members: &[(u8, &str, Option<&str>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut member = |kind: u8, name: &str, body: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_path(name).unwrap();
        header.as_mut_bytes()[156] = kind;
        header.set_size(body.len() as u64);
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    };
    for (kind, name, record) in members {
        if let Some(record) = record {
            let length = record.len() + 4;
            member(b'x', "records", format!("{length} {record}\n").as_bytes());
        }
        member(*kind, name, b"");
    }
    bytes
}

#[test]
fn what_overlayfs_reads_as_a_whiteout_is_one() {
    let tar = tar_of(&[
        (b'5', "a", Some("SCHILY.xattr.trusted.overlay.opaque=y")),
        (b'3', "b/device", None),
        (b'0', "c", None),
    ]);
    let scan = scan(&tar).unwrap();
    let paths: Vec<_> = scan.entries.iter().map(|entry| entry.path.to_string()).collect();
    assert_eq!(paths, ["/a", "/b/.wh.device", "/c", "/a/.wh..wh..opq"]);
}
