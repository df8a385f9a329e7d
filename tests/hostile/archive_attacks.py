"""Archives of images whose members cost more than their bytes, and tables of contents that list what is not there."""
import gzip, itertools, json, zlib

import oci, tarball
from attack import attack, check
from made import END, Layout, member


@attack(quick={"count": 20_000, "length": 4_000, "packed": True}, count=[2_000, 20_000, 100_000], length=[90, 4_000], packed=[True, False])
def links_of_an_archive(folder, count, length, packed):
    target = b"t" * length
    packer = zlib.compressobj(6, wbits=31)
    with open(folder / "image.tar", "wb") as file:
        for number in itertools.chain(range(count), [None]):
            head = tarball.header(b"././@LongLink", b"K", size=length + 1) + tarball.padded(target + b"\0")
            data = END if number is None else head + tarball.symlink(b"%06d" % number, b"t")
            file.write(packer.compress(data) if packed else data)
        file.write(packer.flush() if packed else b"")
    return check("image.tar", exits=(2,))


@attack(quick={"count": 200_000, "packed": True}, count=[20_000, 200_000], packed=[True, False])
def members_of_an_archive(folder, count, packed):
    packer = zlib.compressobj(6, wbits=31)
    with open(folder / "image.tar", "wb") as file:
        for number in itertools.chain(range(count), [None]):
            data = END if number is None else tarball.header(b"%064d/layer.tar" % number)
            file.write(packer.compress(data) if packed else data)
        file.write(packer.flush() if packed else b"")
    return check("image.tar", exits=(2,))


@attack(quick={"name": "manifest.json", "data": "deep"}, name=["manifest.json", "index.json", "repositories"], data=["deep", "long", "list", "null"])
def documents_of_an_archive(folder, name, data):
    body = {"deep": b"[" * 1_000_000, "long": b'"' + b"a" * 5_000_000 + b'"', "list": b"[" + b"{}," * 300_000 + b"{}]", "null": b"null"}[data]
    (folder / "image.tar").write_bytes(member(name.encode(), body) + END)
    return check("image.tar", exits=(2,))


"""Archives of images whose members cost more than their bytes, and tables of contents that list what is not there."""
import gzip, itertools, json, zlib

import oci, tarball
from attack import attack, check
from made import END, Layout, member


@attack(quick={"count": 20_000, "length": 4_000, "packed": True}, count=[2_000, 20_000, 100_000], length=[90, 4_000], packed=[True, False])
def links_of_an_archive(folder, count, length, packed):
    target = b"t" * length
    packer = zlib.compressobj(6, wbits=31)
    with open(folder / "image.tar", "wb") as file:
        for number in itertools.chain(range(count), [None]):
            head = tarball.header(b"././@LongLink", b"K", size=length + 1) + tarball.padded(target + b"\0")
            data = END if number is None else head + tarball.symlink(b"%06d" % number, b"t")
            file.write(packer.compress(data) if packed else data)
        file.write(packer.flush() if packed else b"")
    return check("image.tar", exits=(2,))


@attack(quick={"count": 200_000, "packed": True}, count=[20_000, 200_000], packed=[True, False])
def members_of_an_archive(folder, count, packed):
    packer = zlib.compressobj(6, wbits=31)
    with open(folder / "image.tar", "wb") as file:
        for number in itertools.chain(range(count), [None]):
            data = END if number is None else tarball.header(b"%064d/layer.tar" % number)
            file.write(packer.compress(data) if packed else data)
        file.write(packer.flush() if packed else b"")
    return check("image.tar", exits=(2,))


@attack(quick={"name": "manifest.json", "data": "deep"}, name=["manifest.json", "index.json", "repositories"], data=["deep", "long", "list", "null"])
def documents_of_an_archive(folder, name, data):
    body = {"deep": b"[" * 1_000_000, "long": b'"' + b"a" * 5_000_000 + b'"', "list": b"[" + b"{}," * 300_000 + b"{}]", "null": b"null"}[data]
    (folder / "image.tar").write_bytes(member(name.encode(), body) + END)
    return check("image.tar", exits=(2,))


@attack(quick={"entries": 2_000_000, "name": "same"}, entries=[20_000, 2_000_000, 6_000_000], name=["same", "deep"])
def zstd_chunked_table(folder, entries, name):
    """A zstd:chunked manifest of one short entry, repeated."""
    import struct
    one = {"same": '{"type":"reg","name":"a"}', "deep": '{"type":"reg","name":"%sf"}' % ("a/" * 900)}[name]
    entries = entries if name == "same" else entries // 100
    text = ('{"version":1,"entries":[%s]}' % ",".join(itertools.repeat(one, entries))).encode()
    packed = oci.zstd(text)
    tar = tarball.header(b"a") + END
    data = oci.zstd(tar)
    place = len(data) + 8
    data += struct.pack("<II", 0x184D2A50, len(packed)) + packed
    foot = struct.pack("<QQQQQQQ8s", place, len(packed), len(text), 1, 0, 0, 0, b"GNUlInUx")
    data += struct.pack("<II", 0x184D2A50, len(foot)) + foot
    annotations = {"io.github.containers.zstd-chunked.manifest-checksum": oci.digest(packed),
                   "io.github.containers.zstd-chunked.manifest-position": "%d:%d:%d:1" % (place, len(packed), len(text))}
    return check(Layout(folder).blob(data, oci.digest(tar), oci.LAYER + "+zstd", annotations=annotations).finish(), "--in-part")
