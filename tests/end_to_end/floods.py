"""Floods of strangers: their messages cost no other member anything."""
import hashlib
import hmac
import os
import re
import socket
import ssl
import struct
import subprocess
import sys
import time

FLOOD_SECONDS = 3
CONNECTIONS_MAX = 20_000  # of one flooder
CONNECTIONS_MIN = 200  # on a slow host it goes on for longer, but not for ever
HANG_SECONDS = 60

# What the process of a server may grow by, whatever arrives: half of it is the buffers of sockets and of gRPC.
GROWTH_BYTES_MAX = 128 << 20


# --- flooders: processes of their own, `floods.py KIND NAME PORT…` -------------------------------

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def calls(count):
    """The beginning of an HTTP/2 connection, and calls without any proof of who makes them: 345 KB for 3,000."""
    def text(value):
        return bytes([len(value)]) + value.encode()
    path = "/nam.proto.Catalog/GetCluster"
    headers = (b"\x83\x86\x04" + text(path) + b"\x01" + text("nam") +
               b"\x00" + text("content-type") + text("application/grpc") + b"\x00" + text("te") + text("trailers"))
    begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    return begin + b"".join(frame(1, 4, 2 * i + 1, headers) + frame(0, 1, 2 * i + 1, bytes(5)) for i in range(count))


def client_hello(name):
    """What a TLS client with this server name sends first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def connect(port):
    peer = socket.socket()
    peer.settimeout(1)
    peer.connect(("127.0.0.1", port))
    peer.setblocking(False)
    return peer


def send(peer, data):
    while data:
        data = data[peer.send(data):]


def reset(peer):
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def flood(kind, name, ports):
    """Bounded in connections and in time; at most 100 are open to each port."""
    data = {"calls": calls(3000), "resets": calls(100), "silent": b"", "half": client_hello(name)[:60],
            "hellos": client_hello("stranger.nam"), "overheard": client_hello(name)}[kind]
    begun = time.monotonic()
    opened, kept = 0, {port: [] for port in ports}
    while opened < CONNECTIONS_MAX and time.monotonic() < begun + (
            FLOOD_SECONDS if opened > CONNECTIONS_MIN else HANG_SECONDS):
        for port in ports:
            try:
                peer = connect(port)
            except OSError:  # full, refused: as it may be
                continue
            opened += 1
            try:
                send(peer, data)
            except OSError:  # cut off
                pass
            if kind == "resets":
                reset(peer)
                continue
            kept[port].append(peer)
            if len(kept[port]) > 100:
                kept[port].pop(0).close()
    print(opened)


if len(sys.argv) > 3:
    flood(sys.argv[1], sys.argv[2], [int(port) for port in sys.argv[3:]])
    sys.exit(0)


import cases  # noqa: E402
from cluster import Cluster  # noqa: E402


def knock_name(secret):
    """As catalog/certificates.cc derives it (HKDF-SHA256): the knowledge of a listener who has overheard a member."""
    extracted = hmac.new(bytes(32), secret.encode(), hashlib.sha256).digest()
    derived = hmac.new(extracted, b"nam control plane knock 1\x01", hashlib.sha256).digest()
    return derived[:31].hex() + ".nam"


def grown(pid):
    """The most that a process has had of memory of its own, beside what it shares."""
    with open("/proc/%d/smaps_rollup" % pid) as rollup:
        return sum(int(kib) << 10 for kib in re.findall(r"^(?:Private_Dirty|Swap): +(\d+) kB", rollup.read(), re.M))


class Floods(cases.Case):
    def start(self):
        cluster = Cluster(self, memory=[64 << 20] * 2, compute=2, secret="overheard by everybody", lease_ms=2000)
        cluster.load(0.01)
        cluster.lineorders = cluster.count("lineorder")
        cluster.before = cluster.answers("--repeat=1")
        cluster.ids = [row["id"] for row in cluster.status()["rows"]]
        cluster.servers = [cluster.catalog] + [server.process for server in cluster.memory + cluster.compute]
        ready = cluster.catalog.await_line("^READY catalog address=(.*) leases=(.*)$")
        addresses = [ready.group(1), ready.group(2)] + [s.values["control"] for s in cluster.memory + cluster.compute]
        cluster.ports = [address.rsplit(":", 1)[1] for address in addresses]
        return cluster

    def flood(self, cluster, kind, newcomers=True):
        """By a process of its own; meanwhile statements are run, each by a client that is new."""
        sizes = {server.pid: grown(server.pid) for server in cluster.servers}
        since = time.monotonic()
        name = knock_name("overheard")
        flooder = subprocess.Popen([sys.executable, "-B", os.path.abspath(__file__), kind, name, *cluster.ports],
                                   stdout=subprocess.PIPE)
        answered, largest = 0, dict(sizes)
        while flooder.poll() is None:
            if newcomers:
                asked = time.monotonic()
                self.assertEqual(cluster.count("lineorder"), cluster.lineorders)
                self.within(30, asked)
                answered += 1
            time.sleep(0.1)
            for pid in sizes:
                largest[pid] = max(largest[pid], grown(pid))
        opened = int(flooder.communicate()[0])
        self.say("%s: %d connections in %.1f s, %d statements answered" % (
            kind, opened, time.monotonic() - since, answered))
        self.assertGreater(opened, 100)
        self.assertTrue(answered or not newcomers)
        for server in cluster.servers:
            self.assertTrue(server.running(), "%s: %s" % (server.name, server.err()))
            self.assertLess(largest[server.pid] - sizes[server.pid], GROWTH_BYTES_MAX, server.name)
        self.assertEqual([row["id"] for row in cluster.status()["rows"]], cluster.ids, "a member was expelled")
        self.assertTrue(all(row["alive"] for row in cluster.status()["rows"]))

    def intact(self, cluster):
        self.assertEqual(cluster.answers("--repeat=1"), cluster.before)

    def test_calls_without_a_certificate(self):
        """3,000 calls in 345 KB on each of up to 100 connections to every port; and rapid resets."""
        cluster = self.start()
        self.assertGreater(len(calls(3000)), 250_000)
        self.flood(cluster, "calls")
        self.flood(cluster, "resets")
        self.intact(cluster)

    def test_silent_and_half_open(self):
        """Connections that say nothing, or begin and do not go on."""
        cluster = self.start()
        self.flood(cluster, "silent")
        self.flood(cluster, "half")
        self.intact(cluster)

    def test_handshakes(self):
        """TLS handshakes: with an unknown name, and with that of the cluster, which can be overheard. A client that
        has overheard it delays newcomers, but no member."""
        cluster = self.start()
        self.flood(cluster, "hellos")
        self.flood(cluster, "overheard", newcomers=False)
        self.intact(cluster)


cases.main()
