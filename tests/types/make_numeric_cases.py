#!/usr/bin/env python3
"""Writes numeric_cases.txt: what PostgreSQL 15 makes of arithmetic with numbers of all sizes and scales.

Usage: tests/types/make_numeric_cases.py 'host=... port=... dbname=...'

Each line is a function's name, its arguments, a tab, and the result's text, or ! and an SQLSTATE. Needs psql, and
PostgreSQL 15; tests only read the file."""

import decimal
import os
import random
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
DIGITS, SCALE = 36, 38  # the most of a number

# The case's name, its SQL ({0}, {1}: arguments; {list}: all of them as rows), and the arguments' kinds.
FUNCTIONS = [
    ("add", "{0} + {1}", "nn", 60),
    ("subtract", "{0} - {1}", "nn", 60),
    ("multiply", "{0} * {1}", "nn", 120),
    ("divide", "{0} / {1}", "nz", 260),
    ("modulo", "{0} % {1}", "nz", 100),
    ("compare", "case when {0} < {1} then -1 when {0} > {1} then 1 else 0 end", "nn", 60),
    ("round", "round({0}, {1})", "ni", 80),
    ("trunc", "trunc({0}, {1})", "ni", 60),
    ("floor", "floor({0})", "n", 20),
    ("ceil", "ceil({0})", "n", 20),
    ("abs", "abs({0})", "n", 6),
    ("negate", "-({0})", "n", 6),
    ("sign", "sign({0})", "n", 6),
    ("trim", "trim_scale({0})", "n", 20),
    ("decimal", "{0}::numeric(38, {1})", "ns", 50),
    ("parse", "'{0}'::numeric", "t", 60),
    ("of_double", "'{0}'::float8::numeric", "d", 50),
    ("of_real", "'{0}'::float4::numeric", "r", 30),
    ("to_double", "{0}::float8", "n", 60),
    ("power", "power({0}, {1})", "bw", 120),
    ("power", "power({0}, {1})", "pe", 120),
    ("power", "power({0}, {1})", "ne", 20),
    ("exp", "exp({0})", "e", 70),
    ("ln", "ln({0})", "p", 70),
    ("log", "log({0}, {1})", "pp", 70),
    ("sqrt", "sqrt({0})", "p", 80),
    ("sum", "(select sum(x) from (values {list}) v(x))", "*", 40),
    ("avg", "(select avg(x) from (values {list}) v(x))", "*", 60),
    ("var_samp", "(select var_samp(x) from (values {list}) v(x))", "*", 50),
    ("var_pop", "(select var_pop(x) from (values {list}) v(x))", "*", 50),
    ("stddev_samp", "(select stddev_samp(x) from (values {list}) v(x))", "*", 50),
    ("stddev_pop", "(select stddev_pop(x) from (values {list}) v(x))", "*", 50),
    ("whole_quotient", "div({0}, {1})", "nz", 60),
]

# Separated by semicolons.
EDGES = """
power 0 0; power 0.00 -1; power 0 0.5; power 0.0000000000000000000 0.5; power -1 0.5; power -1 3000000001;
power -1.0 3000000000; power -8 3.000; power 2.0 80; power 2.0 0.00000000000000000000; power 0.5 3.00000000000000000000;
power -999999999.999 2; power 0.5 3000000000.0;
power 0.99999999999 3000000000.0; power 0.99999999999 -30000000000; power 1.0 123456789012345; power 10 35;
power 10 36; power 10 -38; power 1000000000000000000000000000000 0.1; power 0.0000000001 1.5; power 9 0.5;
power 2 -1; power 1.0041666666666667 360;
power 1.00000000000000000000000000000000001 100000000000000000000000000000000000;
exp 0; exp 0.00; exp 1; exp 52.0; exp -52.0; exp 82; exp 83; exp 7000;
exp 0.00000000000000000000000000000000000001;
ln 1; ln 1.00; ln 0; ln -1.5; ln 0.9; ln 1.1; ln 0.89; ln 1.00000000000000000000000000000000001;
ln 0.99999999999999999999999999999999999; ln 10; ln 0.00000000000000000000000000000000000001;
ln 999999999999999999999999999999999999;
log 10 100; log 2 8.0; log 1 5; log 1.00 0.5; log 0 5; log -2 0; log 5 0; log 5 -1; log 10 1;
log 1.0000000001 2; log 2 1.0000000001; log 0.5 0.25;
sqrt 0; sqrt 0.000; sqrt 1; sqrt 2; sqrt -0.01; sqrt 9999; sqrt 10000; sqrt 0.0001; sqrt 0.00009999;
sqrt 999999999999999999999999999999999999; sqrt 0.00000000000000000000000000000000000001;
divide 5 10000000; divide 1 3; divide 2 3; divide 3 12345678.0; divide 1 0.0000002430000022113000201228;
divide 0 7.50; divide 0.000 3;
divide 999999999999999999999999999999999999 0.00000000000000000000000000000000000001;
divide 999999999999999999999999999999999999 1.0; divide 999999999999999999999999999999999999 7;
divide 999999999999999999999999999999999999 999999999999999999999999999999999998;
divide 1 999999999999999999999999999999999999; divide 5000 5000.0; divide 4999 5000.0; divide 0.5 0.04999;
multiply 999999999999999999999999999999999999 999999999999999999999999999999999999;
multiply 999999999999999999 999999999999999999; multiply 1000000000000000000.0 1000000000000000000;
multiply 0.99999999999999999999999999999999999 0.99999999999999999999999999999999999;
add 999999999999999999999999999999999999 1; add 999999999999999999999999999999999999 0.5;
add 999999999999999999999999999999999999 0.49; add 99999999999999999999999999999999999.9 0.1;
add 1 0.00000000000000000000000000000000000001;
subtract 1.50 1.5; subtract 0 0.00;
modulo 999999999999999999999999999999999999 0.00000000000000000000000000000000000007; modulo -7.5 2;
modulo 7.5 -2.00; modulo 0.00000000000000000000000000000000000009 100000000000000000000000000000000000;
round 2.5 0; round -2.5 0; round 0.5 0; round -0.45 1; round 155 -1; round 500 -3; round 499 -3; round 1.5 7;
round 999999999999999999999999999999999999 -1; round 999999999999999999999999999999999999.4 0; round 5 -2000;
round 0.05 -40;
trunc 2.59 1; trunc -2.59 1; trunc 1.5 5; trunc 199 -2; trunc 199 -3; trunc -0.5 -50;
trunc 999999999999999999999999999999999999 -35;
parse 1e5; parse 1.5e-3; parse 1.50e1; parse 0e10; parse 0e-5; parse .5; parse 5.; parse +5; parse -.0;
parse 1e; parse e5; parse .; parse 1.2.3; parse 1e+2; parse 1e-50;
parse 12345678901234567890123456789012345678.5; parse 1e35; parse 1e36;
parse 0.00000000000000000000000000000000000000000000000000001e30; parse 1_0; parse 0x10; parse --1;
parse 1e1.5; parse 99999999999999999999999999999999999.95; parse 999999999999999999999999999999999999.5;
of_double 1e22; of_double 0.1; of_double -0.0; of_double 123456789012345678; of_double 1e-300; of_double 1e36;
of_double 9.99999999999999999e35; of_double 100000.5; of_double 1e300;
of_real 0.1; of_real 123456789; of_real 1e-40; of_real 3e38;
to_double 9007199254740993; to_double 0.1000000000000000055511151231257827021; to_double 900719925474099.3;
to_double 0.00000000000000000000000000000000000001; to_double 9007199254740992.99999999999999999999;
to_double 9007199254740993.0000000000000000001;
avg 1 0 0 0 0 0 0 0 0 0 0 0 0; avg 1.00; avg 0; avg 1.0 2.000;
avg 999999999999999999999999999999999999 999999999999999999999999999999999998.5;
var_samp 1 1; var_samp 1.00 1.0; var_samp 1.00 2.0;
var_samp 999999999999999999999999999999999999 -999999999999999999999999999999999999;
var_pop 1.00;
stddev_samp 1.5 1.50 2; stddev_samp 999999999999999999999999999999999999 -999999999999999999999999999999999999;
stddev_samp 0.00000000000000000000000000000000000001 0.00000000000000000000000000000000000004;
stddev_pop 1.00 2.0; stddev_pop 7;
sum 999999999999999999999999999999999999 1; sum 999999999999999999999999999999999999 1 -2.50;
sum 0.00000000000000000000000000000000000001 1; whole_quotient 7 2; whole_quotient -7 2.0;
stddev_samp 0.001 0.002 0.004; stddev_samp 0.01 0.02 0.05 0.09; stddev_pop 0.003 0.001 0.0005; stddev_pop 0.1 0.2 0.4;
stddev_samp 0.0001 0.0004 0.0006 0.0007; stddev_pop 0.00002 0.00003 0.00007; stddev_samp 0.02 0.03 0.03;
whole_quotient 100000000000000000000000000000 0.100000000000000000000000000000000001
"""


def number(draw, most_digits=DIGITS, positive=False):
    """A number of a few digits, or of many; some with zeros at either end."""
    digits = draw.choice([1, 2, 3, 4, 5, 8, draw.randint(1, 18), draw.randint(1, most_digits)])
    digits = min(digits, most_digits)
    n = draw.randint(0 if not positive else 1, 10**digits - 1)
    if draw.random() < 0.15:
        n = 10**draw.randint(0, digits - 1) * draw.randint(1, 9)
    if draw.random() < 0.1 and n > 1:
        n = 10**digits - draw.randint(1, 3)
    scale = draw.choice([0, 0, 1, 2, 2, 3, 4, 6, 8, draw.randint(0, digits), draw.randint(0, SCALE)])
    text = str(n).rjust(scale + 1, "0")
    if scale:
        text = text[:-scale] + "." + text[-scale:]
    return ("-" if n and not positive and draw.random() < 0.3 else "") + text


def near_one(draw):
    places = draw.randint(1, 35)
    return str(decimal.Decimal(1) + draw.choice([1, -1]) * decimal.Decimal(draw.randint(1, 9)).scaleb(-places))


def argument(draw, kind):
    """A text of a kind: see FUNCTIONS."""
    if kind == "n":
        return number(draw)
    if kind == "z":
        return number(draw, positive=True) if draw.random() < 0.7 else "-" + number(draw, positive=True)
    if kind == "i":
        return str(draw.choice([0, 1, 2, draw.randint(-8, 8), draw.randint(-40, 40)]))
    if kind == "s":
        return str(draw.randint(0, SCALE))
    if kind == "p":
        return near_one(draw) if draw.random() < 0.15 else number(draw, positive=True)
    if kind == "b":
        return near_one(draw) if draw.random() < 0.15 else number(draw, 12)
    if kind == "w":
        whole = draw.choice([0, 1, 2, 3, -1, -2, 5, draw.randint(-40, 60), draw.randint(-1000, 1000)])
        return str(whole) + draw.choice(["", "", ".00"])
    if kind == "e":
        text = f"{draw.uniform(-60, 83):.{draw.choice([0, 1, 3, 8, 20])}f}"
        return draw.choice([text, number(draw, 2), number(draw, 6)])
    if kind == "t":
        return number(draw, 48) + draw.choice(["", "", "e", f"E{draw.randint(-30, 30)}", f"e{draw.randint(-9, 9)}"])
    if kind in "dr":
        size = 10.0**draw.uniform(-40, 34)
        x = draw.choice([draw.random(), draw.uniform(-1e6, 1e6), draw.randint(0, 10**9) / 100, size])
        return f"{x:.17g}"
    raise ValueError(kind)


def cases(draw):
    """Lines without results."""
    out = [" ".join(edge.split()) for edge in EDGES.split(";")]
    for name, _, kinds, count in FUNCTIONS:
        for _ in range(count):
            if kinds == "*":
                most = draw.choice([2, 4, 9, 20, DIGITS])
                arguments = [number(draw, most) for _ in range(draw.randint(2, 7))]
            else:
                arguments = [argument(draw, kind) for kind in kinds]
            out.append(" ".join([name] + arguments))
    return list(dict.fromkeys(out))


def sql_of(line):
    """The expression of a case."""
    name, *arguments = line.split(" ")
    sql = next(sql for each, sql, _, _ in FUNCTIONS if each == name)
    typed = arguments
    if name not in ("parse", "of_double", "of_real"):
        typed = [f"'{a}'::numeric" for a in arguments]
        if name in ("round", "trunc", "decimal"):
            typed[1] = arguments[1]
    return sql.format(*typed, list=", ".join(f"({a})" for a in typed))


def results(connection, lines):
    """The text of each case."""
    script = """create function pg_temp.result(e text) returns text language plpgsql as $f$
      declare r text; begin execute 'select (' || e || ')::text' into r; return r;
      exception when others then return '!' || sqlstate; end $f$;\n"""
    script += "".join(f"select pg_temp.result($e${sql_of(line)}$e$);\n" for line in lines)
    run = subprocess.run(["psql", connection, "-XAtq", "-v", "ON_ERROR_STOP=1"], input=script, capture_output=True,
                         text=True, check=True)
    return run.stdout.splitlines()


def says(line, result):
    """False of a result that is long, or half of a unit in the last place that fits: whether it was rounded up to
    that half is not known."""
    if len(result) > 110:
        return False
    exact = ("add", "subtract", "multiply", "modulo", "to_double", "sum", "round")
    if result.startswith("!") or line.startswith(exact):
        return True
    decimal.getcontext().prec = 200
    value = decimal.Decimal(result)
    fits = min(SCALE, DIGITS - value.adjusted() - 1) if value else SCALE
    return abs(value).scaleb(fits) % 1 != decimal.Decimal("0.5")


def main():
    lines = cases(random.Random(15))
    with open(os.path.join(FOLDER, "numeric_cases.txt"), "w", encoding="utf-8") as out:
        for line, result in zip(lines, results(sys.argv[1], lines), strict=True):
            if says(line, result):
                out.write(line + "\t" + result + "\n")


main()
