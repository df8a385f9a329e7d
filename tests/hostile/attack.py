"""What an attack is: a function that makes an input in a folder and returns how the program is run on it."""
import dataclasses, itertools, pathlib

FAMILIES = {}


@dataclasses.dataclass
class Attack:
    """One input. `make(folder)` writes it and returns a Run."""
    name: str
    make: object
    quick: bool


@dataclasses.dataclass
class Run:
    """A run of the program in the folder of the input."""
    arguments: list
    # Exit statuses that are right. Without one, any but that of a crash is.
    exits: tuple = (0, 1, 2, 3)
    # Texts, all of which standard output and error must have together, and texts that neither may have.
    says: tuple = ()
    hides: tuple = ()
    stdin: bytes = b""
    environment: dict = dataclasses.field(default_factory=dict)
    # Ends what runs beside the program.
    stop: object = None


def attack(quick=None, **ranges):
    """Registers a generator as one attack for each combination of the ranges. `quick` is the combination for a short run."""
    def register(make):
        family = FAMILIES.setdefault(make.__name__, [])
        for values in itertools.product(*ranges.values()):
            words = dict(zip(ranges, values))
            name = "_".join([make.__name__] + [str(value).replace("/", "-") for value in values])
            family.append(Attack(name, lambda folder, words=words: make(pathlib.Path(folder), **words), quick == words))
        return make
    return register


def check(image, *options, **settings):
    """A run of `check` over an image."""
    return Run(["check", "--no-config", "--cache", "off", *options, str(image)], **settings)
