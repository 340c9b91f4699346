"""A catalog on an older copy of its store, and the tables that only the system touches."""
import os
import shutil
import time

import cases
from cluster import Cluster, wait_until


class RestoredStore(cases.Case):
    def cluster_with_older_copy(self):
        """Its store was copied, and then other tables took the place of those in the copy."""
        cluster = Cluster(self, fabric="tcp", memory=[256 << 20] * 2, compute=1)
        cluster.load(0.01)
        self.older = self.scratch.file("older.db")
        self.newer = self.scratch.file("newer.db")
        self.swap(cluster, keep=self.older, start=self.older)
        cluster.load(0.02)
        # Memory servers release what was replaced two renewals later, of which there are three in a lease.
        renewed = time.monotonic() + 3 * cluster.lease
        wait_until(lambda: time.monotonic() > renewed, 10, "every lease has been renewed")
        self.assertEqual(cluster.catalog.stop(), 0)
        return cluster

    def swap(self, cluster, keep, start, *options):
        """Stops the catalog, keeps its store, and starts it on another one."""
        cluster.catalog.stop()
        shutil.copy(cluster.store, keep)
        shutil.copy(start, cluster.store)
        self.assertFalse(os.path.exists(cluster.store + "-wal"), "an orderly end leaves one file")
        cluster.start_catalog(*options)

    def servers_run(self, cluster):
        for server in cluster.memory + cluster.compute:
            self.assertTrue(server.process.running(), server.process.err())

    def test_older_copy_is_refused(self):
        """Nothing is answered from it, nothing is released, and the newer store goes on."""
        cluster = self.cluster_with_older_copy()
        cluster.start_catalog()
        wait_until(lambda: cluster.nam("sql", "-c", "SELECT 1 AS one FROM date LIMIT 1").code == 0, 10, "it is back")
        expected, tables = cluster.count("lineorder"), cluster.tables()
        used = cluster.used_bytes()
        self.swap(cluster, self.newer, self.older)
        # The first thing that anybody hears from it.
        refused = cluster.nam("sql", "--format=csv", "-c", "SELECT count(*) FROM lineorder")
        self.assertNotEqual(refused.code, 0, refused)
        self.assertEqual(refused.out, "")
        self.assertIn("--accept-older-store", refused.err)
        self.say(refused.err.strip().splitlines()[0])
        cluster.catalog.await_line("older than what its cluster knows", where="err")
        until = time.monotonic() + 3 * cluster.lease
        while time.monotonic() < until:  # leases end, and nothing comes of it
            for command in (["status"], ["ssb load", "--scale-factor=0.01", "--replace"]):
                self.assertNotEqual(cluster.nam(*command).code, 0)
        self.servers_run(cluster)
        self.swap(cluster, self.scratch.file("refused.db"), self.newer)
        wait_until(lambda: cluster.nam("sql", "-c", "SELECT count(*) FROM date").code == 0, 10, "it is answered again")
        self.assertEqual(cluster.tables(), tables)
        self.assertEqual(cluster.count("lineorder"), expected)
        wait_until(lambda: cluster.used_bytes() == used, 10, "every memory server holds what it held")
        self.servers_run(cluster)

    def test_older_copy_is_accepted(self):
        """When an operator says so: what the newer store had is given up, and the cluster works."""
        cluster = self.cluster_with_older_copy()
        self.swap(cluster, self.newer, self.older, "--accept-older-store")
        cluster.catalog.await_line("given up", where="err")
        wait_until(lambda: cluster.nam("status").code == 0, 10, "it is answered")
        # The tables of the copy had been replaced: their memory was released then.
        wait_until(lambda: cluster.tables() == {}, 10, "tables without memory are gone")
        wait_until(lambda: sum(cluster.used_bytes().values()) == 0, 10, "the newer tables' memory is released")
        self.servers_run(cluster)
        cluster.load(0.01)
        rows = cluster.count("lineorder")
        cluster.catalog.kill()
        cluster.start_catalog()  # once accepted, it is as any other
        wait_until(lambda: cluster.nam("status").code == 0, 10, "it is answered")
        self.assertEqual(cluster.count("lineorder"), rows)


class SystemTables(cases.Case):
    def test_no_statement_touches_them(self):
        cluster = Cluster(self, memory=[256 << 20], compute=1)
        cluster.done("sql", "-c", "CREATE TABLE t (id int PRIMARY KEY) WITH (storage = record)",
                     "-c", "INSERT INTO t VALUES (1), (2)")
        for name in ('"nam.transactions"', '"nam.x"', '"NAM.Transactions"', 'public."nam.transactions"'):
            for statement in ("DROP TABLE %s", "DROP TABLE IF EXISTS %s", "DROP INDEX %s",
                              "CREATE TABLE %s (id int PRIMARY KEY) WITH (storage = record)",
                              "CREATE TABLE IF NOT EXISTS %s (id int PRIMARY KEY) WITH (storage = record)",
                              "CREATE INDEX i ON %s (id)", "INSERT INTO %s VALUES (1)", "UPDATE %s SET id = 1",
                              "DELETE FROM %s"):
                refused = cluster.nam("sql", "-c", statement % name)
                self.assertEqual(refused.code, 1, statement % name)
                self.assertIn("42501", refused.err, statement % name)
        refused = cluster.nam("sql", "-c", 'CREATE INDEX "nam.i" ON t (id)')
        self.assertIn("42501", refused.err)
        self.assertIn("HINT", refused.err)
        self.assertEqual(cluster.count("t"), 2)
        self.assertEqual(cluster.nam("sql", "-c", "INSERT INTO t VALUES (1)").code, 1, "the key is taken")

    def test_transactions_begin_anew(self):
        """Once the server with their state has died, by a command that says what is lost."""
        cluster = Cluster(self, memory=[256 << 20] * 3, compute=1)
        cluster.load(0.01)
        create = "CREATE TABLE %s (id int PRIMARY KEY) WITH (storage = record)"
        cluster.done("sql", "-c", create % "one", "-c", create % "two", "-c", "INSERT INTO one VALUES (1)")
        alive = cluster.nam("reset-transactions", "--yes")
        self.assertEqual(alive.code, 1, alive)
        self.assertIn("alive", alive.err)
        state = next(table for table in cluster.status()["tables"] if table["table"] == "nam.transactions")
        server = next(s for s in cluster.memory if s.id == state["memory_servers"][0]["id"])
        server.process.kill()
        cluster.await_dead(server)
        self.assertNotEqual(cluster.nam("sql", "-c", "INSERT INTO two VALUES (1)").code, 0)
        asked = wait_until(lambda: self.unless_alive(cluster.nam("reset-transactions")), 90, "the server is given up")
        self.assertEqual(asked.code, 2, asked)
        self.assertIn("one, two", asked.out)
        self.assertIn("--yes", asked.err)
        self.assertIn("one", cluster.tables())
        done = cluster.done("reset-transactions", "--yes")
        self.say(" ".join(done.out.split()))
        tables = cluster.tables()
        self.assertNotIn("one", tables)
        self.assertNotIn("nam.transactions", tables)
        self.assertIn("lineorder", tables, "analytical tables stay")
        cluster.done("sql", "-c", create % "one", "-c", "INSERT INTO one VALUES (1)")
        self.assertEqual(cluster.count("one"), 1)
        self.assertEqual(cluster.nam("reset-transactions", "--yes").code, 1)

    @staticmethod
    def unless_alive(result):
        return None if result.code == 1 and "alive" in result.err else result


class Addresses(cases.Case):
    def test_loopback_told_to_others(self):
        """A server that others could not reach is refused at its start."""
        cluster = Cluster(self, fabric="tcp", memory=[64 << 20], compute=1)
        # Another name of this host, that is not its loopback's.
        elsewhere = ["--catalog=0.0.0.0:%d" % cluster.port, "--secret-file=" + cluster.secret_file]
        for role in ("memserver", "compute"):
            for more in ([], ["--control-listen=localhost:0"], ["--advertised-host=127.0.0.2"],
                         ["--control-listen=0.0.0.0:0", "--advertised-host=localhost"],
                         ["--advertised-host=0.0.0.0"]):
                refused = self.scratch.nam(role, *elsewhere, *more)
                self.assertNotEqual(refused.code, 0, refused)
                self.assertIn("--advertised-host", refused.err)
                self.assertEqual(refused.out, "", "it never was ready")
            self.say(refused.err.strip())
            server = self.scratch.start(role, *elsewhere, "--advertised-host=db1.example")
            server.await_line("^READY %s .*control=db1.example:" % role)
            server.stop()
        self.assertEqual(len([row for row in cluster.status()["rows"] if row["alive"]]), 2)


cases.main()
