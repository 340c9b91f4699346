"""Tables of random rows, for PostgreSQL, for SQLite, and for both kinds of NAM's tables.

Kinds of columns: int, big (at the extremes of 64 bits), num, text, bool, date, timestamp, double. A column's
`distinct` is about how many values it has, by which queries tell which joins they can afford."""
import datetime
import math
import struct
from decimal import Decimal

NAMED_TYPES = {"int": "bigint", "big": "bigint", "bool": "boolean", "date": "date", "timestamp": "timestamp",
               "double": "double precision"}
EPOCH = datetime.date(1970, 1, 1)


class Column:
    def __init__(self, name, kind, distinct, modifier=None, nullable=True, nulls=0.12):
        self.name, self.kind, self.distinct, self.modifier = name, kind, distinct, modifier
        self.nullable, self.nulls = nullable, nulls if nullable else 0

    def type(self):
        if self.kind == "num":
            return "numeric(%d, %d)" % self.modifier
        return "varchar(%d)" % self.modifier if self.kind == "text" else NAMED_TYPES[self.kind]


class Table:
    def __init__(self, name, columns, rows, records=False, partitions=(), indexes=()):
        self.name, self.columns, self.row_count, self.records = name, columns, rows, records
        self.partitions, self.indexes = partitions, indexes
        self.rows = []
        self.block_bytes, self.pointer_group = 16384, 8

    def big(self):
        return self.row_count > 2000


def schema(rows):
    """The tables of one cluster: facts of about `rows` rows, and small ones."""
    c = Column
    return [
        Table("f", [c("id", "int", rows, nullable=False), c("k", "int", 30), c("g", "int", rows // 3),
                    c("x", "big", 12), c("n", "num", 400, (12, 2)), c("m", "num", rows, (15, 4), nulls=0.4),
                    c("s", "text", 14, 12), c("t", "text", rows // 2, 20), c("d", "date", 700), c("b", "bool", 2),
                    c("r", "double", 300), c("z", "timestamp", rows)], rows, partitions=[("id", 4)]),
        Table("h", [c("id", "int", rows, nullable=False), c("f_id", "int", rows // 2), c("k", "int", 30),
                    c("n", "num", 400, (12, 2)), c("s", "text", 14, 12), c("d", "date", 700), c("b", "bool", 2),
                    c("r", "double", 300), c("z", "timestamp", 500)], rows - 300, records=True),
        Table("p", [c("id", "int", 600, nullable=False), c("k", "int", 30), c("x", "big", 12), c("n", "num", 40, (12, 2)),
                    c("s", "text", 14, 12), c("d", "date", 60), c("b", "bool", 2)], 600, partitions=[("id", 3)]),
        Table("q", [c("id", "int", 250, nullable=False), c("p_id", "int", 120), c("k", "int", 30),
                    c("n", "num", 40, (10, 3)), c("s", "text", 14, 12), c("t", "text", 120, 20), c("b", "bool", 2)],
              250, records=True),
        Table("v", [c("k", "int", 9, nulls=0.2), c("a", "int", 5, nulls=0.2), c("s", "text", 4, 8, nulls=0.2)], 40),
        Table("e", [c("k", "int", 1), c("s", "text", 1, 8), c("n", "num", 1, (8, 2))], 0),
    ]


WORDS = ["", "a", "ab", "abc", "b", "Ab", "été", "x y", "c d", "zz", "a%b", "a_b", "12", "日本", "-3", "  pad"]
# Nullable columns do not span all 64 bits: NULL is a code, too.
EXTREMES = [-2**62, -2**63 + 2, 2**63 - 1, 2**63 - 2, 0, 1, -1, 2**31, -2**31 - 1, 2**53 + 1, 10**18, -10**18]
DOUBLES = [0.0, 1.0, -1.5, 0.1, 1e10, -1e-5, 123456.789, 2.5, 1 / 3, 1e15, 7e-3]


def value(r, column):
    """A random value of the column; None is NULL."""
    if column.nulls and r.random() < column.nulls:
        return None
    n = r.randrange(max(column.distinct, 1))
    kind = column.kind
    if kind == "int":
        return n - 3 if column.distinct < 100 else n
    if kind == "big":
        return EXTREMES[n % len(EXTREMES)]
    if kind == "num":
        scale = column.modifier[1]
        return Decimal((n - column.distinct // 3) * (17 if column.distinct > 50 else 25)).scaleb(-scale)
    if kind == "text":
        return WORDS[n % len(WORDS)] if column.distinct <= len(WORDS) else WORDS[n % 7] + str(n)
    if kind == "bool":
        return n == 1
    if kind == "date":
        return datetime.date(1994, 2, 20) + datetime.timedelta(days=n)
    if kind == "timestamp":
        return datetime.datetime(1995, 12, 28) + datetime.timedelta(microseconds=n * 3_600_123_457 // 7)
    return DOUBLES[n] if n < len(DOUBLES) else (n - 100) / 8


def fill(r, tables):
    for table in tables:
        table.rows = [[i + 1 if c.name == "id" else value(r, c) for c in table.columns]
                      for i in range(table.row_count)]
        table.block_bytes = r.choice([4096, 16384, 65536])
        table.pointer_group = r.choice([2, 8, 32])


def literal(v):
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (int, Decimal)):
        return str(v)
    if isinstance(v, float):
        return "'%r'" % v
    return "'" + str(v).replace("'", "''") + "'"


# ─── PostgreSQL

def load_postgres(server, tables):
    for t in tables:
        columns = ", ".join("%s %s%s" % (c.name, c.type(), "" if c.nullable else " not null") for c in t.columns)
        server.must("drop table if exists %s; create table %s (%s)" % (t.name, t.name, columns))
        for first in range(0, len(t.rows), 2000):
            server.must("insert into %s values %s" % (t.name, values(t.rows[first:first + 2000])))
        for c in t.columns:
            if t.big() and c.distinct > 1000:
                server.must("create index on %s (%s)" % (t.name, c.name))
        server.must("analyze " + t.name)


def values(rows):
    return ", ".join("(" + ", ".join(map(literal, row)) + ")" for row in rows)


# ─── NAM

def load_nam(nam, tables):
    nam.load("".join(columnar(t) for t in tables if not t.records))
    for t in tables:
        if not t.records:
            continue
        nam.run("drop table if exists " + t.name)
        columns = ", ".join("%s %s%s" % (c.name, c.type(), "" if c.nullable else " primary key") for c in t.columns)
        nam.must("create table %s (%s) with (storage = record)" % (t.name, columns))
        for first in range(0, len(t.rows), 400):  # a transaction writes at most 511 rows
            nam.must("insert into %s values %s" % (t.name, values(t.rows[first:first + 400])))


STORED_KINDS = {"int": "integer", "big": "integer", "num": "decimal", "text": "string", "bool": "boolean",
                "date": "date", "timestamp": "timestamp", "double": "double"}


def columnar(table):
    """What load_tables.cc reads."""
    lines = ["table %s %d %d" % (table.name, table.block_bytes, table.pointer_group)]
    for c in table.columns:
        modifier = c.modifier[1] if c.kind == "num" else c.modifier or 0
        lines.append("column %s %s %d %d" % (c.name, STORED_KINDS[c.kind], modifier, c.nullable))
    lines += ["partition %s %d" % (column, parts) for column, parts in table.partitions]
    lines.append("rows %d" % len(table.rows))
    for row in table.rows:
        lines.append("\t".join(stored(v, c) for v, c in zip(row, table.columns)))
    return "\n".join(lines) + "\n"


def stored(v, column):
    """A value as storage holds it."""
    if v is None:
        return "\\N"
    if column.kind == "num":
        return str(int(v.scaleb(column.modifier[1])))
    if column.kind == "date":
        return str((v - EPOCH).days)
    if column.kind == "timestamp":
        return str((v - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1))
    if column.kind == "double":
        return str(ordered_bits(v))
    return str(int(v)) if column.kind == "bool" else str(v)


def ordered_bits(v):
    """types/real.h."""
    if math.isnan(v):
        v = float("nan")
    bits, = struct.unpack("<q", struct.pack("<d", v + 0.0))
    return bits if bits >= 0 else bits ^ 0x7fffffffffffffff


# ─── SQLite

def load_sqlite(connection, tables):
    connection.execute("pragma case_sensitive_like = on")
    for t in tables:
        names = ", ".join("%s %s" % (c.name, "text" if c.kind in ("text", "date", "timestamp") else
                                     "real" if c.kind == "double" else "integer") for c in t.columns)
        connection.execute("drop table if exists " + t.name)
        connection.execute("create table %s (%s)" % (t.name, names))
        connection.executemany("insert into %s values (%s)" % (t.name, ", ".join("?" * len(t.columns))),
                               [[plain(v) for v in row] for row in t.rows])
        for c in t.columns:
            if t.big() and c.distinct > 1000:
                connection.execute("create index %s_%s on %s (%s)" % (t.name, c.name, t.name, c.name))


def plain(v):
    if isinstance(v, Decimal):
        return float(v)
    return str(v) if isinstance(v, datetime.date) else int(v) if isinstance(v, bool) else v
