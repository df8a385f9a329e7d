"""A body that never invents: what cannot be read is null, with the reason beside it."""

from ncclcheck_probe.readings import Unread


class Facts:
    """Gathers a body field by field."""

    def __init__(self):
        self.body = {}

    def read(self, field, function, *arguments):
        """Sets the field to what the function returns; if it raises, to null with the reason under "unread"."""
        try:
            self.body[field] = function(*arguments)
        except Exception as error:  # whatever stops one answer must not stop the others
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
    """The beginning of a file of /proc, /sys or /etc, as text without the newline at its end."""
    with open(path, "rb") as file:
        return file.read(limit).decode("utf-8", "surrogateescape").rstrip("\n")
