"""`nam scale`: compute servers of a local cluster come and go, also while queries run."""
import os
import re
import signal
import time

import cases
from cluster import LONG_QUERY, SLOWNESS, processor_seconds, wait_until

SCALE_FACTOR = 0.02 / SLOWNESS**0.5  # LONG_QUERY is about 6 s of one thread's work then: it is quadratic
BY_CLAIMS = "SET nam.work_queue = on; "


class Scale(cases.Case):
    def setUp(self):
        super().setUp()
        self.state = self.scratch.file("state")

    def nam(self, *arguments, code=0, timeout=60):
        """`nam <command> --state-dir=… …`; the command may be two words in one argument."""
        result = self.scratch.nam(*arguments[0].split(), "--state-dir=" + self.state, *arguments[1:], timeout=timeout)
        self.assertEqual(result.code, code, result)
        return result

    def up(self, fabric="shm"):
        self.nam("up", "--data-dir=none", "--fabric=" + fabric, "--memory=256MiB", "--compute-servers=1", "--threads=1")
        self.load(1)

    def load(self, work):
        """Rows of which LONG_QUERY makes `work` times as much work as of the first ones."""
        self.nam("ssb load", "--replace", "--scale-factor=%.3f" % (SCALE_FACTOR * work**0.5))

    def with_enough_work(self, attempt):
        """The result of an attempt. It is None, and the next one has more work, if servers that start on a busy host
        find the query done."""
        for work in (1, 2, 4, 8):
            if work > 1:
                self.say("the query was over too soon to be helped")
                while len(self.compute_pids()) > 1:
                    self.nam("scale in")
                self.load(work)
            result = attempt()
            if result is not None:
                return result
        self.fail("nothing is helped, however long it takes")

    def compute_pids(self):
        """By age, the oldest first."""
        return sorted(pid for pid, line in self.scratch.processes().items() if line.startswith("nam compute "))

    def members(self):
        """Living compute servers, as everybody sees them."""
        return [row for row in self.nam("status", "--format=json").json()["rows"]
                if row["role"] == "compute" and row["alive"]]

    def start_query(self, text):
        """Under way on every compute server that there is."""
        before = {pid: processor_seconds(pid) for pid in self.compute_pids()}
        query = self.scratch.start("sql", "--state-dir=" + self.state, "--format=csv", "-c", BY_CLAIMS + text)
        self.await_work(before)
        return query

    def await_work(self, before, query=None):
        """Returns once all of them have worked, or the query is done."""
        wait_until(lambda: all(processor_seconds(pid) > at + 0.1 for pid, at in before.items())
                   or (query is not None and not query.running()), 60, "all of them work on the query")

    def helped(self):
        """A query that four servers work on, begun by one of them; None if it was done too soon."""
        query = self.start_query(LONG_QUERY)
        started = time.monotonic()
        said = self.nam("scale out", "--compute=3").out
        self.say(said.strip())
        self.within(30, started)
        self.assertRegex(said, r"^Started compute servers \d+, \d+ and \d+\. Now 2 memory servers and 4 compute servers run\.$")
        self.assertEqual(len(self.members()), 4)
        self.await_work({pid: 0.0 for pid in self.compute_pids()}, query)
        return query if query.running() else None

    def helpers(self):
        """Of EXPLAIN ANALYZE: the servers that helped the first one; None if not all three did."""
        query = self.start_query("EXPLAIN ANALYZE " + LONG_QUERY)
        self.nam("scale out", "--compute=3")
        self.assertEqual(query.wait(240), 0, query.err())
        helped = re.findall(r"compute server (\d+): [\d.]+ to [\d.]+ ms, (\d+) partitions of the share of compute server",
                            query.out())
        self.say("helpers: " + ", ".join("%s did %s partitions" % one for one in helped))
        servers = {server for server, _ in helped}
        self.assertLessEqual(len(servers), 3)
        return servers if len(servers) == 3 else None

    def out_and_in(self, fabric):
        self.up(fabric)
        oldest = self.compute_pids()
        self.assertEqual(len(oldest), 1)
        query = self.with_enough_work(self.helped)

        started = time.monotonic()
        said = self.nam("scale in", "--compute=2").out
        self.say(said.strip())
        self.within(30, started)
        self.assertRegex(said, r"^Stopped compute servers \d+ and \d+\. Now 2 memory servers and 2 compute servers run\.$")
        self.assertEqual(len(self.compute_pids()), 2)
        self.assertIn(oldest[0], self.compute_pids(), "the youngest go")
        self.assertEqual({row["pid"] for row in self.members()}, set(self.compute_pids()))
        self.assertEqual(query.wait(240), 0, query.err())
        self.assertIn("1 compute server run", self.nam("scale in").out)
        self.assertEqual(query.out() + "\n", self.nam("sql", "--format=csv", "-c", LONG_QUERY).out, "as of one server")

        # Again from one, with who did what.
        self.with_enough_work(self.helpers)

        self.assertIn("has stopped", self.nam("down").out)
        self.assertEqual(self.scratch.processes(), {}, "nam down takes them along")
        left = [name for name in os.listdir(self.state) if name != "lock" and not name.endswith(".log")]
        self.assertEqual(left, [])

    def test_shm(self):
        """1 → 4 → 2 under a query, 1 → 4 under another."""
        self.out_and_in("shm")

    def test_tcp(self):
        """1 → 4 → 2 under a query, 1 → 4 under another."""
        self.out_and_in("tcp")

    def test_the_last_one_stays(self):
        self.up()
        for count in ("1", "5"):
            refused = self.nam("scale in", "--compute=" + count, code=1)
            self.assertIn("one has to stay", refused.err)
            self.assertIn("nam down", refused.err)
        self.assertIn("1 to 64", self.nam("scale out", "--compute=64", code=1).err)
        self.nam("scale out", "--compute=0", code=2)
        self.nam("scale", code=2)
        self.assertEqual(len(self.members()), 1)
        self.nam("down")

    def test_not_a_local_cluster(self):
        """What to do instead is said."""
        absent = self.nam("scale out", code=3)
        self.assertIn("nam up", absent.err)
        elsewhere = self.nam("scale in", "--catalog=10.0.0.1:4700", code=2)
        self.assertIn("nam compute --catalog=10.0.0.1:4700", elsewhere.err)

    def supervisor(self):
        return [pid for pid, line in self.scratch.processes().items() if line.startswith("nam supervise ")][0]

    def test_they_end_with_their_supervisor(self):
        self.up()
        self.nam("scale out", "--compute=2")
        os.kill(self.supervisor(), signal.SIGKILL)
        started = time.monotonic()
        self.scratch.await_no_process(30)
        self.within(30, started)
        killed = self.nam("scale out", code=3)
        self.assertIn("nam down", killed.err)
        self.assertIn("Cleaned up", self.nam("down").out)

    def test_after_one_has_died(self):
        """A compute server that has died is started again, and counts again then."""
        self.up()
        self.nam("scale out")
        died = self.compute_pids()[-1]
        os.kill(died, signal.SIGKILL)
        wait_until(lambda: len({row["pid"] for row in self.members()} - {died}) == 2, 20, "two live again")
        self.assertIn("3 compute servers run", self.nam("scale out").out)
        self.assertIn("1 compute server run", self.nam("scale in", "--compute=2").out)
        self.nam("scale in", code=1)
        self.nam("down")

    def test_down_while_servers_start(self):
        self.up()
        scale = self.scratch.start("scale", "out", "--compute=20", "--state-dir=" + self.state)
        wait_until(lambda: len(self.compute_pids()) > 1, 10, "it starts some")
        self.assertIn("has stopped", self.nam("down").out)
        self.assertIn(scale.wait(), (0, 3, 130), scale.err())
        self.assertEqual(self.scratch.processes(), {})


cases.main()
