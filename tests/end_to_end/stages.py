"""Queries of several stages while a server dies at some point of one of them, and clients that end in the middle of a
result: within seconds a clean failure, or on to the right answer, and no scratch memory is left. Points are told by the
work that has been done: processor time of the compute servers, as a share of what the query takes undisturbed."""
import signal
import subprocess
import time

import cases
from cluster import HANG_SECONDS, MIB, NAM, PATIENCE, SLOWNESS, Cluster, patience, processor_seconds, wait_until

PROMISED_SECONDS = 10
SCALE_FACTOR = 0.35 / SLOWNESS  # two million rows, half a million groups
POINTS = (0.05, 0.25, 0.45, 0.65, 0.85)
# Groups by parts, then HAVING, a join and groups again behind them.
QUERY = ("SELECT c_region, count(*) AS n, sum(s) AS s FROM (SELECT lo_custkey AS k, lo_orderkey AS o, sum(lo_revenue) AS s "
         "FROM lineorder GROUP BY 1, 2 HAVING count(*) > 1) g JOIN customer ON k = c_custkey GROUP BY 1 ORDER BY 1")
# The same groups flow to the client.
STREAM = ("SELECT k, o, s FROM (SELECT lo_custkey AS k, lo_orderkey AS o, sum(lo_revenue) AS s FROM lineorder "
          "GROUP BY 1, 2) g")


class Staged:
    """A cluster, the right answer, and what it takes."""

    def __init__(self, case, compute=3):
        self.case = case
        self.cluster = Cluster(case, memory=[512 * MIB] * 2, compute=compute, scratch=128 * MIB)
        self.cluster.load(SCALE_FACTOR)
        self.measure()

    def worked(self):
        """Seconds of all processors of the compute servers that live."""
        return {s.pid: processor_seconds(s.pid) for s in self.cluster.compute if s.process.running()}

    def measure(self):
        before, start = self.worked(), time.monotonic()
        self.answer = self.run().out
        self.seconds = time.monotonic() - start
        after = self.worked()
        self.work = sum(after[pid] - before[pid] for pid in before)

    def run(self):
        return self.cluster.done("sql", "--format=csv", "-c", QUERY)

    def begin(self, point):
        """The query, once so much of its work is done."""
        before = self.worked()
        shell = self.cluster.start("sql", "--format=csv", "-c", QUERY)
        wait_until(lambda: sum(processor_seconds(pid) - seconds for pid, seconds in before.items())
                   >= point * self.work or not shell.running(), 60, "%d %% is done" % (100 * point), pause=0.001)
        return shell

    def expect_end(self, shell, since, what, may_fail):
        """It has failed cleanly, or gone on to the right answer."""
        code = shell.wait(60)
        took = time.monotonic() - since
        self.case.say("%s: %s %.2f s later (undisturbed it takes %.2f s) %s" %
                      (what, "the answer" if code == 0 else "it failed", took, self.seconds,
                       shell.err().strip().replace("\n", " ")[:160]))
        self.case.assertLess(took, (PROMISED_SECONDS + 3 * self.seconds) * patience())
        if code == 0:
            self.case.assertEqual(shell.out().strip(), self.answer.strip())
        else:
            self.case.assertTrue(may_fail, shell.said())
            self.case.assertEqual(code, 1, shell.said())
            self.case.assertRegex(shell.err(), "ERROR|server|catalog")
        return code == 0

    def expect_no_scratch(self):
        start = time.monotonic()
        wait_until(lambda: self.cluster.scratch_used_bytes() == 0, 3 * self.cluster.lease,
                   lambda: "no scratch memory in use; there is %d" % self.cluster.scratch_used_bytes(), least=20)
        self.case.say("no scratch memory in use %.1f s later" % (time.monotonic() - start))

    def expect_past_use(self):
        """What memory servers had in use once is still told."""
        highest, totals = (self.cluster.scratch_of_each("scratch_" + field) for field in ("highest_bytes", "bytes"))
        self.case.assertEqual(totals, [128 * MIB] * 2)
        self.case.assertTrue(all(0 < most <= 128 * MIB for most in highest), highest)


class Stages(cases.Case):
    def test_compute_server_killed(self):
        """The others do what it had not, or had and lost."""
        staged = Staged(self)
        for point in POINTS:
            victim = staged.cluster.compute[0]
            shell = staged.begin(point)
            victim.process.kill()
            staged.expect_end(shell, time.monotonic(), "compute server killed at %.0f %%" % (100 * point),
                              may_fail=False)
            staged.expect_no_scratch()
            staged.cluster.compute.remove(victim)
            staged.cluster.await_dead(victim)
            staged.cluster.add_compute(1)

    def test_memory_server_killed(self):
        staged = Staged(self)
        failed = 0
        for point in POINTS:
            victim = staged.cluster.memory[0]
            shell = staged.begin(point)
            start = time.monotonic()
            victim.process.kill()
            failed += not staged.expect_end(shell, start, "memory server killed at %.0f %%" % (100 * point),
                                            may_fail=True)
            staged.expect_no_scratch()
            staged.cluster.await_state(victim, "buried")  # no process answers at its address
            staged.cluster.memory.remove(victim)
            staged.cluster.add_memory(512 * MIB)
            staged.cluster.load(SCALE_FACTOR)
        self.assertGreater(failed, 0, "no query was in the middle of anything")

    def test_catalog_killed(self):
        """A query under way needs it no more, unless its session's lease ends."""
        staged = Staged(self)
        for point in POINTS:
            shell = staged.begin(point)
            start = time.monotonic()
            staged.cluster.catalog.kill()
            staged.expect_end(shell, start, "catalog killed at %.0f %%" % (100 * point), may_fail=True)
            staged.cluster.start_catalog()
            wait_until(lambda: staged.cluster.nam("sql", "-c", "SELECT count(*) FROM customer").code == 0, 20,
                       "the cluster answers again")
            staged.expect_no_scratch()

    # --- clients ----------------------------------------------------------------------------

    def streaming(self, staged):
        """A client in the middle of a result that is not read: servers wait, and scratch memory is in use."""
        client = subprocess.Popen([NAM, "sql", *staged.cluster.options, "--format=csv", "-c", STREAM],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=staged.cluster.scratch.env)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.stderr.close)
        self.assertTrue(client.stdout.readline().strip())
        self.assertGreater(staged.cluster.scratch_used_bytes(), 0)
        self.assertIsNone(client.poll())
        return client

    def test_client_killed_in_a_stream(self):
        """Its servers free memory and scratch memory with its lease."""
        staged = Staged(self, compute=2)
        for _ in range(3):
            client = self.streaming(staged)
            client.kill()
            client.wait()
            staged.expect_no_scratch()
            staged.expect_past_use()
            self.assertEqual(staged.run().out, staged.answer)

    def test_ctrl_c_in_a_stream(self):
        staged = Staged(self, compute=2)
        for _ in range(3):
            client = self.streaming(staged)
            start = time.monotonic()
            client.send_signal(signal.SIGINT)
            _, err = client.communicate(timeout=HANG_SECONDS * PATIENCE)  # a terminal takes what was printed
            self.within(PROMISED_SECONDS, start)
            self.assertNotEqual(client.returncode, 0, err)
            staged.expect_no_scratch()
            self.assertEqual(staged.run().out, staged.answer)


cases.main()
