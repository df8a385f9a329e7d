"""Tars whose members cost more than their bytes."""
import gzip, itertools

import oci, tarball
from attack import attack, check
from made import END, SITE, Layout, hole, member, of_layer, pax


@attack(quick={"count": 40, "size": 16 << 20, "name": "x.pth"}, count=[20, 40, 200, 2_000], size=[1 << 20, 16 << 20], name=["x.pth", "nccl.conf"])
def sparse_texts(folder, count, size, name):
    paths = [b"opt/%04d/dist-packages/" % number + name.encode() for number in range(count)]
    return check(of_layer(folder, (hole(path, size) for path in paths)))


@attack(quick={"count": 200, "size": 1 << 20}, count=[20, 200], size=[1 << 20, 16 << 20])
def real_texts(folder, count, size):
    """The same, of bytes: comment lines."""
    data = b"#" * 99 + b"\n"
    data *= size // 100
    return check(of_layer(folder, (member(b"opt/%04d/dist-packages/x.pth" % number, data) for number in range(count))))


@attack(quick={"count": 400, "depth": 2_040}, count=[200, 400, 10_000], depth=[100, 2_040])
def deep_paths(folder, count, depth):
    deep = b"a/" * (depth - 4) + b"f"
    return check(of_layer(folder, (member(b"%05d/" % number + deep, b"") for number in range(count))))


@attack(quick={"count": 400, "depth": 1_000}, count=[400, 20_000], depth=[100, 1_000])
def deep_folders(folder, count, depth):
    """The same, with an entry for each folder of the first path."""
    folders = (member(b"a/" * level, b"", kind=b"5") for level in range(1, depth))
    return check(of_layer(folder, itertools.chain(folders, (member(b"a/" * (depth - 1) + b"%05d" % number, b"") for number in range(count)))))


@attack(quick={"count": 20_000, "length": 4_000}, count=[2_000, 20_000, 200_000], length=[200, 4_000])
def long_paths(folder, count, length):
    tail = b"/".join([b"p" * 180] * (length // 181))
    return check(of_layer(folder, (member(b"%06d/" % number + tail, b"") for number in range(count))))


@attack(quick={"count": 20_000, "length": 4_000}, count=[2_000, 20_000, 100_000], length=[200, 4_000])
def long_link_targets(folder, count, length):
    target = b"/".join([b"t" * 180] * (length // 181))
    links = (pax(tarball.record(b"linkpath", target)) + tarball.symlink(b"%06d" % number, b"t") for number in range(count))
    return check(of_layer(folder, links))


@attack(quick={"count": 300_000}, count=[30_000, 300_000, 1_000_000])
def empty_files(folder, count):
    return check(of_layer(folder, (tarball.header(b"f/%07d" % number) for number in range(count))))


@attack(quick={"count": 700, "size": 1 << 19}, count=[70, 700], size=[1 << 16, 1 << 19, 1_000_000])
def global_records(folder, count, size):
    """Global headers, each with a record of another name."""
    return check(of_layer(folder, (pax(tarball.record(b"key%06d" % number, b"v" * size), b"g") for number in range(count))))


@attack(quick={"keys": 30_000, "members": 1_000}, keys=[300, 30_000, 60_000], members=[100, 1_000, 20_000])
def global_keys(folder, keys, members):
    """Global records, which each member inherits."""
    heads = [pax(b"".join(tarball.record(b"k%d" % number, b"v") for number in range(start, min(start + 30_000, keys))), b"g")
             for start in range(0, keys, 30_000)]
    return check(of_layer(folder, itertools.chain(heads, (tarball.header(b"f/%07d" % number) for number in range(members)))))


@attack(quick={"keys": 60_000, "members": 20}, keys=[6_000, 60_000], members=[20, 200])
def own_records(folder, keys, members):
    head = pax(b"".join(tarball.record(b"SCHILY.xattr.user.%d" % number, b"v") for number in range(keys))[:1_000_000].rsplit(b"\n", 1)[0] + b"\n")
    return check(of_layer(folder, (head + tarball.header(b"f/%07d" % number) for number in range(members))))


@attack(quick={"count": 65_000, "members": 4}, count=[6_000, 65_000], members=[4, 200])
def sparse_maps(folder, count, members):
    """Sparse files of many extents of one byte."""
    text = b",".join(b"%d,1" % (2 * number) for number in range(count))
    real = 2 * count

    def one(number):
        records = [(b"major", b"0"), (b"minor", b"1"), (b"name", b"opt/%03d.pth" % number), (b"size", b"%d" % real),
                   (b"numblocks", b"%d" % count), (b"map", text)]
        return pax(b"".join(tarball.record(b"GNU.sparse." + key, value) for key, value in records)) + tarball.file(b"s", count)
    return check(of_layer(folder, (one(number) for number in range(members))))


@attack(quick={"count": 20_000}, count=[2_000, 20_000, 200_000])
def whiteouts(folder, count):
    return check(of_layer(folder, (tarball.header(b"usr/lib/.wh.%07d" % number) for number in range(count))))


@attack(quick={"layers": 100, "count": 1_000}, layers=[10, 100, 500], count=[10, 1_000])
def opaque_layers(folder, layers, count):
    """Each layer hides all of the one below, and fills the folder again."""
    image = Layout(folder)
    for layer in range(layers):
        image.layer(itertools.chain([tarball.header(b"opt/x/.wh..wh..opq")], (tarball.header(b"opt/x/%03d-%06d" % (layer, n)) for n in range(count))))
    return check(image.finish())


@attack(quick={"count": 39, "files": 2_000}, count=[10, 39, 41], files=[2_000, 50_000])
def chains_of_links(folder, count, files):
    """Files below a chain of links, which each path follows."""
    links = [tarball.symlink(b"l%02d" % number, b"l%02d" % (number + 1)) for number in range(count)]
    return check(of_layer(folder, itertools.chain(links, (tarball.header(b"l00/f%06d" % number) for number in range(files)))))


@attack(quick={"depth": 20, "width": 20}, depth=[5, 20, 39], width=[2, 20])
def links_that_multiply(folder, depth, width):
    """Each link's target names the next one many times."""
    links = [tarball.directory(b"d")] + [
        pax(tarball.record(b"linkpath", b"/".join([b"m%02d" % (number + 1), b".."] * width + [b"m%02d" % (number + 1)])))
        + tarball.symlink(b"m%02d" % number, b"x") for number in range(depth)]
    links += [tarball.symlink(b"m%02d" % depth, b"d"), tarball.header(b"m00/file"), tarball.symlink(b"etc/nccl.conf", b"/m00/file")]
    return check(of_layer(folder, links))


@attack(quick={"count": 100_000}, count=[1_000, 100_000])
def hard_links(folder, count):
    return check(of_layer(folder, itertools.chain([tarball.header(b"f")], (tarball.header(b"h/%07d" % number, b"1", link=b"f") for number in range(count)))))


@attack(quick={"levels": 3, "layers": 20}, levels=[2, 3], layers=[1, 20, 100])
def nested_gzip(folder, levels, layers):
    """Zeros, compressed again and again: only the innermost are a tar."""
    import zlib
    packer = zlib.compressobj(9, wbits=31)
    data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(2_048)) + packer.flush()
    for _ in range(levels - 1):
        data = gzip.compress(data, 9, mtime=0)
    image = Layout(folder)
    for number in range(layers):
        image.blob(data + gzip.compress(b"%d" % number), "sha256:%064d" % number)
    return check(image.finish(), exits=(2,))


@attack(quick={"megabytes": 2_048, "how": "zstd"}, megabytes=[512, 2_048], how=["gzip", "zstd"])
def zeros_behind_the_tar(folder, megabytes, how):
    """A small tar, and zeros to the end of the stream."""
    import hashlib, subprocess, zlib
    digest, chunk = hashlib.sha256(END), bytes(1 << 20)
    for _ in range(megabytes):
        digest.update(chunk)
    if how == "gzip":
        packer = zlib.compressobj(9, wbits=31)
        data = packer.compress(END) + b"".join(packer.compress(chunk) for _ in range(megabytes)) + packer.flush()
    else:
        packer = subprocess.Popen(["zstd", "-q", "-19", "--long=27"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        packer.stdin.write(END)
        for _ in range(megabytes):
            packer.stdin.write(chunk)
        data = packer.communicate()[0]
    return check(Layout(folder).blob(data, "sha256:" + digest.hexdigest(), oci.LAYER + "+" + how).finish())


@attack(quick={"count": 5_000}, count=[500, 5_000, 50_000])
def members_of_gzip(folder, count):
    """One gzip stream of many members of one byte each."""
    data = b"".join(gzip.compress(END[number % 512:number % 512 + 1], mtime=0) for number in range(count))
    return check(Layout(folder).blob(data, oci.digest(bytes(count))).finish())


@attack(quick={"name": b"\x1b[31m"}, name=[b"\x1b[31m", b"\n::error::x", b"\r\xe2\x80\xae", b"\xff\xfe", b"\0", b"a/../../../etc/passwd", b"."])
def names_of_files(folder, name):
    return check(of_layer(folder, member(b"opt/" + name + b"/nccl.conf", b"NCCL_DEBUG=INFO\n")))
