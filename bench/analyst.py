#!/usr/bin/env python3
"""An analyst's queries on a table of events, by nam and by DuckDB in turn.

usage: analyst.py [--peer=duckdb] [--nam=BINARY] [--rounds=10] [--rows=3000000] [--memory=SIZE] [--threads=2]
                  [--only=NAME]

Both have the rows of analyst.sql in memory and stay open: nam a local cluster and one shell, DuckDB a process with as
many threads. Times are from a statement's text to its last row, by each side's own clock; processor time is that of all
its processes (nam: catalog, servers, supervisor and shell). A round is each query by both, who begins takes turns; the
first round warms both up. Prints medians, and DuckDB's over nam's: more than 1 means that nam is faster. Answers must
agree in their last column. Without --peer nam runs alone. Exit code 1 if a query is below 0.8 of DuckDB in time.
"""
import argparse
import csv
import os
import re
import statistics
import subprocess
import sys
import time

from beside_duckdb import DuckDb
from old_and_new import Contender, geometric_mean

WORTH = 0.8


def statements(root, rows):
    """The table's statement, and names and texts of the queries."""
    with open(os.path.join(root, "bench/analyst.sql"), encoding="utf-8") as file:
        parts = re.findall(r"^-- ([^\n.:]+)\n(.*?);\n", file.read(), re.DOTALL | re.MULTILINE)
    table, queries = parts[0][1].replace("%s", str(rows)), parts[1:]
    return table, queries


def processor_s(pids):
    """The processor time that living processes have used."""
    used = 0.0
    for pid in pids:
        try:
            used += time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of a process: clock_getcpuclockid(3)
        except OSError:
            pass  # it has ended
    return used


class Shell:
    """One open session of a cluster."""

    def __init__(self, nam):
        self.nam = nam
        self.process = subprocess.Popen(nam.command("sql", "--timing", "--format=csv"), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def pids(self):
        """Of the shell and of all processes that name the cluster's directory, and theirs."""
        mine = {self.process.pid}
        parents = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open("/proc/%s/cmdline" % entry, encoding="utf-8", errors="replace") as file:
                    command = file.read()
                with open("/proc/%s/stat" % entry, encoding="utf-8", errors="replace") as file:
                    parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if self.nam.directory in command and "analyst.py" not in command:
                mine.add(int(entry))
        while True:
            more = {pid for pid, parent in parents.items() if parent in mine} - mine
            if not more:
                return mine
            mine |= more

    def run(self, sql):
        """Rows as text, without their header, and milliseconds."""
        self.process.stdin.write(sql + ";\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            timed = re.match(r"Time: ([0-9.]+) ms", line)
            if timed:
                return list(csv.reader(lines))[1:], float(timed[1])
            lines.append(line)
            if re.match(r"(ERROR|error)", line):
                raise RuntimeError(sql + ": " + line)
        raise RuntimeError("nam sql has ended: " + "".join(lines)[-2000:])

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def measured(pids, call):
    """What the call returns, and the processor time in ms that it cost."""
    before = processor_s(pids)
    result = call()
    return result, (processor_s(pids) - before) * 1e3


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--peer", choices=["duckdb"])
    parser.add_argument("--nam", default=os.path.join(root, "bazel-bin/cli/nam"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only")
    options = parser.parse_args()
    options.fabric = "shm"
    table, queries = statements(root, options.rows)
    if options.only:
        queries = [query for query in queries if query[0] == options.only]
    nam = Contender(options.nam, options)
    duckdb = DuckDb(options.threads) if options.peer else None
    times = {name: ([], [], [], []) for name, _ in queries}  # nam's ms and processor ms, DuckDB's
    try:
        nam.up()
        shell = Shell(nam)
        shell.run("set nam.default_storage = columnar")
        shell.run(table)
        if duckdb:
            duckdb.ask(op="query", sql=table)
        pids = shell.pids()
        for number in range(options.rounds + 1):
            for name, sql in queries:
                one(name, sql, number, (shell, pids), duckdb, times)
            print("round %d of %d" % (number, options.rounds), file=sys.stderr)
        shell.end()
    finally:
        nam.end()
        if duckdb:
            duckdb.end()
    return report(times, options.rounds, duckdb)


def one(name, sql, number, ours, duckdb, times):
    """A query by both; whose turn it is first changes from round to round."""
    shell, pids = ours
    answers = {}

    def by_nam():
        (rows, ms), used_ms = measured(pids, lambda: shell.run(sql))
        answers["nam"] = sorted(row[-1] for row in rows)
        return ms, used_ms

    def by_duckdb():
        answer, used_ms = measured({duckdb.process.pid}, lambda: duckdb.ask(op="query", sql=sql))
        answers["DuckDB"] = sorted(row[-1] or "" for row in answer["rows"])
        return answer["elapsed_ms"], used_ms

    sides = [(by_nam, 0), (by_duckdb, 2)] if duckdb else [(by_nam, 0)]
    for side, place in sides if number % 2 == 0 else sides[::-1]:
        ms, used_ms = side()
        if number:
            times[name][place].append(ms)
            times[name][place + 1].append(used_ms)
    if duckdb and answers["nam"] != answers["DuckDB"]:
        sys.exit("analyst.py: %s: the answers differ:\n%s\n%s" % (name, answers["nam"][:10], answers["DuckDB"][:10]))


def report(times, rounds, duckdb):
    slow, ratios = False, []
    for name, sides in times.items():
        of = [statistics.median(side) if side else 0 for side in sides]
        line = "%-20s nam %9.1f ms, processors %9.1f ms" % (name, of[0], of[1])
        if duckdb:
            ratios.append((of[2] / of[0], of[3] / of[1]))
            slow |= ratios[-1][0] < WORTH
            line += "; DuckDB %9.1f ms, processors %9.1f ms; DuckDB/nam %.2f, of processors %.2f" % (
                of[2], of[3], *ratios[-1])
        print(line)
    if duckdb:
        print("DuckDB %s / nam, geometric means: %.2f in time, %.2f of processors (%d rounds, %s)" % (
            duckdb.version, geometric_mean([a for a, _ in ratios]), geometric_mean([b for _, b in ratios]), rounds,
            os.uname().nodename))
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
