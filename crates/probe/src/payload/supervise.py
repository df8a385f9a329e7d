"""Runs all ranks of this container, and identifies the culprit if they fail or hang."""
import json
import time
from collections import namedtuple

from ncclcheck_probe.child import Child, stacks_of, watch
from ncclcheck_probe.gate import wait_at
from ncclcheck_probe.task import StepFailed, failure
from ncclcheck_probe.world import rank_variables

OTHERS_GRACE = 3  # seconds for the other ranks to fail by themselves after the first failure
LEAVE_GRACE = 10  # seconds for ranks to end after all have sent their results
LOG_LINES, LOG_BYTES = 4000, 512 << 10  # of one rank
LATE_WARNINGS = 100  # of one rank, above these limits

# seconds: limit of the whole run; stall: limit of a single phase; run: marks the log lines of each of several runs;
# gate: where the ranks wait after their import of torch, or None
Run = namedtuple("Run", "program world env options seconds stall run gate")


class RankProcess:
    """One rank's process and its state."""

    def __init__(self, child, rank, run=0):
        self.child, self.rank, self.run = child, rank, run
        self.number, self.phase = 0, "start"
        self.result = self.failed = None
        self.lines = self.bytes = self.late_warnings = self.left_out = 0

    def log(self, line, report):
        """Forwards a line of NCCL's log, up to the limits. The limits of warnings are others, since the last lines of a
        rank say why it failed."""
        self.lines, self.bytes = self.lines + 1, self.bytes + len(line)
        is_full = self.lines > LOG_LINES or self.bytes > LOG_BYTES
        self.late_warnings += is_full and " NCCL WARN " in line
        if not is_full or " NCCL WARN " in line and self.late_warnings <= LATE_WARNINGS:
            report.log(self.run, self.rank, line)
        else:
            self.left_out += 1

    def end_log(self, report):
        if self.left_out:
            report.log(self.run, self.rank, "%d more lines were left out" % self.left_out, self.left_out)

    def end(self):
        """Records the end of the process, which is a failure if it sent no result."""
        if not (self.result or self.failed):
            ending = self.child.ending()
            message = "ended by %s in phase %r" % (ending.words, self.phase)
            self.failed = failure(ending.how, message, signal=ending.signal, code=ending.code)

    def state(self):
        """The rank's entry in `ranks`. Its state is done, running, failed (by an exception), or the process's end."""
        if self.failed:
            word = "failed" if self.failed["how"] == "exception" else self.child.ending().words
        else:
            word = "done" if self.result else "running"
        return {"rank": self.rank, "phase": self.phase, "number": self.number, "state": word,
                "error": self.failed and self.failed["message"]}


def culprit(ranks, first_failed):
    """The rank whose process died, else the first to fail. An exception in another rank may only report the lost
    connection to the dead one, and may arrive earlier."""
    died = [rank for rank in ranks if rank.failed and rank.failed["how"] != "exception"]
    return died[0] if died else first_failed


def blaming(rank, ranks):
    """The body of a failure of `ranks` that this one caused."""
    return dict(rank.failed, message="rank %d: %s" % (rank.rank, rank.failed["message"]), rank=rank.rank,
                ranks=[other.state() for other in ranks], stderr=list(rank.child.tail))


class Hang(Exception):
    """The ranks make no progress."""


class Supervisor:
    """The ranks of one run."""

    def __init__(self, run, report, forward):
        self.report, self.forward, self.run = report, forward, run
        self.ranks = []
        self.first_failed = None
        self.progress = self.until = None

    def results(self):
        """Results of all ranks by rank, and the endings of processes that sent a result but did not exit cleanly.
        Raises StepFailed."""
        try:
            for local_rank in range(self.run.world.local):
                rank = self.run.world.offset + local_rank
                self.ranks.append(RankProcess(self.started(rank, local_rank), rank, self.run.run))
            wait_at(self.run.gate)
            self.progress = time.monotonic()
            self.until = self.progress + self.run.seconds
            try:
                self.follow()
            except Hang as hang:
                raise StepFailed(self.hang_body(str(hang)))
            if self.first_failed:
                raise StepFailed(self.failed_body())
            return {rank.rank: rank.result for rank in self.ranks}, self.unclean_exits()
        finally:
            for rank in self.ranks:
                rank.end_log(self.report)
                rank.child.kill()
                rank.child.close()

    def started(self, rank, local_rank):
        run = self.run
        env = dict(run.env, **rank_variables(run.world, local_rank))
        return Child(run.program, "rank", {"options": run.options, "seconds": run.seconds}, env, leads_group=False,
                     with_log=True, name="rank %d" % rank, gate=run.gate)

    def follow(self):
        """Handles messages until all ranks have ended, or one has failed and the others have had time to report."""
        rank_of = {rank.child: rank for rank in self.ranks}
        for message in watch([rank.child for rank in self.ranks]):
            if message is None:
                if self.over(time.monotonic()):
                    return
            elif message.channel == "log":
                rank_of[message.child].log(message.line, self.report)
            elif message.channel == "end":
                rank_of[message.child].end()
                self.notice(rank_of[message.child])
            else:
                self.take(rank_of[message.child], message.line)

    def take(self, rank, line):
        (kind, body), = json.loads(line).items()
        if kind == "phase":
            rank.number, rank.phase = body["number"], body["name"]
            self.progress = time.monotonic()
        elif kind == "part":
            self.forward(body)
        elif kind == "result":
            rank.result = body
            if all(other.result for other in self.ranks):
                self.until = time.monotonic() + LEAVE_GRACE
        elif kind == "failed":
            rank.failed = body
            self.notice(rank)

    def notice(self, rank):
        """Records the first failure, after which the other ranks have a short time to fail as well."""
        if rank.failed and not self.first_failed:
            self.first_failed = rank
            self.until = time.monotonic() + OTHERS_GRACE

    def over(self, now):
        if now > self.until:
            if self.first_failed or all(rank.result for rank in self.ranks):
                return True
            raise Hang("the step ran out of time")
        if now - self.progress > self.run.stall and not self.first_failed:
            raise Hang("no rank has entered a new phase for %g seconds" % self.run.stall)
        return False

    def failed_body(self):
        rank = culprit(self.ranks, self.first_failed)
        stacks = stacks_of([other.child for other in self.ranks if other is not rank])
        return dict(blaming(rank, self.ranks), stacks=stacks)

    def hang_body(self, why):
        stacks = stacks_of([rank.child for rank in self.ranks])
        behind = self.behind()
        blamed = behind[0] if behind else None
        return failure("deadline", "%s: %s" % (why, self.where()), rank=blamed and blamed.rank, stacks=stacks,
                       stderr=list(blamed.child.tail) if blamed else [], ranks=[rank.state() for rank in self.ranks])

    def behind(self):
        """Ranks that are behind the furthest one."""
        furthest = max(rank.number for rank in self.ranks)
        return [rank for rank in self.ranks if rank.number < furthest]

    def where(self):
        """Describes the ranks that are behind, and the phase in which the others wait."""
        furthest = max(self.ranks, key=lambda rank: rank.number)
        late = ["rank %d has not come to %r (it is in %r)" % (rank.rank, furthest.phase, rank.phase)
                for rank in self.behind()]
        words = "; ".join(late) + "; the others wait in it" if late else (
            "all ranks here are in %r, and none leaves it" % furthest.phase)
        if self.run.world.local < self.run.world.size:
            words += "; ranks of other containers are not visible from here"
        return words

    def unclean_exits(self):
        endings = [(rank.rank, rank.child.ending()) for rank in self.ranks]
        return [{"rank": rank, "ending": ending.words if ending else "it did not end"}
                for rank, ending in endings if not ending or ending.code != 0]
