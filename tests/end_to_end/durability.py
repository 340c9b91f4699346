"""The catalog: killed and started again, and with a full disk under its store."""
import os
import resource
import signal
import time

import cases
from cluster import Cluster, wait_until
from terminal import Terminal

# Of more rows than a session of one MiB holds.
LARGE_SORT = ("SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY lo_orderkey ORDER BY lo_revenue, lo_linenumber, "
              "lo_custkey) AS n FROM lineorder) q;")


class Restart(cases.Case):
    def await_answers(self, cluster):
        """Servers look for a catalog that was away every half second."""
        start = time.monotonic()
        wait_until(lambda: cluster.nam("sql", "-c", "SELECT count(lo_tax) FROM lineorder").code == 0, 10,
                   "the cluster answers")
        self.within(5, start)

    def restart(self, fabric, during):
        """Kills the catalog and starts it with the same store and port."""
        cluster = Cluster(self, fabric=fabric, memory=[256 << 20] * 2, compute=2)
        cluster.load(0.02)
        before, tables, members = cluster.answers("--repeat=1"), cluster.tables(), self.members(cluster)
        cluster.catalog.kill()
        during(cluster)
        cluster.start_catalog()
        self.assertEqual(cluster.tables(), tables)
        self.assertEqual(self.members(cluster), members)
        self.await_answers(cluster)
        self.assertEqual(cluster.answers("--repeat=1"), before)
        # A lease later they are still there: they have found the new catalog.
        time_of_leases = time.monotonic() + 2 * cluster.lease
        wait_until(lambda: time.monotonic() > time_of_leases, 10, "every lease has had to be renewed")
        self.assertEqual(self.members(cluster), members)
        for server in cluster.memory + cluster.compute:
            self.assertTrue(server.process.running(), server.process.err())
        cluster.load(0.02)
        self.assertEqual(cluster.answers("--repeat=1"), before)
        return cluster

    def members(self, cluster):
        return sorted((row["role"], row["id"], row["pid"], row["alive"]) for row in cluster.status()["rows"])

    def test_killed_and_restarted_tcp(self):
        self.restart("tcp", lambda cluster: None)

    def test_killed_and_restarted_shm(self):
        self.restart("shm", lambda cluster: None)

    def test_away_for_longer_than_the_leases(self):
        """The servers wait for it; clients are told that it is not there."""
        def wait_and_ask(cluster):
            until = time.monotonic() + 2.5 * cluster.lease
            while time.monotonic() < until:
                start = time.monotonic()
                refused = cluster.nam("sql", "-c", "SELECT count(*) FROM date")
                self.within(15, start)
                self.assertEqual(refused.code, 3, refused)
                self.assertIn("catalog", refused.err)
                self.assertIn(cluster.address, refused.err)
            self.say(refused.err.strip())
        self.restart("tcp", wait_and_ask)

    def test_killed_during_queries(self):
        """A shell that is open goes on once the catalog is back."""
        cluster = Cluster(self, memory=[256 << 20], compute=1)
        cluster.load(0.02)
        expected = cluster.count("lineorder")
        terminal = Terminal(self, cluster)
        terminal.expect("nam=> ")
        count = "SELECT count(*) FROM lineorder;"
        terminal.command(count, r"\n\s+%d\n" % expected)
        cluster.catalog.kill()
        terminal.command(count, "ERROR:  cannot reach the catalog at " + cluster.address)
        cluster.start_catalog()

        def answered():
            terminal.send(count + "\n")
            found = terminal.expect(r"\n\s+%d\n|ERROR: " % expected).group(0) != "ERROR: "
            terminal.expect("nam=> ")
            return found
        start = time.monotonic()
        wait_until(answered, 10, "it is answered again")
        self.within(5, start)
        terminal.send("\\q\n")
        self.assertEqual(terminal.end(), 0)

    def test_killed_again_and_again(self):
        """Whatever was committed is there; what was not is not."""
        cluster = Cluster(self, memory=[256 << 20], compute=1)
        cluster.load(0.01)
        tables = cluster.tables()
        for _ in range(5):
            load = cluster.start("ssb load", "--replace", "--scale-factor=0.01")
            wait_until(lambda: os.path.getsize(cluster.store + "-wal") > 0 or not load.running(), 10, "it writes")
            cluster.catalog.kill()
            load.wait(60)
            cluster.start_catalog()
            self.assertEqual(cluster.tables(), tables)
        self.await_answers(cluster)
        report = cluster.done("ssb run", "--check", "--repeat=1", "--scale-factor=0.01", "--format=json").json()
        self.assertEqual(report["summary"]["correct"], 13)

    def test_another_catalog_on_the_same_store(self):
        """Refused; the first one goes on."""
        cluster = Cluster(self)
        second = self.scratch.nam("catalog", "--listen=127.0.0.1:0", "--store=" + cluster.store,
                                  "--secret-file=" + cluster.secret_file)
        self.say(second.err.strip())
        self.assertEqual(second.code, 1)
        self.assertIn("in use", second.err)
        same_port = self.scratch.nam("catalog", "--listen=" + cluster.address, "--store=" + self.scratch.file("other.db"),
                                     "--secret-file=" + cluster.secret_file)
        self.assertNotEqual(same_port.code, 0)
        self.assertIn("in use", same_port.err)
        cluster.load(0.01)

    def test_damaged_store(self):
        """Said so, not crashed."""
        cluster = Cluster(self)
        cluster.load(0.01)
        cluster.stop()
        for path in (cluster.store + "-wal", cluster.store + "-shm"):
            if os.path.exists(path):
                os.remove(path)
        with open(cluster.store, "r+b") as store:
            store.write(b"this is no database at all" * 100)
        refused = self.scratch.nam("catalog", "--listen=127.0.0.1:0", "--store=" + cluster.store,
                                   "--secret-file=" + cluster.secret_file)
        self.say(refused.err.strip())
        self.assertEqual(refused.code, 1)
        self.assertIn(cluster.store, refused.err)


class DiskFull(cases.Case):
    def assert_load_refused(self, cluster, tables):
        refused = cluster.nam("ssb load", "--scale-factor=0.02", "--replace")
        self.say(refused.err.strip().splitlines()[-1])
        # 3 when there is no room to note the client as a member.
        self.assertIn(refused.code, (1, 3), refused)
        self.assertIn(cluster.store, refused.err)
        self.assertRegex(refused.err, "disk|room|space")
        self.assertEqual(cluster.tables(), tables, "a load that was refused changes nothing")

    def test_full_file_system(self):
        """A load is refused, queries go on, and once there is room loads do too."""
        folder = self.small_disk("1m")
        cluster = Cluster(self, memory=[256 << 20], compute=1, store=os.path.join(folder, "catalog.db"))
        cluster.load(0.01)
        before = cluster.answers("--repeat=1")
        terminal = Terminal(self, cluster)  # a client that is there already
        terminal.expect("nam=> ")
        ballast = os.path.join(folder, "ballast")
        with open(ballast, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(b"\0" * 4096)
            except OSError as error:
                self.say(str(error))
        # What the log has room for may still succeed: fill that too.
        for _ in range(50):
            loaded = cluster.nam("ssb load", "--scale-factor=0.01", "--replace")
            if loaded.code != 0:
                break
        self.assertIn(loaded.code, (1, 3), "it never got full")
        terminal.command("SELECT count(*) FROM date;", r"2556\n\(1 row\)")
        terminal.command("SET nam.result_mib_max = 1;", "SET")
        terminal.command(LARGE_SORT, "there is no scratch memory .*no room for the catalog store")
        tables = cluster.tables()
        self.assert_load_refused(cluster, tables)
        self.assertTrue(cluster.catalog.running(), cluster.catalog.err())
        os.remove(ballast)
        terminal.command(LARGE_SORT, r"\(1 row\)")
        cluster.load(0.01)
        self.assertEqual(cluster.answers("--repeat=1"), before)

    def test_file_size_limit(self):
        """The same by a limit of the process, where mounting is not permitted."""
        cluster = Cluster(self, memory=[256 << 20], compute=1,
                          catalog_preexec=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        # Not before it runs: a sanitizer's start writes files of its own.
        resource.prlimit(cluster.catalog.pid, resource.RLIMIT_FSIZE, (256 << 10, 256 << 10))
        loaded = None
        for _ in range(50):
            loaded = cluster.nam("ssb load", "--scale-factor=0.01", "--replace")
            if loaded.code != 0:
                break
        self.assertIn(loaded.code, (1, 3), "the limit was never met")
        self.say(loaded.err.strip().splitlines()[-1])
        self.assert_load_refused(cluster, cluster.tables())
        self.assertTrue(cluster.catalog.running(), cluster.catalog.err())
        tables = cluster.tables()
        cluster.catalog.kill()
        cluster.start_catalog()
        self.assertEqual(cluster.tables(), tables)
        cluster.load(0.01)
        self.assertEqual(cluster.count("date"), 2556)


cases.main()
