"""Forms of members: ways to write something in a layer that readers treat differently, such as "type 7" or "numbers: size base-256".

FORMS has a function for each form, which gets a Folder and returns pieces of a layer. The folder has in the lower layer what `standard`
returns, and in the upper one the files `first` and `second` before the form, and `after` behind it.
"""
import itertools

import tarball
from tarball import GNU, OLD, USTAR, base256, directory, file, header, long, octal, old_sparse, padded, pax, pax_sparse, symlink

FORMS = {}


class Folder:
    """Where a form puts its members, and the sizes that it may use."""

    def __init__(self, name, sizes):
        self.name, self.sizes = name, sizes

    def __call__(self, rest=b""):
        return self.name + b"/" + rest

    def size(self):
        return next(self.sizes)

    def file(self, rest, **fields):
        return file(self(rest), self.size(), **fields)


def form(name):
    """Registers a form."""
    def register(build):
        FORMS[name] = build
        return build
    return register


def each(name, values):
    """Registers a form for each of the values, which its function gets."""
    def register(build):
        for label, value in values.items():
            FORMS["%s %s" % (name, label)] = lambda at, value=value: build(at, value)
        return build
    return register


def standard(at):
    """What a folder has in the lower layer."""
    return [directory(at()), at.file(b"file"), directory(at(b"dir/")), at.file(b"dir/in"), symlink(at(b"link"), b"dir"),
            header(at(b"twin"), b"1", link=at(b"file")), directory(at(b"own/"), 0o700)]


# ---- type flags ----

TYPES = {"NUL" if flag == 0 else chr(flag): bytes([flag]) for flag in b"\0" + b"01234567" b"SVMDNAXZa9-"}


@each("type", TYPES)
def typed(at, flag):
    return [header(at(b"t"), flag, link=at(b"first") if flag in b"12" else b"", major=1, minor=3)]


@each("type with a body,", TYPES)
def typed_with_body(at, flag):
    size = at.size()
    return [header(at(b"t"), flag, size=size, link=at(b"first") if flag in b"12" else b"", major=1, minor=3) + tarball.body(size)]


@each("type with a header as its body,", TYPES)
def typed_with_header(at, flag):
    return [header(at(b"t"), flag, size=512, link=at(b"first") if flag in b"12" else b"", major=1, minor=3) + header(at(b"inner"))]


@each("type with a size and no body,", {key: flag for key, flag in TYPES.items() if flag in b"123456VD"})
def typed_with_size(at, flag):
    return [header(at(b"t"), flag, size=512, link=at(b"first") if flag in b"12" else b"", major=1, minor=3), at.file(b"next")]


@each("name with a slash, type", TYPES)
def slash(at, flag):
    return [header(at(b"t/"), flag, link=at(b"first") if flag in b"12" else b"", major=1, minor=3)]


# ---- extended headers ----

def extension(at, kind):
    return {"x path": lambda: pax([(b"path", at(b"pax"))]), "x linkpath": lambda: pax([(b"linkpath", at(b"first"))]),
            "x comment": lambda: pax([(b"comment", b"none")]), "x empty": lambda: pax([]), "L": lambda: long(b"L", at(b"long")),
            "x size": lambda: pax([(b"size", b"77")]),
            "K": lambda: long(b"K", at(b"second")), "g path": lambda: pax([(b"path", at(b"global"))], b"g"),
            "g comment": lambda: pax([(b"comment", b"none")], b"g"), "X path": lambda: pax([(b"path", at(b"sun"))], b"X")}[kind]()


EXTENSIONS = ["x path", "x linkpath", "x comment", "x empty", "L", "K", "g path", "g comment", "X path"]


@each("extensions", {", ".join(kinds): kinds for n in (1, 2) for kinds in itertools.product(EXTENSIONS, repeat=n)})
def extensions_of_file(at, kinds):
    return [extension(at, kind) for kind in kinds] + [at.file(b"plain")]


@each("extensions of a link", {", ".join(kinds): kinds for kinds in itertools.permutations(["x path", "x linkpath", "L", "K"], 3)})
def extensions_of_link(at, kinds):
    return [extension(at, kind) for kind in kinds] + [symlink(at(b"plain"), b"file")]


@each("extensions of a hard link", {", ".join(kinds): kinds for kinds in itertools.permutations(["x path", "x linkpath", "L", "K"], 2)})
def extensions_of_hard_link(at, kinds):
    return [extension(at, kind) for kind in kinds] + [header(at(b"plain"), b"1", link=at(b"first"))]


RECORDS = {
    "path": [(b"path", b"%s/p")], "path twice": [(b"path", b"%s/p"), (b"path", b"%s/q")], "empty path": [(b"path", b"")],
    "path and empty path": [(b"path", b"%s/p"), (b"path", b"")],
    "path with a slash": [(b"path", b"%s/p/")], "path with a NUL": [(b"path", b"%s/p\0q")], "path not UTF-8": [(b"path", b"%s/\xff\xfe")],
    "path of 300 bytes": [(b"path", b"%s/" + b"/".join([b"n" * 100] * 3))], "size": [(b"size", b"100")], "size of 0": [(b"size", b"0")],
    "empty size": [(b"size", b"")], "negative size": [(b"size", b"-1")], "size not a number": [(b"size", b"abc")],
    "size with a sign": [(b"size", b"+100")], "size with a space": [(b"size", b" 100")], "hexadecimal size": [(b"size", b"0x64")],
    "size with a fraction": [(b"size", b"100.5")], "size too large": [(b"size", b"99999999999999999999")],
    "size twice": [(b"size", b"100"), (b"size", b"200")],
    "uid": [(b"uid", b"1000")], "uid not a number": [(b"uid", b"abc")], "mtime not a number": [(b"mtime", b"abc")],
    "mtime with a fraction": [(b"mtime", b"1.5")], "mtime below 0": [(b"mtime", b"-1.5")], "mode": [(b"mode", b"0700")],
    "an unknown key": [(b"VENDOR.key", b"value")], "an empty key": [(b"", b"value")], "an unknown empty value": [(b"VENDOR.key", b"")],
    "a key with a NUL": [(b"VEN\0DOR", b"value")], "an unknown key with a NUL": [(b"VENDOR.key", b"a\0b")],
    "charset BINARY": [(b"hdrcharset", b"BINARY"), (b"path", b"%s/\xff")],
    "a value with a newline": [(b"path", b"%s/a\nb")], "a value with an equals sign": [(b"path", b"%s/a=b")],
    "uname with a NUL": [(b"uname", b"a\0b")], "linkpath with a NUL": [(b"linkpath", b"a\0b")],
    "xattr": [(b"SCHILY.xattr.user.test", b"value")], "xattr of libarchive": [(b"LIBARCHIVE.xattr.user.test", b"dmFsdWU")],
    "an xattr without a name": [(b"SCHILY.xattr.", b"value")], "an xattr without a class": [(b"SCHILY.xattr.test", b"value")],
    "a GNU sparse size alone": [(b"GNU.sparse.size", b"999")], "a GNU sparse name alone": [(b"GNU.sparse.name", b"%s/s")],
    "a GNU sparse major alone": [(b"GNU.sparse.major", b"1")], "a GNU sparse realsize alone": [(b"GNU.sparse.realsize", b"999")],
    "an unknown GNU sparse version": [(b"GNU.sparse.major", b"2"), (b"GNU.sparse.minor", b"0")],
}


@each("PAX record:", RECORDS)
def pax_record(at, records):
    return [pax([(key, value.replace(b"%s", at.name)) for key, value in records]), at.file(b"plain")]


@each("global PAX record:", {key: value for key, value in RECORDS.items() if key in (
    "path", "size", "size of 0", "uid", "an unknown key", "path with a NUL", "size not a number", "mtime not a number", "xattr", "mode",
    "empty path", "a GNU sparse size alone")})
def global_record(at, records):
    return [pax([(key, value.replace(b"%s", at.name)) for key, value in records], b"g"), at.file(b"plain")]


@each("PAX body:", {
    "no newline": b"11 path=a/bX", "length too small": b"5 path=f0/p\n", "length too large": b"99 path=f0/p\n", "no length": b"path=f0/p\n",
    "no equals sign": b"10 path f\n", "length of 0": b"0 path=a\n", "empty": b"", "a zero byte": b"\0", "only zero bytes": b"\0" * 20,
    "zero bytes after a record": b"12 path=f0/p\n"[:0] + tarball.record(b"comment", b"c") + b"\0" * 20,
    "spaces before the length": b"  " + tarball.record(b"comment", b"c"), "a length with leading zeros": b"014 comment=c\n"[:15],
    "a length with a sign": b"+13 comment=c\n"[:14], "a very long comment": tarball.record(b"comment", b"c" * 70000)})
def pax_body(at, data):
    return [pax(data), at.file(b"plain")]


@each("comment of", {"900 KiB": 900 << 10, "1.1 MiB": 1100 << 10, "3 MiB": 3 << 20})
def large_comment(at, size):
    return [pax([(b"comment", b"c" * size)]), at.file(b"plain")]


@each("GNU long name:", {
    "of 50 bytes": b"%s/" + b"n" * 47, "of 200 bytes": b"%s/" + b"n" * 197, "of 300 bytes, one component": b"%s/" + b"n" * 297,
    "of 5,000 bytes": b"%s" + b"/n123456789" * 450, "empty": b"", "with a slash": b"%s/n/", "not UTF-8": b"%s/\xff",
    "with a NUL": b"%s/n\0q"})
def gnu_long(at, text):
    return [long(b"L", text.replace(b"%s", at.name)), at.file(b"plain", magic=GNU)]


@form("GNU long name: without a NUL")
def gnu_long_bare(at):
    return [header(b"././@LongLink", b"L", size=8 + len(at.name), magic=GNU) + padded(at(b"long-nm")), at.file(b"plain", magic=GNU)]


@form("GNU long name: of a directory without a slash")
def gnu_long_directory(at):
    return [long(b"L", at(b"n" * 120)), header(at(b"n" * 90)[:100], b"5", 0o711, magic=GNU)]


@each("extensions before the end:",
      {"x": lambda at: pax([(b"path", at(b"p"))]), "L": lambda at: long(b"L", at(b"p")), "g": lambda at: pax([], b"g")})
def dangling(at, build):
    return [at.file(b"plain"), build(at), b"\0" * 1024]


# ---- hard links ----

@each("hard link", {
    "to a file of a lower layer": "%s/file", "to a directory": "%s/dir", "to nothing": "%s/missing", "to itself": "%s/h",
    "to a symbolic link": "%s/link", "through a symbolic link": "%s/link/in", "to an absolute name": "/%s/file", "to ./name": "./%s/file",
    "through ..": "%s/dir/../file", "from outside": "../%s/file", "with an empty target": "", "with a slash": "%s/file/",
    "to the root": "."})
def hard_link(at, target):
    return [header(at(b"h"), b"1", link=target.encode().replace(b"%s", at.name))]


@form("hard link to a later file")
def hard_link_later(at):
    return [header(at(b"h"), b"1", link=at(b"later")), at.file(b"later")]


@form("hard link to a file of its layer")
def hard_link_here(at):
    return [at.file(b"new"), header(at(b"h"), b"1", link=at(b"new"))]


@form("hard link to a file that is replaced")
def hard_link_replaced(at):
    return [at.file(b"new"), header(at(b"h"), b"1", link=at(b"new")), at.file(b"new")]


@form("hard link of another mode than its file")
def hard_link_mode(at):
    return [at.file(b"new"), header(at(b"h"), b"1", 0o4750, link=at(b"new"))]


@form("hard link to a device")
def hard_link_device(at):
    return [header(at(b"c"), b"3", major=1, minor=3), header(at(b"h"), b"1", link=at(b"c"))]


@form("hard link with the size of its target, and no body")
def hard_link_sized(at):
    size = at.size()
    return [file(at(b"new"), size), header(at(b"h"), b"1", link=at(b"new"), size=size)]


@form("hard link with the size of its target, and a body")
def hard_link_body(at):
    size = at.size()
    return [file(at(b"new"), size), header(at(b"h"), b"1", link=at(b"new"), size=size) + tarball.body(size)]


@form("hard link to an absolute name of its layer")
def hard_link_absolute(at):
    return [at.file(b"new"), header(at(b"h"), b"1", link=b"/" + at(b"new"))]


@form("hard link to a directory of its layer")
def hard_link_directory(at):
    return [directory(at(b"new/")), header(at(b"h"), b"1", link=at(b"new"))]


@each("hard link through a link of its layer", {"to a file": b"first", "to a directory": b"sub", "to nothing": b"none"})
def hard_link_through(at, name):
    return [directory(at(b"new/")), file(at(b"new/first"), at.size()), directory(at(b"new/sub/")), symlink(at(b"l"), b"new"),
            header(at(b"h"), b"1", link=at(b"l/" + name))]


@form("hard link in place of a directory")
def hard_link_over(at):
    return [at.file(b"new"), header(at(b"dir"), b"1", link=at(b"new"))]


# ---- conflicts ----

CONFLICTS = {
    "file twice": "f:x f:x", "file, directory": "f:x d:x", "directory, file": "d:x f:x", "full directory, file": "d:x f:x/in f:x",
    "file, directory with contents": "f:x d:x f:x/in", "file, its contents": "f:x f:x/in", "link, directory": "l:x>dir d:x f:x/in",
    "link, its contents": "l:x>dir f:x/in", "dangling link, its contents": "l:x>none f:x/in", "directory, link": "d:x l:x>dir",
    "full directory, link": "d:x f:x/in l:x>dir", "link, file": "l:x>file f:x", "file, link": "f:x l:x>file", "fifo, file": "f:x p:x",
    "link out": "l:x>../../../etc f:x/in", "absolute link": "l:x>/%s/dir f:x/in", "link to the root": "l:x>/ f:x/%s/in",
    "link to itself": "l:x>x f:x/in", "two links in a circle": "l:x>y l:y>x f:x/in", "lower file, directory": "d:file f:file/in",
    "lower file, its contents": "f:file/in", "lower directory, file": "f:dir", "lower directory, link": "l:dir>file",
    "lower link, directory": "d:link f:link/in", "lower link, its contents": "f:link/in", "lower link, file": "f:link",
    "lower directory, again": "d:dir", "lower directory, its mode": "D:dir", "directory twice": "d:x D:x", "missing parents": "f:x/y/z",
    "missing parent, then it": "f:x/y d:x", "missing parent in a lower directory": "f:dir/new",
    "missing entry of a private directory": "f:own/new", "link, link": "l:x>file l:x>dir",
    "empty link": "l:x>", "link with a slash": "l:x/>dir", "link with a long target": "l:x>" + "t" * 100}


@each("conflict:", CONFLICTS)
def conflict(at, text):
    def member(word):
        kind, _, rest = word.partition(":")
        name, _, target = rest.encode().replace(b"%s", at.name).partition(b">")
        return {"f": lambda: at.file(name), "d": lambda: directory(at(name + b"/")), "D": lambda: directory(at(name + b"/"), 0o700),
                "l": lambda: symlink(at(name), target), "p": lambda: header(at(name), b"6")}[kind]()
    return [member(word) for word in text.split(" ")]


@each("the same path", {"with a slash before it": b"/%s/x", "with ./ before it": b"./%s/x", "through ..": b"%s/dir/../x",
                        "from outside": b"../%s/x"})
def same_path(at, name):
    return [at.file(b"x"), file(name.replace(b"%s", at.name), at.size())]


@each("global header", {"named as a member": [b"%s/first"], "twice": [b"%s/g"] * 2, "twice, spelled otherwise": [b"%s/g", b"./%s//g"]})
def global_named(at, names):
    return [header(name.replace(b"%s", at.name), b"g") for name in names] + [at.file(b"plain")]


# ---- names ----

NAMES = {"./": "./%s/n", "/": "/%s/n", "//": "//%s//n", ".//": ".//%s/n", "slash after": "%s/n/", "/./": "%s/./n",
         ".. inside": "%s/dir/../n",
         ".. out": "../%s/n", "/../": "/../%s/n", "..": "..", ".": ".", "./": "./%s/n", "empty": "", "only a slash": "/",
         "ends in ..": "%s/dir/..",
         "ends in .": "%s/n/.", "only ./": "./", "..name": "%s/..n", "...": "%s/...", "a backslash": "%s/a\\b", "a newline": "%s/a\nb",
         "a space": "%s/ ", "far out": "../../../../%s/n", "through a file": "%s/file/../n", "missing ..": "%s/none/../n"}


@each("name:", {key: value.encode() for key, value in NAMES.items()})
def named(at, name):
    return [file(name.replace(b"%s", at.name), at.size())]


@each("directory name:", {key: value.encode() for key, value in NAMES.items()})
def named_directory(at, name):
    return [header(name.replace(b"%s", at.name), b"5", 0o711)]


@form("name: not UTF-8")
def named_bytes(at):
    return [at.file(b"\xff\xfe\xe9")]


@form("name: latin-1 and UTF-8 of the same letter")
def named_twice(at):
    return [at.file(b"\xe9"), at.file("é".encode()), at.file(b"e\xcc\x81")]


@form("name: of 100 bytes, without a NUL")
def named_full(at):
    return [at.file(b"n" * (99 - len(at.name)))]


@form("name: of 255 bytes, in a PAX record")
def named_255(at):
    return [pax([(b"path", at(b"n" * 255))]), at.file(b"n")]


@form("name: of 256 bytes, in a PAX record")
def named_256(at):
    return [pax([(b"path", at(b"n" * 256))]), at.file(b"n")]


@form("name: bytes after its NUL")
def named_after(at):
    return [at.file(b"n\0after")]


@each("prefix of",
      {"USTAR": USTAR, "GNU": GNU, "the old format": OLD, "USTAR without a version": b"ustar\0\0\0",
       "USTAR of another version": b"ustar\x0099",
                    "an unknown magic": b"xstar\0" b"00", "GNU and USTAR mixed": b"ustar  0", "STAR": USTAR})
def prefixed(at, magic):
    return [file(b"n", at.size(), prefix=at(b"dir"), magic=magic)]


@form("prefix with a slash")
def prefix_slash(at):
    return [file(b"n", at.size(), prefix=at(b"dir/"))]


@form("prefix and an absolute name")
def prefix_absolute(at):
    return [file(b"/n", at.size(), prefix=at(b"dir"))]


@form("prefix of star, with its trailer")
def prefix_star(at):
    return [file(b"n", at.size(), prefix=at(b"dir").ljust(131, b"\0") + b"0" * 11 + b" " + b"0" * 11 + b" ", rest=b"\0" * 8 + b"tar\0")]


@form("prefix not UTF-8")
def prefix_bytes(at):
    return [file(b"n", at.size(), prefix=at(b"\xff"))]


@form("uname not UTF-8")
def uname_bytes(at):
    return [at.file(b"n", uname=b"\xff\xfe")]


# ---- numbers ----

def spellings(number, width):
    digits = b"%o" % number
    return {"ended by a space": digits.rjust(width - 1, b"0") + b" ", "ended by both": digits.rjust(width - 2, b"0") + b" \0",
            "spaces before it": digits.rjust(width - 1) + b"\0", "without an end": digits.rjust(width, b"0"), "all NUL": b"\0" * width,
            "all spaces": b" " * width, "base-256": base256(number, width), "base-256 below 0": base256(-1, width),
            "base-256 too large": b"\x80" + b"\x7f" * (width - 1), "base-256 with 0xff": b"\xff" * (width - 1) + b"\xfe",
            "letters": b"abc", "the digit 8": b"8".rjust(width - 1, b"0") + b"\0", "a minus": b"-1".ljust(width, b"\0"),
            "a plus": b"+" + digits.rjust(width - 2, b"0") + b"\0", "garbage after NUL": digits + b"\0abc",
            "garbage after a space": digits + b" abc",
            "NULs before it": digits.rjust(width - 1, b"\0") + b"\0", "hexadecimal": b"0x1".ljust(width, b"\0"), "left-aligned": digits,
            "a tab before it": b"\t" + digits + b"\0", "a byte over 0x7f": b"\xa0".ljust(width, b"1")}


FIELDS = {"size": 12, "mode": 8, "uid": 8, "gid": 8, "mtime": 12, "major": 8, "minor": 8}


@each("numbers:", {"%s %s" % (field, label): (field, label) for field, width in FIELDS.items() for label in spellings(0, width)})
def number(at, spelling):
    field, label = spelling
    value = {"size": at.size(), "mode": 0o640, "uid": 1000, "gid": 1000, "mtime": 1000000, "major": 5, "minor": 3}[field]
    text = {field: spellings(value, FIELDS[field])[label]}
    if field in ("major", "minor"):
        plain = {"major": 5, "minor": 3, field: 0}
        return [header(at(b"t"), b"3", **{**plain, **text})]
    return [header(at(b"t"), **text) + (tarball.body(value) if field == "size" else b"")]


@each("device numbers of a file:", {label: label for label in spellings(0, 8)})
def file_device(at, label):
    return [at.file(b"t", major=spellings(0, 8)[label])]


@each("checksum:", {"signed": "signed", "unsigned": "unsigned", "wrong": b"000001\0 ", "all NUL": b"\0" * 8, "spaces": b" " * 8})
def checksum(at, how):
    return [file(at(b"\xe9\xff"), at.size(), checksum=how)]


@each("checksum form:",
      {"octal and a NUL": b"%07o\0", "octal and a space": b"%06o \0", "spaces before it": b"%6o\0 ", "without an end": b"%08o",
                         "left-aligned": b"%o\0"})
def checksum_form(at, how):
    block = header(at(b"t"), size=0)
    total = sum(block[:148] + b" " * 8 + block[156:])
    return [header(at(b"t"), size=0, checksum=how % total)]


@each("mode",
      {"setuid": 0o4755, "setgid": 0o2755, "sticky": 0o1755, "none": 0, "with file type bits": 0o100644, "with other type bits": 0o040755,
               "with higher bits": 0o7777777})
def moded(at, mode):
    return [at.file(b"t", mode=octal(mode, 8)), header(at(b"d/"), b"5", mode=octal(mode, 8))]


# ---- sparse files ----

SPARSE = {"one region": (5000, [(0, 10)]), "a hole first": (5000, [(1000, 10)]), "four regions": (9000, [(n * 1000, 9) for n in range(4)]),
          "five regions": (9000, [(n * 1000, 9) for n in range(5)]), "thirty regions": (90000, [(n * 1000, 9) for n in range(30)]),
          "no regions": (5000, []),
          "an empty region at the end": (5000, [(0, 10), (5000, 0)]), "regions out of order": (5000, [(2000, 9), (1000, 9)]),
          "regions that overlap": (5000, [(0, 10), (5, 10)]), "a region past the end": (5000, [(4995, 10)]),
          "an empty region in between": (5000, [(0, 9), (10, 0), (20, 9)])}
DIALECTS = {"old GNU": None, "PAX 0.0": b"0.0", "PAX 0.1": b"0.1", "PAX 1.0": b"1.0"}


@each("sparse,", {"%s, %s" % pair: pair for pair in itertools.product(DIALECTS, SPARSE)})
def sparse(at, pair):
    (real, regions), version = SPARSE[pair[1]], DIALECTS[pair[0]]
    return [pax_sparse(version, at(b"s"), real, regions) if version else old_sparse(at(b"s"), real, regions)]


@form("sparse, old GNU, stored size wrong")
def sparse_stored(at):
    return [old_sparse(at(b"s"), 5000, [(0, 10)], stored=600)]


@form("sparse, old GNU, magic of USTAR")
def sparse_ustar(at):
    return [header(at(b"s"), b"S", size=10) + tarball.body(10)]


@form("sparse, PAX 1.0, without its table")
def sparse_no_table(at):
    return [pax([(b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0"), (b"GNU.sparse.name", at(b"s")),
                 (b"GNU.sparse.realsize", b"5000")]), at.file(b"x")]


# ---- whiteouts ----

WHITEOUTS = {
    "of a file": "f:.wh.file", "of a directory": "f:.wh.dir", "of a link": "f:.wh.link", "of nothing": "f:.wh.none",
    "of a file in a directory": "f:dir/.wh.in",
    "through a link": "f:link/.wh.in", "in a missing directory": "f:none/.wh.x", "below a file": "f:file/.wh.x",
    "before a new file": "f:.wh.file f:file", "after a new file": "f:file f:.wh.file",
    "before a new directory": "f:.wh.dir d:dir f:dir/new", "after a new directory": "d:dir f:dir/new f:.wh.dir",
    "between a directory and its contents": "d:dir f:.wh.dir f:dir/new",
    "after contents alone": "f:dir/new f:.wh.dir", "before contents alone": "f:.wh.dir f:dir/new",
    "and a file in place of a directory": "f:.wh.dir f:dir",
    "of a new name": "f:x f:.wh.x", "before a new name": "f:.wh.x f:x", "twice": "f:.wh.file f:.wh.file", "opaque": "f:dir/.wh..wh..opq",
    "opaque, with the directory": "d:dir f:dir/.wh..wh..opq", "opaque, new files before it": "d:dir f:dir/new f:dir/.wh..wh..opq",
    "opaque, new files after it": "d:dir f:dir/.wh..wh..opq f:dir/new", "opaque, same name again": "d:dir f:dir/in f:dir/.wh..wh..opq",
    "opaque of the folder": "f:.wh..wh..opq", "in a private directory": "f:own/.wh.x",
    "opaque, of a private directory": "f:own/.wh..wh..opq",
    "opaque in a missing directory": "f:none/.wh..wh..opq", "opaque, through a link": "f:link/.wh..wh..opq",
    "opaque, below a file": "f:file/.wh..wh..opq",
    "opaque, then the directory": "f:dir/.wh..wh..opq d:dir", "opaque and one file": "d:dir f:dir/.wh..wh..opq f:dir/.wh.in",
    "aufs": "f:.wh..wh.aufs", "plnk": "d:.wh..wh.plnk f:.wh..wh.plnk/123.456",
    "orph": "d:.wh..wh.orph", "unknown metadata": "f:.wh..wh.foo", "with no name": "f:.wh.", "of .": "f:.wh..", "of ..": "f:.wh...",
    "of a hidden file": "f:.wh..hidden", "of a whiteout": "f:.wh..wh.file",
    "upper case": "f:.WH.file", "without the last dot": "f:.whfile", "as a directory": "d:.wh.file",
    "as a directory with contents": "d:.wh.dir f:.wh.dir/x", "as a link": "l:.wh.file>dir",
    "as a dangling link": "l:.wh.file>none", "as a hard link": "h:.wh.file>file", "as a fifo": "p:.wh.file", "as a device": "c:.wh.file",
    "opaque as a directory": "d:dir d:dir/.wh..wh..opq",
    "opaque as a link": "d:dir l:dir/.wh..wh..opq>in", "with a body": "F:.wh.file", "opaque with a body": "d:dir F:dir/.wh..wh..opq",
    "as a name's folder": "f:.wh.dir/in",
    "hard link to a whiteout": "f:.wh.file h:x>.wh.file", "of a file that is linked": "h:x>file f:.wh.file",
    "link to what is hidden": "f:.wh.file h:x>file", "of both names": "f:.wh.file f:.wh.twin"}


@each("whiteout", WHITEOUTS)
def whiteout(at, text):
    def member(word):
        kind, _, rest = word.partition(":")
        name, _, target = rest.encode().partition(b">")
        empty = b".wh." in name
        return {"f": lambda: file(at(name)) if empty else at.file(name), "F": lambda: at.file(name),
                "d": lambda: directory(at(name + b"/")),
                "l": lambda: symlink(at(name), target), "h": lambda: header(at(name), b"1", link=at(target)),
                "p": lambda: header(at(name), b"6"),
                "c": lambda: header(at(name), b"3", major=0, minor=0)}[kind]()
    return [member(word) for word in text.split(" ")]


@each("whiteout by a long name,", {"PAX": lambda name: pax([(b"path", name)]), "GNU": lambda name: long(b"L", name)})
def whiteout_long(at, build):
    return [build(at(b".wh.file")), at.file(b"plain")]


@each("whiteout spelled",
      {"./": b"./%s/.wh.file", "/": b"/%s/.wh.file", "with ..": b"%s/dir/../.wh.file", "with a slash after": b"%s/.wh.file/",
       "out": b"../%s/.wh.file"})
def whiteout_spelled(at, name):
    return [file(name.replace(b"%s", at.name))]


@form("whiteout of everything")
def whiteout_root(at):
    return [file(b".wh..wh..opq")]


# ---- attributes of overlay file systems ----

@each("device 0/0", {"in place of a file": b"file", "in place of a directory": b"dir", "new": b"x", "in a directory": b"dir/in"})
def zero_device(at, name):
    return [header(at(name), b"3", major=0, minor=0)]


@form("device 0/0, type b")
def zero_block(at):
    return [header(at(b"file"), b"4", major=0, minor=0)]


XATTRS = {"opaque y": (b"dir/", b"opaque", b"y"), "opaque x": (b"dir/", b"opaque", b"x"), "opaque n": (b"dir/", b"opaque", b"n"),
          "opaque of a new directory": (b"new/", b"opaque", b"y"), "opaque of a file": (b"file", b"opaque", b"y"),
          "redirect": (b"dir2/", b"redirect", b"dir"), "absolute redirect": (b"dir2/", b"redirect", b"/%s/dir"),
          "redirect of a file": (b"file2", b"redirect", b"file"), "redirect to nothing": (b"dir2/", b"redirect", b"none"),
          "metacopy": (b"file", b"metacopy", b""),
          "metacopy of a new file": (b"x", b"metacopy", b""), "origin": (b"file", b"origin", b"\0"),
          "whiteout": (b"file", b"whiteout", b"y"), "impure": (b"dir/", b"impure", b"y"), "nlink": (b"file", b"nlink", b"U+1"),
          "whiteouts": (b"dir/", b"whiteouts", b"y"), "protattr": (b"file", b"protattr", b"i"), "upper": (b"dir/", b"upper", b"y"),
          "an unknown name": (b"file", b"new", b"y"), "nested": (b"dir/", b"overlay.opaque", b"y")}


@each("trusted.overlay", XATTRS)
def trusted(at, value):
    return overlay_attribute(at, b"trusted", *value)


@each("user.overlay", XATTRS)
def user(at, value):
    return overlay_attribute(at, b"user", *value)


def overlay_attribute(at, namespace, name, key, value):
    records = pax([(b"SCHILY.xattr." + namespace + b".overlay." + key, value.replace(b"%s", at.name))])
    return [records, directory(at(name)) if name.endswith(b"/") else header(at(name))] + [at.file(b"dir/later")] * (name == b"dir/")


# Version 2, and entries of a tag, permissions and an id: owner, group, others.
ACL = bytes.fromhex("02000000" "01000600ffffffff" "04000400ffffffff" "20000400ffffffff")


@each("xattr",
      {"security.capability": (b"security.capability", bytes.fromhex("0100000200040000000000000000000000000000")),
       "bad capability": (b"security.capability", b"x"),
                "system.posix_acl_access": (b"system.posix_acl_access", b"x"),
                "an access control list": (b"system.posix_acl_access", ACL), "a default list of a file": (b"system.posix_acl_default", ACL),
                "a name of 256 bytes": (b"user." + b"n" * 251, b"x"), "a value over 64 KiB": (b"user.large", b"v" * 65537), "trusted.other": (b"trusted.other", b"x"),
                "system.other": (b"system.other", b"x"), "security.selinux": (b"security.selinux", b"x"),
                "a large value": (b"user.large", b"v" * 60000), "a value with a NUL": (b"user.nul", b"a\0b")})
def xattr(at, value):
    return [pax([(b"SCHILY.xattr." + value[0], value[1])]), at.file(b"plain")]


@form("xattr of a pipe")
def xattr_pipe(at):
    return [pax([(b"SCHILY.xattr.user.test", b"x")]), header(at(b"plain"), b"6")]


@form("xattr of a link to a file of its layer")
def xattr_link_here(at):
    return [pax([(b"SCHILY.xattr.user.test", b"x")]), symlink(at(b"plain"), b"first")]


@form("xattr of a link")
def xattr_link(at):
    return [pax([(b"SCHILY.xattr.user.test", b"x")]), symlink(at(b"plain"), b"file")]
