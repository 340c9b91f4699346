"""Tables of random rows, for PostgreSQL, for SQLite, and for both kinds of NAM's tables.

Kinds of columns are in kinds.py. A column's `distinct` is about how many values it has, by which queries tell which joins
they can afford."""
from kinds import STORED, TYPES, literal, plain, stored, value


class Column:
    def __init__(self, name, kind, distinct, modifier=None, nullable=True, nulls=0.12):
        self.name, self.kind, self.distinct, self.modifier = name, kind, distinct, modifier
        self.nullable, self.nulls = nullable, nulls if nullable else 0

    def type(self):
        if self.kind == "num":
            return "numeric(%d, %d)" % self.modifier
        return "varchar(%d)" % self.modifier if self.kind == "text" else TYPES[self.kind]


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
                    c("r", "double", 300), c("z", "timestamp", rows), c("w", "time", 300), c("y", "zoned", rows // 3)], rows,
              partitions=[("id", 4)]),
        Table("h", [c("id", "int", rows, nullable=False), c("f_id", "int", rows // 2), c("k", "int", 30),
                    c("n", "num", 400, (12, 2)), c("s", "text", 14, 12), c("d", "date", 700), c("b", "bool", 2),
                    c("r", "double", 300), c("z", "timestamp", 500), c("y", "zoned", 500), c("o", "uuid", rows // 3),
                    c("i", "interval", 200)], rows - 300, records=True),
        Table("p", [c("id", "int", 600, nullable=False), c("k", "int", 30), c("x", "big", 12), c("n", "num", 40, (12, 2)),
                    c("s", "text", 14, 12), c("d", "date", 60), c("b", "bool", 2), c("w", "time", 30), c("y", "zoned", 60)],
              600, partitions=[("id", 3)]),
        Table("q", [c("id", "int", 250, nullable=False), c("p_id", "int", 120), c("k", "int", 30),
                    c("n", "num", 40, (10, 3)), c("s", "text", 14, 12), c("t", "text", 120, 20), c("b", "bool", 2),
                    c("w", "time", 30), c("y", "zoned", 60), c("o", "uuid", 40), c("a", "bytes", 40), c("i", "interval", 40)],
              250, records=True),
        Table("l", [c("id", "int", 90, nullable=False), c("k", "int", 30), c("w", "time", 7), c("y", "zoned", 8), c("o", "uuid", 7),
                    c("a", "bytes", 12), c("i", "interval", 10), c("j", "span", 12), c("z", "timestamp", 20)], 90, records=True),
        Table("v", [c("k", "int", 9, nulls=0.2), c("a", "int", 5, nulls=0.2), c("s", "text", 4, 8, nulls=0.2)], 40),
        Table("e", [c("k", "int", 1), c("s", "text", 1, 8), c("n", "num", 1, (8, 2))], 0),
    ]


def fill(r, tables):
    for table in tables:
        table.rows = [[i + 1 if c.name == "id" else value(r, c) for c in table.columns]
                      for i in range(table.row_count)]
        table.block_bytes = r.choice([4096, 16384, 65536])
        table.pointer_group = r.choice([2, 8, 32])


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
        for first in range(0, len(t.rows), 400):
            nam.must("insert into %s values %s" % (t.name, values(t.rows[first:first + 400])))


def columnar(table):
    """What load_tables.cc reads."""
    lines = ["table %s %d %d" % (table.name, table.block_bytes, table.pointer_group)]
    for c in table.columns:
        modifier = c.modifier[1] if c.kind == "num" else c.modifier or 0
        lines.append("column %s %s %d %d" % (c.name, STORED[c.kind], modifier, c.nullable))
    lines += ["partition %s %d" % (column, parts) for column, parts in table.partitions]
    lines.append("rows %d" % len(table.rows))
    for row in table.rows:
        lines.append("\t".join(stored(v, c) for v, c in zip(row, table.columns)))
    return "\n".join(lines) + "\n"


# ─── SQLite

def load_sqlite(connection, tables):
    connection.execute("pragma case_sensitive_like = on")
    for t in tables:
        names = ", ".join("%s %s" % (c.name, "real" if c.kind == "double" else
                                     "integer" if c.kind in ("int", "big", "num", "bool") else "text") for c in t.columns)
        connection.execute("drop table if exists " + t.name)
        connection.execute("create table %s (%s)" % (t.name, names))
        connection.executemany("insert into %s values (%s)" % (t.name, ", ".join("?" * len(t.columns))),
                               [[plain(v) for v in row] for row in t.rows])
        for c in t.columns:
            if t.big() and c.distinct > 1000:
                connection.execute("create index %s_%s on %s (%s)" % (t.name, c.name, t.name, c.name))
