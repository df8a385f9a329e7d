"""Bytes of tar members, header by header, valid or not."""

USTAR, GNU, OLD = b"ustar\x0000", b"ustar  \x00", b"\0" * 8
BLOCK = 512


def header(name=b"", kind=b"0", mode=0o644, size=0, link=b"", major=0, minor=0, uid=0, gid=0, mtime=0, prefix=b"", magic=USTAR,
           checksum="unsigned", **raw):
    """One header block. A number may be the bytes of its field, and `raw` replaces those of other fields; `checksum` is unsigned, signed,
    or the bytes of the field."""
    fields = [("name", 100, name), ("mode", 8, octal(mode, 8)), ("uid", 8, octal(uid, 8)), ("gid", 8, octal(gid, 8)),
              ("size", 12, octal(size, 12)), ("mtime", 12, octal(mtime, 12)), ("checksum", 8, b" " * 8), ("kind", 1, kind),
              ("link", 100, link), ("magic", 8, magic), ("uname", 32, b""), ("gname", 32, b""), ("major", 8, octal(major, 8)),
              ("minor", 8, octal(minor, 8)), ("prefix", 155, prefix), ("rest", 12, b"")]
    block = b"".join(raw.get(field, data)[:width].ljust(width, b"\0") for field, width, data in fields)
    if isinstance(checksum, str):
        total = sum(block) if checksum == "unsigned" else sum(byte - 256 * (byte > 127) for byte in block)
        checksum = b"%06o\0 " % total
    return block[:148] + checksum.ljust(8, b"\0") + block[156:]


def octal(number, width):
    """The usual spelling of a number; bytes stay as they are."""
    return number if isinstance(number, bytes) else b"%0*o" % (width - 1, number)


def base256(number, width):
    return (number % (1 << 8 * width) | (0x80 << 8 * (width - 1))).to_bytes(width, "big")


def padded(data):
    return data + b"\0" * (-len(data) % BLOCK)


def body(size, seed=b"x"):
    return padded((seed * size)[:size])


def file(name, size=0, **fields):
    return header(name, size=size, **fields) + body(size)


def directory(name, mode=0o755, **fields):
    return header(name, b"5", mode, **fields)


def symlink(name, target, **fields):
    return header(name, b"2", 0o777, link=target, **fields)


def record(key, value):
    """A PAX record, whose length includes the digits of the length."""
    rest = len(key) + len(value) + 3
    total = rest + len(str(rest))
    total = rest + len(str(total))
    return b"%d %s=%s\n" % (total, key, value)


def pax(records, kind=b"x", **fields):
    """An extended header: `records` are pairs, or the bytes of its body."""
    data = records if isinstance(records, bytes) else b"".join(record(*pair) for pair in records)
    fields = {"name": b"PaxHeaders/0", "size": len(data), **fields}
    return header(kind=kind, **fields) + padded(data)


def long(kind, text, **fields):
    """A GNU long name (L) or link (K)."""
    fields = {"name": b"././@LongLink", "size": len(text) + 1, "magic": GNU, **fields}
    return header(kind=kind, **fields) + padded(text + b"\0")


def old_sparse(name, real, regions, stored=None, **fields):
    """A GNU sparse file: four regions in the header, and 21 in each block after it."""
    block = bytearray(header(name, b"S", size=sum(size for _, size in regions) if stored is None else stored, magic=GNU, **fields))

    def put(at, some, more):
        for number, (offset, size) in enumerate(some):
            block[at + 24 * number:at + 24 * number + 24] = octal(offset, 12) + b"\0" + octal(size, 12) + b"\0"
        return more

    put(386, regions[:4], None)
    block[482] = len(regions) > 4
    block[483:495] = octal(real, 12) + b"\0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    rest = regions[4:]
    while rest:
        at = len(block)
        block += b"\0" * BLOCK
        put(at, rest[:21], None)
        block[at + 504] = len(rest) > 21
        rest = rest[21:]
    return bytes(block) + body(sum(size for _, size in regions), b"s")


def pax_sparse(version, name, real, regions):
    """A PAX sparse file of version 0.0, 0.1 or 1.0."""
    data = sum(size for _, size in regions)
    numbers = [number for region in regions for number in region]
    if version == b"1.0":
        table = padded(b"".join(b"%d\n" % number for number in [len(regions)] + numbers))
        records = [(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", name),
                   (b"GNU.sparse.realsize", b"%d" % real)]
        return pax(records) + header(b"GNUSparseFile.0/x", size=len(table) + data) + table + body(data, b"s")
    records = [(b"GNU.sparse.size", b"%d" % real), (b"GNU.sparse.numblocks", b"%d" % len(regions))]
    if version == b"0.1":
        records += [(b"GNU.sparse.name", name), (b"GNU.sparse.map", b",".join(b"%d" % number for number in numbers))]
    else:
        records += [(key, b"%d" % number) for region in regions for key,
                    number in zip((b"GNU.sparse.offset", b"GNU.sparse.numbytes"), region)]
    return pax(records) + header(b"GNUSparseFile.0/x" if version == b"0.1" else name, size=data) + body(data, b"s")
