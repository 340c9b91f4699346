"""Data outlive their processes: data directories, restarts, kills."""
import errno
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import cases
from cluster import NAM, Cluster, wait_until


class Local(cases.Case):
    """`nam up` on a state directory, again and again."""

    def setUp(self):
        super().setUp()
        self.state = self.scratch.file("state")

    def nam(self, *arguments, code=0, timeout=60):
        result = self.scratch.nam(*arguments[0].split(), "--state-dir=" + self.state, *arguments[1:], timeout=timeout)
        self.assertEqual(result.code, code, result)
        return result

    def up(self, *options):
        return self.nam("up", "--memory=256MiB", "--compute-servers=1", "--threads=1", *options).out

    def sql(self, text, code=0):
        return self.nam("sql", "--format=csv", "-c", text, code=code)

    def tables(self):
        """What each table has, or the error of the statement."""
        rows = {}
        for row in self.nam("status", "--format=json").json()["tables"]:
            answer = self.scratch.nam("sql", "--state-dir=" + self.state, "--format=csv", "-c",
                                      "SELECT count(*), sum(a), sum(b) FROM %s" % row["table"])
            rows[row["table"]] = answer.out.split("\n")[1] if answer.code == 0 else answer.err
        return rows

    def wal(self):
        return os.path.join(self.state, "data", "catalog.db-wal")

    def files(self, ending=".sealed"):
        """Of all memory servers."""
        found = []
        for place in sorted(os.listdir(os.path.join(self.state, "data"))):
            folder = os.path.join(self.state, "data", place)
            if os.path.isdir(folder):
                found += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.startswith("allocation-") and name.endswith(ending)]
        return found

    def kill_all(self):
        """As if the power went, but for what the system has taken to write."""
        for pid in self.scratch.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.scratch.await_no_process(10)

    def load(self, name, rows=1000, more=""):
        path = self.scratch.file(name + ".csv", "".join("%d,%d\n" % (i, 7 * i) for i in range(rows)))
        self.sql("CREATE TABLE %s (a int, b bigint) WITH (storage = columnar); COPY %s FROM '%s' WITH (FORMAT csv)%s"
                 % (name, name, path, more))
        return "%d,%d,%d" % (rows, sum(range(rows)), 7 * sum(range(rows)))


class Restart(Local):
    def test_down_and_up_keep_everything(self):
        self.assertIn("Columnar tables outlive it in " + os.path.join(self.state, "data"), self.up())
        self.nam("ssb load", "--scale-factor=0.05")
        expected = {"t": self.load("t"), "u": self.load("u", 10)}
        self.sql("DROP TABLE u")
        del expected["u"]
        members = {row["id"] for row in self.nam("status", "--format=json").json()["rows"]}
        for _ in range(2):
            self.nam("down")
            started = time.monotonic()
            self.up()
            self.assertEqual({name: rows for name, rows in self.tables().items() if name == "t"}, expected)
            report = self.nam("ssb run", "--check", "--scale-factor=0.05", "--repeat=1", "--format=json").json()
            self.assertEqual(report["summary"]["correct"], 13)
            self.within(100, started)
        fresh = {row["id"] for row in self.nam("status", "--format=json").json()["rows"]}
        self.assertFalse(members & fresh, "members are others")
        self.load("v")  # and there is room for more
        self.nam("down")

    def test_nothing_is_kept_if_that_is_asked_for(self):
        self.assertIn("All data end with it", self.up("--data-dir=none"))
        self.load("t")
        self.nam("down")
        self.up("--data-dir=none")
        self.assertEqual(self.tables(), {})
        self.nam("down")
        self.assertFalse(os.path.exists(os.path.join(self.state, "data")))

    def test_more_memory_servers_than_asked_for(self):
        """All that have data are started."""
        self.up("--memory-servers=3")
        expected = {"t": self.load("t", 30000)}
        self.nam("down")
        self.assertIn("3 memory servers", self.up("--memory-servers=1"))
        self.assertEqual(self.tables(), expected)
        self.nam("down")

    def test_a_memory_server_is_killed(self):
        """The next one has its columnar tables, and statements go on."""
        self.up()
        expected = self.load("t", 30000)
        victim = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam memserver ")][0]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: re.search(r"memory server \d+ is replaced by memory server \d+, which has its columnar tables",
                                     open(os.path.join(self.state, "supervisor.log")).read()), 30, "it is replaced")
        wait_until(lambda: self.tables() == {"t": expected}, 20, lambda: "the table is there: %s" % self.tables())
        self.nam("down")

    def test_a_stopped_memory_server_is_replaced(self):
        """As soon as it is buried, though its process goes on to exist."""
        self.up("--memory-servers=2", "--bury-after=1")
        expected = self.load("t", 30000)
        victim = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam memserver ")][0]
        os.kill(victim, signal.SIGSTOP)
        self.addCleanup(lambda: victim in self.scratch.processes() and os.kill(victim, signal.SIGCONT))
        wait_until(lambda: re.search(r"memory server \d+ is replaced by memory server \d+, which has its columnar tables",
                                     open(os.path.join(self.state, "supervisor.log")).read()), 30, "it is replaced")
        self.assertNotIn(victim, self.scratch.processes())
        wait_until(lambda: self.tables() == {"t": expected}, 20, lambda: "the table is there: %s" % self.tables())
        self.nam("down")

    def test_record_tables_stay_at_a_clean_stop(self):
        """With their rows, keys and numbers; but not a second time after a kill."""
        self.up()
        self.sql("CREATE TABLE accounts (a serial PRIMARY KEY, b int UNIQUE) WITH (storage = record); "
                 "INSERT INTO accounts (b) SELECT g FROM generate_series(1, 5000) g")
        expected = self.tables()
        self.assertIn("Saved 5000 rows of the record tables accounts.", self.nam("down").out)
        said = self.up()
        self.assertIn("Record tables that are there again, with 5000 rows: accounts.", said)
        self.assertEqual(self.tables(), expected)
        self.assertIn("23505", self.sql("INSERT INTO accounts (b) VALUES (1)", code=1).err)
        self.assertIn("there again", self.nam("status").out)
        self.sql("INSERT INTO accounts (b) VALUES (5001)")
        # The loss of a memory server is told, and what is no longer true is not.
        victim = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam memserver ")][0]
        os.kill(victim, signal.SIGKILL)
        status = wait_until(lambda: (lambda out: "is lost" in out and out)(self.nam("status").out), 30, "it is told")
        self.assertNotIn("there again", status)
        self.kill_all()
        self.assertRegex(self.up(), r"record tables.*lost.*: accounts\.")
        self.assertEqual(self.tables(), {})
        self.nam("down")

    def test_nothing_acknowledged_is_lost_beside_writers(self):
        """`nam down` ends the sessions of clients that go on committing, and saves what they were told."""
        self.up()
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY) WITH (storage = record)")
        writers = [subprocess.Popen([NAM, "sql", "--state-dir=" + self.state, "--format=csv"], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.scratch.env, text=True)
                   for _ in range(3)]
        told = [0] * len(writers)
        ends = [""] * len(writers)

        def write(index):
            """One row after the other, each when the one before is acknowledged."""
            child = writers[index]
            while True:
                number = (told[index] + 1) * 10 + index
                child.stdin.write("INSERT INTO accounts VALUES (%d) RETURNING a;\n" % number)
                child.stdin.flush()
                lines = child.stdout.readline() + child.stdout.readline()
                if lines != "a\n%d\n" % number:
                    ends[index] = lines
                    return
                told[index] += 1

        threads = [threading.Thread(target=write, args=(index,)) for index in range(len(writers))]
        for thread in threads:
            thread.start()
        wait_until(lambda: min(told) >= 20, 60, lambda: "they write: %s" % told)
        self.say(self.nam("down").out.strip())
        for child, thread in zip(writers, threads):
            thread.join(60)
            child.kill()
            child.communicate()
        self.say("told of %s rows; then: %s" % (told, ends))
        for end in ends:
            self.assertRegex(end, "being stopped")
        self.assertIn("there again", self.up())
        for index, number in enumerate(told):
            rows = self.sql("SELECT count(*) FROM accounts WHERE a %% 10 = %d AND a <= %d" % (index, number * 10 + index))
            self.assertEqual(rows.out, "count\n%d\n" % number)
        self.nam("down")

    def test_record_tables_that_cannot_be_saved(self):
        """The cluster goes on, unless they are to be discarded."""
        self.up()
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY) WITH (storage = record); INSERT INTO accounts VALUES (1)")
        in_the_way = os.path.join(self.state, "data", "records.saved")
        os.makedirs(os.path.join(in_the_way, "folder"))
        refused = self.nam("down", code=1)
        self.say(refused.err.strip())
        self.assertIn("--discard-records", refused.err)
        self.assertEqual(self.sql("SELECT a FROM accounts").out, "a\n1\n")
        self.assertIn("has stopped", self.nam("down", "--discard-records").out)
        shutil.rmtree(in_the_way)
        self.assertRegex(self.up(), r"record tables.*lost.*: accounts\.")
        self.nam("down")

    def test_record_tables_of_a_cluster_that_does_not_answer(self):
        """They are not given up: the catalog may answer again."""
        self.up()
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY) WITH (storage = record); INSERT INTO accounts VALUES (1)")
        catalog = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam catalog ")][0]
        os.kill(catalog, signal.SIGSTOP)
        try:
            refused = self.nam("down", code=1, timeout=120)
        finally:
            os.kill(catalog, signal.SIGCONT)
        self.say(refused.err.strip())
        self.assertIn("--discard-records", refused.err)
        wait_until(lambda: self.scratch.nam("down", "--state-dir=" + self.state).code == 0, 120, "it answers again")
        self.assertIn("there again, with 1 rows: accounts.", self.up())
        self.nam("down")

    def test_record_tables_of_a_silent_memory_server(self):
        """It may come back with them: they are not given up while it is suspect."""
        self.up()
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY) WITH (storage = record); INSERT INTO accounts VALUES (1)")
        servers = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam memserver ")]
        for server in servers:
            os.kill(server, signal.SIGSTOP)
        try:
            wait_until(lambda: "suspect" in self.nam("status").out, 60, "they are suspect")
            refused = self.nam("down", code=1, timeout=120)
        finally:
            for server in servers:
                os.kill(server, signal.SIGCONT)
        self.say(refused.err.strip())
        self.assertIn("--discard-records", refused.err)
        wait_until(lambda: self.scratch.nam("down", "--state-dir=" + self.state).code == 0, 120, "they answer again")
        self.assertIn("there again, with 1 rows: accounts.", self.up())
        self.nam("down")

    def saved(self):
        return os.path.join(self.state, "data", "records.saved")

    def refused(self):
        """Starts a cluster that does without the file."""
        said = self.up()
        self.say(said)
        self.assertIn("does not have the record tables as they were when the cluster ended", said)
        self.assertIn(self.saved() + ".refused", said)
        self.assertRegex(said, r"record tables.*lost.*: accounts\.")
        self.assertEqual(self.tables(), {})
        self.assertFalse(os.path.exists(self.saved()))
        os.remove(self.saved() + ".refused")

    def make_accounts(self):
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY, b int) WITH (storage = record); "
                 "INSERT INTO accounts VALUES (1, 1), (2, 1)")

    def test_a_nam_down_that_was_killed(self):
        """The cluster goes on, and the rows that it has saved are not the last."""
        self.up()
        self.make_accounts()
        supervisor = [pid for pid, line in self.scratch.processes().items() if line.startswith("nam supervise ")][0]
        os.kill(supervisor, signal.SIGSTOP)  # before it ends
        try:
            down = self.scratch.start("down", "--state-dir=" + self.state)
            wait_until(lambda: os.path.exists(self.saved()), 60, "the rows are saved")
            down.kill()
            down.wait()
        finally:
            os.kill(supervisor, signal.SIGCONT)
        self.nam("scale out", "--compute=1")  # the supervisor has come to what was asked before
        # Clients are kept out until the lease of the killed one ends.
        change = ("sql", "--state-dir=" + self.state, "-c", "UPDATE accounts SET b = 2")
        wait_until(lambda: self.scratch.nam(*change).code == 0, 60, "clients are let in again")
        self.kill_all()
        self.refused()
        # One that comes to its end saves what there is.
        self.make_accounts()
        self.assertIn("Saved 2 rows", self.nam("down").out)
        self.assertIn("there again, with 2 rows: accounts.", self.up())
        self.nam("down", "--discard-records")
        self.assertRegex(self.up(), r"record tables.*lost.*: accounts\.")
        self.nam("down")

    def test_saved_rows_that_are_put_back(self):
        """A copy of an earlier file is not what the cluster had at its end."""
        self.up()
        self.make_accounts()
        self.nam("down")
        copy = self.scratch.file("copy")
        shutil.copy2(self.saved(), copy)
        self.up()
        self.sql("UPDATE accounts SET b = 2")
        self.kill_all()
        shutil.copy2(copy, self.saved())
        self.refused()
        self.make_accounts()
        self.nam("down")
        shutil.copy2(copy, self.saved())
        self.refused()
        self.nam("down")
        shutil.copy2(copy, self.saved())
        self.assertIn("does not have the record tables", self.up())
        os.remove(self.saved() + ".refused")
        self.make_accounts()
        self.nam("down")
        os.remove(self.saved())
        said = self.up()
        self.assertIn("where record tables were saved, is not there", said)
        self.assertRegex(said, r"record tables.*lost.*: accounts\.")
        self.nam("down")

    def test_record_tables_are_lost_by_name(self):
        """Also those that no transaction has written to."""
        self.up()
        self.sql("CREATE TABLE parent (a int PRIMARY KEY) WITH (storage = record); "
                 "CREATE TABLE child (a int REFERENCES parent) WITH (storage = record)")
        self.kill_all()
        said = self.up()
        self.assertRegex(said, r"record tables.*lost.*: child, parent\.")
        self.assertEqual(self.tables(), {})
        expected = {"t": self.load("t")}
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY, b int) WITH (storage = record); "
                 "INSERT INTO accounts VALUES (1, 2)")
        self.kill_all()
        said = self.up()
        self.say(said)
        self.assertRegex(said, r"record tables.*lost.*: accounts\.")
        self.assertEqual(self.tables(), expected)
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY, b int) WITH (storage = record); "
                 "INSERT INTO accounts VALUES (1, 2)")
        self.assertEqual(self.tables()["accounts"], "1,1,2")
        self.nam("down")


class Kills(Local):
    def test_kills_during_loads(self):
        """A table that was told done is there and right; no other is half there."""
        self.up()
        told, seed = {}, int(os.environ.get("SEED", random.randrange(1 << 30)))
        self.say("SEED=%d" % seed)
        chosen = random.Random(seed)
        for turn in range(int(os.environ.get("KILLS", "8"))):
            name = "t%d" % turn
            told[name] = self.load(name, chosen.randrange(1, 20000))  # told done
            rows = 60000
            path = self.scratch.file("under_way.csv", "".join("%d,%d\n" % (i, 7 * i) for i in range(rows)))
            other = "under_way_%d" % turn
            there = chosen.choice((0, 700))  # rows that others are appended to
            before = {"0,NULL,NULL", "0,,"}
            if there > 0:
                before = {self.load(other, there)}
            else:
                self.sql("CREATE TABLE %s (a int, b bigint) WITH (storage = columnar)" % other)
            total = sum(range(rows)) + sum(range(there))
            whole = "%d,%d,%d" % (there + rows, total, 7 * total)
            sealed, committed = len(self.files()), os.path.getsize(self.wal())
            copy = self.scratch.start("sql", "--state-dir=" + self.state, "-c",
                                      "COPY %s FROM '%s' WITH (FORMAT csv)" % (other, path))
            steps = {"it is started": lambda: True,
                     "it asks the catalog": lambda: os.path.getsize(self.wal()) != committed,
                     "a file is being written": lambda: self.files(".new"),
                     "a file is there": lambda: len(self.files()) > sealed,
                     "all files are there": lambda: len(self.files()) > sealed + 1,
                     "it is done": lambda: copy.find("^COPY")}
            step = chosen.choice(sorted(steps))
            self.say(step)
            wait_until(lambda: steps[step]() or not copy.running(), 20, step, pause=0.0002)
            done = copy.find("^COPY %d" % rows) is not None
            self.kill_all()
            copy.wait()
            self.up()
            tables = self.tables()
            self.assertEqual({name: rows for name, rows in tables.items() if name in told}, told)
            found = tables.pop(other, None)
            self.assertIn(found, {whole} if done else {whole} | before, tables)
            self.sql("DROP TABLE " + other)
        self.nam("down")

    def test_kills_during_compaction(self):
        """Each row of small appends is there once, in the groups that it was in or in the one that they became."""
        self.up()
        seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        self.say("SEED=%d" % seed)
        chosen = random.Random(seed)
        for turn in range(int(os.environ.get("KILLS", "4"))):
            appends = 24
            self.sql("CREATE TABLE t (a int, b bigint) WITH (storage = columnar); SET nam.compaction = off; " +
                     "; ".join("INSERT INTO t VALUES (%d, %d)" % (i, 7 * i) for i in range(appends)))
            log = [os.path.join(self.state, name) for name in os.listdir(self.state) if name.startswith("compute-")]
            logged = lambda: sum(open(name).read().count("compacted table t") for name in log)
            before, noted = len(self.files()), logged()
            self.sql("INSERT INTO t VALUES (%d, %d)" % (appends, 7 * appends))
            steps = {"it is asked for": lambda: True,
                     "a file is being written": lambda: self.files(".new"),
                     "it is done": lambda: logged() > noted,
                     "former files go": lambda: len(self.files()) < before}
            step = chosen.choice(sorted(steps))
            self.say(step)
            wait_until(lambda: steps[step]() or logged() > noted and step != "former files go", 20, step, pause=0.0002)
            self.kill_all()
            self.up()
            total = sum(range(appends + 1))
            self.assertEqual(self.tables(), {"t": "%d,%d,%d" % (appends + 1, total, 7 * total)})
            self.sql("INSERT INTO t VALUES (0, 0)")
            groups = lambda: self.nam("status", "--format=json").json()["tables"][0]["groups"]
            wait_until(lambda: groups() <= 3, 20, "few groups")
            self.assertEqual(self.tables(), {"t": "%d,%d,%d" % (appends + 2, total, 7 * total)})
            self.sql("DROP TABLE t")
        self.nam("down")


class Damage(Local):
    def test_damaged_and_missing_files(self):
        """Only their tables are refused, by name; put back, they are there again."""
        self.up()
        self.load("whole")
        before = set(self.files())
        self.load("damaged", 20000)
        damaged = sorted(set(self.files()) - before)
        before = set(self.files())
        self.load("missing", 20000)
        missing = sorted(set(self.files()) - before)
        expected = self.tables()
        self.nam("down")
        kept = {}
        for path in damaged[:1] + missing[:1]:
            with open(path, "rb") as file:
                kept[path] = file.read()
        with open(damaged[0], "r+b") as file:
            file.seek(len(kept[damaged[0]]) - 8000)
            file.write(b"damage")
        os.remove(missing[0])
        self.up()
        tables = self.tables()
        self.say(tables["damaged"])
        self.say(tables["missing"])
        self.assertEqual(tables["whole"], expected["whole"])
        self.assertIn(damaged[0], tables["damaged"])
        self.assertRegex(tables["damaged"], "checksum")
        self.assertIn("has no file of allocation", tables["missing"])
        self.assertIn(os.path.dirname(missing[0]), tables["missing"])
        logs = "".join(open(os.path.join(self.state, name)).read() for name in os.listdir(self.state)
                       if name.startswith("memserver-"))
        self.assertIn("error memserver", logs)
        self.assertRegex(logs, "table missing has memory in storage")
        self.nam("down")
        for path, content in kept.items():
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, 0o600)
        self.up()
        self.assertEqual(self.tables(), expected)
        self.sql("DROP TABLE damaged; DROP TABLE missing")
        wait_until(lambda: not set(self.files()) & set(damaged + missing), 20, "their files go")
        self.nam("down")

    def test_a_directory_is_missing(self):
        """The statement says which, and what to do."""
        cluster = Cluster(self, memory=(), compute=1)
        directory = self.scratch.file("disk")
        server = self.scratch.start("memserver", *cluster.options, "--memory=128MiB", "--data-dir=" + directory)
        self.addCleanup(server.kill)
        server.await_line("^READY memserver")
        cluster.load(0.01)
        expected = cluster.count("lineorder")
        second = self.scratch.nam("memserver", *cluster.options, "--memory=128MiB", "--data-dir=" + directory)
        self.say(second.err.strip())
        self.assertEqual(second.code, 1)
        self.assertIn("in use by another memory server", second.err)
        server.kill()
        wait_until(lambda: "is missing" in cluster.nam("sql", "-c", "SELECT count(*) FROM lineorder").err, 20,
                   "the statement says so")
        said = cluster.nam("sql", "-c", "SELECT count(*) FROM lineorder").err
        self.say(said.strip())
        self.assertIn(directory, said)
        self.assertIn("nam memserver --data-dir=", said)
        # A cluster on another store does not get it.
        other = Cluster(self, memory=(), compute=0)
        refused = self.scratch.nam("memserver", *other.options, "--memory=128MiB", "--data-dir=" + directory)
        self.say(refused.err.strip())
        self.assertEqual(refused.code, 1)
        self.assertIn("belongs to the cluster", refused.err)
        server = self.scratch.start("memserver", *cluster.options, "--memory=128MiB", "--data-dir=" + directory)
        self.addCleanup(server.kill)
        server.await_line("^READY memserver")
        wait_until(lambda: cluster.nam("sql", "--format=csv", "-c", "SELECT count(*) AS n FROM lineorder").out ==
                   "n\n%d\n" % expected, 20, "it is there again")

    def test_full_disk(self):
        """It fails the load and nothing else."""
        disk = self.small_disk("3m")
        directory = os.path.join(disk, "data")
        cluster = Cluster(self, memory=(), compute=1)
        server = self.scratch.start("memserver", *cluster.options, "--memory=256MiB", "--data-dir=" + directory)
        self.addCleanup(server.kill)
        server.await_line("^READY memserver")
        refused = cluster.nam("ssb load", "--scale-factor=0.2")
        self.say(refused.err.strip())
        self.assertEqual(refused.code, 1)
        self.assertIn(directory, refused.err)
        self.assertRegex(refused.err, r"are needed, .* are free")
        self.assertEqual([name for name in os.listdir(directory) if name.endswith(".new")], [])
        self.assertNotIn("lineorder", cluster.tables())
        self.assertIn("date", cluster.tables())
        self.assertEqual(cluster.count("date"), 2556)


class FullDisk(Local):
    def fill(self, disk):
        with open(os.path.join(disk, "filler"), "ab", buffering=0) as filler:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)

    def test_drop_relieves_it(self):
        """With every byte of the disk taken, a load fails, a DROP does not, and then there is room."""
        disk = self.small_disk("48m")
        self.up("--data-dir=" + os.path.join(disk, "data"))
        expected = {"t": self.load("t", 300000), "u": self.load("u", 10)}
        self.fill(disk)
        more = self.scratch.file("more.csv", "".join("%d,%d\n" % (i, i) for i in range(300000)))
        refused = self.sql("COPY u FROM '%s' WITH (FORMAT csv)" % more, code=1)
        self.say(refused.err.strip())
        self.assertIn("53100", refused.err)
        self.assertEqual(self.tables()["u"], expected["u"])
        self.nam("down")
        self.fill(disk)
        self.up("--data-dir=" + os.path.join(disk, "data"))
        self.assertEqual(self.tables()["u"], expected["u"], "it starts while the disk is full")
        self.sql("DROP TABLE t")
        wait_until(lambda: self.scratch.nam("sql", "--state-dir=" + self.state, "-c",
                                            "COPY u FROM '%s' WITH (FORMAT csv)" % more).code == 0,
                   30, "the table's files are gone")
        self.assertTrue(self.tables()["u"].startswith("300010,"), self.tables())
        self.nam("down")


class Backup(Local):
    """`nam backup`, `nam restore`, and the cluster that is made of it."""

    def setUp(self):
        super().setUp()
        self.backup = self.scratch.file("backup")
        self.other = self.scratch.file("other")

    def at_other(self, call):
        """What the call returns with the restored cluster in the place of the former one."""
        self.state, self.other = self.other, self.state
        try:
            return call()
        finally:
            self.state, self.other = self.other, self.state

    def restore(self, code=0):
        return self.at_other(lambda: self.nam("restore", self.backup, code=code))

    def test_backup_and_restore_beside_the_former_cluster(self):
        """All tables as they were at the backup; loads that were under way are in it, later ones are not."""
        self.up("--memory-servers=3")
        expected = {"t": self.load("t", 30000), "u": self.load("u", 10)}
        self.sql("CREATE VIEW v AS SELECT sum(b) AS total FROM t; "
                 "CREATE TABLE accounts (a serial PRIMARY KEY, b int UNIQUE) WITH (storage = record); "
                 "INSERT INTO accounts (b) SELECT g FROM generate_series(1, 5000) g")
        expected["accounts"] = self.tables()["accounts"]
        rows = 100000
        path = self.scratch.file("under_way.csv", "".join("%d,%d\n" % (i, 7 * i) for i in range(rows)))
        self.sql("CREATE TABLE loading (a int, b bigint) WITH (storage = columnar)")
        copy = self.scratch.start("sql", "--state-dir=" + self.state, "-c",
                                  "COPY loading FROM '%s' WITH (FORMAT csv)" % path)
        said = self.nam("backup", self.backup).out
        self.say(said.strip())
        self.assertIn("3 columnar tables (", said)
        self.assertIn("1 record table (5,000 rows) and 1 view", said)
        self.assertEqual(copy.wait(), 0, copy.said())
        after = self.load("later")
        self.sql("DROP VIEW v; DROP TABLE t; DELETE FROM accounts WHERE a < 100")
        restored = self.restore().out
        self.say(restored.strip())
        self.assertIn("3 memory servers", restored)
        command = re.search(r"Next: nam (up .*)", restored).group(1)
        self.assertIn("--memory=256MiB", command)
        up = self.scratch.nam(*command.split(), "--compute-servers=1", "--threads=1")
        self.assertEqual(up.code, 0, up)
        self.assertIn("Record tables that are there again, with 5000 rows: accounts.", up.out)
        tables = self.at_other(self.tables)
        whole = "%d,%d,%d" % (rows, sum(range(rows)), 7 * sum(range(rows)))
        self.assertIn(tables.pop("loading"), ("0,NULL,NULL", "0,,", whole), "all of it or nothing")
        self.assertIn("42501", tables.pop("nam.transactions"))
        self.assertEqual(tables, expected)
        self.assertEqual(self.at_other(lambda: self.sql("SELECT total FROM v").out), "total\n%d\n" % (7 * sum(range(30000))))
        self.at_other(lambda: self.load("more"))
        self.assertIn("23505", self.at_other(lambda: self.sql("INSERT INTO accounts (b) VALUES (1)", code=1)).err)
        self.assertEqual(self.tables()["later"], after, "the former one goes on")
        self.at_other(lambda: self.nam("down"))
        # What is kept by the new cluster is kept from then on, and its files are none of the former one's.
        tables = self.at_other(lambda: (self.up(), self.tables())[1])
        self.assertEqual({name: tables[name] for name in expected}, expected)
        self.at_other(lambda: self.nam("down"))
        self.nam("down")

    def test_what_a_backup_refuses(self):
        self.up()
        expected = {"t": self.load("t", 30000)}
        self.assertIn("not empty", self.nam("backup", self.state, code=1).err)
        self.assertIn("no backup", self.restore(code=1).err)
        # Killed: there is no manifest, and the catalog is quiet no longer than the lease.
        for turn in range(30):
            shutil.rmtree(self.backup, ignore_errors=True)
            killed = self.scratch.start("backup", "--state-dir=" + self.state, self.backup)
            wait_until(lambda: os.path.exists(self.backup) or not killed.running(), 20, "it has begun", pause=0.0002)
            killed.kill()
            if not os.path.exists(os.path.join(self.backup, "manifest")):
                break
        self.assertFalse(os.path.exists(os.path.join(self.backup, "manifest")))
        self.assertIn("interrupted", self.restore(code=1).err)
        wait_until(lambda: self.scratch.nam("sql", "--state-dir=" + self.state, "-c", "CREATE SCHEMA s").code == 0, 10,
                   "loads go on")
        shutil.rmtree(self.backup)
        self.nam("backup", self.backup)
        self.assertIn("a cluster runs", self.nam("restore", self.backup, code=1).err)
        # A restore that was killed: no cluster starts on what it leaves.
        data = os.path.join(self.other, "data")
        for turn in range(30):
            shutil.rmtree(self.other, ignore_errors=True)
            killed = self.scratch.start("restore", "--state-dir=" + self.other, self.backup)
            wait_until(lambda: os.path.exists(os.path.join(data, "catalog.db.new")) or not killed.running(), 20,
                       "it has begun", pause=0.0002)
            killed.kill()
            if not os.path.exists(os.path.join(data, "catalog.db")):
                break
        self.assertIn("interrupted", self.at_other(lambda: self.nam("up", code=1)).err)
        self.assertIn("interrupted", self.restore(code=1).err)
        shutil.rmtree(self.other)
        sealed = sorted(os.path.join(folder, name) for folder, _, names in os.walk(self.backup) for name in names
                        if name.endswith(".sealed"))
        with open(sealed[0], "r+b") as file:
            file.seek(-100, os.SEEK_END)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        damaged = self.restore(code=1)
        self.say(damaged.err.strip())
        self.assertIn(sealed[0], damaged.err)
        self.assertFalse(os.path.exists(os.path.join(self.other, "data")))
        self.assertEqual(self.tables(), expected)
        self.nam("down")
        self.assertIn("not empty", self.nam("restore", self.backup, code=1).err)

    def test_full_disk(self):
        """The cluster goes on, and nothing of the backup is left."""
        disk = self.small_disk("256k")
        self.up()
        expected = {"t": self.load("t", 60000)}
        self.sql("CREATE TABLE accounts (a int PRIMARY KEY, b text) WITH (storage = record)")
        expected["accounts"] = "0,NULL,NULL"
        full = self.nam("backup", os.path.join(disk, "backup"), code=1)
        self.say(full.err.strip())
        self.assertRegex(full.err, r"are needed, .* are free")
        self.assertEqual(os.listdir(disk), [])
        self.nam("backup", self.backup)
        restored = self.at_other(lambda: self.nam("restore", self.backup, "--data-dir=" + os.path.join(disk, "data"), code=1))
        self.assertRegex(restored.err, r"are needed, .* are free")
        self.assertEqual(os.listdir(disk), [])
        self.assertEqual(self.tables()["t"], expected["t"])
        self.load("u")
        self.nam("down")


cases.main()
