"""torch.distributed of the stand-in. Every operation is one exchange: each member of a group sends a value to a hub in the
process of rank 0, and receives the values of all members."""
import atexit
import os
import signal
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener

from torch import float64, planted

KEY = b"stand-in"
world = everyone = None


class ReduceOp:
    SUM, MAX = sum, max


def is_available():
    return True


def is_nccl_available():
    return True


class Hub:
    """Collects the values of a group's members, and sends them to all members. Like the real one, it takes connections at
    all addresses and until its process ends."""

    def __init__(self, port):
        self.listener = Listener(("", port), backlog=16, authkey=KEY)
        self.lock, self.given, self.ranks = threading.Lock(), {}, {}
        self.stored, self.changed = {}, threading.Condition()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                threading.Thread(target=self.serve, args=(self.listener.accept(),), daemon=True).start()
            except (AuthenticationError, EOFError, ConnectionError):
                pass  # a connection that says nothing

    def serve(self, connection):
        try:
            while True:
                prefix, rank, call, members, value = connection.recv()
                if members is None:
                    self.store((prefix, call), value, connection)
                    continue
                key = prefix, call
                with self.lock:
                    self.ranks[prefix, rank] = connection
                    values = self.given.setdefault(key, {})
                    values[rank] = value
                    if len(values) == len(members):
                        del self.given[key]
                        # Rank 0 last, because it may end after its reply, and the hub with it.
                        for member in sorted(members, reverse=True):
                            self.ranks[prefix, member].send(values)
        except (EOFError, OSError):
            pass  # The rank has ended. The others wait for it, as they would with a real library.


    def store(self, key, value, connection):
        """Keeps the value, or sends it as soon as it is there."""
        with self.changed:
            if value is not None:
                self.stored[key] = value
                self.changed.notify_all()
            else:
                self.changed.wait_for(lambda: key in self.stored)
                connection.send(self.stored[key])


class TCPStore:
    prefix = ""

    def __init__(self, host, port, world_size=None, is_master=False, *, timeout, wait_for_workers=True):
        self.hub = Hub(port) if is_master else None
        self.port = port = self.hub.listener.address[1] if is_master else port
        until = time.monotonic() + timeout.total_seconds()
        while True:
            try:
                self.connection = Client((host, port), authkey=KEY)
                return
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)


class PrefixStore:
    """A store that keeps groups apart."""

    def __init__(self, prefix, store):
        self.prefix, self.connection = prefix + "/" + store.prefix, store.connection

    def set(self, key, value):
        self.connection.send((self.prefix, None, key, None, value.encode("utf-8")))

    def get(self, key):
        self.connection.send((self.prefix, None, key, None, None))
        return self.connection.recv()


class Group:
    """A group of ranks. Each call of new_group creates another one, even with the same members."""

    def __init__(self, members):
        self.members, self.name, self.calls = list(members), world.groups, 0
        world.groups += 1

    def exchange(self, value):
        """{rank: its value}."""
        self.calls += 1
        world.store.connection.send((world.store.prefix, world.rank, (self.name, self.calls), self.members, value))
        return world.store.connection.recv()


class World:
    """This process's rank and store."""

    def __init__(self, store, rank):
        self.store, self.rank, self.groups = store, rank, 0


def init_process_group(_backend, store, rank, world_size, timeout, device_id=None):
    global world, everyone
    assert world is None, "trying to initialize the default process group twice"
    world = World(store, rank)
    everyone = Group(range(world_size))
    write_log(rank)
    everyone.exchange(None)


def write_log(rank):
    """Repeats NCCL's debug output: the file of this rank, if TORCH_NCCL_LOG names files."""
    name = os.environ.get("TORCH_NCCL_LOG")
    if name:
        with open("%s.%d" % (name, rank)) as lines, open(os.environ["NCCL_DEBUG_FILE"], "w") as log:
            log.write(lines.read())


def destroy_process_group():
    global world, everyone
    everyone.exchange(None)
    if planted("exit", "destroy", world.rank):
        atexit.register(os._exit, 7)
    world = everyone = None


def new_group(members):
    return Group(members)


def exchanged(operation, value, group=None):
    """The values of all members, after the fault injected here."""
    if planted("crash", operation, world.rank):
        os.kill(os.getpid(), signal.SIGSEGV)
    if planted("freeze", operation, world.rank):
        os.kill(os.getppid(), signal.SIGSTOP)
    if planted("raise", operation, world.rank):
        raise RuntimeError("%s: unhandled system error" % operation)
    return (group or everyone).exchange(value)


def deliver(operation, output, numbers):
    """Writes a result, with one wrong number in the rank to spoil. It never spoils float64, the type of the numbers by which
    the payload itself proceeds."""
    output[:] = type(output)(list(numbers), output.dtype)
    if planted("spoil", operation, world.rank) and output.dtype != float64:
        output[len(output) - 1] = output[len(output) - 1] + 1


def all_reduce(output, op=ReduceOp.SUM, group=None):
    columns = zip(*exchanged("all_reduce", output.tolist(), group).values())
    deliver("all_reduce", output, map(op, columns))


def all_gather_into_tensor(output, given):
    values = exchanged("all_gather", given.tolist())
    deliver("all_gather", output, [number for rank in everyone.members for number in values[rank]])


def block(numbers, rank):
    length = len(numbers) // len(everyone.members)
    return numbers[rank * length:(rank + 1) * length]


def reduce_scatter_tensor(output, given):
    values = exchanged("reduce_scatter", given.tolist()).values()
    deliver("reduce_scatter", output, map(sum, zip(*[block(numbers, world.rank) for numbers in values])))


def all_to_all_single(output, given):
    values = exchanged("alltoall", given.tolist())
    deliver("alltoall", output, [number for rank in everyone.members for number in block(values[rank], world.rank)])


def broadcast(output, root):
    deliver("broadcast", output, exchanged("broadcast", output.tolist() if world.rank == root else None)[root])


def send(given, receiver, group=None):
    numbers = given.tolist()
    if planted("spoil", "send", world.rank):
        numbers[-1] += 1
    exchanged("send", (receiver, numbers), group)


def recv(output, sender, group=None):
    receiver, numbers = exchanged("recv", None, group)[sender]
    assert receiver == world.rank, "rank %d sends to rank %d, not to %d" % (sender, receiver, world.rank)
    deliver("recv", output, numbers)


def isend(given, peer):
    return {peer: given.tolist()}


def irecv(output, peer):
    return output, peer


class P2POp:
    def __init__(self, function, tensor, peer):
        self.result = function(tensor, peer)
        self.sends = function is isend


class Work:
    def wait(self):
        pass


def batch_isend_irecv(operations):
    """The exchange of a ring, in which all ranks send and receive."""
    given = {peer: numbers for operation in operations if operation.sends for peer, numbers in operation.result.items()}
    values = exchanged("sendrecv", given)
    for operation in operations:
        if not operation.sends:
            output, peer = operation.result
            deliver("sendrecv", output, values[peer][world.rank])
    return [Work() for _ in operations]
