"""Transactions through real processes: SQL on record tables, and checkout with its history checked."""
import os
import signal
import time

import cases
from cluster import Cluster, wait_until
from terminal import Terminal

MEMORY = [256 << 20, 256 << 20]
MOVE = """BEGIN;
UPDATE accounts SET balance = balance - 1 WHERE id = 1;
UPDATE accounts SET balance = balance + 1 WHERE id = 2;
UPDATE accounts SET balance = balance + 1 WHERE id = 3;
COMMIT;
"""
OWN_MOVE = MOVE.replace("COMMIT", "UPDATE accounts SET balance = balance + 1 WHERE id = 4;\nCOMMIT")


class Transactions(cases.Case):
    def test_sql_on_record_tables(self):
        """What is committed stays, what is rolled back never was."""
        for fabric in ("shm", "tcp"):
            cluster = Cluster(self, fabric=fabric, memory=MEMORY, compute=1)
            script = """
                CREATE TABLE accounts (id int PRIMARY KEY, owner varchar(20) NOT NULL, balance decimal(12,2),
                                       CHECK (balance >= 0)) WITH (storage = record, versions = 2);
                INSERT INTO accounts VALUES (1, 'Ada', 100.00), (2, 'Grace', 50.50);
                BEGIN;
                UPDATE accounts SET balance = balance - 10 WHERE id = 1;
                UPDATE accounts SET balance = balance + 10 WHERE id = 2;
                COMMIT;
                BEGIN;
                DELETE FROM accounts;
                ROLLBACK;
            """
            done = cluster.nam("sql", "-f", self.scratch.file("script-%s.sql" % fabric, script))
            self.assertEqual(done.code, 0, done)
            rows = cluster.nam("sql", "--format=csv", "-c", "SELECT id, owner, balance FROM accounts ORDER BY id")
            self.assertEqual(rows.out.splitlines(), ["id,owner,balance", "1,Ada,90.00", "2,Grace,60.50"])
            for statement, piece in (("INSERT INTO accounts VALUES (1, 'Eve', 0)", "23505"),
                                     ("UPDATE accounts SET balance = -1 WHERE id = 1", "23514"),
                                     ("INSERT INTO accounts (id) VALUES (3)", "23502"),
                                     ("DROP INDEX by_owner", "42704")):
                refused = cluster.nam("sql", "-c", statement)
                self.assertEqual(refused.code, 1, refused)
                self.assertIn(piece, refused.err)
            failed = cluster.nam("sql", "--keep-going", "--format=csv", "-c",
                                 "BEGIN ISOLATION LEVEL SERIALIZABLE; DELETE FROM accounts; COMMIT; "
                                 "SELECT count(*) AS n FROM accounts; COMMIT")
            self.assertEqual((failed.code, failed.out), (1, "n\n2\n"), failed)
            self.assertEqual(failed.err.count("25P02"), 1, failed)
            self.assertIn("WARNING:  there is no transaction in progress (SQLSTATE 25P01)", failed.err)
            self.indexes_and_joins(cluster)
            self.assertEqual(cluster.nam("sql", "-c", "DROP TABLE accounts").code, 0)
            cluster.stop()

    def indexes_and_joins(self, cluster):
        """Indexes are kept by every session, and joined with analytical tables."""
        def rows(statement):
            done = cluster.nam("sql", "--format=csv", "-c", statement)
            self.assertEqual(done.code, 0, done)
            return done.out.splitlines()[1:]

        rows("CREATE UNIQUE INDEX by_owner ON accounts (owner)")
        rows("INSERT INTO accounts VALUES (3, 'Edsger', 7)")
        refused = cluster.nam("sql", "-c", "INSERT INTO accounts VALUES (4, 'Ada', 7)")
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("23505", refused.err)
        self.assertEqual(rows("SELECT id FROM accounts WHERE owner >= 'B' ORDER BY owner LIMIT 1"), ["3"])
        self.assertIn("by index by_owner", "\n".join(rows("EXPLAIN SELECT id FROM accounts WHERE owner >= 'B'")))
        rows("CREATE TABLE moves (account int, n int, amount decimal(12,2), PRIMARY KEY (account, n)) "
             "WITH (storage = record)")
        rows("INSERT INTO moves VALUES (1, 1, 5), (1, 2, 6.5), (2, 1, -1), (9, 1, 0)")
        self.assertEqual(rows("SELECT owner, sum(amount), count(*) FROM accounts a, moves m WHERE a.id = m.account "
                              "GROUP BY owner ORDER BY owner"), ["Ada,11.50,2", "Grace,-1.00,1"])
        loaded = cluster.nam("ssb load", "--scale-factor=0.01")
        self.assertEqual(loaded.code, 0, loaded)
        self.assertEqual(rows("SELECT owner, count(*) FROM accounts a, lineorder l WHERE a.id = l.lo_linenumber "
                              "AND l.lo_orderkey <= 3 AND a.id = 1 GROUP BY owner"), ["Ada,3"])
        rows("DROP INDEX by_owner")
        rows("DROP TABLE moves")

    def test_checkout(self):
        """Stocks and orders add up, and the history is one of snapshot isolation, on every fabric."""
        for fabric in ("shm", "tcp"):
            cluster = Cluster(self, fabric=fabric, memory=MEMORY, compute=1)
            for again in ([], ["--replace", "--versions=4"]):
                run = cluster.nam("checkout", "--clients=4", "--transactions=3000", "--products=1000", "--zipf=0.9",
                                  "--check", "--format=json", *again)
                self.assertEqual(run.code, 0, run)
                summary = run.json()["summary"]
                self.assertGreaterEqual(summary["committed"], 3000)
                self.assertTrue(summary["invariants_ok"])
                self.assertEqual(summary["history_anomalies"], 0)
                self.assertGreaterEqual(summary["history_transactions"], 3000)
            self.assertEqual(self.first_row(cluster, "SELECT count(*), sum(lines), sum(total) FROM orders"),
                             self.first_row(cluster, "SELECT count(DISTINCT id / 4), count(*), sum(quantity * price) "
                                                     "FROM order_lines"))
            self.assertEqual(self.first_row(cluster, "SELECT count(*), min(stock) >= 0 FROM products"), "1000,t")
            there = cluster.nam("checkout", "--transactions=1", "--products=1000")
            self.assertEqual(there.code, 1, there)
            self.assertIn("--replace", there.err)
            cluster.stop()

    def test_checkout_drops_only_tables_of_its_own(self):
        """And none before it knows where the history goes."""
        cluster = Cluster(self, memory=MEMORY, compute=1)
        cluster.done("sql", "-c", "CREATE TABLE orders (id int PRIMARY KEY, mine text)",
                     "-c", "INSERT INTO orders VALUES (1, 'precious')")
        run = ["checkout", "--replace", "--transactions=10", "--products=500"]
        refused = cluster.nam(*run)
        self.assertEqual(refused.code, 1, refused)
        self.assertIn("there is another table orders than checkout's; rename or drop it", refused.err)
        self.assertEqual(self.first_row(cluster, "SELECT * FROM orders"), "1,precious")
        cluster.done("sql", "-c", "DROP TABLE orders")
        history = self.scratch.file("histories/of/today")
        cluster.done(*run, "--history=" + history)
        self.assertIn("client-0.history", os.listdir(history))
        before = self.first_row(cluster, "SELECT count(*) FROM orders")
        refused = cluster.nam(*run, "--history=%s/client-0.history/x" % history)
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("cannot be made", refused.err)
        self.assertEqual(self.first_row(cluster, "SELECT count(*) FROM orders"), before)

    def first_row(self, cluster, query):
        return cluster.done("sql", "--format=csv", "-c", query).out.splitlines()[1]

    def balances(self, cluster):
        """As a new transaction sees them: accounts 1 and 2, the moves between them, those of the test itself."""
        for _ in range(100):
            rows = cluster.nam("sql", "--format=csv", "-c", "SELECT balance FROM accounts ORDER BY id")
            if "40001" not in rows.err:  # the moves may be faster than a reader
                break
        self.assertEqual(rows.code, 0, rows)
        found = [int(line) for line in rows.out.splitlines()[1:]]
        self.assertEqual(found[0] + found[1], 0, "half of a move is seen")
        self.assertEqual(found[1], found[2], "half of a move is seen")
        return found

    def move(self, cluster):
        """Somebody else moves, at the latest when the stopped client's lease is over."""
        tries = []

        def moved():
            tries.append(cluster.nam("sql", "-c", OWN_MOVE))
            return tries[-1].code == 0
        wait_until(moved, 30, lambda: "another client moves; in %d tries, the last: %s" % (len(tries), tries[-1]))

    def stopped_in_mid_transaction(self, fabric, timestamps):
        cluster = Cluster(self, fabric=fabric, memory=MEMORY, compute=1, timestamps=timestamps)
        self.assertIn("timestamps " + timestamps, cluster.nam("status").out)
        made = cluster.nam("sql", "-c", "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL) "
                           "WITH (storage = record, versions = 16)",
                           "-c", "INSERT INTO accounts VALUES (1, 0), (2, 0), (3, 0)")
        self.assertEqual(made.code, 0, made)
        idle = Terminal(self, cluster)  # has committed, and then begun
        idle.expect("nam=> ")
        idle.send("INSERT INTO accounts VALUES (4, 0);\nBEGIN;\nSELECT sum(id) AS ids FROM accounts;\n")
        idle.expect(r"\b10\b")
        script = self.scratch.file("moves.sql", MOVE * 20000)
        held, moves = 0, 0
        for _ in range(4):
            before = self.balances(cluster)
            victim = cluster.start("sql", "-f", script)
            wait_until(lambda: not victim.running() or self.balances(cluster)[2] > before[2] + 20, 30, "it moves")
            self.assertTrue(victim.running(), victim.said() if not victim.running() else "")
            victim.signal(signal.SIGSTOP)
            start = time.monotonic()
            try:
                # Its locks are free, and what others commit is seen, once its lease is over, at the latest.
                self.move(cluster)
                moves += 1
                wait_until(lambda: self.balances(cluster)[3] == moves, 30, "the move is seen")
                held += time.monotonic() - start > cluster.lease / 2
                self.within(2 * cluster.lease + 8, start)
                wait_until(lambda: victim.pid not in cluster.living_pids(), 30, "its lease is over")
                # If no member had to fence it, memory servers end its keys when they renew next.
                time.sleep(2 * cluster.lease / 3)
                self.move(cluster)
                moves += 1
                after = self.balances(cluster)
            finally:
                victim.signal(signal.SIGCONT)
            wait_until(lambda: not victim.running() or self.balances(cluster)[2] > after[2], 30, "it ends or goes on")
            if victim.running():
                self.say("it stood between two transactions: nothing was lost, and it goes on as another member")
                victim.kill()
                # What it had locked would fail the next one.
                wait_until(lambda: victim.pid not in cluster.living_pids(), 30, "its lease is over")
                continue
            # Over shared memory it may be killed rather than let write.
            self.assertIn(victim.wait(), (1, -signal.SIGKILL), victim.said())
            self.say(victim.err().strip() or "killed")
            self.assertEqual(self.balances(cluster), after, "something that it wrote when it woke is seen")
        self.say("%s, %s: it had locks or a timestamp %d times of 4" % (fabric, timestamps, held))
        idle.kill()
        cluster.stop()

    def test_checkout_takes_what_there_is(self):
        """Without sizes it suits the cluster; what cannot fit is refused with the figures; who fails leaves no table."""
        cluster = Cluster(self, memory=[96 << 20] * 2, compute=1)
        run = cluster.done("checkout", "--seconds=1", "--format=json").json()
        self.say("%d products" % run["config"]["products"])
        self.assertGreater(run["config"]["products"], 10_000)
        self.assertLess(run["config"]["products"], 100_000)
        self.assertTrue(run["summary"]["invariants_ok"])
        refused = cluster.nam("checkout", "--replace", "--products=1000000")
        self.assertEqual(refused.code, 1, refused)
        self.assertRegex(refused.err, r"1,000,000 products and 1,000 orders take about [\d.]+ GiB, and the memory servers have "
                                      r"[\d.]+ MiB free; choose fewer")
        again = cluster.done("checkout", "--replace", "--transactions=1000", "--products=50000")
        self.assertIn("0 missing, 0 broken", again.out)
        cluster.stop()
        cluster = Cluster(self, memory=[768 << 20] * 2, compute=1)
        names = {"products", "orders", "order_lines"}
        for moment in ("loading", "running"):
            run = cluster.start("checkout", "--products=60000", "--seconds=60")
            if moment == "running":
                run.await_line("committed/s")
            else:
                wait_until(lambda: "products" in cluster.tables(), 20, "it makes its tables")
            run.signal(signal.SIGINT)
            self.assertEqual(run.wait(), 130, run.said())
            self.assertEqual(set(cluster.tables()) & names, set(), moment)
            if moment == "running":
                self.assertIn("the run's tables are dropped again", run.err())

    def test_stopped_shm_leased(self):
        """A client that stalls in mid-transaction, and one that is idle in one, delay no other beyond a lease."""
        self.stopped_in_mid_transaction("shm", "leased")

    def test_stopped_tcp_leased(self):
        self.stopped_in_mid_transaction("tcp", "leased")

    def test_stopped_shm_bitvector(self):
        self.stopped_in_mid_transaction("shm", "bitvector")

    def test_stopped_tcp_bitvector(self):
        self.stopped_in_mid_transaction("tcp", "bitvector")


cases.main()
