"""Signals at any moment: everything ends in order, with the documented exit code, and leaves nothing."""
import os
import signal
import subprocess
import time

import cases
from cluster import NAM, Cluster, wait_until

STOP_SECONDS = 10
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def shared_memory():
    return set(os.listdir("/dev/shm"))


class Shutdown(cases.Case):
    def setUp(self):
        super().setUp()
        self.shared_memory = shared_memory()
        self.state = self.scratch.file("state")

    def assert_nothing_left(self, started):
        """Right after the command has ended: no process of it, and no file."""
        self.within(STOP_SECONDS, started)
        self.assertEqual(self.scratch.processes(), {}, "processes are left")
        self.assertEqual(os.listdir(self.scratch.runtime), [], "files are left")
        ours = {name for name in shared_memory() - self.shared_memory if "nam" in name}
        self.assertEqual(ours, set(), "shared memory is left")

    def assert_state_directory_clean(self):
        """But for its lock, the logs of the last run and the data, which `nam up` documents."""
        left = [name for name in os.listdir(self.state) if name not in ("lock", "data") and not name.endswith(".log")]
        self.assertEqual(left, [], "files are left in the state directory")

    # --- demo -------------------------------------------------------------------------------

    def demo(self, moment, *options):
        """Starts a demo and waits for the moment; False if it had ended by then."""
        demo = self.scratch.start("demo", "--scale-factor=0.1", *(options or ["--repeat=20"]))
        moment(demo)
        return demo

    def interrupt_demo(self, moment, *options):
        for number in SIGNALS:
            demo = self.demo(moment, *options)
            started = time.monotonic()
            demo.signal(number)
            code = demo.wait(60)
            self.say("%s: exit code %d, %s" % (number.name, code, demo.err().strip().splitlines()[-1:]))
            self.assertEqual(code, 130, demo.err())
            self.assert_nothing_left(started)

    def test_demo_while_it_starts(self):
        """Its directory is there, its servers are not."""
        self.interrupt_demo(lambda demo: wait_until(lambda: os.listdir(self.scratch.runtime), 10, "a directory"))

    def test_demo_while_servers_start(self):
        """Some of its servers are there."""
        self.interrupt_demo(lambda demo: wait_until(lambda: len(self.scratch.processes()) > 2, 10, "servers"))

    def test_demo_while_it_loads(self):
        for options in ([], ["--fabric=tcp", "--memory-servers=3"]):
            self.interrupt_demo(lambda demo: demo.await_line("^A private cluster"), *options)

    def test_demo_while_it_queries(self):
        for options in ([], ["--fabric=tcp", "--repeat=20"]):
            self.interrupt_demo(lambda demo: demo.await_line("^Loaded SSB"), *options)

    def test_demo_while_it_checks(self):
        """SQLite works."""
        self.interrupt_demo(lambda demo: demo.await_line("^Ran the 13 queries"), "--repeat=1")

    def test_demo_while_it_checks_out(self):
        """Transactions are under way, or their tables are being loaded."""
        for options in ([], ["--fabric=tcp"]):
            self.interrupt_demo(lambda demo: demo.await_line("^Checkout: ", 60), "--repeat=1", *options)

    def test_demo_to_its_end(self):
        for fabric in ("shm", "tcp"):
            demo = self.scratch.start("demo", "--scale-factor=0.02", "--fabric=" + fabric)
            demo.await_line("^13 of 13 queries correct", 60)
            started = time.monotonic()
            self.assertEqual(demo.wait(), 0, demo.err())
            self.assertNotIn("error", demo.err().lower())
            lines = demo.out().strip().splitlines()
            self.assertEqual(lines[-1], "13 of 13 queries correct")
            self.assertTrue(any(" committed_per_s " in line for line in lines), lines)
            self.assertTrue(any(line.startswith("checkout: ") for line in lines), lines)
            self.assert_nothing_left(started)

    def test_demo_whose_server_dies(self):
        """The demo fails, says which server it was, and ends the others."""
        for role, name in (("memserver", "memory server"), ("compute", "compute server"), ("catalog", "catalog")):
            demo = self.demo(lambda demo: demo.await_line("^A private cluster"))
            victims = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam %s " % role)]
            started = time.monotonic()
            os.kill(victims[0], signal.SIGKILL)
            self.assertEqual(demo.wait(60), 1, demo.err())
            self.say(demo.err().strip())
            self.assertIn(name, demo.err())
            self.assert_nothing_left(started)

    def test_demo_killed(self):
        """Without its parent no server goes on."""
        for moment in ("^A private cluster", "^Loaded SSB"):
            demo = self.demo(lambda demo: demo.await_line(moment))
            self.assertGreaterEqual(len(self.scratch.processes()), 6)
            demo.kill()
            started = time.monotonic()
            self.scratch.await_no_process(30)
            self.within(STOP_SECONDS, started)

    # --- up, down ---------------------------------------------------------------------------

    def up(self, *options):
        made = self.scratch.nam("up", "--state-dir=" + self.state, "--memory=64MiB", *options)
        self.assertEqual(made.code, 0, made)
        return self.supervisor()

    def supervisor(self):
        found = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam supervise ")]
        self.assertEqual(len(found), 1, self.scratch.processes())
        return found[0]

    def down(self):
        result = self.scratch.nam("down", "--state-dir=" + self.state)
        self.assertEqual(result.code, 0, result)
        self.assert_state_directory_clean()
        return result.out

    def test_up_and_down(self):
        for fabric in ("shm", "tcp"):
            self.up("--fabric=" + fabric, "--data-dir=" + self.scratch.file("data-" + fabric))
            loaded = self.scratch.nam("ssb", "load", "--state-dir=" + self.state, "--scale-factor=0.01")
            self.assertEqual(loaded.code, 0, loaded)
            started = time.monotonic()
            self.assertIn("has stopped", self.down())
            self.assert_nothing_left(started)

    def test_up_interrupted(self):
        """Before it is up."""
        for processes in (2, 3, 5):
            for number in SIGNALS:
                up = self.scratch.start("up", "--state-dir=" + self.state, "--memory=64MiB", "--memory-servers=4",
                                        "--compute-servers=4")
                wait_until(lambda: len(self.scratch.processes()) >= processes, 10, "it starts")
                started = time.monotonic()
                up.signal(number)
                code = up.wait(60)
                if code == 0:  # it was faster; then it is up
                    self.say("was up before the signal")
                    self.assertIn("has stopped", self.down())
                else:
                    self.assertEqual(code, 130, up.err())
                self.assert_nothing_left(started)
                self.assert_state_directory_clean()

    def test_supervisor_ends_in_order(self):
        for number in SIGNALS:
            supervisor = self.up()
            started = time.monotonic()
            os.kill(supervisor, number)
            self.scratch.await_no_process(30)
            self.assert_nothing_left(started)
            self.assert_state_directory_clean()

    def test_supervisor_killed(self):
        """Its servers end with it; `nam down` and `nam up` clean up."""
        for then in ("down", "up"):
            os.kill(self.up(), signal.SIGKILL)
            started = time.monotonic()
            self.scratch.await_no_process(30)
            self.within(STOP_SECONDS, started)
            if then == "up":
                self.up()
                self.assertIn("has stopped", self.down())
            else:
                self.assertIn("Cleaned up", self.down())
        self.assert_nothing_left(started)

    def test_down_interrupted(self):
        """Another `nam down` brings it to its end."""
        self.up()
        down = self.scratch.start("down", "--state-dir=" + self.state)
        down.signal(signal.SIGINT)
        down.wait()
        started = time.monotonic()
        self.down()
        self.assert_nothing_left(started)

    def test_server_of_a_background_cluster_dies(self):
        """Without a compute server, and without its catalog, the cluster goes on; `nam down` ends it as ever."""
        self.up("--compute-servers=2")
        options = ["--state-dir=" + self.state]
        self.assertEqual(self.scratch.nam("ssb", "load", *options, "--scale-factor=0.01").code, 0)
        pids = {line.split()[1]: pid for pid, line in self.scratch.processes().items()}
        count = ["sql", *options, "--format=csv", "-c", "SELECT count(*) AS n FROM date"]
        for role in ("compute", "catalog"):
            os.kill(pids[role], signal.SIGKILL)
            wait_until(lambda: self.scratch.nam(*count).out == "n\n2556\n", 15, "it answers without its " + role)
        started = time.monotonic()
        self.assertIn("has stopped", self.down())
        self.assert_nothing_left(started)
        self.assertEqual(self.scratch.nam(*count).code, 3)

    # --- servers in the foreground ----------------------------------------------------------

    def test_servers(self):
        """Exit code 0 after one signal, whichever ends first."""
        for number in SIGNALS:
            for order in (("compute", "memory", "catalog"), ("catalog", "memory", "compute")):
                cluster = Cluster(self, compute=1)
                cluster.load(0.01)
                started = time.monotonic()
                processes = {"compute": cluster.compute[0].process, "memory": cluster.memory[0].process,
                             "catalog": cluster.catalog}
                for role in order:
                    processes[role].signal(number)
                    self.assertEqual(processes[role].wait(), 0, "%s: %s" % (role, processes[role].err()))
                self.assert_nothing_left(started)

    def test_leaving_is_told_at_once(self):
        """A server that ends in order is forgotten without waiting for its lease."""
        cluster = Cluster(self, memory=[64 << 20] * 2, compute=2, lease_ms=60_000)
        self.assertEqual(cluster.compute[0].process.stop(), 0)
        self.assertEqual(cluster.memory[0].process.stop(), 0)
        self.assertIsNone(cluster.member(cluster.compute[0]))
        self.assertIsNone(cluster.member(cluster.memory[0]))
        cluster.load(0.01)
        self.assertEqual(cluster.count("date"), 2556)

    def test_a_pipe_that_closes(self):
        """A reader that goes away is no crash."""
        cluster = Cluster(self, compute=1)
        cluster.load(0.01)
        shell = subprocess.Popen([NAM, "sql", *cluster.options, "-c", "SELECT lo_orderkey FROM lineorder"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.scratch.env)
        self.assertIn(b"lo_orderkey", shell.stdout.readline())
        shell.stdout.close()
        self.assertIn(shell.wait(30), (0, 1))
        shell.stderr.close()
        self.assertEqual(cluster.count("date"), 2556)


cases.main()
