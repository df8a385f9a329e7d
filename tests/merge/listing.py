"""The common listing format of all readers of an image: one line per path, sorted by the bytes of the path.

    PATH<TAB>KIND<TAB>MODE<TAB>SIZE<TAB>TARGET

KIND is one of `-dlcbp`; MODE four octal digits (symbolic links: 0777); SIZE that of regular files, else 0; TARGET that of a
symbolic link, or MAJOR,MINOR of a device. Bytes outside 0x21 to 0x7e are \\xNN, a backslash is doubled. The root is left out.
"""


def escape(raw):
    return "".join("\\\\" if b == 0x5C else chr(b) if 0x21 <= b <= 0x7E else "\\x%02x" % b for b in raw)


def line(path, kind, mode, size, target):
    text = "\t".join((escape(path), kind, "%04o" % mode, str(size), escape(target)))
    return path, text


def join(lines):
    return "".join(text + "\n" for _, text in sorted(lines))


def differences(expected, got):
    """Lines that are in only one of the two listings, by path, expected ones first."""
    had, has = set(expected.splitlines()), set(got.splitlines())
    marked = [(text, "-") for text in had - has] + [(text, "+") for text in has - had]
    return ["%s %s" % (sign, text) for text, sign in sorted(marked, key=lambda m: (m[0].split("\t")[0], m[1] == "+"))]
