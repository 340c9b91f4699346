#!/usr/bin/env python3
"""An older nam and this one in turn, on the same work: is this one slower?

usage: old_and_new.py --old=BINARY [--new=BINARY] [--rounds=10] [--scale-factor=1] [--fabric=shm] [--memory=SIZE]
                      [--clients=2] [--products=100000] [--seconds=3]
                      [--work=ssb,ssb-by-read,tpch,points,checkout,windows,full-join,record-scan]

Each binary has a local cluster of its own, both up at the same time; one of them works at a time. A round is the
work by one binary and then by the other; who begins takes turns. Works:

  ssb          SSB's queries, each three times: its median
  ssb-by-read  the same without looking at blocks in place
  tpch         TPC-H's queries, as for ssb; not in one run with that, whose tables have the same names
  points       statements on one row of a table of 10,000 by its key: each kind's median over 500
  checkout     a checkout of some seconds
  windows      window functions over 6,000,000 rows
  full-join    a full join of two tables of 1,500,000 rows
  record-scan  GROUP BY over a record table of 2,000,000 rows

Whose cluster is up first has better memory, by some percent: half of the rounds are with the one, then both are made
anew for the others. Ratios are of medians over a half's rounds, and their geometric mean; more than 1 means that the
new one is faster. Exit code 1 when the geometric mean of a work is below 0.97.
"""
import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

WORTH = 0.97
# What a work loads, and its queries, each run once a round.
OWN_TABLES = {
    "windows": ([
        "create table measured with (storage = columnar) as select i as id, i * 7919 %% 20000 as kind, "
        "i * 104729 %% 1000003 as v from generate_series(1, %d) as g(i)" % 6_000_000,
    ], {
        "rank": "select sum(r) from (select rank() over (partition by kind order by v, id) as r from measured) as w",
        "sum": "select max(s) from (select sum(v) over (partition by kind order by id) as s from measured) as w",
        "lag": "select count(*) from (select v - lag(v) over (partition by kind order by id) as d from measured) as w "
               "where d > 0",
    }),
    "full-join": ([
        "create table %s with (storage = columnar) as select i * %d as k, i %% 1000 as v "
        "from generate_series(1, %d) as g(i)" % (name, step, 1_500_000) for name, step in (("l", 2), ("r", 3))
    ], {
        "full join": "select count(*), sum(coalesce(l.v, 0) - coalesce(r.v, 0)), count(l.k), count(r.k) "
                     "from l full join r on l.k = r.k",
    }),
    "record-scan": ([
        "create table counted (id bigint primary key, kind int, v bigint) with (storage = record)",
        "insert into counted select i, i %% 1000, i * 7919 %% 100003 from generate_series(1, %d) as g(i)" % 2_000_000,
    ], {
        "group by": "select kind, count(*), sum(v), max(id) from counted group by kind order by 3 desc limit 10",
    }),
}
WORKS = {"ssb", "ssb-by-read", "tpch", "points", "checkout"} | set(OWN_TABLES)
QUERY_REPEAT = 3
POINTS = {
    "point select": "select v, t from kv where k = %d",
    "point update": "update kv set v = v + 1 where k = %d",
    "point insert": "insert into kv values (1000000 + %d, 1, 'new')",
    "point delete": "delete from kv where k = 1000000 + %d",
}
POINT_REPEAT = 500


def ssb_queries(root):
    """Name and text of SSB's queries, as the tree has them."""
    with open(os.path.join(root, "ssb/queries.cc"), encoding="utf-8") as file:
        return re.findall(r'\{"(Q\d\.\d)", R"\((.*?)\)"\}', file.read(), re.DOTALL)


class Contender:
    """One binary and its cluster."""

    def __init__(self, binary, options):
        self.binary, self.options = os.path.abspath(binary), options
        self.directory = tempfile.mkdtemp(prefix="nam-old-and-new-")
        os.chmod(self.directory, 0o700)

    def command(self, *arguments):
        return [self.binary, *arguments, "--state-dir=" + self.directory]

    def run(self, *arguments, script=""):
        done = subprocess.run(self.command(*arguments), text=True, input=script, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise RuntimeError("%s %s: exit code %d: %s" % (self.binary, " ".join(arguments), done.returncode,
                                                            done.stderr.strip()[-2000:]))
        return done.stdout

    def up(self):
        self.run("up", "--fabric=" + self.options.fabric, "--memory=" + self.options.memory)

    def end(self):
        subprocess.run(self.command("down"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)

    def load(self, benchmark):
        self.run(benchmark, "load", "--scale-factor=%s" % self.options.scale_factor)

    def queries(self, benchmark):
        """Milliseconds by query."""
        report = json.loads(self.run(benchmark, "run", "--repeat=%d" % QUERY_REPEAT, "--format=json",
                                     "--scale-factor=%s" % self.options.scale_factor))
        return {row["query"]: row["median_ms"] for row in report["rows"]}

    def ssb(self):
        return self.queries("ssb")

    def tpch(self):
        return self.queries("tpch")

    def times(self, statements):
        """Milliseconds of each statement, in one session without looks in place."""
        out = self.run("sql", "--timing", script=";\n".join(["set nam.in_place = off"] + statements) + ";\n")
        times = [float(time) for time in re.findall(r"^Time: ([0-9.]+) ms", out, re.MULTILINE)]
        if len(times) != len(statements) + 1:
            raise RuntimeError("%d times of %d statements: %s" % (len(times), len(statements) + 1, out[-2000:]))
        return times[1:]

    def ssb_by_read(self):
        """Milliseconds by query."""
        queries = ssb_queries(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        times = self.times([text for _, text in queries for _ in range(QUERY_REPEAT)])
        return {name: statistics.median(times[i * QUERY_REPEAT:(i + 1) * QUERY_REPEAT])
                for i, (name, _) in enumerate(queries)}

    def load_points(self):
        rows = ["(%d, %d, 'row %d')" % (k, k, k) for k in range(10_000)]
        self.times(["create table kv (k bigint primary key, v bigint, t varchar(20)) with (storage = record)"] +
                   ["insert into kv values " + ", ".join(rows[i:i + 100]) for i in range(0, len(rows), 100)])

    def points(self):
        """Milliseconds by kind of statement."""
        keys = [k * 7919 % 10_000 for k in range(POINT_REPEAT)]
        return {name: statistics.median(self.times([text % k for k in keys])) for name, text in POINTS.items()}

    def own_tables(self, work):
        """Milliseconds by query."""
        queries = OWN_TABLES[work][1]
        return dict(zip(queries, self.times(list(queries.values()))))

    def work(self, name):
        return self.own_tables(name) if name in OWN_TABLES else getattr(self, name.replace("-", "_"))()

    def checkout(self):
        """Microseconds for each transaction that was committed."""
        report = json.loads(self.run("checkout", "--replace", "--clients=%d" % self.options.clients,
                                     "--products=%d" % self.options.products,
                                     "--seconds=%s" % self.options.seconds, "--format=json"))
        return {"checkout": 1e6 / report["summary"]["committed_per_s"]}


def medians(work, contenders, rounds):
    """By contender and name, over the rounds."""
    times = {contender: {} for contender in contenders}
    for number in range(rounds):
        for contender in contenders if number % 2 == 0 else contenders[::-1]:
            for name, time in contender.work(work).items():
                times[contender].setdefault(name, []).append(time)
        print("%s: round %d of %d" % (work, number + 1, rounds), file=sys.stderr)
    return [{name: statistics.median(each) for name, each in times[contender].items()} for contender in contenders]


def geometric_mean(values):
    return math.exp(statistics.mean(math.log(value) for value in values))


def half(options, works, old_first):
    """Medians of the old one and of the new one, by work; one of them had its cluster first."""
    old, new = Contender(options.old, options), Contender(options.new, options)
    try:
        for contender in (old, new) if old_first else (new, old):
            contender.up()
            if {"ssb", "ssb-by-read"} & set(works):
                contender.load("ssb")
            if "tpch" in works:
                contender.load("tpch")
            if "points" in works:
                contender.load_points()
            for work in works:
                contender.times(OWN_TABLES[work][0] if work in OWN_TABLES else [])
        return {work: medians(work, [old, new], options.rounds // 2) for work in works}
    finally:
        old.end()
        new.end()


def report(work, halves):
    """The geometric mean of the ratios, and a line for each of the work's parts."""
    ratios = {}
    for name in halves[0][work][0]:
        old, new = ([one[work][side][name] for one in halves] for side in (0, 1))
        ratios[name] = geometric_mean([a / b for a, b in zip(old, new)])
        print("%-12s old %10.3f  new %10.3f  %s  old/new %.3f" % (
            name, geometric_mean(old), geometric_mean(new), "us" if work == "checkout" else "ms", ratios[name]))
    return geometric_mean(ratios.values())


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", default=os.path.join(root, "bazel-bin/cli/nam"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--scale-factor", default="1")
    parser.add_argument("--fabric", default="shm")
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--products", type=int, default=100_000)
    parser.add_argument("--seconds", default="3")
    parser.add_argument("--work", default="ssb,checkout")
    options = parser.parse_args()
    works = options.work.split(",")
    if options.rounds < 2 or set(works) - WORKS:
        sys.exit("old_and_new.py: --rounds is 2 or more, --work is of %s" % ", ".join(sorted(WORKS)))
    if "tpch" in works and {"ssb", "ssb-by-read"} & set(works):
        sys.exit("old_and_new.py: tpch and ssb have tables of the same names; run one after the other")
    halves = [half(options, works, old_first) for old_first in (True, False)]
    slower = False
    for work in works:
        mean = report(work, halves)
        print("%s: geometric mean old/new %.3f (%d rounds, %s)" % (work, mean, options.rounds, os.uname().nodename))
        slower |= mean < WORTH
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
