"""`nam up` keeps its servers alive: who dies is started again, with as little lost as can be."""
import os
import re
import signal
import stat
import subprocess
import time

import cases
from cluster import NAM, Cluster, wait_until

QUERY = "SELECT count(*) AS n FROM date"


class Local(cases.Case):
    def setUp(self):
        super().setUp()
        self.state = self.scratch.file("state")

    def nam(self, *arguments, code=0, timeout=60):
        """`nam <command> --state-dir=… …`; the command may be two words in one argument."""
        result = self.scratch.nam(*arguments[0].split(), "--state-dir=" + self.state, *arguments[1:], timeout=timeout)
        self.assertEqual(result.code, code, result)
        return result

    def up(self, *options):
        self.nam("up", "--memory=128MiB", "--threads=1", *options)
        self.nam("ssb load", "--scale-factor=0.01")

    def pids(self, role):
        return sorted(pid for pid, line in self.scratch.processes().items() if line.startswith("nam %s " % role))

    def members(self, role):
        """Ids of the living."""
        result = self.scratch.nam("status", "--state-dir=" + self.state, "--format=json")
        if result.code != 0:
            return []
        return [row["id"] for row in result.json()["rows"] if row["role"] == role and row["alive"]]

    def log(self, name):
        with open(os.path.join(self.state, name)) as file:
            return file.read()

    def answer(self):
        return self.scratch.nam("sql", "--state-dir=" + self.state, "--format=csv", "-c", QUERY).out

    def await_log(self, pattern):
        return wait_until(lambda: re.search(pattern, self.log("supervisor.log")), 20,
                          lambda: "%s in %s" % (pattern, self.log("supervisor.log")))


class Restart(Local):
    def test_memory_server(self):
        """Without a data directory it comes back empty, under a new id; everybody may read what was lost."""
        self.up("--compute-servers=1", "--data-dir=none")
        before = self.members("memory")
        started = time.monotonic()
        os.kill(self.pids("memserver")[0], signal.SIGKILL)
        event = self.await_log(r"memory server (\d+) is replaced by memory server (\d+), which is empty")
        gone, fresh = int(event.group(1)), int(event.group(2))
        self.within(20, started)
        self.assertIn(gone, before)
        self.assertNotIn(fresh, before)
        self.assertRegex(self.log("supervisor.log"),
                         r"Z warning supervisor: memory server %d ended with signal 9 \(Killed\), and what it held is lost" % gone)
        self.assertRegex(self.log("memserver-%d.log" % fresh), r"(?m)^20\S+Z info memserver-%d: started: READY" % fresh)
        self.assertIn(event.group(0), self.nam("status").out)
        self.assertIn(event.group(0), self.nam("status", "--format=json").json()["events"][-1])
        wait_until(lambda: sorted(self.members("memory")) == sorted(set(before) - {gone} | {fresh}), 20, "they are two again")
        self.nam("ssb load", "--scale-factor=0.01", "--replace")
        self.assertEqual(self.answer(), "n\n2556\n")
        self.assertEqual([name for name in os.listdir(self.state) if name.startswith("starting")], [])
        self.assertIn("has stopped", self.nam("down").out)

    def test_compute_servers(self):
        """All of them at the same time; `nam scale` counts on."""
        self.up("--compute-servers=2")
        before = self.members("compute")
        for pid in self.pids("compute"):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(self.members("compute")) - set(before)) == 2, 20, "two others live")
        wait_until(lambda: self.answer() == "n\n2556\n", 20, "they answer")
        self.assertIn("3 compute servers", self.nam("scale out").out)
        self.assertIn("has stopped", self.nam("down").out)

    def test_catalog(self):
        """Goes on with its store, at its address; no member and no table is lost."""
        self.up("--compute-servers=1")
        members = self.members("memory") + self.members("compute")
        for _ in range(2):
            address = self.nam("status", "--format=json").json()["rows"]
            killed = self.pids("catalog")[0]
            os.kill(killed, signal.SIGKILL)
            started = time.monotonic()
            # Whoever comes meanwhile waits, and is not told to start a cluster.
            first = self.scratch.nam("sql", "--state-dir=" + self.state, "--format=csv", "-c", QUERY)
            self.assertNotIn("nam up", first.err)
            wait_until(lambda: self.answer() == "n\n2556\n", 20, "the cluster answers again")
            self.within(20, started)
            self.assertNotEqual(self.pids("catalog"), [killed])
            self.assertEqual(self.members("memory") + self.members("compute"), members)
        self.assertIn("catalog is started again", self.log("supervisor.log"))
        self.assertIn("has stopped", self.nam("down").out)

    def test_supervisor_killed_meanwhile(self):
        """What was just started again ends with it too."""
        self.up("--compute-servers=2")
        for pid in self.pids("compute") + self.pids("memserver"):
            os.kill(pid, signal.SIGKILL)
        self.await_log("another is started in")
        os.kill(self.pids("supervise")[0], signal.SIGKILL)
        started = time.monotonic()
        self.scratch.await_no_process(30)
        self.within(30, started)
        self.assertIn("Cleaned up", self.nam("down").out)

    def test_files_are_private(self):
        self.up("--compute-servers=1")
        for name in os.listdir(self.state):
            mode = os.lstat(os.path.join(self.state, name)).st_mode
            if not stat.S_ISSOCK(mode):
                self.assertEqual(oct(stat.S_IMODE(mode)), "0o700" if stat.S_ISDIR(mode) else "0o600", name)
        for folder, _, names in os.walk(os.path.join(self.state, "data")):
            self.assertEqual(oct(stat.S_IMODE(os.lstat(folder).st_mode)), "0o700", folder)
            for name in names:
                self.assertEqual(oct(stat.S_IMODE(os.lstat(os.path.join(folder, name)).st_mode)), "0o600", name)
        self.nam("down")


class DiskFull(Local):
    """The state directory has a small file system of its own, which something else fills."""

    def setUp(self):
        super().setUp()
        self.small_disk("4m", self.state)
        self.ballast = os.path.join(self.state, "ballast")

    def fill(self):
        with open(self.ballast, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(b"\0" * 4096)
            except OSError as error:
                self.say(str(error))

    def test_up_says_why_not(self):
        self.fill()
        refused = self.nam("up", "--memory=64MiB", code=1)
        self.say(refused.err.strip())
        self.assertIn(self.state, refused.err)
        self.assertRegex(refused.err, "No space left on device|no room for the catalog store")
        os.remove(self.ballast)
        self.nam("up", "--memory=64MiB", "--compute-servers=1", "--threads=1")
        self.nam("down")

    def test_catalog_says_why_not(self):
        """A catalog that cannot start again says why in its own log and in the supervisor's; with room it starts."""
        self.up("--compute-servers=1", "--data-dir=none")
        self.fill()
        os.kill(self.pids("catalog")[0], signal.SIGKILL)
        said = self.await_log(r"catalog ended before it was ready \(exit code 1\); it said:.*catalog.db.*")
        self.say(said.group(0))
        why = "no room for the catalog store `/.*/catalog.db`|catalog.db.*No space left on device"
        self.assertRegex(said.group(0), why)
        self.assertRegex(self.log("catalog.log"), "error catalog: does not start: .*(%s)" % why)
        os.remove(self.ballast)
        self.await_log("catalog is started again")
        wait_until(lambda: self.answer() == "n\n2556\n", 20, "the cluster answers again")
        self.nam("down")


class Session:
    """A shell whose statements are given one by one."""

    def __init__(self, case, cluster):
        self.child = subprocess.Popen([NAM, "sql", *cluster.options, "--format=csv", "--keep-going"],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=case.scratch.env, text=True, bufsize=1)
        case.addCleanup(self.child.wait)
        case.addCleanup(self.child.stdin.close)
        case.addCleanup(self.child.stdout.close)

    def run(self, statement):
        """Its output; behind it goes what the parser refuses without asking anybody."""
        self.child.stdin.write(statement + ";\nmarker;\n")
        self.child.stdin.flush()
        lines = []
        while True:
            line = self.child.stdout.readline()
            if line == "LINE 1: marker\n":
                self.child.stdout.readline()  # the mark below it
                return "".join(lines[:-1])
            if line == "":
                return "".join(lines)
            lines.append(line)


class WithoutCatalog(cases.Case):
    def test_statements_end_soon(self):
        """A session that has used its tables goes on, or is told soon."""
        cluster = Cluster(self, memory=[64 << 20] * 2, compute=1, lease_ms=3_000)
        cluster.load(0.01)
        cluster.done("sql", "-c", "CREATE TABLE a (id int PRIMARY KEY, b int) WITH (storage = record); "
                                  "INSERT INTO a VALUES (1, 10), (2, 20)")
        session = Session(self, cluster)
        statements = {QUERY: "n\n2556\n", "SELECT b FROM a WHERE id = 2": "b\n20\n",
                      "UPDATE a SET b = b WHERE id = 1": ""}  # csv: rows alone
        for statement, expected in statements.items():
            self.assertEqual(session.run(statement), expected)
        cluster.catalog.kill()
        for statement, expected in statements.items():
            started = time.monotonic()
            out = session.run(statement)
            self.say("%s: %s" % (statement, out.strip().replace("\n", " | ")))
            self.within(3, started)  # a call takes five
            if out != expected:
                self.assertIn("cannot reach the catalog", out)
                self.assertEqual(out.count("ERROR"), 1, out)
        cluster.start_catalog()
        for statement, expected in statements.items():
            wait_until(lambda: session.run(statement) == expected, 10, statement + " works again")


cases.main()
