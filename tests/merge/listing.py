"""The common listing format of all readers of an image: one line per path, sorted by the bytes of the path.

    PATH<TAB>KIND<TAB>MODE<TAB>SIZE<TAB>TARGET

KIND is one of `-dlcbp`; MODE four octal digits (symbolic links: 0777); SIZE that of regular files, else 0; TARGET that of a
symbolic link, or MAJOR,MINOR of a device. Bytes outside 0x21 to 0x7e are \\xNN, a backslash is doubled. The root is left out.
"""
import os, stat


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


def of_folder(root):
    """The listing of a folder. KIND is `!` where the kernel refuses to read an entry of a merged folder, and TARGET its error. In a folder
    without lower ones, overlay file systems show the names of whiteouts, and do not find them: these are left out."""
    root, found = os.fsencode(root), []
    for folder, subfolders, files in os.walk(root):
        for name in subfolders + files:
            path = os.path.join(folder, name)
            try:
                found.append(of_file(path, path[len(root):]))
            except FileNotFoundError:
                pass
            except OSError as error:
                found.append(line(path[len(root):], "!", 0, 0, error.strerror.encode()))
    return join(found)


def of_file(path, shown):
    at = os.lstat(path)
    kind = stat.filemode(at.st_mode)[0]
    target = os.readlink(path) if kind == "l" else b"%d,%d" % (os.major(at.st_rdev), os.minor(at.st_rdev)) if kind in "cb" else b""
    mode = 0o777 if kind == "l" else stat.S_IMODE(at.st_mode)
    return line(shown, kind, mode, at.st_size if kind == "-" else 0, target)
