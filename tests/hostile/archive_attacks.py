"""Archives of images whose members cost more than their bytes."""
import itertools, zlib

import tarball
from attack import attack, check
from made import END, member


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
