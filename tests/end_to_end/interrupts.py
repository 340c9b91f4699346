"""Ctrl-C while rows are being printed, and while a server says nothing."""
import array
import fcntl
import json
import os
import re
import signal
import subprocess
import termios
import time

import cases
from cluster import HANG_SECONDS, LONG_QUERY, NAM, PATIENCE, Cluster, wait_until
from terminal import Terminal

EVERY_ROW = "SELECT lo_orderkey, lo_linenumber, lo_custkey, lo_shipmode FROM lineorder"


class Interrupts(cases.Case):
    def cluster(self, fabric="shm"):
        """A server that stands still for a while remains a member."""
        cluster = Cluster(self, fabric=fabric, memory=[256 << 20] * 2, compute=2, lease_ms=10_000)
        cluster.load(0.05)
        return cluster

    def interrupt(self, terminal, seconds, what, said="ERROR:  canceling"):
        """The prompt is back soon after Ctrl-C."""
        start = time.monotonic()
        terminal.send("\x03")
        terminal.expect(said)
        terminal.expect("nam=> ")
        self.say("%s: prompt after %.0f ms" % (what, (time.monotonic() - start) * 1000))
        self.within(seconds, start)

    def full(self, pipe):
        """Much lies in it, and nothing is added."""
        bytes_in = [array.array("i", [0]) for _ in range(2)]
        for count in bytes_in:
            fcntl.ioctl(pipe, termios.FIONREAD, count)
            time.sleep(0.1)  # the measure is one of time
        return bytes_in[0][0] > 16384 and bytes_in[0] == bytes_in[1]

    def test_a_load_names_the_tables_that_it_has_replaced(self):
        """Each is replaced by itself."""
        cluster = Cluster(self, memory=[512 << 20] * 2, compute=1)
        cluster.load(0.01)
        load = cluster.start("ssb load", "--replace", "--scale-factor=1")
        wait_until(lambda: cluster.tables()["customer"] == 30_000, 30, "the first table is replaced")
        load.signal(signal.SIGINT)
        self.assertEqual(load.wait(), 130, load.err())
        self.assertRegex(load.err(), "nam: .*; loaded already: customer.*; the other tables are as before")
        self.assertLess(cluster.tables()["lineorder"], 1_000_000)

    # --- rows that are printed --------------------------------------------------------------

    def test_printing_on_a_terminal(self):
        """It ends at once, in every format, and the session goes on."""
        cluster = self.cluster()
        for options, first in (([], r"lo_orderkey \|.*\n-+\+.*\n.*\|.*\|"), (["-x"], r"RECORD 1 \]"),
                               (["--format=csv"], r"lo_orderkey,.*\n\d+,"), (["--format=json"], r"\[\n  \{")):
            terminal = Terminal(self, cluster, options)
            terminal.expect("nam=> ")
            for _ in range(2):
                terminal.send(EVERY_ROW + ";\n")
                terminal.expect(first)
                begun = len(terminal.seen)
                self.interrupt(terminal, 10, " ".join(options) or "table")
                self.assertLess(len(terminal.seen) - begun, 1 << 20, "few of 10 MiB and more")
                terminal.command("SELECT count(*) AS n FROM date;", "2556")
            terminal.send("\\q\n")
            self.assertEqual(terminal.end(), 0)

    def test_printing_to_a_program(self):
        """One that has stopped to read: the shell ends, and what it has printed ends within a line."""
        cluster = self.cluster()
        for name, lines in (("csv", lambda text: [line.split(",") for line in text.splitlines()[1:-1]]),
                            ("json", lambda text: [list(json.loads(line.rstrip(",")).values())
                                                   for line in text.splitlines()[1:-1]])):
            everything = lines(cluster.done("sql", "--format=" + name, "-c", EVERY_ROW).out)
            shell = subprocess.Popen([NAM, "sql"] + cluster.options + ["--format=" + name, "-c", EVERY_ROW],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cluster.scratch.env)
            self.addCleanup(shell.kill)
            read = os.read(shell.stdout.fileno(), 100)
            wait_until(lambda: self.full(shell.stdout), 20, "it waits for its reader")
            start = time.monotonic()
            shell.send_signal(signal.SIGINT)
            self.assertEqual(shell.wait(HANG_SECONDS * PATIENCE), 130)
            self.within(10, start)
            read += shell.stdout.read()
            self.assertIn(b"canceling statement due to user request", shell.stderr.read())
            printed = lines(read.decode())
            self.say("%s: %d rows and %d bytes of the next" % (name, len(printed), len(read.splitlines()[-1])))
            self.assertGreater(len(printed), 100)
            rows = {tuple(map(str, row)) for row in everything}
            self.assertLessEqual({tuple(map(str, row)) for row in printed}, rows, "whole rows of the result")

    # --- before there is a statement ----------------------------------------------------------

    def test_connecting(self):
        """Ctrl-C ends the shell while its catalog says nothing."""
        cluster = self.cluster()
        cluster.catalog.signal(signal.SIGSTOP)
        try:
            shell = cluster.start("sql", "-c", "SELECT 1")

            def catches():
                with open("/proc/%d/status" % shell.pid) as status:
                    caught = int(re.search(r"^SigCgt:\s*(\w+)", status.read(), re.M).group(1), 16)
                return caught >> (signal.SIGINT - 1) & 1

            wait_until(catches, 20, "the shell connects")
            start = time.monotonic()
            shell.signal(signal.SIGINT)
            self.assertEqual(shell.wait(), 130)
            self.within(3, start)  # a call takes five
            self.assertEqual(shell.err(), "nam: interrupted")
        finally:
            cluster.catalog.signal(signal.SIGCONT)

    # --- servers that say nothing -----------------------------------------------------------

    def silent(self, fabric, role):
        """A stopped server does not hold the prompt up, and works on later."""
        cluster = self.cluster(fabric)
        cluster.done("sql", "-c", "CREATE TABLE counts (id int PRIMARY KEY, n int) WITH (storage = record);"
                     "INSERT INTO counts SELECT i, 0 FROM generate_series(1, 400) i")
        terminal = Terminal(self, cluster)
        terminal.expect("nam=> ")
        victim = getattr(cluster, role)[0]
        statements = [("a join", LONG_QUERY), ("rows", EVERY_ROW),
                      ("a sort", EVERY_ROW + " ORDER BY lo_shipmode, lo_orderkey"),
                      ("groups", "SELECT lo_orderkey, count(*) FROM lineorder GROUP BY lo_orderkey")]
        if role == "memory":
            statements += [("record rows", "SELECT sum(n) FROM counts"),
                           ("a join with records", "SELECT sum(n) FROM counts, lineorder WHERE id = lo_custkey")]
        if role == "memory" and fabric == "tcp":
            statements += [("a change", "UPDATE counts SET n = n + 1"), ("a transaction", "BEGIN")]
        for what, text in statements:
            terminal.command("\\x " + ("on" if what == "rows" else "off"), "display is")
            victim.process.signal(signal.SIGSTOP)
            try:
                terminal.send(text + ";\n")
                time.sleep(0.3)  # it waits, or is over: a stopped server does not hold everything up
                start = time.monotonic()
                terminal.send("\x03")
                terminal.expect("nam=> ")
                self.say("%s: prompt after %.0f ms" % (what, (time.monotonic() - start) * 1000))
                self.within(2.5, start)  # peers that stand still are lost after three
            finally:
                victim.process.signal(signal.SIGCONT)
            terminal.command("ROLLBACK;", "ROLLBACK")
            terminal.command("SELECT count(*) FROM date;", "2556")
            terminal.command("SELECT sum(n) FROM counts;", r"\b0\b|\b400\b")
        terminal.send("\\q\n")
        self.assertEqual(terminal.end(), 0)

    def test_silent_memory_server_tcp(self):
        self.silent("tcp", "memory")

    def test_silent_memory_server_shm(self):
        self.silent("shm", "memory")

    def test_silent_compute_server_tcp(self):
        self.silent("tcp", "compute")

    def test_silent_compute_server_shm(self):
        self.silent("shm", "compute")


cases.main()
