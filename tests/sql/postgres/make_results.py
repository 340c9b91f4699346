#!/usr/bin/env python3
"""Writes results.txt: what PostgreSQL 15 makes of the expressions in expressions.sql; types.txt: which types it
declares for them; and zones.txt: what it makes of those in zones.sql, as texts, in sessions of some time zones.

Usage: tests/sql/postgres/make_results.py 'host=... port=... dbname=...'

The database has the encoding UTF8 and the locale C.UTF-8. Each line of results.txt is an expression, a tab, and
its text, \\N for NULL, or ! and an SQLSTATE; one of types.txt has the type's name instead, and is missing if the
expression has none; one of zones.txt has the zone before it. Needs psql, and PostgreSQL 15; tests only read the
files."""

import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "<+05>-05"]


def result(connection, expression, zone="UTC"):
    """The text of one expression."""
    script = "\\set VERBOSITY sqlstate\nselect " + expression + ";\n"
    run = subprocess.run(
        ["psql", connection, "-XAtq", "-v", "ON_ERROR_STOP=1", "-P", "null=\\N"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PGTZ": zone},
    )
    if run.returncode != 0:
        return "!" + run.stderr.strip().split(" ")[-1]
    return run.stdout.removesuffix("\n")


TYPED_TABLE = """create temp table typed (s smallint, i integer, b bigint, d numeric(10,2), n numeric(38,0), r real,
  f double precision, t text, v varchar(5), c char(3), dt date, ts timestamp, tz timestamptz, tm time, iv interval,
  u uuid, by bytea, bo boolean);
"""


def types(connection, expressions):
    """The declared types of those that have one, by expression."""
    script = TYPED_TABLE + "".join(
        f"\\echo @{i}\nselect pg_typeof((select {e} from typed limit 1));\n"
        for i, e in enumerate(expressions))
    run = subprocess.run(["psql", connection, "-XAtq"], input=script, capture_output=True, text=True, check=False,
                         env={**os.environ, "PGTZ": "UTC"})
    found, at = {}, None
    for line in run.stdout.splitlines():
        if line.startswith("@"):
            at = expressions[int(line[1:])]
        else:
            found[at] = line
    return found


def main():
    connection = sys.argv[1]
    with open(os.path.join(FOLDER, "expressions.sql"), encoding="utf-8") as source:
        lines = [line.rstrip("\n") for line in source]
    with open(os.path.join(FOLDER, "results.txt"), "w", encoding="utf-8") as out:
        for line in lines:
            if line and not line.startswith("#"):
                out.write(line + "\t" + result(connection, line) + "\n")
    with open(os.path.join(FOLDER, "typed.sql"), encoding="utf-8") as source:
        lines += [line.rstrip("\n") for line in source]
    expressions = [line for line in lines if line and not line.startswith("#")]
    with open(os.path.join(FOLDER, "types.txt"), "w", encoding="utf-8") as out:
        for expression, type_name in types(connection, expressions).items():
            out.write(expression + "\t" + type_name + "\n")
    with open(os.path.join(FOLDER, "zones.sql"), encoding="utf-8") as source:
        lines = [line.rstrip("\n") for line in source]
    with open(os.path.join(FOLDER, "zones.txt"), "w", encoding="utf-8") as out:
        for zone in ZONES:
            for line in lines:
                out.write("\t".join([zone, line, result(connection, f"({line})::text", zone)]) + "\n")


main()
