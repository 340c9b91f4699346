#!/usr/bin/env python3
"""Random SQL beside PostgreSQL 15 and SQLite: the answers must be the same, and so must their declared types.

    oracle.py --nam=PROGRAM --loader=load_tables [--seed=1] [--queries=20000] [--changes=5000] [--rows=12000]

Each seed makes a cluster of real processes (shm or tcp, 1 to 3 compute servers), tables in it and in a private
PostgreSQL, and runs --queries-per-seed queries and --changes-per-seed changes there. A difference is shrunk, and
printed with its seed, the statement and both answers; the exit code is 1 then."""
import argparse
import random
import re
import signal
import sqlite3
import sys
import time

import changes
import compare
import declared
import functions
import nam
import postgres
import prepared
import queries
import shrink
import tables

PLAIN_SHARE = 0.12    # of queries, which SQLite understands as well
PREPARED_SHARE = 0.12
MISTAKEN_SHARE = 0.05  # of queries with a word in the wrong place
TOO_SLOW = "SLOW"
UNKNOWN_TYPE = "42P18"  # of a parameter, which is a text to NAM
POSTGRES_MS = 500    # queries that take it longer are left out
SQLITE_S = 2          # what takes it longer is not compared with it
TOO_LARGE = ("53200", "54000")  # of NAM, by its own bounds: told apart from what is wrong
MOST_ROWS = 20_000    # of a result that is compared


# Which way NAM takes must not matter.
SETTINGS = {"aggregate": ["auto", "rdma", "rdma"], "join": ["auto", "rrj", "rdma_ghj", "ghj", "ghj_bloom"],
            "sorts_by_runs": ["auto", "on"], "in_place": ["on", "off"], "prefetch_window": ["1", "10"]}


class World:
    """One seed's tables, in every system."""

    def __init__(self, options, seed):
        self.options, self.seed = options, seed
        self.r = random.Random(seed)
        self.fabric = options.fabric or self.r.choice(["shm", "tcp"])
        self.compute = options.compute or self.r.randint(1, 3)
        drawn = {name: self.r.choice(values) for name, values in SETTINGS.items()}
        drawn["join"] = options.join or drawn["join"]
        self.settings = ["nam.%s = %s" % (name, value) for name, value in drawn.items()]
        # UTC has ways of its own.
        self.zone = options.zone or self.r.choice(["UTC", self.r.choice(functions.ZONES)])
        self.settings.append("timezone = '%s'" % self.zone)
        self.tables = tables.schema(options.rows)
        tables.fill(self.r, self.tables)
        self.postgres = options.postgres
        self.postgres.must("set timezone = '%s'" % self.zone)
        self.nam = None
        self.sqlite = sqlite3.connect(":memory:")
        tables.load_postgres(self.postgres, self.tables)
        tables.load_sqlite(self.sqlite, self.tables)
        self.start()

    def start(self):
        self.nam = nam.Nam(self.options.nam, self.options.loader, self.fabric, self.compute, self.settings)
        tables.load_nam(self.nam, self.tables)

    def stop(self):
        if self.nam is not None:
            self.nam.stop()
        self.sqlite.close()

    def restart(self):
        self.nam.stop()
        self.start()

    def __str__(self):
        return "seed %d, %s, %d compute servers, %s" % (self.seed, self.fabric, self.compute, ", ".join(self.settings))


class Counts:
    def __init__(self):
        self.same = self.left_out = self.refused = self.by_sqlite = self.errors = self.slow = self.sqlite_alone = self.same_changes = self.too_large = self.too_slow = self.typed = 0
        self.differences = []
        self.refusals = {}

    def __str__(self):
        return ("%d the same (%d errors, %d with their declared types, %d by SQLite as well, which alone differs in %d), %d too slow for PostgreSQL or too large, %d refused by name, "
                "%d beyond NAM's memory, %d too slow for NAM, %d changes the same, %d differences" % (self.same, self.errors, self.typed, self.by_sqlite, self.sqlite_alone, self.left_out, self.refused, self.too_large, self.too_slow, self.same_changes,
                                    len(self.differences)))


class Queries:
    def __init__(self, world, counts):
        self.world, self.counts, self.options = world, counts, world.options

    def ask_nam(self, text):
        """A lost session or server is an answer, too; the next query finds a new one."""
        try:
            return self.world.nam.run(text)
        except nam.Lost as lost:
            self.world.restart()
            if isinstance(lost, nam.Slow):
                return postgres.Answer(sqlstate=TOO_SLOW, message=str(lost))
            return postgres.Answer(sqlstate="LOST", message=str(lost))

    def compared(self, text, ordered):
        """What differs in one of the statements of the text, or None if PostgreSQL took too long."""
        if not prepared.is_prepared(text):
            return self.compared_alone(text, ordered)
        found = None
        for part in prepared.parts(text):
            found = self.compared_alone(part, ordered)
            if found is None or found or self.expected.sqlstate:
                break
        self.forget_prepared()
        self.ask_nam(prepared.END)
        return found

    def forget_prepared(self):
        """A timeout that comes late ends the next statement."""
        while self.world.postgres.run(prepared.END).sqlstate == postgres.TIMED_OUT:
            pass

    def compared_alone(self, text, ordered):
        expected = self.world.postgres.run(text)
        if expected.sqlstate == postgres.TIMED_OUT or len(expected.rows) > MOST_ROWS:
            return None
        started = time.monotonic()
        found = self.ask_nam(text)
        seconds = time.monotonic() - started
        if seconds > self.options.slow_seconds:
            self.counts.slow += 1
            print("slow: %.1f s, %s\n    %s;" % (seconds, self.world, text), flush=True)
        if found.sqlstate == "0A000":
            self.counts.refused += 1
            self.counts.refusals.setdefault(found.message, text)
            return None
        if found.sqlstate == TOO_SLOW and not expected.sqlstate:
            self.counts.too_slow += 1  # told above
            return None
        if found.sqlstate in TOO_LARGE and not expected.sqlstate:
            self.counts.too_large += 1
            self.counts.refusals.setdefault(found.message, text)
            return None
        if expected.sqlstate == UNKNOWN_TYPE and not found.sqlstate:
            return None
        self.expected = expected
        return compare.difference(expected, found, ordered) or self.types_differ(text)

    def types_differ(self, text):
        """Of a query whose rows are the same."""
        if self.expected.sqlstate or not self.expected.kinds or text.startswith("execute "):
            return ""
        query = declared.query(text, len(self.expected.kinds))
        expected = self.world.postgres.run(query)
        if expected.sqlstate:
            return ""  # for its constants, which PostgreSQL's planner computes
        self.counts.typed += 1
        return declared.difference(expected, self.ask_nam(query))

    def sqlite_differs(self, text):
        until = time.monotonic() + SQLITE_S
        self.world.sqlite.set_progress_handler(lambda: time.monotonic() > until, 100_000)
        try:
            rows = self.world.sqlite.execute(text).fetchall()
        except sqlite3.Error:
            return False  # not in its words, or it takes too long
        self.counts.by_sqlite += 1
        as_texts = [[None if v is None else {True: "t", False: "f"}[bool(v)] if kind == "bool" else str(v)
                     for kind, v in zip(self.expected.kinds, row)] for row in rows]
        return compare.difference(postgres.Answer(self.expected.kinds, self.expected.rows),
                                  postgres.Answer(rows=as_texts if "bool" not in self.expected.kinds else
                                                  [[v == "t" if k == "bool" and v is not None else v
                                                    for k, v in zip(self.expected.kinds, row)] for row in as_texts]), False)

    def run(self, count):
        world = self.world
        world.postgres.must("set statement_timeout = %d" % POSTGRES_MS)
        rich = queries.Generator(world.seed * 2 + 1, world.tables)
        plain = queries.Generator(world.seed * 2, world.tables, plain=True)
        with_parameters = queries.Generator(world.seed * 2 + 1, world.tables, prepared=True)
        done = 0
        while done < count:
            is_plain = world.r.random() < PLAIN_SHARE
            text, ordered = (plain if is_plain else rich).statement()
            if not is_plain and world.r.random() < PREPARED_SHARE:
                text, ordered = with_parameters.statement()
            mistaken = world.r.random() < MISTAKEN_SHARE
            if mistaken:
                text, ordered, is_plain = rich.mistaken(), False, False
            found = self.compared(text, ordered)
            # With another word its order may leave open which rows are the first.
            if mistaken and found and found.startswith("row ") and re.search(r"\b(limit|offset|fetch)\b", text):
                found = None
            # In the words that SQLite knows, too, constants are dates to SQLite and texts to PostgreSQL.
            if found is None or (is_plain and self.expected.sqlstate.startswith("42")):
                self.counts.left_out += 1
                continue
            done += 1
            if not found and is_plain and self.sqlite_differs(text):
                self.counts.sqlite_alone += 1
            if not found:
                self.counts.same += 1
                self.counts.errors += bool(self.expected.sqlstate)
            else:
                self.report(text, ordered, found)

    def report(self, text, ordered, found):
        """Shrinks the statement; the rows are left as the seed makes them, or shrunk too."""
        expected = self.expected.sqlstate
        def state_of(difference):
            return difference.split(" ")[:2 if difference.startswith("error") else 1] if difference.startswith(("error", "types")) else None

        state = state_of(found)

        def differs(smaller):
            try:
                again = self.compared(smaller, False)
            except (KeyError, AssertionError):
                return False
            return bool(again) and state_of(again) == state

        def valid(smaller):
            if prepared.is_prepared(smaller):
                states = [self.world.postgres.run(part).sqlstate for part in prepared.parts(smaller)]
                self.forget_prepared()
                return all(state in ("", expected) for state in states)
            return self.world.postgres.run("explain " + smaller).sqlstate in ("", expected)

        counts = (self.counts.refused, self.counts.slow)
        small = text
        if not self.options.no_shrink and "LOST" not in found:
            small = shrink.statement(text, valid, differs, self.options.shrink_budget)
        if self.options.shrink_rows:
            self.shrink_rows(small, ordered)
        self.counts.refused, self.counts.slow = counts
        final = self.compared(small, ordered and small == text) or found
        self.counts.differences.append((str(self.world), small, final))
        print("DIFFERENCE, %s\n  %s;\n  shrunk from: %s;\n  NAM: %s\n  at first: %s\n" % (self.world, small, text, final, found), flush=True)

    def shrink_rows(self, text, ordered):
        world = self.world

        def differs():
            tables.load_postgres(world.postgres, world.tables)
            tables.load_nam(world.nam, world.tables)
            return bool(self.compared(text, False))

        shrink.rows([t for t in world.tables if " %s " % t.name in " %s " % text], differs)
        for t in world.tables:
            if " %s " % t.name in " %s " % text and len(t.rows) < 50:
                print("  rows of %s: %s" % (t.name, tables.values(t.rows)), flush=True)
        tables.fill(random.Random(world.seed), world.tables)
        tables.load_postgres(world.postgres, world.tables)
        tables.load_nam(world.nam, world.tables)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nam", default="bazel-bin/cli/nam")
    parser.add_argument("--loader", default="bazel-bin/tests/oracle/load_tables")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=20000)
    parser.add_argument("--changes", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=12000, help="of the facts")
    parser.add_argument("--queries-per-seed", type=int, default=500)
    parser.add_argument("--changes-per-seed", type=int, default=250)
    parser.add_argument("--fabric", choices=["shm", "tcp"], help="of all seeds")
    parser.add_argument("--compute", type=int, help="servers of all seeds")
    parser.add_argument("--join", choices=SETTINGS["join"] + ["pipelined"], help="nam.join of all seeds")
    parser.add_argument("--zone", help="of the sessions of all seeds")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--shrink-rows", action="store_true", help="shrink the tables as well")
    parser.add_argument("--shrink-budget", type=int, default=300, help="queries to shrink one")
    parser.add_argument("--slow-seconds", type=float, default=10, help="longer answers of NAM are told")
    parser.add_argument("--most-differences", type=int, default=50, help="then it ends")
    parser.add_argument("--repeat", type=int, default=1, help="how often --execute asks")
    parser.add_argument("--execute", help="compare this statement alone")
    return parser.parse_args()


def run_seeds(options, counts):
    seed, asked, changed = options.seed, 0, 0
    while (asked < options.queries or changed < options.changes) and \
            len(counts.differences) < options.most_differences:
        world = World(options, seed)
        started = time.monotonic()
        try:
            if options.execute:
                one = Queries(world, counts)
                for _ in range(options.repeat):
                    found = one.compared(options.execute, False)
                    print(found if found else "the same: %s" % (one.expected.rows[:5],))
                return
            count = min(options.queries_per_seed, options.queries - asked)
            Queries(world, counts).run(count)
            asked += count
            count = min(options.changes_per_seed, options.changes - changed)
            changes.Changes(world, counts).run(count)
            changed += count
        finally:
            world.stop()
        print("%s: %.0f s; so far %d queries, %d changes: %s" % (world, time.monotonic() - started, asked, changed, counts),
              flush=True)
        seed += 1


def main():
    options, counts = arguments(), Counts()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # which stops the servers
    if not postgres.installed():
        print("PostgreSQL 15 is not installed: apt-get install postgresql-15")
        return 2
    with postgres.PostgreSql() as server:
        options.postgres = server
        run_seeds(options, counts)
    for message, text in sorted(counts.refusals.items()):
        print("refused: %s\n    %s;" % (message, text[:600]))
    print("oracle: %s" % counts)
    return 1 if counts.differences else 0


if __name__ == "__main__":
    sys.exit(main())
