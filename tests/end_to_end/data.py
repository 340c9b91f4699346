"""Bad input and too little memory: refused, and nothing of it stays."""
import os

import cases
from cluster import MIB, Cluster, wait_until


class Data(cases.Case):
    def files(self, scale_factor=0.01):
        folder = self.scratch.file("tbl")
        made = self.scratch.nam("ssb", "generate", "--out=" + folder, "--scale-factor=%g" % scale_factor, "--replace")
        self.assertEqual(made.code, 0, made)
        return folder

    def await_used(self, cluster):
        """Until the memory servers hold what the tables need and no more."""
        held = cluster.table_bytes()
        wait_until(lambda: all(used <= 1.5 * held.get(server, 0) + MIB
                               for server, used in cluster.used_bytes().items()),
                   4 * cluster.lease + 2, "nothing else is allocated")

    def refused_load(self, cluster, folder, *pieces):
        """Only the table whose file is bad is not loaded."""
        refused = cluster.nam("ssb load", "--from=" + folder)
        self.say(refused.err.strip().splitlines()[-1])
        self.assertEqual(refused.code, 1, refused)
        for piece in pieces:
            self.assertIn(piece, refused.err)

    def test_truncated_file(self):
        """Cut off in the middle of a line: file, line and column are named."""
        folder = self.files()
        cluster = Cluster(self, memory=[256 * MIB] * 2, compute=1)
        path = os.path.join(folder, "lineorder.tbl")
        with open(path, "rb") as source:
            text = source.read()
        lines = text.split(b"\n")
        for at, column in ((5, 9), (30_000, 12), (len(lines) - 2, 16)):
            cut = b"\n".join(lines[:at] + [b"|".join(lines[at].split(b"|")[:column])])
            with open(path, "wb") as out:
                out.write(cut)
            cluster.done("sql", "-c", "DROP TABLE IF EXISTS customer; DROP TABLE IF EXISTS supplier; "
                                      "DROP TABLE IF EXISTS part; DROP TABLE IF EXISTS date")
            self.refused_load(cluster, folder, "lineorder.tbl:%d:" % (at + 1), "column ")
            self.assertEqual(cluster.tables(), {"customer": 300, "supplier": 20, "part": 2000, "date": 2556})
            self.await_used(cluster)
        with open(path, "wb") as out:
            out.write(text)
        cluster.done("ssb load", "--from=" + folder, "--replace")
        cluster.done("ssb run", "--check", "--repeat=1", "--from=" + folder)

    def test_bad_values(self):
        """Of every kind, in a dimension; the table that was there stays as it was."""
        folder = self.files()
        cluster = Cluster(self, memory=[256 * MIB], compute=1)
        cluster.done("ssb load", "--from=" + folder)
        before, tables = cluster.answers("--repeat=1"), cluster.tables()
        path = os.path.join(folder, "customer.tbl")
        with open(path) as source:
            lines = source.read().splitlines()
        for number, change, piece in (
                (1, lambda f: ["x"] + f[1:], "column 1"),
                (17, lambda f: ["99999999999999999999"] + f[1:], "column 1"),
                (17, lambda f: f[:1] + ["n" * 200] + f[2:], "column 2"),
                (17, lambda f: f[:2] + ["\xff"] + f[3:], "column 3"),
                (300, lambda f: f + ["one", "more"], "customer.tbl:300"),
                (300, lambda f: f[:4], "column 5"),
                (100, lambda f: [], "customer.tbl:100")):
            changed = list(lines)
            changed[number - 1] = "|".join(change(lines[number - 1].rstrip("|").split("|"))) + "|"
            with open(path, "wb") as out:
                out.write("\n".join(changed).encode("latin-1") + b"\n")
            refused = cluster.nam("ssb load", "--from=" + folder, "--replace")
            self.say(refused.err.strip().splitlines()[-1][:150])
            self.assertEqual(refused.code, 1, refused)
            self.assertIn("customer.tbl:%d: " % number, refused.err)
            self.assertIn(piece, refused.err)
            self.assertEqual(cluster.tables(), tables)
        self.assertEqual(cluster.answers("--repeat=1"), before)

    def test_missing_and_empty_files(self):
        cluster = Cluster(self, memory=[256 * MIB], compute=1)
        self.refused_load(cluster, self.scratch.file("nowhere"), "nowhere")
        folder = self.files()
        os.remove(os.path.join(folder, "part.tbl"))
        self.refused_load(cluster, folder, "part.tbl")
        with open(os.path.join(folder, "part.tbl"), "w"):
            pass
        cluster.done("sql", "-c", "DROP TABLE IF EXISTS customer; DROP TABLE IF EXISTS supplier")
        self.refused_load(cluster, folder, "part.tbl")
        self.assertNotIn("part", cluster.tables())
        self.await_used(cluster)

    def memory_too_small(self, fabric):
        """The load is refused before or after its first rows; nothing of it is left, the others are fine."""
        cluster = Cluster(self, fabric=fabric, memory=[12 * MIB] * 2, compute=1)
        cluster.load(0.01)
        before, tables = cluster.answers("--repeat=1"), cluster.tables()
        self.await_used(cluster)
        used = sum(cluster.used_bytes().values())
        for scale_factor in (0.2, 0.5, 3):
            refused = cluster.nam("ssb load", "--replace", "--scale-factor=%g" % scale_factor)
            self.say(refused.err.strip().splitlines()[-1])
            self.assertEqual(refused.code, 1, refused)
            self.assertIn("MiB", refused.err)
            self.assertRegex(refused.err, "memory server")
            left = cluster.tables()
            self.assertEqual(left["lineorder"], tables["lineorder"])
            # Tables are replaced one by one: those before it are new, it and those behind it as they were.
            self.await_used(cluster)
            cluster.load(0.01)
            self.assertEqual(cluster.tables(), tables)
            # Not by server: which of them has most free, and gets the small tables, differs.
            wait_until(lambda: abs(sum(cluster.used_bytes().values()) - used) <= 64 << 10, 4 * cluster.lease + 2,
                       "memory is given back: %d bytes are in use" % used)
            self.assertEqual(cluster.answers("--repeat=1"), before)

    def test_memory_too_small_shm(self):
        self.memory_too_small("shm")

    def test_memory_too_small_tcp(self):
        self.memory_too_small("tcp")

    def test_page_with_plots(self):
        """`nam ssb run --html`: whole, of one file, or refused before anything runs."""
        cluster = Cluster(self, memory=[64 * MIB] * 2, compute=2)
        cluster.load(0.02)
        folder = self.scratch.file("pages")
        os.mkdir(folder)
        path = os.path.join(folder, "page.html")
        report = cluster.done("ssb run", "--repeat=2", "--format=json", "--html=" + path).json()
        with open(path) as page:
            text = page.read()
        self.assertEqual(os.listdir(folder), ["page.html"])
        self.assertTrue(text.startswith("<!DOCTYPE html>") and text.endswith("</html>\n"))
        self.assertEqual(text.count("<svg "), 4)
        for foreign in ("<script", "src=", "href=", "@import"):
            self.assertNotIn(foreign, text)
        lineorder = cluster.tables()["lineorder"]
        for row in report["rows"]:
            self.assertGreater(row["rows_streamed"], 0)
            self.assertGreater(row["bytes_moved"], 0)
            self.assertGreater(row["working_ms"], 0)
            self.assertGreaterEqual(row["waiting_ms"], 0)
            self.assertIn("<td>%s</td>" % row["query"], text)
            self.assertIn("<td>%d</td>" % row["rows_streamed"], text)
        self.assertGreater(sum(row["rows_streamed"] for row in report["rows"]), lineorder)
        started = len(cluster.scratch.processes())
        for bad in (os.path.join(folder, "none", "page.html"), folder, "/dev/null"):
            refused = cluster.nam("ssb run", "--html=" + bad)
            self.assertEqual((refused.code, refused.out), (2, ""), refused)
            self.assertIn("cannot write " + bad, refused.err)
        self.assertEqual(len(cluster.scratch.processes()), started)
        self.assertEqual(os.listdir(folder), ["page.html"])

    def test_drop_gives_memory_back(self):
        cluster = Cluster(self, memory=[64 * MIB] * 2, compute=1)
        cluster.load(0.02)
        cluster.done("sql", "-c", "DROP TABLE lineorder; DROP TABLE customer; DROP TABLE supplier; DROP TABLE part; "
                                  "DROP TABLE date")
        self.assertEqual(cluster.tables(), {})
        wait_until(lambda: set(cluster.used_bytes().values()) == {0}, 4 * cluster.lease + 2, "all memory is given back")


cases.main()
