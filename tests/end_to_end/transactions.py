"""Transactions through real processes: SQL on record tables, and checkout with its history checked."""
import cases
from cluster import Cluster

MEMORY = [256 << 20, 256 << 20]


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
        self.assertIn("by index by_owner", rows("EXPLAIN SELECT id FROM accounts WHERE owner >= 'B'")[0])
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
                self.assertGreater(summary["history_transactions"], 3000)
            there = cluster.nam("checkout", "--transactions=1", "--products=1000")
            self.assertEqual(there.code, 1, there)
            self.assertIn("--replace", there.err)
            cluster.stop()

    def test_checkout_by_two_phase_commit(self):
        """The same workload and the same checks, among servers of its own: no cluster is needed."""
        for protocol in (["2pc-tcp"], ["2pc-send"], ["2pc-send", "--fabric=tcp", "--participants=2"]):
            run = self.scratch.nam("checkout", "--protocol=" + protocol[0], *protocol[1:], "--clients=3",
                                   "--transactions=1500", "--products=500", "--zipf=0.9", "--check", "--format=json")
            self.assertEqual(run.code, 0, run)
            summary = run.json()["summary"]
            self.assertGreaterEqual(summary["committed"], 1500)
            self.assertTrue(summary["invariants_ok"])
            self.assertEqual(summary["history_anomalies"], 0)
            self.assertEqual(run.json()["config"]["protocol"], protocol[0])
        refused = self.scratch.nam("checkout", "--protocol=3pc")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("2pc-send", refused.err)


cases.main()
