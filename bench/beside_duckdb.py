#!/usr/bin/env python3
"""One statement on SSB's lineorder by nam and by DuckDB in turn: how much faster, and how large is the client?

usage: beside_duckdb.py [--nam=BINARY] [--rounds=5] [--scale-factor=1] [--memory=SIZE] [--threads=2] [--sql=STATEMENT]

Without --sql, six million groups of which five are wanted. nam has a local cluster of its own, DuckDB a process with
the same rows in memory and as many threads. A time is from the statement's text to its last row, by each side's own
clock; nam's client is a process for each round, and its peak memory is what the kernel says. Their
last columns must have the same values: a LIMIT may cut between rows that tie. Prints the medians and nam's time over DuckDB's: below 1, nam is faster.
"""
import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from old_and_new import Contender

GROUPS = "select lo_orderkey, lo_linenumber, sum(lo_revenue) from lineorder group by 1, 2 order by 3 desc limit 5"
TEXTS = {"lo_orderpriority", "lo_shippriority", "lo_shipmode"}
COLUMNS = ("lo_orderkey lo_linenumber lo_custkey lo_partkey lo_suppkey lo_orderdate lo_orderpriority lo_shippriority "
           "lo_quantity lo_extendedprice lo_ordtotalprice lo_discount lo_revenue lo_supplycost lo_tax lo_commitdate "
           "lo_shipmode").split()


class DuckDb:
    """bench/duckdb_peer: a line of JSON is a request, a line its answer."""

    def __init__(self, threads):
        peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "duckdb_peer", "peer.mjs")
        self.process = subprocess.Popen(["node", peer], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.version = self.ask(op="open", threads=threads)["version"]

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"ok": false, "error": "it has ended"}')
        if not answer["ok"]:
            raise RuntimeError("DuckDB: " + answer["error"])
        return answer

    def load(self, directory, rows):
        columns = [{"name": name, "type": "VARCHAR" if name in TEXTS else "INTEGER"} for name in COLUMNS]
        self.ask(op="load", directory=directory, tables=[
            {"name": "lineorder", "file": "lineorder.tbl", "rows": rows, "columns": columns, "order_by": ""}])

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def nam_round(nam, sql):
    """Rows as text, milliseconds, and the client's peak memory in MiB."""
    with tempfile.TemporaryFile("w+", newline="") as out, tempfile.TemporaryFile("w+") as err:
        client = subprocess.Popen(nam.command("sql", "--timing", "--format=csv", "-c", sql),
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        rows, messages = list(csv.reader(out))[1:], err.read()
    time = re.search(r"^Time: ([0-9.]+) ms", messages, re.MULTILINE)
    if client.returncode or not time:
        raise RuntimeError("nam sql: exit code %d: %s" % (client.returncode, messages[-2000:]))
    return rows, float(time[1]), usage.ru_maxrss / 1024


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--nam", default=os.path.join(root, "bazel-bin/cli/nam"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale-factor", default="1")
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--sql", default=GROUPS)
    options = parser.parse_args()
    options.fabric = "shm"
    nam, duckdb = Contender(options.nam, options), DuckDb(options.threads)
    try:
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([nam.binary, "ssb", "generate", "--scale-factor=" + options.scale_factor,
                            "--tables=lineorder", "--out=" + directory], check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(directory, "lineorder.tbl"), "rb") as file:
                duckdb.load(directory, sum(1 for _ in file))
        nam.up()
        nam.load("ssb")
        ours, theirs, peaks = [], [], []
        for number in range(options.rounds + 1):  # the first warms both up
            rows, time, peak = nam_round(nam, options.sql)
            answer = duckdb.ask(op="query", sql=options.sql)
            if sorted(row[-1] for row in rows) != sorted(row[-1] or "" for row in answer["rows"]):
                sys.exit("beside_duckdb.py: the answers differ:\n%s\n%s" % (rows[:10], answer["rows"][:10]))
            if number:
                ours, theirs, peaks = ours + [time], theirs + [answer["elapsed_ms"]], peaks + [peak]
    finally:
        nam.end()
        duckdb.end()
    print("nam %.1f ms (%.1f to %.1f), DuckDB %s %.1f ms (%.1f to %.1f), nam/DuckDB %.3f, client at most %.0f MiB, "
          "%d rounds" % (statistics.median(ours), min(ours), max(ours), duckdb.version, statistics.median(theirs),
                         min(theirs), max(theirs), statistics.median(ours) / statistics.median(theirs), max(peaks),
                         options.rounds))


if __name__ == "__main__":
    main()
