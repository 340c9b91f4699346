#!/usr/bin/env python3
"""SSB's 13 queries by nam, DuckDB, PostgreSQL 15 and SQLite in turn: milliseconds, and how many times as fast nam is.

usage: peers.py [--nam=BINARY] [--peers=duckdb,postgresql,sqlite] [--rounds=5] [--scale-factor=1] [--fabric=shm]
                [--memory=SIZE] [--threads=2] [--format=text|json]

All have the same rows in memory, as many threads (SQLite has one), and no other work. nam has a local cluster of its
own. DuckDB and SQLite are in this process or a child of it, PostgreSQL is a private server, on a Unix socket, whose
tables fit its buffers, and whose queries have parallel workers. PostgreSQL and SQLite have primary keys of the
dimensions and statistics. A round is every query once by each, of nam as the median of three; a time is from the
statement's text to its last row, by each side's own clock. A query's time is its median over the rounds, after one to
warm up. Answers must have the same rows. Exit code 1 if one differs.
"""
import argparse
import csv
import io
import json
import math
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

from beside_duckdb import DuckDb
from old_and_new import Contender, ssb_queries

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "oracle"))
import postgres  # noqa: E402: of another folder

KEYS = {"date": "d_datekey", "customer": "c_custkey", "supplier": "s_suppkey", "part": "p_partkey", "lineorder": None}


class Nam(Contender):
    def rows(self, sql):
        out = self.run("sql", "--format=csv", "-c", sql)
        return [tuple(row) for row in csv.reader(io.StringIO(out))][1:]

    def columns(self, table):
        """Names and types of a table's columns."""
        described = json.loads(self.run("sql", "--format=json", "-c", "\\d " + table))
        return [(row["column"], row["type"]) for row in described]

    def round(self, queries):
        return self.ssb()


class Peer:
    def round(self, queries):
        """Milliseconds by query."""
        times = {}
        for name, sql in queries:
            start = time.perf_counter()
            self.fetch(sql)
            times[name] = (time.perf_counter() - start) * 1e3
        return times


class InDuckDb(Peer):
    def __init__(self, directory, tables, threads):
        self.peer = DuckDb(threads)
        self.name = "DuckDB " + self.peer.version
        self.peer.ask(op="load", directory=directory, tables=[
            {"name": table, "file": table + ".tbl", "rows": rows, "order_by": "",
             "columns": [{"name": column, "type": "VARCHAR" if "char" in kind else "INTEGER"}
                         for column, kind in columns]}
            for table, (columns, rows) in tables.items()])

    def round(self, queries):
        return {name: self.peer.ask(op="query", sql=sql)["elapsed_ms"] for name, sql in queries}

    def fetch(self, sql):
        return [tuple(row) for row in self.peer.ask(op="query", sql=sql)["rows"]]

    def end(self):
        self.peer.end()


class InPostgreSql(Peer):
    name = "PostgreSQL 15"

    def __init__(self, directory, tables, threads):
        self.server = postgres.PostgreSql(shared_buffers="3GB", work_mem="256MB",
                                          max_parallel_workers_per_gather=str(threads - 1))
        for table, (columns, rows) in tables.items():
            key = ", primary key (%s)" % KEYS[table] if KEYS[table] else ""
            self.server.must("create unlogged table %s (%s%s)" % (
                table, ", ".join("%s %s" % column for column in columns), key))
            # The separator that closes every line would be one column more.
            path = os.path.join(directory, table + ".tbl")
            self.server.must("copy %s from program 'sed ''s/|$//'' %s' (delimiter '|')" % (table, path))
            if self.fetch("select count(*) from " + table) != [(str(rows),)]:
                raise RuntimeError("PostgreSQL has other rows of " + table)
        self.server.must("vacuum analyze")

    def fetch(self, sql):
        return [tuple(row) for row in self.server.must(sql).rows]

    def end(self):
        self.server.stop()


class InSqlite(Peer):
    name = "SQLite " + sqlite3.sqlite_version

    def __init__(self, directory, tables, _):
        self.connection = sqlite3.connect(":memory:")
        for table, (columns, rows) in tables.items():
            names = ["%s %s%s" % (column, kind, " primary key" if column == KEYS[table] else "")
                     for column, kind in columns]
            self.connection.execute("create table %s (%s)" % (table, ", ".join(names)))
            marks = ", ".join("?" * len(columns))
            with open(os.path.join(directory, table + ".tbl"), encoding="utf-8") as file:
                self.connection.executemany("insert into %s values (%s)" % (table, marks),
                                            (line.rstrip("|\n").split("|") for line in file))
            if self.fetch("select count(*) from " + table) != [(str(rows),)]:
                raise RuntimeError("SQLite has other rows of " + table)
        self.connection.execute("analyze")

    def fetch(self, sql):
        return [tuple(map(str, row)) for row in self.connection.execute(sql).fetchall()]

    def end(self):
        self.connection.close()


PEERS = {"duckdb": InDuckDb, "postgresql": InPostgreSql, "sqlite": InSqlite}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def report(times, queries, scale_factor, as_json):
    """`times`: by contender, nam first, milliseconds by query."""
    geomeans = {name: geometric_mean(by_query.values()) for name, by_query in times.items()}
    ours = next(iter(geomeans))
    if as_json:
        print(json.dumps({"command": "bench peers", "config": {"scale_factor": float(scale_factor)},
                          "rows": [{"query": query, **{name: round(by_query[query], 3)
                                                       for name, by_query in times.items()}} for query, _ in queries],
                          "summary": {"geomean_ms": {name: round(value, 2) for name, value in geomeans.items()},
                                      "speedup_over": {name: round(value / geomeans[ours], 2)
                                                       for name, value in geomeans.items() if name != ours}}}, indent=2))
        return
    width = max(map(len, times)) + 2
    print("ms     " + "".join(name.rjust(width) for name in times))
    for query, _ in queries:
        print("%-7s" % query + "".join(("%.2f" % by_query[query]).rjust(width) for by_query in times.values()))
    print("geomean" + "".join(("%.2f" % value).rjust(width) for value in geomeans.values()))
    print("nam is " + "".join(("" if name == ours else "%.1f x" % (value / geomeans[ours])).rjust(width)
                              for name, value in geomeans.items()))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--nam", default=os.path.join(ROOT, "bazel-bin/cli/nam"))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale-factor", default="1")
    parser.add_argument("--fabric", default="shm")
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args()
    wanted = options.peers.split(",")
    if not set(wanted) <= set(PEERS) or options.rounds < 1:
        parser.error("--peers is some of %s, --rounds at least 1" % ",".join(PEERS))
    queries = ssb_queries(ROOT)
    nam = Nam(options.nam, options)
    contenders = {"nam": nam}
    try:
        nam.up()
        nam.load("ssb")
        tables = {table: (nam.columns(table), int(nam.rows("select count(*) from " + table)[0][0])) for table in KEYS}
        with tempfile.TemporaryDirectory(prefix="nam-peers-") as directory:
            os.chmod(directory, 0o755)  # PostgreSQL's user reads the files
            subprocess.run([nam.binary, "ssb", "generate", "--scale-factor=" + options.scale_factor,
                            "--out=" + directory], check=True, stdout=subprocess.DEVNULL)
            for peer in wanted:
                loaded = PEERS[peer](directory, tables, options.threads)
                contenders[loaded.name] = loaded
        for query, sql in queries:
            expected = sorted(nam.rows(sql))
            for name, peer in list(contenders.items())[1:]:
                if sorted(peer.fetch(sql)) != expected:
                    sys.exit("peers.py: %s has another answer to %s" % (name, query))
        measured = {name: {query: [] for query, _ in queries} for name in contenders}
        for number in range(options.rounds + 1):
            for name, contender in contenders.items():
                for query, ms in contender.round(queries).items():
                    measured[name][query] += [ms] if number else []
        report({name: {query: statistics.median(times) for query, times in by_query.items()}
                for name, by_query in measured.items()}, queries, options.scale_factor, options.format == "json")
    finally:
        for contender in contenders.values():
            contender.end()


if __name__ == "__main__":
    main()
