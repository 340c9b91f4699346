#!/usr/bin/env python3
"""Writes results.txt: what PostgreSQL 15 makes of the expressions in expressions.sql, and zones.txt: of those in
zones.sql, as texts, in sessions of some time zones.

Usage: tests/sql/postgres/make_results.py 'host=... port=... dbname=...'

The database has the encoding UTF8 and the locale C.UTF-8. Each line of results.txt is an expression, a tab, and
its text, \\N for NULL, or ! and an SQLSTATE; one of zones.txt has the zone before it. Needs psql, and PostgreSQL 15; tests only read the file."""

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


def main():
    connection = sys.argv[1]
    with open(os.path.join(FOLDER, "expressions.sql"), encoding="utf-8") as source:
        lines = [line.rstrip("\n") for line in source]
    with open(os.path.join(FOLDER, "results.txt"), "w", encoding="utf-8") as out:
        for line in lines:
            if line and not line.startswith("#"):
                out.write(line + "\t" + result(connection, line) + "\n")
    with open(os.path.join(FOLDER, "zones.sql"), encoding="utf-8") as source:
        lines = [line.rstrip("\n") for line in source]
    with open(os.path.join(FOLDER, "zones.txt"), "w", encoding="utf-8") as out:
        for zone in ZONES:
            for line in lines:
                out.write("\t".join([zone, line, result(connection, f"({line})::text", zone)]) + "\n")


main()
