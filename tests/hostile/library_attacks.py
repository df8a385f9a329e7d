"""Libraries whose tables name the same bytes again and again."""
import struct

import elf
from attack import attack, check
from made import SITE, Layout, hole, member, of_file, of_layer

TORCH = SITE + b"/torch/lib/libtorch_cuda.so"
CPU = SITE + b"/torch/lib/libtorch_cpu.so"


def library(folder, path, build):
    made = elf.Library()
    build(made)
    return check(of_file(folder, path, made.bytes()))


@attack(quick={"count": 10_000, "length": 64_000}, count=[1_000, 10_000, 40_000], length=[100, 64_000])
def needed_of_one_name(folder, count, length):
    def build(made):
        made.strings(b"\0" + b"n" * length + b"\0")
        for _ in range(count):
            made.tag(elf.NEEDED, 1)
    return library(folder, TORCH, build)


@attack(quick={"tag": "RPATH", "count": 1_000, "text": "colons"}, tag=["RPATH", "RUNPATH"], count=[1, 1_000],
        text=["colons", "folders", "origins", "unknown tokens"])
def search_paths(folder, tag, count, text):
    part = {"colons": b":", "folders": b"/f:", "origins": b"$ORIGIN/..:", "unknown tokens": b"$LIB/$PLATFORM:"}[text]

    def build(made):
        made.strings(b"\0libabsent.so\0" + part * (65_000 // len(part)) + b"\0")
        made.tag(elf.NEEDED, 1)
        for _ in range(count):
            made.tag(getattr(elf, tag), 14)
    return library(folder, TORCH, build)


@attack(quick={"folders": 90_000}, folders=[10_000, 90_000])
def runpath_and_long_needed(folder, folders):
    def build(made):
        path = b":".join(b"/%05d" % number for number in range(folders))
        made.strings(b"\0" + b"n" * 60_000 + b"\0" + path + b"\0")
        made.tag(elf.NEEDED, 1)
        made.tag(elf.RUNPATH, 60_002)
    return library(folder, TORCH, build)


@attack(quick={"folders": 6_000, "needed": 1_000}, folders=[600, 6_000], needed=[1, 1_000, 10_000])
def searched_by_many(folder, folders, needed):
    """Each of many absent libraries is sought in each of many folders."""
    def build(made):
        names = [b"lib%05d.so" % number for number in range(needed)]
        path = b":".join(b"/%05d" % number for number in range(folders))
        made.strings(b"\0" + path + b"\0" + b"\0".join(names) + b"\0")
        for number in range(needed):
            made.tag(elf.NEEDED, len(path) + 2 + number * 12)
        made.tag(elf.RUNPATH, 1)
    return library(folder, TORCH, build)


@attack(quick={"count": 20_000, "length": 64_000, "defined": True}, count=[2_000, 20_000, 200_000], length=[20, 1_000, 64_000], defined=[True, False])
def symbols_of_one_name(folder, count, length, defined):
    def build(made):
        made.strings(b"\0nccl" + b"s" * length + b"\0")
        made.symbols([(1, defined)] * count)
    return library(folder, SITE + b"/nvidia/nccl/lib/libnccl.so.2", build)


@attack(quick={"count": 500_000, "defined": True}, count=[50_000, 500_000], defined=[True, False])
def symbols_of_own_names(folder, count, defined):
    def build(made):
        made.strings(b"\0" + b"".join(b"nccl%06d\0" % number for number in range(count)))
        made.symbols([(1 + 11 * number, defined) for number in range(count)])
    return library(folder, SITE + b"/nvidia/nccl/lib/libnccl.so.2", build)


@attack(quick={"words": 4_000_000_000}, words=[1_000_000, 4_000_000_000])
def hash_table_that_claims(folder, words):
    def build(made):
        made.strings(b"\0name\0")
        made.tag(elf.SYMTAB, made.add(b"\0" * 48))
        made.tag(elf.HASH, made.add(struct.pack("<IIII", words, words, 0, 0)))
    return library(folder, TORCH, build)


@attack(quick={"buckets": 1_000_000, "end": False}, buckets=[1, 1_000_000], end=[True, False])
def gnu_hash_chain(folder, buckets, end):
    def build(made):
        made.strings(b"\0name\0")
        made.tag(elf.SYMTAB, made.add(b"\0" * 48))
        table = struct.pack("<IIIIQ", buckets, 0, 1, 0, 0) + struct.pack("<I", 1) * buckets
        made.tag(elf.GNU_HASH, made.add(table + (b"\1\0\0\0" if end else b"\0\0\0\0") * 2_000_000))
    return library(folder, TORCH, build)


@attack(quick={"needs": 30_000, "shared": 30_000}, needs=[300, 30_000], shared=[1, 300, 30_000])
def version_needs_that_share(folder, needs, shared):
    def build(made):
        made.strings(b"\0libx.so\0" + b"v" * 1_000 + b"\0")
        base = 16 * needs
        table = b"".join(struct.pack("<HHIII", 1, shared, 1, base - 16 * number, 16 if number + 1 < needs else 0) for number in range(needs))
        table += b"".join(struct.pack("<IHHII", 0, 0, number % 60_000 + 2, 9, 16) for number in range(shared))
        made.tag(elf.VERNEED, made.add(table))
        made.tag(elf.VERNEEDNUM, needs)
    return library(folder, TORCH, build)


@attack(quick={"count": 60_000, "size": 16 << 20, "cell": 12}, count=[100, 60_000], size=[1 << 16, 16 << 20], cell=[12, 4096])
def notes_over_one_range(folder, count, size, cell):
    made = elf.Library(count + 2)
    note = struct.pack("<III", 0, cell - 12, 7) + b"\0" * (cell - 12)
    place = made.add(note * (size // cell))
    for _ in range(count):
        made.segment(elf.NOTE, place, size // cell * cell, 4)
    return check(of_file(folder, TORCH, made.bytes()))


@attack(quick={"count": 65_000}, count=[1_000, 65_000])
def load_segments_over_one_range(folder, count):
    made = elf.Library(count + 2)
    place = made.add(b"\0" * (1 << 20))
    for _ in range(count):
        made.segment(elf.LOAD, place, 1 << 20, 4096)
    made.strings(b"\0libc.so.6\0")
    made.tag(elf.NEEDED, 1)
    return check(of_file(folder, TORCH, made.bytes()))


@attack(quick={"chain": 2_000, "width": 1}, chain=[200, 2_000], width=[1, 20])
def chain_of_needed(folder, chain, width):
    """Libraries that need the next ones, each below a folder of its own."""
    layer = []
    for number in range(chain):
        made = elf.Library()
        names = [b"lib%05d.so" % (number + step + 1) for step in range(width)]
        made.strings(b"\0" + b"\0".join(names) + b"\0$ORIGIN\0")
        for step in range(width):
            made.tag(elf.NEEDED, 1 + 12 * step)
        made.tag(elf.RUNPATH, 1 + 12 * width)
        name = TORCH if number == 0 else SITE + b"/torch/lib/lib%05d.so" % number
        layer.append(member(name, made.bytes()))
    return check(of_layer(folder, b"".join(layer)))


@attack(quick={"size": 4 << 30, "name": "libtorch_cpu.so"}, size=[1 << 30, 4 << 30, 1 << 36], name=["libtorch_cpu.so", "libnccl.so.2", "plain.bin"])
def hole_as_library(folder, size, name):
    """A library whose content is one hole: 4 GiB of it must not be written to the temporary folder."""
    return check(of_layer(folder, hole(SITE + b"/torch/lib/" + name.encode(), size)))


@attack(quick={"literals": 10_000}, literals=[1_000, 10_000, 100_000])
def build_options_of_many_literals(folder, literals):
    made = elf.Library()
    made.add(b"\0".join(b"USE_%07d" % number for number in range(literals)) + b"\0BUILD_TYPE\0")
    made.add(b"\x90" * (10 << 20))
    made.strings(b"\0_ZN6caffe215GetBuildOptionsEv\0")
    made.symbols([(1, True)])
    return check(of_file(folder, CPU, made.bytes()))


@attack(quick={"byte": 0x90}, byte=[0x00, 0x55, 0x90, 0xc3, 0xcc, 0xe8, 0xeb, 0xf3])
def code_of_one_byte(folder, byte):
    made = elf.Library()
    place = made.add(bytes([byte]) * (10 << 20))
    made.strings(b"\0_ZN6caffe215GetBuildOptionsB5cxx11Ev\0")
    made.tag(elf.SYMTAB, made.add(b"\0" * 24 + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, place, 10 << 20)))
    made.tag(elf.HASH, made.add(struct.pack("<IIII", 1, 2, 0, 0)))
    return check(of_file(folder, CPU, made.bytes()))


@attack(quick={"count": 2_000}, count=[200, 2_000, 20_000])
def many_libraries(folder, count):
    made = elf.Library()
    made.strings(b"\0libc.so.6\0libnccl.so.2\0")
    made.tag(elf.NEEDED, 1)
    made.tag(elf.SONAME, 11)
    data = made.bytes()
    return check(of_layer(folder, b"".join(member(b"opt/%05d/libnccl.so.2" % number, data) for number in range(count))))


@attack(quick={"folders": 20_000}, folders=[2_000, 20_000, 60_000])
def library_path_of_folders(folder, folders):
    path = ":".join("/%05d" % number for number in range(folders))
    return check(Layout(folder).set_environment(["LD_LIBRARY_PATH=" + path, "PATH=/usr/bin"]).finish())
