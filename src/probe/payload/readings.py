"""How every step reads: field by field, so that one that cannot be read costs only itself, and says why."""

import errno

ERRNO_KERNEL_NAMES = {errno.EOPNOTSUPP: "EOPNOTSUPP", errno.EAGAIN: "EAGAIN", errno.EDEADLK: "EDEADLK"}


class Unread(Exception):
    """Why a value could not be read, as one sentence."""


class Readings:
    """The fields of one JSON object; a field that could not be read is null, and `unread` has its reason."""

    def __init__(self, **known):
        self.fields = known
        self.unread = {}

    def read(self, field, function, *arguments):
        """Sets `field` to what `function` returns, and returns it; None where it raised Unread."""
        try:
            value = function(*arguments)
        except Unread as why:
            value = self.give_up([field], why)
        self.fields[field] = value
        return value

    def read_together(self, fields, function, *arguments):
        """Sets several fields from the tuple that one call returns."""
        try:
            values = function(*arguments)
        except Unread as why:
            self.give_up(fields, why)
            values = [None] * len(fields)
        self.fields.update(zip(fields, values))

    def give_up(self, fields, why):
        """Notes that `fields` are null, and why."""
        for field in fields:
            self.fields[field] = None
            self.unread[field] = str(why)

    def body(self):
        """The JSON object; without `unread`, where everything was read."""
        return dict(self.fields, unread=self.unread) if self.unread else dict(self.fields)


def known(value, what):
    """`value`, where it could be read."""
    if value is None:
        raise Unread("%s could not be read" % what)
    return value


def first_readable(*attempts):
    """What the first of `attempts` (functions without parameters) returns; the reasons of all where none can."""
    reasons = []
    for attempt in attempts:
        try:
            return attempt()
        except Unread as why:
            reasons.append(str(why))
    raise Unread("; ".join(reasons))


def errno_name(number):
    """`ENOMEM` for 12; of two names of one number, the kernel's."""
    return ERRNO_KERNEL_NAMES.get(number) or errno.errorcode.get(number, "errno %d" % number)
