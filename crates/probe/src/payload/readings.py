"""Reading of values field by field, so that an unreadable value affects only its own field, which gets the reason."""

import errno

ERRNO_KERNEL_NAMES = {errno.EOPNOTSUPP: "EOPNOTSUPP", errno.EAGAIN: "EAGAIN", errno.EDEADLK: "EDEADLK"}


class Unread(Exception):
    """The reason why a value could not be read, as one sentence."""


class Readings:
    """The fields of one JSON object. A field that could not be read is null, and `unread` has the reason."""

    def __init__(self, **known):
        self.fields = known
        self.unread = {}

    def read(self, field, function, *arguments):
        """Sets `field` to the result of `function` and returns it; None if it raises Unread."""
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
        """Sets `fields` to null, with the reason."""
        for field in fields:
            self.fields[field] = None
            self.unread[field] = str(why)

    def body(self):
        """The JSON object. It has `unread` only if some field could not be read."""
        return dict(self.fields, unread=self.unread) if self.unread else dict(self.fields)


def known(value, what):
    """Returns `value`; raises Unread if it is None."""
    if value is None:
        raise Unread("%s could not be read" % what)
    return value


def first_readable(*attempts):
    """Result of the first of `attempts` (functions without parameters) that succeeds. If all fail, raises Unread with
    all their reasons."""
    reasons = []
    for attempt in attempts:
        try:
            return attempt()
        except Unread as why:
            reasons.append(str(why))
    raise Unread("; ".join(reasons))


def errno_name(number):
    """`ENOMEM` for 12. If a number has two names, the kernel's."""
    return ERRNO_KERNEL_NAMES.get(number) or errno.errorcode.get(number, "errno %d" % number)
