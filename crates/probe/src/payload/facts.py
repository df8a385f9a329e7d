"""Bodies that never invent a value: a field that cannot be read is null, with the reason beside it."""

from ncclcheck_probe.readings import Unread


class Facts:
    """Builds a body field by field."""

    def __init__(self):
        self.body = {}

    def read(self, field, function, *arguments):
        """Sets the field to the function's result; if it raises, to null with the reason under "unread"."""
        try:
            self.body[field] = function(*arguments)
        except Exception as error:  # a failure of one field must not prevent the others
            self.missing(field, in_words(error))

    def missing(self, field, why):
        self.body[field] = None
        self.body.setdefault("unread", {})[field] = why


def in_words(error):
    """The exception as one line of text."""
    if isinstance(error, OSError) and error.strerror:
        where = "%s: " % error.filename if error.filename else ""
        return where + error.strerror
    text = str(error).strip()
    if isinstance(error, Unread):
        return text
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


def read_text(path, limit=1 << 20):
    """The first `limit` bytes of a file of /proc, /sys or /etc, as text without the newline at its end."""
    with open(path, "rb") as file:
        return file.read(limit).decode("utf-8", "surrogateescape").rstrip("\n")
