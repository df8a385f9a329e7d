"""Progress of a rank. All ranks go through the same phases, so in a hang their numbers show which ranks are behind."""
import time


class Phases:
    """Counts and reports the phases that this rank enters."""

    def __init__(self, report, rank, sleeper):
        self.report, self.number = report, 0
        self.sleeps_before = sleeper["before"] if sleeper and sleeper["rank"] == rank else None

    def enter(self, name):
        """Starts the phase `name`. The rank that the plan puts to sleep stays asleep before it."""
        if self.sleeps_before and name.startswith(self.sleeps_before):
            self.report.phase(self.number, "asleep before %s, as the plan asks" % name)
            while True:
                time.sleep(60)
        self.number += 1
        self.report.phase(self.number, name)
