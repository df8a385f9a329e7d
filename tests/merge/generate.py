#!/usr/bin/env python3
"""Generates random images that exercise the rules of layer.md.

usage: generate.py N OUTDIR [--seed S]      writes N layouts, OUTDIR/0000 and on; the same seed gives the same layers

Drops entries that the specification allows an extractor to reject (below a file, a hard link to nothing), that engines reject, or that
contradict another entry of their layer, so that every image has exactly one correct listing.
"""
import argparse, copy, pathlib, random, tarfile

import oci
from reference import Entry, Overlay, Tree, Undefined

NAMES = [b"a", b"b", b"c", b"d", b"bin", b"lib.so", b"a.b", b".hidden", b".wh", b"wh.a", b"two words", b"back\\slash", b"tab\tnew\nline",
         b"caf\xc3\xa9", b"latin-\xe9", b"\xff\xfe", b"~", b"-", b"n" * 101, b"n" * 160, b"n" * 255]
FREQUENT = 7  # the first names are drawn most often
MODES = {"d": [0o755, 0o755, 0o700, 0o1777, 0o2755, 0o555], "-": [0o644, 0o755, 0o600, 0o4755, 0o2711, 0o000]}


class Strict(Tree):
    """The reference's tree, which rejects layers that contradict themselves."""

    def begin(self, entries):
        super().begin(entries)
        self.made = set()

    def implied(self, parent):
        return self.note(super().implied(parent))

    def make(self, entry):
        return self.note(super().make(entry))

    def note(self, node):
        self.made.add(node)
        return node

    def put(self, entry):
        parent = self.find(entry.path[:-1])
        old = parent and parent.kind == "d" and parent.children.get(entry.path[-1]) if entry.path else None
        if old and (old.kind == "d") != (entry.kind == "d") and self.any_made(old):
            raise Undefined("%r is both a directory and not" % (entry.path,))
        chain = super().put(entry)
        self.made.update(chain)
        return chain

    def any_made(self, node):
        return node in self.made or any(map(self.any_made, (node.children or {}).values()))


class Layer:
    def __init__(self, rng, trees):
        self.rng, self.trees, self.members = rng, trees, []
        self.lower = sorted(all_paths(trees[0].root))

    # paths

    def name(self):
        return self.rng.choice(NAMES[:FREQUENT] if self.rng.random() < 0.8 else NAMES)

    def some(self, kinds="d-lcbp", root=False):
        """A path of one of these kinds in a lower layer."""
        paths = [p for p, kind in self.lower if kind in kinds] + [()] * root
        return self.rng.choice(paths) if paths else (self.name(),)

    def fresh(self):
        """A path that may be new: below a directory, a symbolic link, or missing parents."""
        roll = self.rng.random()
        above = self.some("d", root=True) if roll < 0.6 else self.some("l") if roll < 0.8 else (self.name(), self.name())
        return above[:6] + (self.name(),)

    def any(self):
        return self.some() if self.rng.random() < 0.5 else self.fresh()

    # entries

    def member(self, kind, path, link=b""):
        info = tarfile.TarInfo(b"/".join(path).decode("utf-8", "surrogateescape"))
        info.type = {"-": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE,
                     "c": tarfile.CHRTYPE, "b": tarfile.BLKTYPE, "p": tarfile.FIFOTYPE}[kind]
        info.mode = self.rng.choice(MODES["d" if kind == "d" else "-"])
        info.uid = info.gid = self.rng.choice([0, 0, 1000])
        info.linkname = link.decode("utf-8", "surrogateescape")
        info.size = self.rng.choice([0, 1, 511, 512, 513, 3000]) if kind == "-" else 0
        if kind in "cb":
            info.devmajor, info.devminor = self.rng.choice([(1, 3), (5, 0), (259, 70000)])
        return info

    def plain(self, path):
        """Anything but a link."""
        return self.member(self.rng.choice("---ddcbp"), path)

    def symlink(self):
        to = self.rng.choice([self.some("d"), self.any(), (b"..", self.name())])
        return self.member("l", self.any(), self.rng.choice([b"", b"/"]) + b"/".join(to))

    def whiteout(self, path):
        info = self.member("-", path[:-1] + (b".wh." + path[-1],))
        info.size = 0
        return info

    def opaque(self, folder):
        return self.whiteout(folder + (b".wh..opq",))

    # changes: each returns members that keep their order; the layer interleaves them

    def add(self):
        return [self.plain(self.any())]

    def add_symlink(self):
        return [self.symlink()]

    def add_hard_link(self):
        if self.rng.random() < 0.5:
            return [self.member("h", self.any(), b"/".join(self.some("-lcbp")))]
        first = self.member("-", self.any())
        link = self.member("h", self.any(), first.name.encode("utf-8", "surrogateescape"))
        if self.rng.random() < 0.8:
            link.mode = first.mode  # as all programs write it
        return [first, link]

    def hide(self):
        return [self.whiteout(self.any())]

    def hide_and_replace(self):
        path = self.some()
        change = [self.whiteout(path), self.plain(path)]
        if self.rng.random() < (0.5 if dict(self.lower).get(path) == "d" else 0.1):
            change.append(self.plain(path + (self.name(),)))
        self.rng.shuffle(change)
        return change

    def hide_and_fill(self):
        """A directory that is removed and recreated by its contents, without an entry of its own."""
        path = self.some(self.rng.choice("ddddl-"))
        change = [self.whiteout(path), self.plain(path + (self.name(),))]
        self.rng.shuffle(change)
        return change

    def hide_all(self):
        folder = self.some(self.rng.choice("ddddl"), root=True)
        change = [self.opaque(folder)] + [self.plain(folder + (self.name(),)) for _ in range(self.rng.randrange(3))]
        if folder and self.rng.random() < 0.6:
            change.append(self.member("d", folder))
        self.rng.shuffle(change)
        return change

    def hide_nothing(self):
        return [self.rng.choice([self.whiteout((self.name(), self.name(), self.name())), self.whiteout((b".wh.aux",)),
                                 self.opaque((self.name(), self.name()))])]

    def swap_kind(self):
        path = self.some()
        kind = dict(self.lower).get(path, "-")
        return [self.member("-" if kind == "d" else "d", path)] + [self.plain(path + (self.name(),))] * (kind != "d")

    def change_mode(self):
        return [self.member("d", self.some("d"))]

    def repeat(self):
        path = self.any()
        return [self.member("-", path), self.member(self.rng.choice("--p"), path)]

    def build(self):
        rng, changes = self.rng, []
        kinds = [self.add] * 6 + [self.add_symlink] * 2 + [self.add_hard_link] * 2 + [self.repeat]
        if self.lower:
            kinds += [self.hide] * 3 + [self.hide_and_replace] * 2 + [self.hide_and_fill, self.hide_all, self.hide_all,
                      self.hide_nothing, self.swap_kind, self.change_mode]
        for _ in range(rng.choice([0, 4, 8, 8, 16]) if self.lower else 20):
            changes.append(rng.choice(kinds)())
        members = []
        while changes:
            change = rng.choice(changes)
            members.append(change.pop(0))
            changes = [c for c in changes if c]
        return self.decorate(self.settle(members))

    def settle(self, members):
        """Drops members until the layer has one meaning, and applies it to the trees."""
        while True:
            trials, entries = copy.deepcopy(self.trees), [Entry(m) for m in members]
            try:
                for trial in trials:
                    trial.apply(entries)
            except Undefined as undefined:
                members.pop(entries.index(undefined.entry))
            else:
                for tree, trial in zip(self.trees, trials):
                    tree.root = trial.root
                return members

    def decorate(self, members):
        """Varies the spelling of names without changing their meaning."""
        if self.rng.random() < 0.3:
            members.insert(0, self.member("d", (b".",)))
        for info in members:
            if info.name != ".":
                info.name = self.rng.choice(["", "", "./", "./", "/", ".//"]) + info.name
                if info.islnk():
                    info.linkname = self.rng.choice(["", "./", "/"]) + info.linkname
        return members


def all_paths(node, at=()):
    for name, child in node.children.items():
        yield at + (name,), child.kind
        if child.kind == "d":
            yield from all_paths(child, at + (name,))


def tar(rng, members):
    """The members in one of the tar dialects, with GNU extensions where the old format is insufficient."""
    out, dialect = b"", rng.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    for info in members:
        try:
            header = info.tobuf(dialect, "utf-8", "surrogateescape")
        except ValueError:
            header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        out += header + rng.getrandbits(8 * info.size + 1).to_bytes(info.size + 1, "big")[:info.size]
        out += b"\0" * (-info.size % 512)
    return out + b"\0" * 1024


def image(rng, folder):
    trees, layers = (Overlay(), Strict()), []
    for _ in range(rng.randint(2, 6)):
        members = Layer(rng, trees).build()
        layers.append((tar(rng, members), rng.choice(["", "gzip", "gzip", "zstd"])))
    oci.write(folder, layers)


def images(n, folder, seed):
    for number in range(n):
        at = folder / ("%04d" % number)
        image(random.Random("%d %d" % (seed, number)), at)
        yield at


def main():
    parser = argparse.ArgumentParser(usage="generate.py N OUTDIR [--seed S]")
    parser.add_argument("n", type=int)
    parser.add_argument("outdir", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    for _ in images(said.n, said.outdir, said.seed):
        pass


if __name__ == "__main__":
    main()
