"""`nam sql` as a program and as a shell on a terminal."""
import json
import os
import re
import signal
import time

import cases
from cluster import LONG_QUERY, Cluster, patience, processor_seconds, wait_until
from terminal import Terminal

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
BY_REGION = "SELECT c_region, count(*) AS n, sum(c_custkey) AS keys FROM customer GROUP BY c_region ORDER BY c_region"


class Shell(cases.Case):
    def setUp(self):
        super().setUp()
        self.cluster = Cluster(self, memory=[256 << 20] * 2, compute=2)
        self.cluster.load(0.02)

    def sql(self, *arguments, code=0, stdin=""):
        result = self.cluster.nam("sql", *arguments, stdin=stdin)
        self.assertEqual(result.code, code, result)
        return result

    def test_formats(self):
        """The same rows as CSV, JSON, Markdown and a table."""
        rows = json.loads(self.sql("--format=json", "-c", BY_REGION).out)
        self.assertEqual([row["c_region"] for row in rows], REGIONS)
        self.assertEqual(sum(row["n"] for row in rows), 600)
        self.assertEqual(sum(row["keys"] for row in rows), 600 * 601 // 2)
        cells = [[row["c_region"], str(row["n"]), str(row["keys"])] for row in rows]
        csv = self.sql("--format=csv", "-c", BY_REGION).out.splitlines()
        self.assertEqual(csv, ["c_region,n,keys"] + [",".join(row) for row in cells])
        markdown = self.sql("--format=markdown", "-c", BY_REGION).out.splitlines()
        self.assertEqual(markdown[:2], ["| c_region | n | keys |", "| --- | ---: | ---: |"])
        self.assertEqual([[c.strip() for c in line.strip("|").split("|")] for line in markdown[2:]], cells)
        table = self.sql("-c", BY_REGION).out.splitlines()
        self.assertEqual([re.split(r"\s+\|\s+", line.strip()) for line in table[2:-1]], cells)
        self.assertEqual(table[-1], "(5 rows)")
        refused = self.sql("--format=xml", "-c", BY_REGION, code=2)
        self.assertIn("xml", refused.err)

    def test_command_file_and_standard_input(self):
        expected = "n\n600\nn\n40\n"
        first, second = "SELECT count(*) AS n FROM customer", "SELECT count(*) AS n FROM supplier"
        script = self.scratch.file("script.sql", "-- a remark\n%s;\n\n%s\n" % (first, second))
        self.assertEqual(self.sql("--format=csv", "-c", first, "-c", second).out, expected)
        self.assertEqual(self.sql("--format=csv", "-c", first + "; " + second).out, expected)
        self.assertEqual(self.sql("--format=csv", "-f", script).out, expected)
        self.assertEqual(self.sql("--format=csv", stdin=open(script).read()).out, expected)
        self.assertEqual(self.sql("--format=csv", "-f", "-", stdin=open(script).read()).out, expected)
        self.assertEqual(self.sql(stdin="").out, "")
        self.sql("-c", first, "-f", script, code=2)
        missing = self.sql("-f", self.scratch.file("none.sql"), code=1)
        self.assertIn("none.sql", missing.err)
        directory = self.sql("-f", os.path.dirname(script), code=1)
        self.assertIn("it is a directory", directory.err)

    def test_errors_end_a_script(self):
        """With exit code 1, unless it is told to keep going; the file and the line are named."""
        script = self.scratch.file("script.sql", "SELECT count(*) AS n FROM customer;\n\nSELECT\n  nothing\n"
                                                 "FROM customer;\nSELECT count(*) AS n FROM supplier;\n")
        stopped = self.sql("--format=csv", "-f", script, code=1)
        self.assertEqual(stopped.out, "n\n600\n")
        self.assertRegex(stopped.err, r"script\.sql:3: ERROR:  column \"nothing\" does not exist")
        kept = self.sql("--format=csv", "--keep-going", "-f", script, code=1)
        self.assertEqual(kept.out, "n\n600\nn\n40\n")
        for broken in ("SELEC 1", "SELECT 'open", "SELECT count(*) FROM nowhere", "SELECT 1/0 FROM supplier",
                       "DROP TABLE nowhere", "INSERT INTO customer VALUES (1)", "SET nam.nothing = 1",
                       "SELECT \xff\xfe FROM customer", "/* open", "\\d nowhere", "\\nothing"):
            refused = self.sql("-c", broken, code=1)
            self.assertIn("ERROR:", refused.err, broken)
            self.assertEqual(refused.out, "", broken)
        self.assertEqual(self.scratch.nam("sql", "--state-dir=" + self.scratch.file("none"), "-c", "SELECT 1").code, 3)

    def test_unknown_column(self):
        """A caret below it, and a hint."""
        refused = self.sql("-c", "SELECT sum(lo_discount),\n       sum(lo_revenu)\nFROM lineorder", code=1)
        lines = refused.err.splitlines()
        self.assertEqual(lines[0], 'ERROR:  column "lo_revenu" does not exist (SQLSTATE 42703)')
        self.assertEqual(lines[1], "LINE 2:        sum(lo_revenu)")
        self.assertEqual(lines[2].index("^"), lines[1].index("lo_revenu"))
        self.assertEqual(lines[3], 'HINT:  did you mean "lo_revenue"?')

    def test_describe(self):
        tables = self.sql("--format=json", "-c", "\\dt").out
        self.assertEqual({row["table"]: row["rows"] for row in json.loads(tables)}, self.cluster.tables())
        columns = json.loads(self.sql("--format=json", "-c", "\\d lineorder").out)
        self.assertEqual([row["column"] for row in columns][:3], ["lo_orderkey", "lo_linenumber", "lo_custkey"])
        self.assertEqual(len(columns), 17)
        keys = {row["column"] for row in columns if "partition key" in row["role"]}
        self.assertEqual(keys, {"lo_custkey", "lo_partkey", "lo_suppkey"})
        servers = json.loads(self.sql("--format=json", "-c", "\\servers").out)
        self.assertEqual(sorted(row["role"] for row in servers)[:4], ["client", "compute", "compute", "memory"])

    def test_explain_analyze(self):
        """Pipelines, rows, and the bytes from each memory server, for each compute server."""
        query = ("SELECT d_year, sum(lo_revenue) FROM lineorder, date, supplier WHERE lo_orderdate = d_datekey "
                 "AND lo_suppkey = s_suppkey GROUP BY d_year")
        plan = [row["QUERY PLAN"] for row in self.cluster.query("EXPLAIN ANALYZE " + query)]
        self.say("\n    ".join(plan))
        self.assertLessEqual(max(len(line) for line in plan), 100)
        text = re.sub(r"\n {10,}", " ", "\n".join(plan))  # lines that go on are joined
        servers = text[:text.index("\nSession")]
        self.assertEqual(len(re.findall(r"^  P\d scan ", servers, re.M)), 3)
        for server in self.cluster.compute:
            rows = re.findall(r"compute server %d: rows ([\d,]+) -> ([\d,]+), [\d.]+ ms of which [\d.]+ ms waiting, "
                              r"blocks [\d,]+ \([\d,]+ skipped\), (.*)" % server.id, text)
            self.assertEqual(len(rows), 3, "one line a pipeline")
            for memory in self.cluster.memory:
                self.assertRegex(rows[2][2], r"[\d.]+ (B|KiB|MiB) from memory server %d" % memory.id)
        stream = text[text.index("  P2 "):text.index("  Assignment")]
        read = [int(n.replace(",", "")) for n in re.findall(r"compute server \d+: rows ([\d,]+)", stream)]
        self.assertEqual(sum(read), self.cluster.tables()["lineorder"])
        self.assertRegex(stream, r"\(actual [\d,]+\)")
        self.assertRegex(text, r"Result: 7 rows in [\d.]+ ms")
        without = "\n".join(row["QUERY PLAN"] for row in self.cluster.query("EXPLAIN " + query))
        self.assertNotIn("Result:", without)
        self.assertIn("  P2 scan lineorder", without)
        document = self.cluster.query("EXPLAIN (ANALYZE, FORMAT JSON) " + query)
        self.assertEqual(len(document), 1)
        self.assertEqual(json.loads(document[0]["QUERY PLAN"])[0]["result"]["rows"], 7)

    def test_settings_change_no_answer(self):
        """In place or by READ, one block in flight or 64, checked or not."""
        answers = set()
        for settings in ("nam.in_place = on", "nam.in_place = off", "nam.prefetch_window = 1",
                         "nam.prefetch_window = 64", "nam.verify_checksums = off", "nam.compute_servers = 1"):
            answers.add(self.sql("--format=csv", "-c", "SET %s; %s" % (settings, BY_REGION)).out)
        self.assertEqual(len(answers), 1)
        refused = self.sql("-c", "SET nam.prefetch_window = 65", code=1)
        self.assertIn("(1 .. 64)", refused.err)

    def test_result_too_large(self):
        """What is kept is refused, with a hint, and the session goes on; rows that are printed as they come are not."""
        result = self.sql("--keep-going", "--format=table", "-c", "SET nam.result_mib_max = 1; SELECT * FROM lineorder; "
                          "SELECT count(*) AS n FROM supplier", code=1)
        self.say(result.err.strip())
        self.assertIn("result_mib_max", result.err)
        self.assertIn("40", result.out.split())
        rows = int(self.sql("--format=csv", "-c", "SELECT count(*) AS n FROM lineorder").out.split()[1])
        result = self.sql("--format=csv", "-c", "SET nam.result_mib_max = 1; SELECT lo_orderkey FROM lineorder")
        self.assertEqual(len(result.out.splitlines()), rows + 1)
        result = self.sql("--format=csv", "-c", "SET nam.result_mib_max = 1; "
                          "SELECT lo_orderkey, lo_linenumber FROM lineorder ORDER BY lo_orderkey, lo_linenumber")
        keys = [tuple(map(int, line.split(","))) for line in result.out.splitlines()[1:]]
        self.assertEqual(len(keys), rows)
        self.assertEqual(keys, sorted(keys))

    # --- Ctrl-C and the terminal ------------------------------------------------------------

    def await_busy(self, before):
        wait_until(lambda: all(processor_seconds(server.pid) > at + 0.2
                               for server, at in zip(self.cluster.compute, before)), 30, "every compute server works")

    def await_idle(self):
        def all_idle():
            before = [processor_seconds(server.pid) for server in self.cluster.compute]
            time.sleep(0.2)  # the measure is one of time
            return all(processor_seconds(server.pid) - at < 0.03 for server, at in zip(self.cluster.compute, before))
        wait_until(all_idle, 10, "the compute servers are idle")

    def used(self):
        return [processor_seconds(server.pid) for server in self.cluster.compute]

    def test_interrupted_script(self):
        """Exit code 130, and the compute servers stop working."""
        self.cluster.load(0.05)
        before = self.used()
        shell = self.cluster.start("sql", "--keep-going", "-c", LONG_QUERY + "; SELECT count(*) FROM date")
        self.await_busy(before)
        start = time.monotonic()
        shell.signal(signal.SIGINT)
        self.assertEqual(shell.wait(), 130, shell.err())
        self.within(10, start)
        self.assertEqual(shell.out(), "")
        self.await_idle()

    def test_interrupted_again_and_again(self):
        """What a cancelled query had asked for over the network reaches no later one."""
        cluster = self.cluster = Cluster(self, fabric="tcp", memory=[256 << 20] * 2, compute=2)
        cluster.load(0.05)
        before = cluster.answers("--repeat=1")
        for _ in range(8):
            used = self.used()
            shell = cluster.start("sql", "-c", LONG_QUERY)
            self.await_busy(used)
            shell.signal(signal.SIGINT)
            self.assertEqual(shell.wait(), 130, shell.err())
            self.assertEqual(cluster.answers("--repeat=1"), before)
        for server in cluster.compute:
            self.assertTrue(server.process.running(), server.process.err())

    def test_terminal(self):
        """Ctrl-C ends the query that runs, not the session."""
        self.cluster.load(0.05)
        terminal = Terminal(self, self.cluster)
        terminal.expect("nam=> ")
        terminal.command("SELECT count(*) FROM date;", r"2556\n\(1 row\)")
        terminal.send("SELECT count(*)\n")
        terminal.expect("nam-> ")
        terminal.command("FROM supplier;", r"\n\s+100\n\(1 row\)")
        for _ in range(3):
            before = self.used()
            terminal.send(LONG_QUERY + ";\n")
            self.await_busy(before)
            start = time.monotonic()
            terminal.send("\x03")
            terminal.expect("ERROR:  .*cancel")
            terminal.expect("nam=> ")
            self.within(10, start)
            self.await_idle()
            terminal.command("SELECT count(*) FROM date;", r"2556\n\(1 row\)")
        terminal.send("SELECT half a statement")
        terminal.send("\x03")
        terminal.expect("nam=> ")
        terminal.command("SELECT nothing FROM date;", "ERROR:  column")
        terminal.command("\\dt", r"lineorder \|")
        terminal.command("\\timing", "Timing is on")
        terminal.command("SELECT count(*) FROM date;", r"Time: [\d.]+ ms")
        terminal.send("\\q\n")
        self.assertEqual(terminal.end(), 0)
        self.assertIn("count(*)", open(self.scratch.file(".nam_history")).read())

    def query_threads(self):
        """Threads that run fragments, on all compute servers."""
        found = 0
        for server in self.cluster.compute:
            for task in os.listdir("/proc/%d/task" % server.pid):
                try:
                    with open("/proc/%d/task/%s/comm" % (server.pid, task)) as comm:
                        found += comm.read().startswith("nam-query")
                except OSError:
                    pass
        return found

    def cancel_often(self, fabric):
        """A query is over everywhere soon after Ctrl-C, and the session goes on."""
        cluster = self.cluster = Cluster(self, fabric=fabric, memory=[256 << 20] * 2, compute=2, threads=2)
        cluster.load(0.05)
        terminal = Terminal(self, cluster)
        terminal.expect("nam=> ")
        prompt_ms, over_ms = [], []
        for _ in range(10):
            before = self.used()
            terminal.send(LONG_QUERY + ";\n")
            self.await_busy(before)
            wait_until(lambda: self.query_threads() == 4, 10, "both threads of both servers work")
            start = time.monotonic()
            terminal.send("\x03")
            terminal.expect("ERROR:  canceling statement")
            terminal.expect("nam=> ")
            prompt_ms.append((time.monotonic() - start) * 1000)
            wait_until(lambda: self.query_threads() == 0, 10, "no fragment runs", pause=0.001)
            over_ms.append((time.monotonic() - start) * 1000)
            terminal.command("SELECT count(*) FROM date;", r"2556\n\(1 row\)")
        for what, times in (("prompt", prompt_ms), ("no fragment", over_ms)):
            self.say("%s after %.0f ms (median), %.0f ms (most)" % (what, sorted(times)[5], max(times)))
        # What is meant is 200 ms. A host that is slow, or does other things as well, may take longer; to its end the query
        # takes 20 s of a fast one.
        self.assertLess(sorted(over_ms)[5], 2000 * patience())
        self.assertLess(max(over_ms), 5000 * patience())
        terminal.send("\\q\n")
        self.assertEqual(terminal.end(), 0)

    def test_cancel_over_shm(self):
        self.cancel_often("shm")

    def test_cancel_over_tcp(self):
        self.cancel_often("tcp")

    def test_progress(self):
        """A long query shows how far it is, on a terminal alone, and wipes that."""
        self.cluster.load(0.05)
        terminal = Terminal(self, self.cluster)
        terminal.expect("nam=> ")
        terminal.send(LONG_QUERY + ";\n")
        rows = self.cluster.tables()["lineorder"]
        shown = []
        for _ in range(5):
            match = terminal.expect(r"\rlineorder: ([\d,]+) of ([\d,]+) rows \((\d+) %\)(, [\d:]+ left)?\x1b\[K")
            shown.append(int(match.group(1).replace(",", "")))
            self.assertEqual(int(match.group(2).replace(",", "")), rows)
            self.assertEqual(int(match.group(3)), shown[-1] * 100 // rows)
        self.assertEqual(shown, sorted(shown))
        self.say("%s of %d rows" % (shown, rows))
        terminal.send("\x03")
        terminal.expect(r"\r\x1b\[KERROR:  canceling statement")
        terminal.expect("nam=> ")
        terminal.send("SELECT count(*) FROM date;\n")
        terminal.expect(r"2556\n\(1 row\)")
        self.assertNotIn("rows (", terminal.seen[terminal.seen.rindex("SELECT count"):])
        before = self.used()
        script = self.cluster.start("sql", "-c", LONG_QUERY)
        self.await_busy(before)
        script.signal(signal.SIGINT)
        self.assertEqual(script.wait(), 130, script.err())
        self.assertNotIn("rows (", script.err() + script.out())

    def test_terminal_ends_with_its_input(self):
        terminal = Terminal(self, self.cluster)
        terminal.expect("nam=> ")
        terminal.send("\x04")
        self.assertEqual(terminal.end(), 0)

    def test_interrupted_while_the_terminal_takes_nothing(self):
        """An interrupted write ends neither the session nor what it says later, and is no error at its end."""
        terminal = Terminal(self, self.cluster)
        terminal.expect("nam=> ")
        terminal.send("SELECT l")
        terminal.fill("\t")  # each lists what may follow
        terminal.interrupt()  # this write has moved bytes and goes on with the rest
        terminal.await_full()
        terminal.interrupt()  # this one has moved none, and fails
        terminal.expect(r"\^C\nnam=> ")
        terminal.send("\x15")  # Ctrl-U: none of the tabs that are left stays in the line
        terminal.command("SELECT nothing FROM date;", "ERROR:  column")
        terminal.command("SELECT count(*) FROM date;", r"2556\n\(1 row\)")
        terminal.send("\\q\n")
        self.assertEqual(terminal.end(), 0)

    def test_terminal_completes(self):
        """Tab, for tables and columns."""
        terminal = Terminal(self, self.cluster)
        terminal.expect("nam=> ")
        terminal.send("SELECT sum(lo_rev\t")
        terminal.expect("lo_revenue")
        terminal.send("\b) FROM lineo\t")
        terminal.expect("lineorder")
        terminal.command(";", r"\(1 row\)")
        terminal.send("\\q\n")
        self.assertEqual(terminal.end(), 0)


cases.main()
