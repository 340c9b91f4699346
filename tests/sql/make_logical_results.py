#!/usr/bin/env python3
"""Asks PostgreSQL 15 (UTF8, locale C.UTF-8) what queries return: makes tests/sql/logical_results.txt.

    make_logical_results.py HOST QUERIES [MILLISECONDS ROWS COUNT] > RESULTS

HOST is what psql -h takes, for user and database postgres, where tables t, u, w and e are dropped and made.
QUERIES has a query a line: `= query` if the order of its rows counts, `~ query` if it does not, and `! query` if
NAM refuses by name (0A000) what PostgreSQL answers. Queries that take longer than MILLISECONDS or
have more than ROWS rows are left out, and all after the first COUNT.

    ../oracle/queries.py 2 3000 > Q; make_logical_results.py HOST Q 100 24 400 > tests/sql/logical_random_results.txt"""

import subprocess
import sys

import logical_tables

END = "@@end@@"


def answers(host, queries, milliseconds):
    script = ["\\set QUIET on", "set client_min_messages = error;", f"set statement_timeout = {milliseconds};", logical_tables.create_script(),
              "\\pset format unaligned", "\\pset tuples_only on", "\\pset fieldsep '|'", "\\pset null '\\\\N'",
              "\\pset footer off"]
    for query in queries:
        script += [query + ";", f"\\echo {END} :SQLSTATE"]
    run = subprocess.run(["psql", "-X", "-h", host, "-U", "postgres", "-d", "postgres"], input="\n".join(script) + "\n",
                         capture_output=True, text=True, check=True)
    rows, results = [], []
    for line in run.stdout.split("\n"):
        if line.startswith(END):
            results.append((line.split(" ")[1], rows))
            rows = []
        else:
            rows.append(line)
    assert len(results) == len(queries), (len(results), len(queries), run.stderr[-2000:])
    return results


def write(out, queries, marks, results, most_rows, count):
    out.write(logical_tables.result_header())
    written = 0
    for query, mark, (state, rows) in zip(queries, marks, results):
        if state == "57014" or len(rows) > most_rows or written == count:
            continue
        written += 1
        out.write(f"{mark} {query}\n")
        if mark == "!":
            continue
        if state != "00000":
            out.write(f"error {state}\n")
            continue
        for row in rows:
            out.write(f"row {row}\n")


def main():
    host, path = sys.argv[1:3]
    milliseconds, rows, count = [int(number) for number in sys.argv[3:6]] or [0, 1 << 30, 1 << 30]
    lines = [line.rstrip("\n") for line in open(path, encoding="utf-8")]
    lines = [line for line in lines if line and not line.startswith("#")]
    marks, queries = [line[0] for line in lines], [line[2:] for line in lines]
    write(sys.stdout, queries, marks, answers(host, queries, milliseconds), rows, count)


if __name__ == "__main__":
    main()
