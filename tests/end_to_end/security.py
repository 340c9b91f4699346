"""Strangers: another secret, and bytes that are no protocol of ours."""
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
import unittest

import cases
from cluster import Cluster

SEED = int(os.environ.get("END_TO_END_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)


class Secret(cases.Case):
    def test_wrong_secret(self):
        """Clients and servers with another secret are refused: exit code 3, and why."""
        wrong = self.scratch.file("wrong", "another secret of the tests\n")
        for fabric in ("shm", "tcp"):
            cluster = Cluster(self, fabric=fabric, memory=[64 << 20], compute=1)
            cluster.load(0.01)
            options = ["--catalog=" + cluster.address, "--secret-file=" + wrong]
            members = cluster.status()["rows"]
            for command in (["sql", "-c", "SELECT count(*) FROM date"], ["status"], ["ssb", "run"],
                            ["ssb", "load", "--replace", "--scale-factor=0.01"], ["memserver"], ["compute"]):
                refused = self.scratch.nam(*command[:2 if command[0] == "ssb" else 1], *options,
                                           *command[2 if command[0] == "ssb" else 1:])
                self.assertEqual(refused.code, 3, refused)
                self.assertIn("refuses us", refused.err)
                self.assertIn("secret", refused.err)
                self.assertIn(cluster.address, refused.err)
                self.assertEqual(refused.out, "")
            self.say(refused.err.strip())
            self.assertEqual([row["id"] for row in cluster.status()["rows"]], [row["id"] for row in members])
            self.assertEqual(cluster.count("date"), 2556)
            cluster.stop()

    def test_secret_files(self):
        """Missing, empty, too short, or readable by others."""
        cluster = Cluster(self, memory=[64 << 20], compute=1)
        for path, piece in ((self.scratch.file("none"), "No such file"), (self.scratch.file("empty", "\n"), "empty"),
                            (self.scratch.file("short", "hunter2\n"), "can be guessed"),
                            (self.scratch.file("open", "a secret of the tests\n", mode=0o644), "chmod 600")):
            options = ["--catalog=" + cluster.address, "--secret-file=" + path]
            for command in (["sql", "-c", "SELECT 1"], ["memserver"], ["compute"],
                            ["catalog", "--store=" + self.scratch.file("new.db")]):
                some = options[1:] if command[0] == "catalog" else options
                refused = self.scratch.nam(command[0], *some, *command[1:])
                self.assertIn(refused.code, (2, 3), refused)
                self.assertIn(piece, refused.err)
                self.assertIn(path, refused.err)


class StateDirectory(cases.Case):
    """Everybody may make `/tmp/nam-1000`. What cannot be ours alone is not believed."""

    def plant(self, folder, victim, catalog):
        with open("/proc/%d/stat" % victim.pid) as stat:
            ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
        with open("/proc/sys/kernel/random/boot_id") as boot:
            process = {"name": "catalog", "pid": victim.pid, "start_time": ticks, "boot": boot.read().strip(),
                       "executable": os.readlink("/proc/%d/exe" % victim.pid)}
        state = {"version": 2, "catalog": catalog, "fabric": "shm", "supervisor": process, "servers": [process],
                 "events": []}
        with open(os.path.join(folder, "cluster.json"), "w") as file:
            json.dump(state, file)
        with open(os.path.join(folder, "secret"), "w") as file:
            file.write("a stranger's\n")
        with open(os.path.join(folder, "letter"), "w") as file:
            file.write("mine")
        os.symlink(os.path.join(folder, "letter"), os.path.join(folder, "lock"))
        for name in ("cluster.json", "secret", "letter"):
            os.chmod(os.path.join(folder, name), 0o600)

    def test_planted(self):
        """No command kills, dials, empties or follows what a directory says that others can enter, or a link to one."""
        folder, link = self.scratch.file("folder"), self.scratch.file("link")
        os.mkdir(folder, 0o755)
        os.symlink(folder, link)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(8)
            listener.setblocking(False)
            victim = subprocess.Popen(["sleep", "600"], env=self.scratch.env)
            self.addCleanup(victim.wait)
            self.addCleanup(victim.kill)
            self.plant(folder, victim, "127.0.0.1:%d" % listener.getsockname()[1])
            for path in (folder, link, link + "/"):
                for command, code in ((["down"], 2), (["up", "--memory=64MiB"], 2), (["status"], 3),
                                      (["sql", "-c", "SELECT 1"], 3), (["ssb", "run"], 3), (["scale", "out"], 3),
                                      (["checkout", "--seconds=1"], 3)):
                    words = 2 if command[0] in ("ssb", "scale") else 1
                    result = self.scratch.nam(*command[:words], "--state-dir=" + path, *command[words:])
                    self.assertEqual(result.code, code, result)
                    self.assertIn("must be a directory of yours", result.err)
                if path == folder:
                    os.chmod(folder, 0o700)  # now only the links are wrong
            self.assertIsNone(victim.poll(), "the process that was named lives")
            self.assertRaises(BlockingIOError, listener.accept)
            self.assertEqual(sorted(os.listdir(folder)), ["cluster.json", "letter", "lock", "secret"])
            # Of ours alone: the lock that leads elsewhere is refused, and the process that is no nam stays alive.
            self.assertEqual(self.scratch.nam("down", "--state-dir=" + folder).code, 1)
            with open(os.path.join(folder, "letter")) as letter:
                self.assertEqual(letter.read(), "mine")
class Certificates(cases.Case):
    def test_incomplete_options(self):
        """Two of the three files are a mistake for every process."""
        secret = self.scratch.file("secret", "a secret of the tests\n")
        some = ["--secret-file=" + secret, "--tls-certificate=a.crt", "--tls-key=a.key"]
        for command in (["sql", "--catalog=127.0.0.1:1", "-c", "SELECT 1"], ["status", "--catalog=127.0.0.1:1"],
                        ["memserver", "--catalog=127.0.0.1:1"], ["compute", "--catalog=127.0.0.1:1"],
                        ["catalog", "--store=" + self.scratch.file("new.db")]):
            refused = self.scratch.nam(command[0], *some, *command[1:])
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("--tls-ca", refused.err)

    @unittest.skipUnless(shutil.which("openssl"), "makes certificates with openssl")
    def test_own_certificates(self):
        """A cluster with an operator's certificates refuses a member that has the secret alone."""
        key, crt = self.scratch.file("own.key"), self.scratch.file("own.crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", crt, "-days", "2", "-subj", "/CN=members"],
                       check=True, capture_output=True)
        os.chmod(key, 0o600)
        tls = ["--tls-certificate=" + crt, "--tls-key=" + key, "--tls-ca=" + crt]
        secret = self.scratch.file("secret", "a secret of the tests\n")
        catalog = self.scratch.start("catalog", "--store=" + self.scratch.file("store.db"), "--fabric=tcp",
                                     "--secret-file=" + secret, *tls)
        self.addCleanup(catalog.kill)
        address = catalog.await_line("^READY catalog address=([^ ]*)").group(1)
        options = ["--catalog=" + address, "--secret-file=" + secret]
        for role in ("memserver", "compute"):
            server = self.scratch.start(role, *options, *tls, *(["--memory=64MiB"] if role == "memserver" else []))
            self.addCleanup(server.kill)
            server.await_line("^READY " + role)
        done = self.scratch.nam("ssb", "load", "--scale-factor=0.01", *options, *tls)
        self.assertEqual(done.code, 0, done)
        counted = self.scratch.nam("sql", *options, *tls, "--format=csv", "-c", "SELECT count(*) AS n FROM date")
        self.assertIn("2556", counted.out, counted)
        nobody = self.scratch.nam("bury", "999", "--yes", *options, *tls)
        self.assertEqual(nobody.code, 1, nobody)
        self.assertIn("there is no memory server 999", nobody.err)
        for command in (["sql", "-c", "SELECT 1"], ["bury", "999", "--yes"]):
            refused = self.scratch.nam(command[0], *options, *command[1:])
            self.assertEqual(refused.code, 3, refused)
            self.assertIn("is not trusted", refused.err)


class Garbage(cases.Case):
    def setUp(self):
        super().setUp()
        self.say("END_TO_END_SEED=%d" % SEED)
        self.random = random.Random(SEED)

    def texts(self):
        """What a port of ours may meet."""
        shuffled = self.random.randbytes
        http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        return [
            b"", b"\0", b"\n" * 100, b"GET / HTTP/1.1\r\nHost: nam\r\n\r\n", shuffled(1), shuffled(64), shuffled(4096),
            b"\0" * (1 << 20), b"\xff" * (1 << 16), shuffled(1 << 20),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + shuffled(500),  # TLS
            http2, http2 + shuffled(1000), http2 + b"\0\0\0\4\0\0\0\0\0" + shuffled(5000),
            http2 + b"\0\0\0\4\0\0\0\0\0" + b"\xff\xff\xff\1\5\0\0\0\1" + shuffled(100_000),  # a huge header frame
            http2 + b"\0\0\0\4\0\0\0\0\0" + b"\0\0\4\3\0\0\0\0\1\0\0\0\0" * 5000,  # resets of streams
        ]

    def hellos(self, name):
        """Starts of our own handshakes (fabric/net/handshake_wire.h, fabric/shm/wire.h), which then go wrong."""
        shuffled = self.random.randbytes
        if "socket" in name:
            def message(kind):
                return struct.pack("<IHH", 0x4D414E73, 1, kind) + shuffled(168)
            return [message(kind) for kind in range(0, 10)] + [message(1)[:100], message(1) + b"\0"]
        right = b"NAMT" + struct.pack("<HBBQ", 1, 1, 0, 0) + shuffled(32)
        return [right, right[:20], right + shuffled(32), right + shuffled(100_000), right + right,
                b"NAMT" + struct.pack("<HBBQ", 2, 1, 0, 0) + shuffled(32),
                b"NAMT" + struct.pack("<HBBQ", 1, 2, 0, 12345) + shuffled(64)]

    def throw(self, make_socket, texts):
        """Each text over a connection of its own: closed at once, reset, or left open until the end."""
        kept = []
        for text in texts:
            for way in ("close", "reset", "keep"):
                try:
                    peer = make_socket()
                    peer.settimeout(0.5)
                    if text or peer.type != socket.SOCK_SEQPACKET:
                        peer.sendall(text)
                    if way == "reset" and peer.family == socket.AF_INET:
                        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    if way == "keep":
                        kept.append(peer)
                    else:
                        peer.close()
                except OSError:  # refused or cut off, as it may be
                    pass
        return kept

    def tcp(self, address):
        host, port = address.rsplit(":", 1)
        return lambda: socket.create_connection((host, int(port)), 2)

    def abstract(self, pid):
        """The abstract sockets that a process listens on."""
        inodes = set()
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
            except OSError:
                pass
        names = []
        with open("/proc/net/unix") as table:
            for line in list(table)[1:]:
                fields = line.split()
                listening = int(fields[3], 16) & 0x10000
                if listening and len(fields) > 7 and "socket:[%s]" % fields[6] in inodes:
                    names.append("\0" + fields[7][1:])
        return names

    def listening_tcp(self, pid):
        """The TCP ports that a process listens on."""
        inodes = set()
        for fd in os.listdir("/proc/%d/fd" % pid):
            try:
                inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
            except OSError:
                pass
        ports = []
        for name in ("tcp", "tcp6"):
            with open("/proc/net/" + name) as table:
                for line in list(table)[1:]:
                    fields = line.split()
                    if fields[3] == "0A" and "socket:[%s]" % fields[9] in inodes:
                        ports.append(int(fields[1].rsplit(":", 1)[1], 16))
        return ports

    def targets(self, cluster):
        found = []
        for process in [cluster.catalog] + [s.process for s in cluster.memory + cluster.compute]:
            for port in self.listening_tcp(process.pid):
                found.append(("%s port %d" % (process.name, port), self.tcp("127.0.0.1:%d" % port)))
            for name in self.abstract(process.pid):
                def connect(name=name):
                    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    peer.settimeout(2)
                    peer.connect(name)
                    return peer
                found.append(("%s socket %s" % (process.name, name[1:]), connect))
        return found

    def garbage(self, fabric, expected_targets):
        cluster = Cluster(self, fabric=fabric, memory=[64 << 20] * 2, compute=2)
        cluster.load(0.01)
        before = cluster.answers("--repeat=1")
        targets = self.targets(cluster)
        self.assertEqual(len(targets), expected_targets, [name for name, _ in targets])
        stop = threading.Event()
        outcomes = []

        def queries():
            while not stop.is_set():
                outcomes.append(cluster.nam("ssb run", "--format=json", "--repeat=1"))
        running = threading.Thread(target=queries)
        running.start()
        kept = []
        try:
            for name, connect in targets * 3:
                self.say("garbage to " + name)
                texts = self.texts() + self.hellos(name)
                if "socket" in name:
                    texts = [text[:60_000] for text in texts]
                    self.descriptors(connect)
                kept += self.throw(connect, texts)
        finally:
            stop.set()
            running.join()
        for outcome in outcomes:
            self.assertEqual(outcome.code, 0, outcome)
            self.assertEqual({row["query"]: row["result"] for row in outcome.json()["rows"]}, before)
        self.say("%d times 13 queries meanwhile, %d connections left open" % (len(outcomes), len(kept)))
        self.crowd(targets)
        for process in [cluster.catalog] + [s.process for s in cluster.memory + cluster.compute]:
            self.assertTrue(process.running(), "%s: %s" % (process.name, process.err()))
        cluster.load(0.01)
        self.assertEqual(cluster.answers("--repeat=1"), before)
        for peer in kept:
            peer.close()
        self.assertEqual(cluster.answers("--repeat=1"), before)

    def descriptors(self, connect):
        """Packets that carry descriptors: of files, of sockets, many."""
        for count in (1, 16, 200):
            try:
                peer = connect()
                with open("/dev/null") as null:
                    socket.send_fds(peer, self.hellos("socket")[1:2], [null.fileno()] * count)
                peer.close()
            except OSError:
                pass

    def crowd(self, targets):
        """Many connections at once that say nothing."""
        for name, connect in targets:
            crowd = []
            for _ in range(300):
                try:
                    crowd.append(connect())
                except OSError:
                    break
            for peer in crowd:
                peer.close()

    def test_garbage_tcp(self):
        """The catalog's two ports, and two each of 2 memory and 2 compute servers."""
        self.garbage("tcp", 2 + 2 * 4)

    def test_garbage_shm(self):
        """As many, of which those of the fabric are sockets without a file."""
        self.garbage("shm", 2 + 2 * 4)


cases.main()
