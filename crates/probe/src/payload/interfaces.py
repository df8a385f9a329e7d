"""Network interfaces and routes, read from the kernel without further libraries."""
import fcntl
import os
import socket
import struct

from ncclcheck_probe.facts import Facts, read_text

SIOCGIFADDR, SIOCGIFNETMASK, SIOCGIFFLAGS = 0x8915, 0x891B, 0x8913
IFF_UP, IFF_LOOPBACK, IFF_RUNNING = 0x1, 0x8, 0x40
ROUTE_UP, ROUTE_GATEWAY = 0x1, 0x2
IFREQ = "16s24x"  # struct ifreq: the name, then the request's data


def interface_bodies():
    inet6 = ipv6_addresses()
    return [interface_body(index, name, inet6.get(name, [])) for index, name in socket.if_nameindex()]


def interface_body(index, name, inet6):
    facts = Facts()
    facts.body.update(name=name, index=index, ipv6=inet6)
    facts.read("flags", interface_flags, name)
    facts.read("ipv4", ipv4_address, name)
    folder = "/sys/class/net/%s/" % name
    facts.read("state", read_text, folder + "operstate")
    facts.read("mtu_bytes", lambda: int(read_text(folder + "mtu")))
    facts.read("speed_mbit_per_second", lambda: int(read_text(folder + "speed")))
    # Hardware, real or virtual, has a device; bridges, veth pairs and tunnels have none.
    facts.read("device", device_of, folder)
    return facts.body


def device_of(folder):
    """Bus address of the interface's device, null if it has none."""
    os.stat(folder)  # raises without sysfs, which differs from having no device
    return os.path.basename(os.path.realpath(folder + "device")) if os.path.exists(folder + "device") else None


def interface_request(name, request):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return fcntl.ioctl(any_socket.fileno(), request, struct.pack(IFREQ, name.encode("utf-8", "surrogateescape")))


def interface_flags(name):
    bits, = struct.unpack_from("H", interface_request(name, SIOCGIFFLAGS), 16)
    known = (("up", IFF_UP), ("loopback", IFF_LOOPBACK), ("running", IFF_RUNNING))
    return [word for word, bit in known if bits & bit]


def ipv4_address(name):
    """The interface's first IPv4 address with its prefix length, "192.0.2.2/24"."""
    address = interface_request(name, SIOCGIFADDR)[20:24]
    mask, = struct.unpack("!I", interface_request(name, SIOCGIFNETMASK)[20:24])
    return "%s/%d" % (socket.inet_ntop(socket.AF_INET, address), bin(mask).count("1"))


def ipv6_addresses():
    """{interface: [address/prefix]}; empty if the kernel has no IPv6."""
    found = {}
    if os.path.exists("/proc/net/if_inet6"):
        for line in read_text("/proc/net/if_inet6").splitlines():
            address, _, prefix, _, _, name = line.split()
            text = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address))
            found.setdefault(name, []).append("%s/%d" % (text, int(prefix, 16)))
    return found


def default_routes():
    """IPv4 default routes, best first: [{interface, gateway, metric}]. A null gateway means the link itself."""
    found = []
    for line in read_text("/proc/net/route").splitlines()[1:]:
        name, destination, gateway, bits, _, _, metric, mask = line.split()[:8]
        if int(destination, 16) == int(mask, 16) == 0 and int(bits, 16) & ROUTE_UP:
            # The kernel prints the address as a number in this machine's byte order.
            address = socket.inet_ntop(socket.AF_INET, struct.pack("=I", int(gateway, 16)))
            found.append({"interface": name, "gateway": address if int(bits, 16) & ROUTE_GATEWAY else None,
                          "metric": int(metric)})
    return sorted(found, key=lambda route: route["metric"])
