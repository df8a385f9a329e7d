"""What the steps need of the runner: the exception by which a step says that it cannot run here."""


class Skip(Exception):
    """What is missing, and what would make the step run."""
