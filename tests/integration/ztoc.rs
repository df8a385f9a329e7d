//! Compresses a layer's tar to a gzip stream with a separate zTOC, following its schema (soci-snapshotter,
//! `ztoc/fbs/ztoc.fbs` and `ztoc/compression/gzip_zinfo.c`).

use flate2::{Compress, Compression, FlushCompress};

use super::seekable::digest;

const WINDOW: usize = 32 << 10;

/// The content of a zTOC.
#[derive(Clone, Debug)]
pub(crate) struct Ztoc {
    pub(crate) version: Vec<u8>,
    pub(crate) packed: i64,
    pub(crate) unpacked: i64,
    pub(crate) algorithm: u8,
    pub(crate) last_span: i32,
    pub(crate) digests: Vec<String>,
    /// Offsets in blob and tar, bits, and window.
    pub(crate) checkpoints: Vec<(i64, i64, u8, Vec<u8>)>,
    /// Overrides the number of checkpoints.
    pub(crate) count: Option<i32>,
    pub(crate) files: Vec<File>,
    /// Number of times that each file is listed.
    pub(crate) copies: usize,
}

/// A member of the tar.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Vec<u8>,
    pub(crate) offset: i64,
    pub(crate) size: i64,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: i64,
    pub(crate) device: i64,
    pub(crate) records: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Compresses a tar, with spans of `span` bytes or slightly more. Blocks begin at whole bytes there.
pub(crate) fn convert(tar: &[u8], span: usize) -> (Vec<u8>, Ztoc) {
    let mut blob = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let mut deflate = Compress::new(Compression::new(6), false);
    let mut checkpoints = Vec::new();
    let mut at = 0;
    for piece in tar.chunks(span) {
        let before = &tar[at.max(WINDOW) - WINDOW..at];
        let window = [&vec![0; WINDOW - before.len()][..], before].concat();
        checkpoints.push((i64::try_from(blob.len()).unwrap(), i64::try_from(at).unwrap(), 0, window));
        at += piece.len();
        let flush = if at == tar.len() { FlushCompress::Finish } else { FlushCompress::Sync };
        blob.reserve(2 * piece.len() + 1000);
        deflate.compress_vec(piece, &mut blob, flush).unwrap();
    }
    let mut sum = flate2::Crc::new();
    sum.update(tar);
    blob.extend(sum.sum().to_le_bytes());
    blob.extend(sum.amount().to_le_bytes());
    let ends = checkpoints.iter().skip(1).map(|next| next.0).chain([i64::try_from(blob.len()).unwrap()]);
    let ranges = checkpoints
        .iter()
        .zip(ends)
        .map(|(point, end)| usize::try_from(point.0).unwrap()..usize::try_from(end).unwrap());
    let ztoc = Ztoc {
        version: b"0.9".to_vec(),
        packed: blob.len().try_into().unwrap(),
        unpacked: tar.len().try_into().unwrap(),
        algorithm: 1,
        last_span: i32::try_from(checkpoints.len()).unwrap() - 1,
        digests: ranges.map(|range| digest(&blob[range])).collect(),
        checkpoints,
        count: None,
        files: tar::Archive::new(tar).entries().unwrap().map(|entry| file(&entry.unwrap())).collect(),
        copies: 1,
    };
    (blob, ztoc)
}

fn file(entry: &tar::Entry<'_, &[u8]>) -> File {
    let kind: &[u8] = match entry.header().entry_type() {
        tar::EntryType::Directory => b"dir",
        tar::EntryType::Symlink => b"symlink",
        tar::EntryType::Link => b"hardlink",
        tar::EntryType::Char => b"char",
        _ => b"reg",
    };
    File {
        name: entry.path_bytes().into_owned(),
        kind: kind.to_vec(),
        offset: entry.raw_file_position().try_into().unwrap(),
        size: if kind == b"reg" { entry.size().try_into().unwrap() } else { 0 },
        link: entry.link_name_bytes().unwrap_or_default().into_owned(),
        mode: entry.header().mode().unwrap().into(),
        device: 0,
        records: Vec::new(),
    }
}

impl Ztoc {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        use Field::{Byte, Int, Long, Node as Of};
        let text = |text: &[u8]| Of(Node::Text(text.to_vec()));
        let record = |(key, value): &(Vec<u8>, Vec<u8>)| Node::Table(vec![text(key), text(value)]);
        let file = |file: &File| {
            Node::Table(vec![
                text(&file.name),
                text(&file.kind),
                Long(file.offset),
                Long(file.size),
                text(&file.link),
                Long(file.mode),
                Int(0),
                Int(0),
                text(b"root"),
                text(b"root"),
                text(b"2025-01-01T00:00:00Z"),
                Long(file.device),
                Long(file.device),
                Of(Node::List(file.records.iter().map(record).collect(), 1)),
            ])
        };
        let count = self.count.unwrap_or(i32::try_from(self.checkpoints.len()).unwrap());
        let mut checkpoints = [&count.to_le_bytes()[..], &(4_i64 << 20).to_le_bytes()].concat();
        for (packed, unpacked, bits, window) in &self.checkpoints {
            checkpoints.extend(packed.to_le_bytes().into_iter().chain(unpacked.to_le_bytes()).chain([*bits]));
            checkpoints.extend(window);
        }
        let digests = self.digests.iter().map(|digest| Node::Text(digest.clone().into_bytes())).collect();
        let root = Node::Table(vec![
            text(&self.version),
            text(b"tests"),
            Long(self.packed),
            Long(self.unpacked),
            Of(Node::Table(vec![Of(Node::List(self.files.iter().map(file).collect(), self.copies))])),
            Of(Node::Table(vec![
                Byte(self.algorithm),
                Int(self.last_span),
                Of(Node::List(digests, 1)),
                text(&checkpoints),
            ])),
        ]);
        let mut out = vec![0; 4];
        let at = root.write(&mut out);
        patch(&mut out, 0, at);
        out
    }
}

/// A FlatBuffers object that an offset refers to.
enum Node {
    Text(Vec<u8>),
    /// A list, with the number of times that each element is written.
    List(Vec<Node>, usize),
    Table(Vec<Field>),
}

enum Field {
    Byte(u8),
    Int(i32),
    Long(i64),
    Node(Node),
}

impl Node {
    /// Returns the offset at which it was written.
    fn write(&self, out: &mut Vec<u8>) -> usize {
        let length = |list: usize| u32::try_from(list).unwrap().to_le_bytes();
        let begin = out.len();
        match self {
            Self::Text(text) => {
                out.extend(length(text.len()));
                out.extend(text);
                begin
            }
            Self::List(list, copies) => {
                out.extend(length(list.len() * copies));
                out.resize(out.len() + 4 * list.len() * copies, 0);
                for (index, node) in list.iter().enumerate() {
                    let to = node.write(out);
                    for copy in 0..*copies {
                        patch(out, begin + 4 + 4 * (index * copies + copy), to);
                    }
                }
                begin
            }
            Self::Table(fields) => {
                let (mut body, mut places) = (Vec::new(), Vec::new());
                for field in fields {
                    places.push(4 + u16::try_from(body.len()).unwrap());
                    match field {
                        Field::Byte(byte) => body.push(*byte),
                        Field::Int(int) => body.extend(int.to_le_bytes()),
                        Field::Long(long) => body.extend(long.to_le_bytes()),
                        Field::Node(_) => body.extend([0; 4]),
                    }
                }
                let head = 4 + 2 * places.len();
                out.extend(u16::try_from(head).unwrap().to_le_bytes());
                out.extend(u16::try_from(4 + body.len()).unwrap().to_le_bytes());
                out.extend(places.iter().flat_map(|place| place.to_le_bytes()));
                let at = out.len();
                out.extend(length(head));
                out.extend(body);
                for (field, place) in fields.iter().zip(places) {
                    if let Field::Node(node) = field {
                        let to = node.write(out);
                        patch(out, at + usize::from(place), to);
                    }
                }
                at
            }
        }
    }
}

fn patch(out: &mut [u8], at: usize, to: usize) {
    out[at..at + 4].copy_from_slice(&u32::try_from(to - at).unwrap().to_le_bytes());
}
