//! SIF files of Apptainer and Singularity (apptainer/sif, `pkg/sif`): a header, descriptors of fixed length, and the
//! data that they describe. The file system of the container is the primary system partition.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Request;
use crate::medium::{Medium, Transport, TransportKind};
use crate::needs::PlaceNeeds;
use crate::source::SourceError;
use crate::target::Target;
use model::{Gap, Limits, OverLimit, Platform, open_regular, printable};

use super::{SquashImage, SquashRuntime, bytes_at};

pub(crate) static TRANSPORT: Transport = Transport {
    prefix: "sif:",
    syntax: "FILE",
    description: "an image of Apptainer or Singularity",
    kind: TransportKind::File,
    mark: None,
    needs: PlaceNeeds::Path,
    parse: Target::plain,
    open: |target, request| open(target.path(), request),
};

/// Text after the launch script, which is the file's first 32 bytes.
const MAGIC: &[u8; 10] = b"SIF_MAGIC\0";
const MAGIC_AT: u64 = 32;

/// Length of the header, from the first byte of the file.
const HEADER: usize = 128;

/// Length of a descriptor.
const DESCRIPTOR: usize = 585;

/// Types of data.
mod data {
    pub(super) const PARTITION: u32 = 0x4004;
    pub(super) const OCI_ROOT_INDEX: u32 = 0x400a;
}

/// Types of partitions.
mod partition {
    pub(super) const PRIMARY: u32 = 2;
    pub(super) const OVERLAY: u32 = 4;
}

/// True if a file has the magic text.
pub(super) fn is_sif(path: &Path) -> bool {
    bytes_at(path, MAGIC_AT).as_ref() == Some(MAGIC)
}

pub(super) fn open(path: &Path, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    Ok(Box::new(read(path, &request.limits)?))
}

/// Reads the header and the descriptors.
fn read(path: &Path, limits: &Limits) -> Result<SquashImage, SourceError> {
    let io = |error| SourceError::io(format!("reading {}", path.display()), error);
    let file = open_regular(path).map_err(|error| SourceError::io(format!("opening {}", path.display()), error))?;
    let length = file.metadata().map_err(io)?.len();
    let invalid = |what: String, hint: &str| {
        SourceError::invalid(format!("{}: {what}", path.display())).with_hint(hint.to_owned())
    };
    if !is_sif(path) {
        return Err(invalid("it is not a SIF file".to_owned(), "leave out sif: to have the form of the file detected"));
    }
    let descriptors = descriptors(&file, length, limits).map_err(|error| match error {
        SifError::Read(error) => io(error),
        SifError::Text(what) => invalid(what, "build or pull the image again"),
    })?;
    let Some(primary) = descriptors.iter().find(|found| found.is_partition(partition::PRIMARY)) else {
        if descriptors.iter().any(|found| found.kind == data::OCI_ROOT_INDEX) {
            let hint = "check the image that it was made of, such as docker://NAME";
            return Err(invalid("it is an OCI-SIF, which is not supported".to_owned(), hint));
        }
        return Err(invalid("the SIF file has no primary system partition".to_owned(), "build the image again"));
    };
    match primary.file_system {
        1 => {}
        2 => {
            let hint = "convert it: apptainer build NEW.sif SANDBOX, or mount it and check root:FOLDER";
            return Err(invalid("its file system is ext3, which is not supported; squashfs is".to_owned(), hint));
        }
        5 => {
            let hint = "check the image before it is encrypted";
            return Err(invalid("its file system is encrypted".to_owned(), hint));
        }
        other => {
            let what = format!("its file system has the type {other}, which is not supported; squashfs (1) is");
            return Err(invalid(what, "build the image again"));
        }
    }
    let notes = vec![
        "Apptainer passes the variables of the host to the container, where they override those of the image \
         (unless --cleanenv is given), runs it as the host's user, and mounts the home folder and /tmp"
            .to_owned(),
    ];
    let overlay = descriptors.iter().find(|found| found.is_partition(partition::OVERLAY)).map(|overlay| {
        Gap::new(format!(
            "the SIF file has an overlay partition of {} bytes ({}), which is not read: its files hide those of the image",
            overlay.range.end - overlay.range.start,
            printable(&overlay.name)
        ))
        .settled_by("check the SIF file from which it was made")
    });
    Ok(SquashImage {
        name: format!("sif:{}", path.display()),
        file,
        range: primary.range.clone(),
        platform: primary.platform(),
        notes,
        overlay,
        runtime: SquashRuntime::Apptainer,
    })
}

/// A descriptor that is in use.
#[derive(Debug)]
struct SifDescriptor {
    kind: u32,
    /// The data, which lies within the file.
    range: Range<u64>,
    name: String,
    /// Of a partition: the type of its file system, its own type, and the code of its architecture.
    file_system: u32,
    partition: u32,
    architecture: [u8; 2],
}

impl SifDescriptor {
    fn is_partition(&self, kind: u32) -> bool {
        self.kind == data::PARTITION && self.partition == kind
    }

    fn platform(&self) -> Option<Platform> {
        let architecture = match &self.architecture {
            b"01" => "386",
            b"02" => "amd64",
            b"03" => "arm",
            b"04" => "arm64",
            b"05" => "ppc64",
            b"06" => "ppc64le",
            b"11" => "s390x",
            b"12" => "riscv64",
            _ => return None,
        };
        format!("linux/{architecture}").parse().ok()
    }
}

enum SifError {
    Read(io::Error),
    Text(String),
}

/// Reads the descriptors.
fn descriptors(file: &File, length: u64, limits: &Limits) -> Result<Vec<SifDescriptor>, SifError> {
    let read = |bytes: &mut [u8], at: u64| {
        file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => SifError::Text(format!("the SIF file ends early at byte {at}")),
            _ => SifError::Read(error),
        })
    };
    let mut header = [0; HEADER];
    read(&mut header, 0)?;
    let total = number::<8>(&header, 88);
    let start = number::<8>(&header, 96);
    let most = limits.layers as u64;
    if total > most {
        let what = format!("the SIF file has {total} descriptors");
        return Err(SifError::Text(OverLimit::new(what, "layers", most).to_string()));
    }
    let mut descriptors = Vec::new();
    for index in 0..total {
        let at = start.saturating_add(index * DESCRIPTOR as u64);
        let mut raw = [0; DESCRIPTOR];
        read(&mut raw, at)?;
        let is_used = raw.get(4) == Some(&1);
        if !is_used {
            continue;
        }
        let offset = number::<8>(&raw, 17);
        let size = number::<8>(&raw, 25);
        let end = offset.checked_add(size).filter(|end| *end <= length);
        let end = end.ok_or_else(|| {
            let kind = number::<4>(&raw, 0);
            let name = text(&raw, 73);
            SifError::Text(format!(
                "the descriptor at byte {at} ({}, {kind:#x}) names {size} bytes at {offset}, but the SIF file has \
                 {length}",
                if name.is_empty() { "no name".into() } else { printable(&name) }
            ))
        })?;
        let small = |at: usize| u32::try_from(number::<4>(&raw, at)).unwrap_or(u32::MAX);
        descriptors.push(SifDescriptor {
            kind: small(0),
            range: offset..end,
            name: text(&raw, 73),
            file_system: small(201),
            partition: small(205),
            architecture: [209, 210].map(|at| raw.get(at).copied().unwrap_or_default()),
        });
    }
    Ok(descriptors)
}

/// A little-endian number of N bytes.
fn number<const N: usize>(raw: &[u8], at: usize) -> u64 {
    raw.iter().skip(at).take(N).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A name of at most 128 bytes, which a zero ends.
fn text(raw: &[u8], at: usize) -> String {
    let name: Vec<u8> = raw.iter().skip(at).take(128).copied().take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use model::Limits;

    /// A descriptor: type of data, type of file system, type of partition, architecture, range.
    type Part<'a> = (u32, u32, u32, &'a [u8; 2], Range<u64>);

    /// A SIF file with these descriptors, one unused, and this total length.
    fn sif(parts: &[Part<'_>], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[..20].copy_from_slice(b"#!/usr/bin/env run-s");
        bytes[32..42].copy_from_slice(MAGIC);
        bytes[88..96].copy_from_slice(&(parts.len() as u64 + 1).to_le_bytes());
        bytes[96..104].copy_from_slice(&4096_u64.to_le_bytes());
        bytes.extend([0xff; 4]);
        bytes.extend([0; DESCRIPTOR - 4]);
        for (kind, file_system, partition, architecture, range) in parts {
            let mut raw = [0; DESCRIPTOR];
            raw[..4].copy_from_slice(&kind.to_le_bytes());
            raw[4] = 1;
            raw[17..25].copy_from_slice(&range.start.to_le_bytes());
            raw[25..33].copy_from_slice(&(range.end.wrapping_sub(range.start)).to_le_bytes());
            raw[73..77].copy_from_slice(b"name");
            raw[201..205].copy_from_slice(&file_system.to_le_bytes());
            raw[205..209].copy_from_slice(&partition.to_le_bytes());
            raw[209..211].copy_from_slice(*architecture);
            bytes.extend(raw);
        }
        bytes.resize(length, 0);
        bytes
    }

    fn opened(bytes: &[u8]) -> Result<SquashImage, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        read(file.path(), &Limits::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_primary_partition_is_the_image() {
        let parts = [
            (0x4001, 0, 0, b"00", 7000..7010),
            (data::PARTITION, 2, partition::OVERLAY, b"04", 8000..8100),
            (data::PARTITION, 1, partition::PRIMARY, b"04", 9000..9999),
        ];
        let image = opened(&sif(&parts, 10_000)).unwrap();
        assert_eq!(image.range, 9000..9999);
        assert_eq!(image.platform.unwrap().to_string(), "linux/arm64");
        let overlay = image.overlay.unwrap().why;
        assert!(overlay.starts_with("the SIF file has an overlay partition of 100 bytes (name), which is not read"));
        let unknown = opened(&sif(&[(data::PARTITION, 1, partition::PRIMARY, b"00", 9000..9999)], 10_000)).unwrap();
        assert_eq!((unknown.platform, unknown.overlay), (None, None));
    }

    #[test]
    fn other_files_are_refused_with_advice() {
        let primary = |file_system| [(data::PARTITION, file_system, partition::PRIMARY, b"02", 9000..9100)];
        for (bytes, why) in [
            (sif(&primary(2), 10_000), "its file system is ext3, which is not supported; squashfs is\n  help: convert"),
            (sif(&primary(5), 10_000), "its file system is encrypted\n  help: check the image before"),
            (sif(&primary(4), 10_000), "its file system has the type 4"),
            (sif(&[], 10_000), "the SIF file has no primary system partition\n  help: build the image again"),
            (
                sif(&[(data::OCI_ROOT_INDEX, 0, 0, b"00", 9000..9001)], 10_000),
                "it is an OCI-SIF, which is not supported",
            ),
            (
                sif(&primary(1), 9050),
                "(name, 0x4004) names 100 bytes at 9000, but the SIF file has 9050\n  help: build or pull",
            ),
            (
                sif(&[(data::PARTITION, 1, partition::PRIMARY, b"02", 9000..u64::MAX)], 10_000),
                "but the SIF file has 10000",
            ),
            (sif(&primary(1), 5000), "the SIF file ends early at byte 4681"),
            (b"short".to_vec(), "it is not a SIF file"),
        ] {
            let error = opened(&bytes).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let mut many = sif(&[], 10_000);
        many[88..96].fill(0x7f);
        assert!(opened(&many).unwrap_err().contains("the limit is 512 (raise it with --limit layers=N)"));
    }
}
