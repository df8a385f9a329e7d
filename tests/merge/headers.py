#!/usr/bin/env python3
"""Generates images header by header, with forms that readers of tar archives and of images treat differently.

usage: headers.py list [PATTERN]...              lists the forms
       headers.py write OUTDIR FORM...           writes a layout with these forms
       headers.py images N OUTDIR [--seed S]     writes N layouts, OUTDIR/0000 and on; the same seed gives the same layers

forms.py has the forms of members, layer_forms.py those of whole layers. Each image has a lower layer and an upper one. Each form
has a folder of its own in both, with the same contents in the lower one, and a file that comes after the form in its layer. Every
file has its own size, so that a listing shows whose contents a path has.
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


def image(names):
    """The layers of an image with these forms."""
    sizes = itertools.count(1)
    lower, upper = Layer([]), Layer([])
    for number, name in enumerate(names):
        build, values = forms.FORMS.get(name), layer_forms.FORMS.get(name)
        at = forms.Folder(b"f%d" % number, sizes)
        lower.pieces += [("", data) for data in forms.standard(at)]
        if values:
            upper = dataclasses.replace(upper, **values)
            upper.pieces.append(("", at.file(b"plain")))
        else:
            upper.pieces += [("", data) for data in (directory(at()), at.file(b"first"), at.file(b"second"))] + [(name,
                data) for data in build(at)] + [("", at.file(b"after"))]
    return [lower, upper]


def draw(rng):
    """Names of the forms of a random image: of at most one form of a whole layer, as a later one would undo it."""
    names = [pick(rng, forms.FORMS) for _ in range(rng.choice([1, 2, 2, 3]))]
    if rng.random() < 0.15:
        names[rng.randrange(len(names))] = pick(rng, layer_forms.FORMS)
    return names


def pick(rng, names):
    """A form: each kind of form is as frequent as the others, whatever the number of its forms."""
    kinds = {}
    for name in names:
        kinds.setdefault(name.replace(",", ":").split(":")[0].split(" ")[0], []).append(name)
    return rng.choice(kinds[rng.choice(sorted(kinds))])


def images(n, seed):
    """(number, names of forms) of each random image."""
    for number in range(n):
        yield number, draw(random.Random("%d %d" % (seed, number)))


def write(folder, layers):
    """Writes a layout; returns the manifest and the blobs by digest."""
    return oci.write_blobs(folder,
                           [(layer.pack(layer.tar()), layer.media, layer.diff_id or oci.digest(layer.tar()),
                             layer.blob) for layer in layers])


def main(arguments):
    if arguments[:1] == ["list"]:
        for name in FORMS:
            if not arguments[1:] or any(fnmatch.fnmatch(name, pattern) for pattern in arguments[1:]):
                print(name)
    elif arguments[:1] == ["write"] and len(arguments) > 2:
        write(arguments[1], image(arguments[2:]))
    elif arguments[:1] == ["images"] and len(arguments) in (3, 5):
        for number, names in images(int(arguments[1]), int(arguments[4]) if arguments[4:] else 1):
            write(pathlib.Path(arguments[2], "%04d" % number), image(names))
            print("%04d %s" % (number, names))
    else:
        return __doc__
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
