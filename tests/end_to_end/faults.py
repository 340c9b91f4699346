"""Servers and clients that die in the middle: an error that names the server within seconds, or for compute
servers the right answer by those that are left, and a cluster that goes on. The middle is found by events: a table that appears, a connection, processor time used."""
import os
import signal
import time

import cases
from cluster import LONG_QUERY, MIB, SLOWNESS, Cluster, Failed, memory_in_use, processor_seconds, wait_until

PROMISED_SECONDS = 10
# A peer that stands still is lost after three seconds, and a query may meet it twice.
TWO_TIMEOUTS_SECONDS = 15
SCALE_FACTOR = 0.05 / SLOWNESS**0.5  # LONG_QUERY's work grows with its square
# Long enough to lose a server in the middle, short enough to wait for those that are left.
SHARED_QUERY = LONG_QUERY + " AND a.lo_orderdate < 19930701"


def connected(pid, port):
    """Whether the process has a TCP connection to the port."""
    inodes = set()
    try:
        for fd in os.listdir("/proc/%d/fd" % pid):
            inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    except OSError:
        pass
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            fields = line.split()
            if int(fields[2].rsplit(":", 1)[1], 16) == port and "socket:[%s]" % fields[9] in inodes:
                return fields[3] == "01"
    return False


class Faults(cases.Case):
    def expect_failure(self, process, server_name, since, seconds=PROMISED_SECONDS):
        """It ends with exit code 1 and names the server, in time."""
        code = process.wait(60)
        self.within(seconds, since)
        self.say(process.err().strip())
        self.assertEqual(code, 1, process.err())
        self.assertIn(server_name, process.err())

    def expect_answer(self, cluster, process, query):
        """The others do what the lost server had: the same answer as without it."""
        self.assertEqual(process.wait(120), 0, process.err())
        answer = cluster.done("sql", "--format=csv", "-c", query).out.split()
        self.assertEqual(process.out().split()[-len(answer):], answer)

    def load_in_the_middle(self, cluster, scale_factor=0.3 / min(SLOWNESS, 3)):
        """A load whose biggest table is under way."""
        load = cluster.start("ssb load", "--scale-factor=%g" % scale_factor, "--replace")
        wait_until(lambda: "date" in cluster.tables() or not load.running(), 60, "lineorder is being loaded")
        self.assertTrue(load.running(), load.err())
        return load

    def query_in_the_middle(self, cluster, query=LONG_QUERY, seconds=0.2):
        """A shell whose second statement keeps the compute servers busy."""
        at_start = [processor_seconds(server.pid) for server in cluster.compute]
        shell = cluster.start("sql", "--format=csv", "-c", "SELECT count(*) FROM date; " + query)
        shell.await_line("2556")
        wait_until(lambda: all(processor_seconds(server.pid) > before + seconds
                               for server, before in zip(cluster.compute, at_start)) or not shell.running(),
                   30, "every compute server works")
        self.assertTrue(shell.running(), shell.err())
        return shell

    def assert_usable(self, cluster):
        """Loads and answers, rightly."""
        cluster.load(0.01)
        report = cluster.done("ssb run", "--check", "--repeat=1", "--scale-factor=0.01", "--format=json").json()
        self.assertEqual(report["summary"]["correct"], 13)

    # --- memory servers ---------------------------------------------------------------------

    def memory_server_killed_during_load(self, fabric, await_moment):
        cluster = Cluster(self, fabric=fabric, memory=[512 * MIB] * 2, compute=1)
        load = self.load_in_the_middle(cluster)
        victim = cluster.memory[1]
        await_moment(load, victim)
        start = time.monotonic()
        victim.process.kill()
        self.expect_failure(load, "memory server %d" % victim.id, start)
        # If lineorder's memory was taken after that, it is whole, but the tables before it are not.
        if "has lost" not in load.err():
            self.assertNotIn("lineorder", cluster.tables())
        cluster.await_dead(victim)
        self.assert_usable(cluster)

    def test_memory_server_killed_during_load_tcp(self):
        """Before its blocks are written."""
        self.memory_server_killed_during_load("tcp", lambda load, victim: None)

    def test_memory_server_killed_during_load_shm(self):
        """Before its blocks are written."""
        self.memory_server_killed_during_load("shm", lambda load, victim: None)

    def test_memory_server_killed_while_blocks_are_written(self):
        """When the loader is connected to it."""
        def await_connection(load, victim):
            port = int(victim.values["fabric"].rsplit(":", 1)[1])
            wait_until(lambda: connected(load.pid, port) or not load.running(), 60, "the loader writes")
            self.assertTrue(load.running(), load.err())
        self.memory_server_killed_during_load("tcp", await_connection)

    def memory_server_killed_during_query(self, fabric):
        cluster = Cluster(self, fabric=fabric, memory=[512 * MIB] * 2, compute=2)
        cluster.load(SCALE_FACTOR)
        shell = self.query_in_the_middle(cluster)
        victim = cluster.memory[0]
        start = time.monotonic()
        victim.process.kill()
        self.expect_failure(shell, "memory server %d" % victim.id, start)
        # Until the lease is over, and after it.
        for moment in ("at once", "later"):
            start = time.monotonic()
            refused = cluster.nam("sql", "-c", "SELECT sum(lo_revenue) FROM lineorder")
            self.within(PROMISED_SECONDS, start)
            self.assertEqual(refused.code, 1, moment)
            self.assertIn("memory server %d" % victim.id, refused.err, moment)
            cluster.await_dead(victim)
        self.say(refused.err.strip())
        self.assertFalse(cluster.member(victim)["alive"], "listed as long as tables lie there")
        self.assert_usable(cluster)
        self.assertIsNone(cluster.member(victim), "forgotten once nothing lies there")

    def test_memory_server_killed_during_query_tcp(self):
        self.memory_server_killed_during_query("tcp")

    def test_memory_server_killed_during_query_shm(self):
        self.memory_server_killed_during_query("shm")

    def memory_server_stopped(self, fabric):
        """It is buried while it stands still; it has to go when it wakes."""
        cluster = Cluster(self, fabric=fabric, memory=[512 * MIB] * 2, compute=2, bury_after=3)
        cluster.load(SCALE_FACTOR)
        victim = cluster.memory[0]
        victim.process.signal(signal.SIGSTOP)
        try:
            cluster.await_dead(victim)
            start = time.monotonic()
            refused = cluster.nam("sql", "-c", "SELECT sum(lo_revenue) FROM lineorder")
            self.within(PROMISED_SECONDS, start)
            self.say(refused.err.strip())
            self.assertEqual(refused.code, 1, refused)
            self.assertIn("memory server %d" % victim.id, refused.err)
            self.assert_usable(cluster)
        finally:
            victim.process.signal(signal.SIGCONT)
        code = victim.process.wait()
        self.say(victim.process.err().strip())
        self.assertEqual(code, 1)
        self.assertIn("lease", victim.process.err())
        cluster.add_memory(512 * MIB)
        self.assert_usable(cluster)

    def test_memory_server_stopped_tcp(self):
        self.memory_server_stopped("tcp")

    def test_memory_server_stopped_shm(self):
        self.memory_server_stopped("shm")

    def test_memory_server_stopped_during_query(self):
        """Stands still while a query reads from it (tcp: shared memory is read without its help)."""
        cluster = Cluster(self, fabric="tcp", memory=[512 * MIB] * 2, compute=2, bury_after=3)
        cluster.load(SCALE_FACTOR)
        shell = self.query_in_the_middle(cluster)
        victim = cluster.memory[0]
        start = time.monotonic()
        victim.process.signal(signal.SIGSTOP)
        try:
            self.expect_failure(shell, "memory server %d" % victim.id, start, TWO_TIMEOUTS_SECONDS)
            cluster.await_dead(victim)
            self.assert_usable(cluster)
        finally:
            victim.process.signal(signal.SIGCONT)
        self.assertEqual(victim.process.wait(), 1)

    # --- compute servers --------------------------------------------------------------------

    def compute_server_killed(self, fabric):
        cluster = Cluster(self, fabric=fabric, memory=[512 * MIB] * 2, compute=2)
        cluster.load(SCALE_FACTOR)
        before = cluster.answers("--repeat=1")
        shell = self.query_in_the_middle(cluster, SHARED_QUERY)
        victim = cluster.compute[0]
        victim.process.kill()
        self.expect_answer(cluster, shell, SHARED_QUERY)
        cluster.await_dead(victim)
        self.assertEqual(cluster.answers("--repeat=1"), before, "on the compute server that is left")
        wait_until(lambda: processor_idle(cluster.compute[1].pid), 10, "the compute server that is left is idle")

    def test_compute_server_killed_during_query_tcp(self):
        self.compute_server_killed("tcp")

    def test_compute_server_killed_during_query_shm(self):
        self.compute_server_killed("shm")

    def test_compute_server_stopped_during_query(self):
        """A compute server that stands still holds a query up no longer than its lease allows."""
        cluster = Cluster(self, memory=[512 * MIB], compute=2)
        cluster.load(SCALE_FACTOR)
        rows = cluster.tables()["lineorder"]
        # Late enough that what only looks at the start of a call would not see it.
        shell = self.query_in_the_middle(cluster, LONG_QUERY + " AND a.lo_orderdate < 19970101", seconds=2)
        victim = cluster.compute[0]
        victim.process.signal(signal.SIGSTOP)
        try:
            self.expect_answer(cluster, shell, LONG_QUERY + " AND a.lo_orderdate < 19970101")
            cluster.await_dead(victim)
            self.assertEqual(cluster.count("lineorder"), rows)
        finally:
            victim.process.signal(signal.SIGCONT)
        self.assertEqual(victim.process.wait(), 1)

    # --- the catalog ------------------------------------------------------------------------

    def test_catalog_stopped(self):
        """A catalog that stalls for longer than a lease expels no member: it has not heard which ones renewed."""
        cluster = Cluster(self, memory=[512 * MIB] * 2, compute=2)
        cluster.load(0.01)
        rows = cluster.count("lineorder")
        for _ in range(3):
            cluster.catalog.signal(signal.SIGSTOP)
            time.sleep(2 * cluster.lease)  # what is tested is that time passes
            cluster.catalog.signal(signal.SIGCONT)
            self.assertEqual(cluster.count("lineorder"), rows)
        for server in cluster.memory + cluster.compute:
            self.assertTrue(server.process.running(), server.process.err())

    # --- clients ----------------------------------------------------------------------------

    def stop_while_it_writes(self, cluster, scale_factor):
        """A loader that stands still while its blocks are being written. Its table must be large enough to need
        another region of a memory server: huge pages are present as soon as there is one, not when written."""
        share = SLOWNESS**-0.5
        for _ in range(5):
            load = self.load_in_the_middle(cluster, scale_factor * share)
            share = min(1, 2 * share)  # should it be faster than its observer
            before = sum(memory_in_use(server.pid) for server in cluster.memory)
            if SLOWNESS > 1:  # a sanitizer's own memory grows before the first block comes
                wait_until(lambda: sum(cluster.used_bytes().values()) > 10 * MIB or not load.running(), 120,
                           "its memory is counted")
            wait_until(lambda: sum(memory_in_use(server.pid) for server in cluster.memory) > before + 2 * MIB
                       or not load.running(), 30, "blocks are written", pause=0.001)
            load.signal(signal.SIGSTOP)
            if "lineorder" not in cluster.tables():
                wait_until(lambda: sum(cluster.used_bytes().values()) > 10 * MIB, 10, "its memory is counted")
                return load
            self.say("it was faster: once more")
            load.signal(signal.SIGCONT)
            load.wait()
            cluster.done("sql", "-c", "; ".join("DROP TABLE " + table for table in cluster.tables()))
        self.fail("five loads were faster than their observer")

    def await_memory_back(self, cluster, **how):
        start = time.monotonic()
        expected = cluster.table_bytes()
        wait_until(lambda: all(used <= expected.get(server, 0) + MIB
                               for server, used in cluster.used_bytes().items()),
                   4 * cluster.lease + 2, "the memory of the load is given back", **how)
        self.say("%s: memory came back after %.1f s" % (cluster.fabric, time.monotonic() - start))
        self.assertNotIn("lineorder", cluster.tables())

    def loader_killed(self, fabric):
        cluster = Cluster(self, fabric=fabric, memory=[512 * MIB] * 2, compute=1)
        self.stop_while_it_writes(cluster, scale_factor=1).kill()
        self.await_memory_back(cluster)
        self.assert_usable(cluster)

    def test_loader_killed_shm(self):
        """Its memory comes back once its lease is over, and its table is not there."""
        self.loader_killed("shm")

    def test_loader_killed_tcp(self):
        """Its memory comes back once its lease is over, and its table is not there."""
        self.loader_killed("tcp")

    def loader_stopped(self, fabric):
        cluster = Cluster(self, fabric=fabric, memory=[192 * MIB], compute=1)
        load = self.stop_while_it_writes(cluster, scale_factor=0.5)
        try:
            # Over shm the loader's own processor copies: stopped in the middle of a copy it keeps its memory.
            self.await_memory_back(cluster, **({"least": 0} if fabric == "shm" else {}))
        except Failed as not_back:
            self.assertEqual(fabric, "shm", str(not_back))
            self.say("stopped in the middle of a WRITE: its memory drains")
            load.signal(signal.SIGCONT)
            self.assertEqual(load.wait(), 1, load.err())
            self.await_memory_back(cluster)
            self.assert_usable(cluster)
            return
        # What it would write now belongs to others.
        cluster.load(0.3)
        before = cluster.answers("--repeat=1")
        load.signal(signal.SIGCONT)
        self.assertEqual(load.wait(), 1, load.err())
        self.say(load.err().strip())
        self.assertEqual(cluster.answers("--repeat=1"), before)
        self.assertEqual(cluster.query("SELECT count(lo_orderkey) AS n, sum(lo_tax) AS t, sum(lo_commitdate) AS c, "
                                       "count(lo_shipmode) AS m FROM lineorder")[0]["n"], cluster.tables()["lineorder"])

    def test_loader_stopped_shm(self):
        """A loader that wakes after its lease has ended spoils no data."""
        self.loader_stopped("shm")

    def test_loader_stopped_tcp(self):
        """A loader that wakes after its lease has ended spoils no data."""
        self.loader_stopped("tcp")

    def test_tables_replaced_during_queries(self):
        """A query sees one version of its table, or is told that there is another one."""
        for fabric in ("shm", "tcp"):
            cluster = Cluster(self, fabric=fabric, memory=[512 * MIB] * 2, compute=2)
            cluster.load(0.02)
            query = ("SELECT sum(lo_revenue) AS r, sum(lo_tax) AS t, count(lo_shipmode) AS n, sum(d_year) AS y "
                     "FROM lineorder, date WHERE lo_orderdate = d_datekey;")
            expected = cluster.query(query)
            loads = 0
            while loads < 3:  # how many loads a shell's queries meet is the host's matter
                shell = cluster.start("sql", "--format=csv", "--keep-going", "-c", query * 600)
                while shell.running():
                    cluster.load(0.02)
                    loads += 1
                shell.wait()
                rows = [line for line in shell.out().splitlines() if line[0].isdigit()]
                errors = [line for line in shell.err().splitlines() if line.startswith("ERROR")]
                self.say("%s: %d loads, %d answers, %d errors: %s" %
                         (fabric, loads, len(rows), len(errors), set(errors)))
                self.assertEqual(len(rows) + len(errors), 600)
                self.assertEqual(set(rows), {",".join(str(value) for value in expected[0].values())})
                self.assertGreater(len(rows), 300)
            cluster.stop()

    def test_client_killed_during_query(self):
        """The compute servers stop working for a client that is gone."""
        cluster = Cluster(self, memory=[512 * MIB], compute=2)
        cluster.load(SCALE_FACTOR)
        shell = self.query_in_the_middle(cluster)
        shell.kill()
        start = time.monotonic()
        wait_until(lambda: all(processor_idle(server.pid) for server in cluster.compute), 10,
                   "the compute servers are idle")
        self.within(PROMISED_SECONDS, start)
        self.assertEqual(cluster.count("lineorder"), cluster.tables()["lineorder"])


def processor_idle(pid):
    """Whether a process used less than a tenth of the next 0.3 s."""
    before = processor_seconds(pid)
    time.sleep(0.3)  # the measure itself is one of time
    return processor_seconds(pid) - before < 0.03


cases.main()
