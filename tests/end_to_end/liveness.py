"""Processes that stand still and go on: what is suspect is not dead, and a client finds its way back."""
import os
import signal
import time

import cases
from cluster import MIB, Cluster, wait_until
from terminal import Terminal

ACCOUNTS = """
    CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) WITH (storage = record, versions = 2);
    INSERT INTO accounts VALUES (1, 10), (2, 20), (3, 30);
"""
PROMISED_SECONDS = 10


class Liveness(cases.Case):
    def cluster(self, **how):
        cluster = Cluster(self, memory=[256 * MIB] * 2, compute=1, **how)
        cluster.load(0.01)
        cluster.done("sql", "-c", ACCOUNTS)
        return cluster

    # --- memory servers -------------------------------------------------------------------------

    def memory_server_comes_back(self, fabric):
        """Stopped for longer than its lease it is suspect; it goes on with its data, its keys and its place."""
        cluster = self.cluster(fabric=fabric)
        before = cluster.answers("--repeat=1")
        shell = Terminal(self, cluster)  # has keys to its memory
        shell.expect("nam=> ")
        shell.command("UPDATE accounts SET balance = balance + 1;", "UPDATE 3")
        victim = cluster.memory[0]
        victim.process.signal(signal.SIGSTOP)
        try:
            cluster.await_state(victim, "suspect")
            start = time.monotonic()
            refused = cluster.nam("sql", "-c", "SELECT sum(lo_revenue) FROM lineorder")
            self.within(PROMISED_SECONDS, start)
            self.say(refused.err.strip())
            self.assertEqual(refused.code, 1, refused)
            for piece in ("57P03", "memory server %d" % victim.id, "come back"):
                self.assertIn(piece, refused.err)
            self.assertIn("suspect", cluster.done("status").out)
            self.assertTrue(cluster.member(victim)["alive"])
            time.sleep(cluster.lease)  # what is tested is that time passes
        finally:
            victim.process.signal(signal.SIGCONT)
        cluster.await_state(victim, "alive")
        self.assertTrue(victim.process.running(), victim.process.err())
        self.assertEqual(cluster.answers("--repeat=1"), before)
        shell.command("UPDATE accounts SET balance = balance + 1;", "UPDATE 3")
        cluster.done("sql", "-c", "INSERT INTO accounts VALUES (4, 40); UPDATE accounts SET balance = balance + 1;")
        self.assertEqual([row["balance"] for row in cluster.query("SELECT balance FROM accounts ORDER BY id")],
                         [13, 23, 33, 41])
        cluster.load(0.01)
        log = cluster.catalog.err()
        for piece in ("memory server %d" % victim.id, "is suspect", "is back"):
            self.assertIn(piece, log)
        self.assertNotIn("buried", log)

    def test_memory_server_comes_back_tcp(self):
        """Stopped for longer than its lease it is suspect; it goes on with its data, its keys and its place."""
        self.memory_server_comes_back("tcp")

    def test_memory_server_comes_back_shm(self):
        """Stopped for longer than its lease it is suspect; it goes on with its data, its keys and its place."""
        self.memory_server_comes_back("shm")

    def test_memory_server_killed_is_buried_promptly(self):
        """Its connections are refused: no member waits for it. Status and log report the loss."""
        cluster = self.cluster()
        victim, other = cluster.memory
        start = time.monotonic()
        victim.process.kill()
        cluster.await_dead(victim)
        self.within(10, start)  # it would be buried after ten minutes, if it only were silent
        line = cluster.catalog.await_line("memory server %d .* is buried: .*refused.*lineorder" % victim.id,
                                          where="err")
        self.say(line.string)
        refused = cluster.nam("sql", "-c", "SELECT sum(lo_revenue) FROM lineorder")
        self.say(refused.err.strip())
        self.assertIn("memory server %d" % victim.id, refused.err)
        lost = {row["table"]: row["lost_blocks"] for row in cluster.status()["tables"]}
        self.assertGreater(lost["lineorder"], 0)
        self.assertIn("lost", cluster.done("status").out)
        self.assertEqual(cluster.member(victim)["state"], "buried")
        cluster.load(0.01)
        lost = {row["table"]: row["lost_blocks"] for row in cluster.status()["tables"]}
        self.assertEqual(lost["lineorder"], 0, "it was loaded again")
        self.assertGreater(lost["accounts"], 0)
        self.assertEqual(cluster.member(other)["state"], "alive")

    def test_bury_by_hand(self):
        """An operator gives a suspect up: it is said what is lost, and nothing is done without a yes."""
        cluster = self.cluster()
        victim, other = cluster.memory
        refused = cluster.nam("bury", other.id, "--yes")
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("renews its lease", refused.err)
        victim.process.signal(signal.SIGSTOP)
        try:
            cluster.await_state(victim, "suspect")
            asked = cluster.nam("bury", victim.id)
            self.assertEqual(asked.code, 2, asked)
            self.assertIn("lineorder", asked.out)
            self.assertIn("--yes", asked.err)
            self.assertEqual(cluster.member(victim)["state"], "suspect")
            done = cluster.done("bury", victim.id, "--yes")
            self.say(done.out.strip())
            cluster.await_state(victim, "buried")
        finally:
            victim.process.signal(signal.SIGCONT)
        self.assertEqual(victim.process.wait(), 1, "it learns it and ends")

    # --- clients --------------------------------------------------------------------------------

    def stopped_shell(self, cluster, *before):
        """A shell on a terminal that stands still until its lease is over, and a moment longer."""
        shell = Terminal(self, cluster)
        shell.expect("nam=> ")
        for text, pattern in before:
            shell.command(text, pattern)
        os.kill(shell.child, signal.SIGSTOP)
        wait_until(lambda: shell.child not in cluster.living_pids(), 20, "its lease is over")
        time.sleep(cluster.lease)  # memory servers end its keys when they renew next
        os.kill(shell.child, signal.SIGCONT)
        return shell

    def client_comes_back(self, fabric):
        cluster = self.cluster(fabric=fabric)
        idle = self.stopped_shell(cluster, ("SET nam.prefetch_window = 7;", "SET"),
                                  ("UPDATE accounts SET balance = balance + 1;", "UPDATE 3"))
        idle.command("SELECT sum(balance) FROM accounts;", r"\b63\b")
        idle.command("UPDATE accounts SET balance = balance + 1;", "UPDATE 3")
        idle.command("SELECT count(*) FROM date;", r"\b2556\b")
        idle.command("SHOW nam.prefetch_window;", r"-+\n +7\n")
        idle.kill()

        inside = self.stopped_shell(cluster, ("BEGIN;", "BEGIN"),
                                    ("UPDATE accounts SET balance = 0 WHERE id = 1;", "UPDATE 1"))
        self.say(inside.command("UPDATE accounts SET balance = 0 WHERE id = 2;", "ERROR.*08006.*").group(0))
        inside.command("UPDATE accounts SET balance = 0 WHERE id = 3;", "25P02")
        inside.command("ROLLBACK;", "ROLLBACK")
        inside.command("SELECT sum(balance) FROM accounts;", r"\b66\b")
        inside.kill()

        committing = self.stopped_shell(cluster, ("BEGIN;", "BEGIN"),
                                        ("UPDATE accounts SET balance = 0 WHERE id = 1;", "UPDATE 1"))
        committing.command("COMMIT;", "ERROR.*08006")
        committing.command("SELECT sum(balance) FROM accounts;", r"\b66\b")
        committing.kill()

    def test_client_comes_back_tcp(self):
        """A shell that stood still for longer than its lease goes on; only an open transaction is lost, and said so."""
        self.client_comes_back("tcp")

    def test_client_comes_back_shm(self):
        """A shell that stood still for longer than its lease goes on; only an open transaction is lost, and said so."""
        self.client_comes_back("shm")

    def test_checkout_goes_on(self):
        """Clients that share a membership which they lose go on under another."""
        cluster = Cluster(self, fabric="tcp", memory=[256 * MIB] * 2, compute=1)
        buys = cluster.start("checkout", "--clients=3", "--seconds=8", "--products=500", "--format=json")
        wait_until(lambda: "products" in cluster.tables() or not buys.running(), 30, "it buys")
        wait_until(lambda: buys.pid in cluster.living_pids() or not buys.running(), 30, "it is a member")
        time.sleep(1)  # until it is in the midst of it
        buys.signal(signal.SIGSTOP)
        wait_until(lambda: buys.pid not in cluster.living_pids(), 20, "its lease is over")
        time.sleep(cluster.lease)  # memory servers end its keys when they renew next
        buys.signal(signal.SIGCONT)
        wait_until(lambda: buys.pid in cluster.living_pids() or not buys.running(), 20, "it is a member again")
        self.assertEqual(buys.wait(60), 0, buys.said())


cases.main()
