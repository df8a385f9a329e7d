"""Forms of whole layers: how a tar ends, how it is packed, and what the manifest and the configuration say of it.

FORMS has for each form the values of the fields of a headers.Layer.
"""
import gzip, subprocess, zlib

import oci
from tarball import file, header, pax

FORMS = {}


def layer_form(name, **values):
    FORMS[name] = values


# ---- ends ----

layer_form("end: one zero block", end=b"\0" * 512)
layer_form("end: none", end=b"")
layer_form("end: a part of a zero block", end=b"\0" * 100)
layer_form("end: a part of the second zero block", end=b"\0" * 700)
layer_form("end: 20 zero blocks", end=b"\0" * 10240)
layer_form("end: text after it", end=b"\0" * 1024 + b"text")
layer_form("end: a member after it", end=b"\0" * 1024 + file(b"behind", 3) + b"\0" * 1024)
layer_form("end: one zero block, then a member", end=b"\0" * 512 + file(b"behind", 3) + b"\0" * 1024)
layer_form("end: a block that is not a header", end=b"\xaa" * 512 + b"\0" * 1024)
layer_form("end: one zero block, then a block that is not a header", end=b"\0" * 512 + b"\xaa" * 512)
layer_form("end: one zero block, then part of a header", end=b"\0" * 512 + file(b"behind")[:300])
layer_form("end: part of a header", end=file(b"behind")[:300])
layer_form("end: a member without its body", end=header(b"behind", size=1000))
layer_form("end: a member with part of its body", end=header(b"behind", size=1000) + b"x" * 500)
layer_form("end: a member without its padding", end=header(b"behind", size=10) + b"x" * 10)
layer_form("end: a member without part of its padding", end=header(b"behind", size=10) + b"x" * 100)
layer_form("end: a PAX header alone", end=pax([(b"path", b"behind")]))
layer_form("end: a PAX header without its body", end=pax([(b"path", b"behind")])[:512])

# ---- packing ----


def member(data, **fields):
    """A gzip member with optional header fields."""
    flags = 4 * ("extra" in fields) | 8 * ("name" in fields) | 16 * ("comment" in fields) | 2 * ("crc" in fields) | fields.get("flags", 0)
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff"
    head += len(fields["extra"]).to_bytes(2, "little") + fields["extra"] if "extra" in fields else b""
    head += fields["name"] + b"\0" if "name" in fields else b""
    head += fields["comment"] + b"\0" if "comment" in fields else b""
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little") if fields.get("crc") == "right" else b"\1\2" if "crc" in fields else b""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    return head + deflate.compress(data) + deflate.flush() + zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")


def packed(data):
    return gzip.compress(data, mtime=0)


def halves(pack, between=b""):
    return lambda tar: pack(tar[:len(tar) // 2]) + between + pack(tar[len(tar) // 2:])


def by(*command):
    return lambda tar: subprocess.run(command, input=tar, stdout=subprocess.PIPE, check=True).stdout


SKIPPABLE = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
PACKS = {
    "plain": lambda tar: tar, "gzip": packed, "gzip in two members": halves(packed),
    "gzip with an empty member first": lambda tar: packed(b"") + packed(tar),
    "gzip with an empty member last": lambda tar: packed(tar) + packed(b""),
    "gzip with an empty member in between": halves(packed, packed(b"")),
    "gzip with all header fields": lambda tar: member(tar, extra=b"EX\2\0ab", name=b"layer.tar", comment=b"none"),
    "gzip with a right header checksum": lambda tar: member(tar, crc="right"),
    "gzip with a wrong header checksum": lambda tar: member(tar, crc="wrong"),
    "gzip with a long extra field": lambda tar: member(tar, extra=b"e" * 60000),
    "gzip with reserved flags": lambda tar: member(tar, flags=0x80),
    "gzip with a long name": lambda tar: member(tar, name=b"n" * 2000),
    "gzip with zero bytes after it": lambda tar: packed(tar) + b"\0" * 100,
    "gzip with text after it": lambda tar: packed(tar) + b"text that is not gzip",
    "gzip with a wrong CRC": lambda tar: packed(tar)[:-8] + b"\1\2\3\4" + packed(tar)[-4:],
    "gzip with a wrong length": lambda tar: packed(tar)[:-4] + b"\1\2\3\4",
    "gzip without its trailer": lambda tar: packed(tar)[:-8],
    "gzip, cut": lambda tar: packed(tar)[:-30], "gzip of gzip": lambda tar: packed(packed(tar)), "zlib": zlib.compress,
    "zstd": by("zstd", "-q"), "zstd in two frames": halves(by("zstd", "-q")),
    "zstd with a skippable frame first": lambda tar: SKIPPABLE + by("zstd", "-q")(tar),
    "zstd with a skippable frame last": lambda tar: by("zstd", "-q")(tar) + SKIPPABLE,
    "zstd with a skippable frame in between": halves(by("zstd", "-q"), SKIPPABLE),
    "zstd with text after it": lambda tar: by("zstd", "-q")(tar) + b"text",
    "zstd with a long window": by("zstd", "-q", "--ultra", "--long=27", "-20"),
    "zstd with a window of 256 MiB": by("zstd", "-q", "--long=28"), "zstd without a checksum": by("zstd", "-q", "--no-check"),
    "zstd, cut": lambda tar: by("zstd", "-q")(tar)[:-10],
    "bzip2": by("bzip2"), "xz": by("xz"), "lz4": lambda tar: b"\x04\x22\x4d\x18" + tar, "an empty blob": lambda tar: b"",
}
for _name, _pack in PACKS.items():
    layer_form("packing: " + _name, pack=_pack, media=oci.LAYER + ("+gzip" if "gzip" in _name else "+zstd" if "zstd" in _name else ""))

DOCKER = "application/vnd.docker.image.rootfs."
MEDIA = {
    "Docker's, gzip": (DOCKER + "diff.tar.gzip", "gzip"), "Docker's, plain": (DOCKER + "diff.tar", "plain"),
    "Docker's, zstd": (DOCKER + "diff.tar.zstd", "zstd"), "Docker's gzip of a plain tar": (DOCKER + "diff.tar.gzip", "plain"),
    "Docker's plain of gzip": (DOCKER + "diff.tar", "gzip"), "OCI plain of gzip": (oci.LAYER, "gzip"),
    "OCI plain of zstd": (oci.LAYER, "zstd"), "OCI gzip of a plain tar": (oci.LAYER + "+gzip", "plain"),
    "OCI gzip of zstd": (oci.LAYER + "+gzip", "zstd"), "OCI zstd of gzip": (oci.LAYER + "+zstd", "gzip"),
    "OCI zstd of a plain tar": (oci.LAYER + "+zstd", "plain"), "foreign, Docker's": (DOCKER + "foreign.diff.tar.gzip", "gzip"),
    "foreign, Docker's, plain": (DOCKER + "foreign.diff.tar", "plain"),
    "nondistributable": ("application/vnd.oci.image.layer.nondistributable.v1.tar", "plain"),
    "nondistributable, gzip": ("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", "gzip"),
    "nondistributable, zstd": ("application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", "zstd"),
    "unknown": ("application/x-unknown", "plain"), "unknown suffix": (oci.LAYER + "+lz4", "plain"), "empty": ("", "plain"),
    "with a parameter": (oci.LAYER + "+gzip; charset=utf-8", "gzip"), "upper case": (oci.LAYER.upper(), "plain"),
    "an encrypted one": (oci.LAYER + "+gzip+encrypted", "gzip"), "an application's": ("application/vnd.example.model", "plain"),
    "octets": ("application/octet-stream", "gzip"),
}
for _name, (_media, _pack) in MEDIA.items():
    layer_form("media type: " + _name, media=_media, pack=PACKS[_pack])
layer_form("media type: foreign, Docker's, without its blob", media=DOCKER + "foreign.diff.tar.gzip", pack=packed, blob=False)
layer_form("media type: nondistributable, without its blob", media="application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
           pack=packed, blob=False)
layer_form("diff ID: of another tar", diff_id="sha256:" + "1" * 64)
