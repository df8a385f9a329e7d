#!/usr/bin/env python3
"""Two small implementations of the OCI image specification's layer.md: Tree applies it literally, and Overlay as engines with overlay
file systems do. Both fold an image's layers into one tree.

usage: reference.py LAYOUT[:REF]        prints the listing of Overlay (format in listing.py)

Comments cite clauses by their headings, and mark choices on which the specification is silent with "silent".
"""
import sys, tarfile

import listing, oci


class Undefined(Exception):
    """The layer requires something that an extractor may reject."""


class Node:
    """An inode. Hard links are several names of one Node."""

    def __init__(self, kind, mode, size=0, target=b"", children=None):
        self.kind, self.mode, self.size, self.target, self.children = kind, mode, size, target, children
        self.opaque = False


def directory(mode=0o755):
    return Node("d", mode, children={})


class Entry:
    """One member of a layer. `path` is a tuple of names, without `.` and empty names."""

    def __init__(self, member):
        raw = lambda text: text.encode("utf-8", "surrogateescape")
        self.path = names(raw(member.name))
        self.link = raw(member.linkname)
        self.mode, self.size = member.mode & 0o7777, member.size
        self.major, self.minor = member.devmajor, member.devminor
        kinds = {tarfile.DIRTYPE: "d", tarfile.SYMTYPE: "l", tarfile.LNKTYPE: "h", tarfile.CHRTYPE: "c",
                 tarfile.BLKTYPE: "b", tarfile.FIFOTYPE: "p"}
        self.kind = kinds.get(member.type, "-")

    @property
    def whiteout(self):
        return bool(self.path) and self.path[-1].startswith(b".wh.")

    @property
    def opaque(self):
        return bool(self.path) and self.path[-1] == b".wh..wh..opq"


def names(path):
    return tuple(n for n in path.split(b"/") if n not in (b"", b"."))


class Tree:
    def __init__(self):
        self.root = directory()

    def apply(self, entries):
        """Applying Changesets. Whiteouts act first, "regardless of the ordering in which the whiteout file was
        encountered", and "MUST only apply to resources in lower/parent layers" (Whiteouts)."""
        self.begin(entries)
        for entry in sorted(entries, key=lambda entry: not entry.whiteout):
            try:
                self.hide(entry) if entry.whiteout else self.put(entry)
            except Undefined as undefined:
                undefined.entry = entry
                raise

    def begin(self, entries):
        self.new_directories = {e.path for e in entries if e.kind == "d"}

    def hide(self, entry):
        """A whiteout whose parent is a symbolic link below and a directory in this layer hides nothing: entries of the
        link's target are not siblings of the marker (silent)."""
        parent = self.find(entry.path[:-1], stop_at=self.new_directories)
        if parent is None or parent.kind != "d":
            return
        if entry.opaque:
            parent.children.clear()
        else:
            parent.children.pop(entry.path[-1][4:], None)

    def put(self, entry):
        """Changeset over existing files: two directories merge and get the entry's attributes; anything else is
        removed and recreated, so that other hard links to it keep the old file. Returns the directories above it."""
        if not entry.path:
            self.root.mode = entry.mode
            return []
        chain, name = self.walk(entry.path[:-1], True), entry.path[-1]
        here = chain[-1].children
        if entry.kind == "d" and name in here and here[name].kind == "d":
            here[name].mode = entry.mode
        else:
            here.pop(name, None)
            here[name] = self.make(entry)
        return chain

    def make(self, entry):
        if entry.kind == "d":
            return directory(entry.mode)
        if entry.kind == "h":
            node = self.find_no_follow(names(entry.link))
            if node is None or node.kind == "d":
                raise Undefined("hard link to %r" % entry.link)
            return node
        if entry.kind == "l":
            return Node("l", 0o777, target=entry.link)
        if entry.kind in "cb":
            return Node(entry.kind, entry.mode, target=b"%d,%d" % (entry.major, entry.minor))
        return Node(entry.kind, entry.mode, size=entry.size if entry.kind == "-" else 0)

    # Parents resolve as in a process whose root directory is the image: "the archive is extracted like a regular tar
    # archive" (Applying Changesets), and links of lower layers count as much as those of this layer.

    def walk(self, path, create, stop_at=()):
        """The chain of directories to which `path` resolves, or None if it is missing. With `create`, missing
        directories, including targets of dangling links, are created with mode 0755 (silent)."""
        chain, todo, literal, budget = [self.root], list(path), [], 64
        while todo:
            name = todo.pop(0)
            if literal is not None:
                literal.append(name)
            if name == b"..":
                chain = chain[:-1] or chain
                continue
            here = chain[-1].children
            if name not in here:
                if not create:
                    return None
                here[name] = self.implied(chain[-1])
            node = here[name]
            if node.kind == "l":
                budget -= 1
                if budget == 0:
                    raise Undefined("a loop of symbolic links at %r" % (path,))
                if literal is not None and tuple(literal) in stop_at:
                    return None
                literal = None
                if node.target.startswith(b"/"):
                    chain = [self.root]
                todo = list(names(node.target)) + todo
            elif node.kind == "d":
                chain.append(node)
            elif create:
                raise Undefined("%r is below a file" % (path,))
            else:
                return None
        return chain

    def implied(self, parent):
        return directory()

    def find(self, path, stop_at=()):
        chain = self.walk(path, False, stop_at)
        return chain and chain[-1]

    def find_no_follow(self, path):
        parent = self.find(path[:-1])
        return parent and parent.children.get(path[-1]) if path else self.root

    def lines(self):
        todo = [(b"", self.root)]
        while todo:
            at, node = todo.pop()
            for name, child in node.children.items():
                path = at + b"/" + name
                yield listing.line(path, child.kind, child.mode, child.size, child.target)
                if child.kind == "d":
                    todo.append((path, child))


class Own(Tree):
    """The folder into which an engine unpacks one layer: whiteouts are nodes of kind `w`, hidden directories are opaque, and directories
    without an entry have no mode."""

    def __init__(self):
        self.root = self.implied(None)

    def implied(self, parent):
        return directory(None)

    def hide(self, entry):
        chain = self.walk(entry.path[:-1], True)
        if entry.opaque:
            chain[-1].opaque = True
        elif entry.path[-1][4:] in chain[-1].children:
            raise Undefined("%r is both there and hidden" % (entry.path,))
        else:
            chain[-1].children[entry.path[-1][4:]] = Node("w", 0)

    def make(self, entry):
        """A hard link gives its file the entry's mode."""
        node = super().make(entry)
        if node.kind == "w":
            raise Undefined("hard link to the hidden %r" % entry.link)
        if entry.kind == "h" and node.kind != "l":
            node.mode = entry.mode
        return node


class Overlay(Tree):
    """Docker (overlay2), Podman (overlay) and containerd (overlayfs) unpack a layer into a folder of its own, which does not have the links
    and files of lower layers, and merge these folders as the kernel's overlay file system does."""

    def apply(self, entries):
        own = Own()
        for entry in entries:
            try:
                own.hide(entry) if entry.whiteout else own.put(entry)
            except Undefined as undefined:
                undefined.entry = entry
                raise
        own.root.opaque = False  # the root is always merged
        merge(self.root, own.root)


def merge(lower, upper):
    """A directory without an entry keeps the lower one's mode, as with containerd; Docker and Podman give it 0755."""
    lower.mode = lower.mode if upper.mode is None else upper.mode
    if upper.opaque:
        lower.children.clear()
    for name, node in upper.children.items():
        if node.kind == "w":
            lower.children.pop(name, None)
        elif node.kind == "d":
            if name not in lower.children or lower.children[name].kind != "d":
                lower.children[name] = directory()
            merge(lower.children[name], node)
        else:
            lower.children[name] = node


def read(stream):
    with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape") as tar:
        return [Entry(member) for member in tar]


def fold(layers, tree=None):
    tree = tree or Overlay()
    for entries in layers:
        tree.apply(entries)
    return listing.join(tree.lines())


def layers(name):
    image, found = oci.Image(name), []
    for layer in image.manifest["layers"]:
        with oci.tar_of(image.path(layer)) as stream:
            found.append(read(stream))
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(fold(layers(sys.argv[1])))
