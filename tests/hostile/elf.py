"""Shared libraries, byte by byte: one segment that maps the whole file at address 0, a dynamic section, and notes."""
import struct

LOAD, DYNAMIC, INTERP, NOTE = 1, 2, 3, 4
NEEDED, HASH, STRTAB, SYMTAB, STRSZ, SONAME, RPATH, RUNPATH = 1, 4, 5, 6, 10, 14, 15, 29
GNU_HASH, VERSYM, VERDEF, VERDEFNUM, VERNEED, VERNEEDNUM = 0x6ffffef5, 0x6ffffff0, 0x6ffffffc, 0x6ffffffd, 0x6ffffffe, 0x6fffffff
HEADER, SEGMENT = 64, 56


class Library:
    def __init__(self, segments=3):
        self.count = segments
        self.data = bytearray(HEADER + SEGMENT * segments)
        self.segments, self.dynamic = [], []

    def add(self, data):
        """Appends bytes, and returns their offset, which is their address too."""
        self.data += b"\0" * (-len(self.data) % 8)
        offset = len(self.data)
        self.data += data
        return offset

    def segment(self, kind, offset, size, align=8, flags=4, file_size=None):
        self.segments.append((kind, flags, offset, offset, offset, size if file_size is None else file_size, size, align))

    def strings(self, data):
        self.tag(STRTAB, self.add(data))
        self.tag(STRSZ, len(data))

    def tag(self, tag, value):
        self.dynamic.append((tag, value))

    def symbols(self, entries):
        """Symbols as (offset of the name, defined)."""
        table = [b"\0" * 24] + [struct.pack("<IBBHQQ", name, 0x12, 0, 1 if defined else 0, 64 if defined else 0, 0) for name, defined in entries]
        self.tag(SYMTAB, self.add(b"".join(table)))
        self.tag(HASH, self.add(struct.pack("<IIII", 1, len(table), 0, 0)))

    def bytes(self, machine=62):
        if self.dynamic:
            section = b"".join(struct.pack("<QQ", *pair) for pair in self.dynamic + [(0, 0)])
            self.segment(DYNAMIC, self.add(section), len(section))
        self.segments.insert(0, (LOAD, 5, 0, 0, 0, len(self.data), len(self.data), 4096))
        assert len(self.segments) <= self.count, "more segments than there is room for"
        table = b"".join(struct.pack("<IIQQQQQQ", *segment) for segment in self.segments)
        head = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, HEADER, 0, 0, HEADER, SEGMENT, len(self.segments), 64, 0, 0)
        self.data[:HEADER] = head
        self.data[HEADER:HEADER + len(table)] = table
        return bytes(self.data)
