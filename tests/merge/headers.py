#!/usr/bin/env python3
"""Generates images header by header, with forms that readers of tar archives and of images treat differently.

usage: headers.py list [PATTERN]...              lists the forms
       headers.py write OUTDIR FORM...           writes a layout with these forms
       headers.py images N OUTDIR [--seed S]     writes N layouts, OUTDIR/0000 and on; the same seed gives the same layers

forms.py has the forms of members, layer_forms.py those of whole layers. Each image has a lower layer, and one or two
layers of forms above it. Each form of a layer has a folder of its own, with the same contents in the lower layer, and with files before
and after the form in its layer. Every file has its own size, so that a listing shows whose contents a path has.
"""
import dataclasses, fnmatch, itertools, pathlib, random, sys

import forms, layer_forms, oci
from tarball import directory

FORMS = [*forms.FORMS, *layer_forms.FORMS]


@dataclasses.dataclass
class Layer:
    """`pieces` are pairs (form, bytes), concatenated; `end` follows them. `pack` turns the tar into the blob."""
    pieces: list
    end: bytes = b"\0" * 1024
    pack: object = staticmethod(lambda tar: tar)
    media: str = oci.LAYER
    diff_id: object = None
    blob: bool = True

    def tar(self):
        return b"".join(data for _, data in self.pieces) + self.end


def image(*plan):
    """The layers of an image: a lower one, and one above it for each of the lists of forms in `plan`. The first forms of all lists share a
    folder, and so on."""
    sizes = itertools.count(1)
    folders = [forms.Folder(b"f%d" % number, sizes) for number in range(max(map(len, plan)))]
    lower = Layer([("", data) for at in folders for data in forms.standard(at)])
    return [lower] + [above(names, folders) for names in plan]


def above(names, folders):
    layer = Layer([])
    for name, at in zip(names, folders):
        if name in layer_forms.FORMS:
            layer = dataclasses.replace(layer, **layer_forms.FORMS[name])
            layer.pieces.append(("", at.file(b"plain")))
        else:
            layer.pieces += [("", data) for data in (directory(at()), at.file(b"first"), at.file(b"second"))]
            layer.pieces += [(name, data) for data in forms.FORMS[name](at)]
            layer.pieces.append(("", at.file(b"after")))
    return layer


def draw(rng):
    """The plan of a random image: with at most one form of a whole layer, as a later one would undo it."""
    plan = [[pick(rng, forms.FORMS) for _ in range(rng.choice([1, 2, 2, 3]))] for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.15:
        names = rng.choice(plan)
        names[rng.randrange(len(names))] = pick(rng, layer_forms.FORMS)
    return plan


def pick(rng, names):
    """A form: each kind of form is as frequent as the others, whatever the number of its forms."""
    kinds = {}
    for name in names:
        kinds.setdefault(name.replace(",", ":").split(":")[0].split(" ")[0], []).append(name)
    return rng.choice(kinds[rng.choice(sorted(kinds))])


def images(n, seed):
    """(number, plan) of each random image."""
    for number in range(n):
        yield number, draw(random.Random("%d %d" % (seed, number)))


def write(folder, layers):
    """Writes a layout; returns the manifest and the blobs by digest."""
    return oci.write_blobs(folder, [
        (layer.pack(layer.tar()), layer.media, layer.diff_id or oci.digest(layer.tar()), layer.blob) for layer in layers])


def main(arguments):
    if arguments[:1] == ["list"]:
        for name in FORMS:
            if not arguments[1:] or any(fnmatch.fnmatch(name, pattern) for pattern in arguments[1:]):
                print(name)
    elif arguments[:1] == ["write"] and len(arguments) > 2:
        write(arguments[1], image(arguments[2:]))
    elif arguments[:1] == ["images"] and len(arguments) in (3, 5):
        for number, plan in images(int(arguments[1]), int(arguments[4]) if arguments[4:] else 1):
            write(pathlib.Path(arguments[2], "%04d" % number), image(*plan))
            print("%04d %s" % (number, plan))
    else:
        return __doc__
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
