"""What the ranks of a job need to meet: addresses of the machine's own name, and the port that MASTER_PORT names."""
import errno
import os
import socket
import threading

from ncclcheck_probe.facts import Facts, Unread

RESOLVER_SECONDS = 3  # a name server that does not answer takes longer than the rest of the step


def rendezvous_body():
    facts = Facts()
    facts.read("hostname_addresses", own_addresses)
    port = os.environ.get("MASTER_PORT")
    # The agent of torchrun serves the ranks that it started, on this port.
    if port is not None and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        facts.read("port", int, port)
        facts.read("port_taken", port_is_taken, os.environ.get("MASTER_ADDR", "localhost"), port)
    return facts.body


def own_addresses():
    """Addresses of the machine's name, at which a rank can listen. One that cannot be bound is another machine's."""
    addresses = addresses_of(socket.gethostname())
    if not any(map(is_here, addresses)):
        raise Unread("%s: not an address of this machine" % ", ".join(addresses))
    return addresses


def addresses_of(name):
    """Addresses of a name. The C library's resolver has no deadline of its own, so a thread asks it."""
    answers = []

    def resolve():
        try:
            answers.append(sorted({entry[4][0] for entry in socket.getaddrinfo(name, None)}))
        except OSError as error:
            answers.append(Unread(error.strerror))

    resolver = threading.Thread(target=resolve, daemon=True)
    resolver.start()
    resolver.join(RESOLVER_SECONDS)
    answer = answers[0] if answers else Unread("the resolver did not answer within %d s" % RESOLVER_SECONDS)
    if isinstance(answer, Unread):
        raise answer
    return answer


def port_is_taken(host, port):
    """True if rank 0 of a job could not listen here. A host that is another machine takes no port of this one."""
    if not any(map(is_here, addresses_of(host))):
        return False
    error = binding_error("::" if socket.has_dualstack_ipv6() else "0.0.0.0", int(port))
    if error not in (None, errno.EADDRINUSE):
        raise Unread("bind: " + os.strerror(error))
    return error is not None


def is_here(address):
    return binding_error(address, 0) is None


def binding_error(address, port):
    """Error number of a socket that is bound to the address, None if it can be. The socket does not listen, and so does
    not keep another one from being bound."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address == "::":
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        try:
            bound.bind((address, port))
        except OSError as error:
            return error.errno
    return None
