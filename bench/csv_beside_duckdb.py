#!/usr/bin/env python3
"""One CSV file of 12 mixed columns loaded by nam and by DuckDB: rows a second, the client's memory, same aggregates.

usage: csv_beside_duckdb.py [--nam=BINARY] [--peer=duckdb|none] [--rows=10000000] [--rounds=1] [--fabric=shm]
                            [--memory=SIZE] [--threads=2] [--file=FILE] [--format=text|json]

The file is the same in every run: DuckDB makes it from its row numbers, unless --file names one that is there, which
stays. nam has a local cluster of its own, whose memory servers also write the table to their disks, and a COPY takes
two threads; DuckDB has --threads of them, and its tables in memory alone. nam's client is a process for each load; its
peak memory is what the kernel says, and counts what it has mapped of the memory servers' memory as its own. Both are
told the columns' types. A load's time is by each side's own clock; the fastest round of each counts. Then count, count
of distinct values, least, greatest and sum of each column are compared: sums of real numbers to 12 digits, all else
exactly. Exit code 1 if one differs.
"""
import argparse
import decimal
import json
import os
import sys
import tempfile

from beside_duckdb import DuckDb, nam_round
from old_and_new import Contender

# Name, type, expression over the row's number i, and how its sum is written; None: it has none.
COLUMNS = [
    ("id", "bigint", "i", "sum(id)"),
    ("part", "int", "(i * 7919) % 100003", "sum(part)"),
    ("quantity", "smallint", "i % 1000", "sum(quantity)"),
    ("price", "decimal(12,2)", "(((i * 104729) % 100000000) / 100.0)::decimal(12,2)", "sum(price)"),
    ("weight", "double precision", "i * 0.37", "sum(weight)"),
    ("open", "boolean", "i % 3 = 0", "sum(case when open then 1 else 0 end)"),
    ("day", "date", "date '1995-01-01' + (i % 10000)::int", None),
    ("at", "timestamp", "timestamp '2001-01-01 00:00:00' + to_seconds(i)", None),
    ("kind", "varchar(20)", "'category ' || (i % 25)", "sum(length(kind))"),
    ("name", "text", "'name ' || (i * 48271 % 2147483647)", "sum(length(name))"),
    ("note", "text", "'say \"hi\", ' || (i % 100)", "sum(length(note))"),
    ("score", "int", "case when i % 10 = 0 then null else i % 977 end", "sum(score)"),
]
DEFINITION = ", ".join('"%s" %s' % (name, kind) for name, kind, _, _ in COLUMNS)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def make_file(duckdb, path, rows):
    values = ", ".join('%s as "%s"' % (expression, name) for name, _, expression, _ in COLUMNS)
    duckdb.ask(op="query", sql="copy (select %s from range(%d) r (i)) to %s (format csv, header)"
               % (values, rows, quoted(path)))


def aggregates_of(name, kind, total):
    if kind == "boolean":  # which has no order in PostgreSQL
        return 'select count("open"), count(distinct "open"), %s from t' % total
    column = '"%s"' % name
    total = total.replace(name, column) if total else "0"
    return ("select count(%s), count(distinct %s), cast(min(%s) as varchar), cast(max(%s) as varchar), "
            "cast(%s as varchar) from t" % (column, column, column, column, total))


def same(ours, theirs, kind):
    if theirs is None or ours == theirs:
        return ours == (theirs or "")
    try:
        a, b = decimal.Decimal(ours), decimal.Decimal(theirs)
    except decimal.InvalidOperation:
        return False
    # Sums of real numbers depend on their order; all else is exact, in whatever words.
    return a == b or (kind == "double precision" and abs(a - b) <= abs(b) * decimal.Decimal("1e-12"))


def differences(nam, duckdb):
    """Columns of which an aggregate differs."""
    wrong = []
    for name, kind, _, total in COLUMNS:
        sql = aggregates_of(name, kind, total)
        ours, _, _ = nam_round(nam, sql)
        theirs = duckdb.ask(op="query", sql=sql)["rows"]
        if len(ours[0]) != len(theirs[0]) or not all(same(*pair, kind) for pair in zip(ours[0], theirs[0])):
            wrong.append("%s: %s, DuckDB %s" % (name, ours[0], theirs[0]))
    return wrong


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--nam", default=os.path.join(root, "bazel-bin/cli/nam"))
    parser.add_argument("--peer", choices=["duckdb", "none"], default="duckdb")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--fabric", default="shm")
    parser.add_argument("--memory", default="3GiB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--file")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args()
    if options.peer == "none" and not options.file:
        sys.exit("csv_beside_duckdb.py: without a peer, name a --file of these columns, with a header")
    nam = Contender(options.nam, options)
    duckdb = DuckDb(options.threads) if options.peer == "duckdb" else None
    seconds, peer_seconds, peak, wrong = [], [], 0, []
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.abspath(options.file) if options.file else os.path.join(directory, "rows.csv")
        try:
            if not os.path.exists(path):
                make_file(duckdb, path, options.rows)
            nam.up()
            for _ in range(options.rounds):
                nam.run("sql", "-c", "drop table if exists t; create table t (%s) with (storage = columnar)" % DEFINITION)
                _, milliseconds, mebibytes = nam_round(nam, "copy t from %s (format csv, header)" % quoted(path))
                seconds, peak = seconds + [milliseconds / 1000], max(peak, mebibytes)
                if duckdb:
                    duckdb.ask(op="query", sql="create or replace table t (%s)" % DEFINITION)
                    answer = duckdb.ask(op="query", sql="copy t from %s (format csv, header)" % quoted(path))
                    peer_seconds.append(answer["elapsed_ms"] / 1000)
            rows = int(nam_round(nam, "select count(*) from t")[0][0][0])
            wrong = differences(nam, duckdb) if duckdb else []
        finally:
            nam.end()
            if duckdb:
                duckdb.end()
        file_bytes = os.path.getsize(path)
    report = {"rows": rows, "file_bytes": file_bytes, "seconds": min(seconds), "rows_per_s": rows / min(seconds),
              "client_peak_mib": peak, "threads": options.threads, "different_columns": wrong}
    if duckdb:
        report.update({"duckdb": duckdb.version, "duckdb_seconds": min(peer_seconds),
                       "duckdb_rows_per_s": rows / min(peer_seconds),
                       "speedup_over_duckdb": min(peer_seconds) / min(seconds)})
    if options.format == "json":
        print(json.dumps(report))
    else:
        print("%d rows, %.0f MiB: nam %.2f s, %.0f rows/s, client at most %.0f MiB" % (
            rows, file_bytes / 2**20, report["seconds"], report["rows_per_s"], peak))
        if duckdb:
            print("DuckDB %s %.2f s, %.0f rows/s: nam is %.2f times as fast; %s" % (
                duckdb.version, report["duckdb_seconds"], report["duckdb_rows_per_s"], report["speedup_over_duckdb"],
                "all aggregates are equal" if not wrong else "aggregates differ:\n  " + "\n  ".join(wrong)))
    sys.exit(1 if wrong else 0)


main()
