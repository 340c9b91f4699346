"""Changes at random of a record table, in transactions and alone, and what the table holds after each.

    Changes(world, counts).run(250)

A statement that NAM refuses by name (0A000) fails in PostgreSQL as well, so that a transaction ends alike in both.
Nothing is tried where NAM differs on purpose (docs/design/numbers-and-types.md): UPDATE that moves keys over each other,
integers beyond 32 bits on their way into a column, and several errors at once."""
import compare
import postgres
import tables
from tables import Column, Table

ROWS = 10_500
STEP = 3              # between the keys that are there first
EVERY = 40            # changes, between comparisons of all rows
MOST_CHANGES = 8      # of a transaction, which writes at most 511 rows


def table():
    c = Column
    return Table("c", [c("id", "int", ROWS, nullable=False), c("k", "int", 40), c("n", "num", 400, (8, 2)),
                       c("s", "text", 14, 8), c("d", "date", 700), c("b", "bool", 2), c("u", "int", ROWS, nullable=False),
                       c("r", "double", 300)], ROWS, records=True)


class Changes:
    def __init__(self, world, counts):
        self.world, self.counts, self.r = world, counts, world.r
        self.in_transaction, self.failed, self.log = 0, False, []
        self.touched = 1

    def prepare(self):
        t = table()
        tables.fill(self.r, [t])
        for i, row in enumerate(t.rows):
            row[0], row[6] = (i + 1) * STEP, i
        columns = "id bigint primary key, k bigint check (k > -50), n numeric(8, 2), s varchar(8), d date, b boolean, " \
                  "u bigint not null, r double precision"
        self.world.postgres.must("set statement_timeout = 0; drop table if exists c; create table c (%s)" % columns)
        self.world.nam.must("create table c (%s) with (storage = record)" % columns)
        for first in range(0, len(t.rows), 400):
            statement = "insert into c values " + tables.values(t.rows[first:first + 400])
            self.world.postgres.must(statement)
            self.world.nam.must(statement)
        self.world.postgres.must("create index on c (k)")
        if self.r.random() < 0.5:
            self.world.nam.must("create index on c (k)")

    # ─── Statements

    def pick(self, *options):
        return self.r.choice(options)

    def key(self):
        """Of a row that is there, or was, or not."""
        roll = self.r.random()
        if roll < 0.3:
            return self.touched
        return self.r.randint(1, ROWS) * STEP + (0 if roll < 0.85 else self.r.randint(1, 2))

    def where(self):
        key = self.key()
        return self.pick("id = %d" % key, "id between %d and %d" % (key, key + 30), "id in (%d, %d, %d)" % (key, key + STEP, self.key()),
                         "id > %d and id <= %d and k = %d" % (key, key + 200, self.r.randint(-3, 26)),
                         "id >= %d and id < %d and (s like '%%a%%' or n is null)" % (key, key + 60),
                         "k = %d and id < %d" % (self.r.randint(-3, 26), self.r.randint(1, 2000)),
                         "id = %d and b" % key, "u between %d and %d" % (key // STEP, key // STEP + 5),
                         "id between %d and %d and s in (select s from c where id = %d)" % (key, key + 40, key),
                         "id between %d and %d and exists (select 1 from v where v.k = c.k)" % (key, key + 40))

    def row(self, key):
        values = [tables.value(self.r, column) for column in table().columns]
        values[0], values[6] = key, self.r.randint(0, 10**6)
        return values

    def insert(self):
        keys = [self.key() for _ in range(self.r.randint(1, 4))]
        wrong = self.r.random() < 0.12
        if wrong or self.r.random() < 0.85:
            keys = [self.r.randint(1, 10**9) * STEP + 1 for _ in keys]
        rows = [self.row(key) for key in keys]
        self.touched = keys[0]
        texts = [[tables.literal(v) for v in row] for row in rows]
        if wrong:
            place, text = self.pick((1, "-50"), (6, "null"), (3, "'too long by far'"), (2, "1234567.5"), (0, "null"),
                                    (2, "1 / 0"), (4, "'1995-02-30'"), (3, "'ends in blanks    '"))
            texts[-1][place] = text
        if self.r.random() < 0.1:
            texts = [[v if i != 1 else "default" for i, v in enumerate(row)] for row in texts]
        body = ", ".join("(" + ", ".join(row) + ")" for row in texts)
        columns = "" if self.r.random() < 0.7 else " (id, k, n, s, d, b, u, r)"
        return "insert into c%s values %s" % (columns, body)

    def update(self):
        sets = self.r.sample(["k = k + 1", "n = n * 2", "s = s || 'x'", "s = upper(s)", "d = d + 1", "b = not b", "u = u + id",
                              "k = null", "n = case when n > 1 then n - 1 else n + 0.125 end", "s = coalesce(s, 'none')",
                              "r = r * 2", "k = length(s)", "n = k", "d = '1999-12-31'", "k = k - 60", "n = n * 1000000",
                              "u = null", "s = s || s || s", "k = (select max(v.k) from v)",
                              "n = (select q.n from q where q.id = c.k)"], self.r.randint(1, 2))
        if len({s.split(" ")[0] for s in sets}) < len(sets):
            sets = sets[:1]
        if sum(s in ("k = k - 60", "n = n * 1000000", "u = null", "s = s || s || s", "s = s || 'x'", "n = n * 2") for s in sets) > 1:
            sets = sets[:1]
        return "update c set %s where %s" % (", ".join(sets), self.where())

    def statement(self):
        roll = self.r.random()
        if roll < 0.06:
            return "update c set id = %d where id = %d" % (self.r.randint(1, 10**9) * STEP + 2, self.key())
        if roll < 0.35:
            return self.insert()
        if roll < 0.7:
            return self.update()
        if roll < 0.88:
            return "delete from c where " + self.where()
        if roll < 0.91:
            return "select * from c where " + self.where()
        if roll < 0.92:
            key = self.key()
            near = "c.id between %d and %d" % (key, key + 40)  # each row has one partner at most
            return self.pick("update c set n = q.k, s = q.s from q where q.id = c.k and " + near,
                             "update c set u = u + x.id from p x where x.id = c.k + 1 and %s returning c.id, x.s" % near,
                             "delete from c using q where q.id = c.k and q.b and " + near,
                             "delete from c using v where v.k = c.k and %s returning c.*" % near,
                             "with w as (select id, k, s from q where id < 40) update c set n = w.k, s = w.s from w where w.id = c.k and " + near,
                             "with w (x) as (select k from v where k is not null) delete from c where k in (select x from w) and " + near,
                             "delete from c where %s returning id, (select count(*) from v where v.k = c.k), k" % near,
                             "update c set n = n + 1 where %s returning id, n, (select max(q.n) from q where q.id = c.k)" % near,
                             "with w as (select max(k) as m, min(k) as l from v) update c set k = (select m from w) where k <> (select l from w) "
                             "and %s returning id, k" % near)
        if roll < 0.95:
            more = self.r.randint(1, 10**9) * STEP
            return self.pick("insert into c select id + %d, k, n, s, d, b, u, r from c where %s" % (more, self.where()),
                             "with w as (select * from c where %s) insert into c select id + %d, k, n, s, d, b, u, r from w" % (self.where(), more),
                             "insert into c (id, u, s) select g + %d, g, 'g' || g from generate_series(1, 5) g" % more,
                             "insert into c (id, u, s) select p.id + %d, count(*), max(q.s) from p left join q on p.k = q.k "
                             "where p.id < 60 group by p.id" % more,
                             "insert into c (u, id, k) select x.k + 9, %d + x.k, max(x.a) from v x where x.k is not null "
                             "group by x.k returning id - %d, k" % (more, more))
        if roll < 0.975:
            return "delete from c where %s returning id, k" % self.where()
        return self.insert() + self.pick(" on conflict do nothing", " on conflict (id) do update set k = excluded.k, s = c.s",
                                         " on conflict (id) do update set n = c.n + 1 where c.k > 10 returning id, n",
                                         " on conflict (id) do nothing returning id",
                                         " returning id, s, n")

    # ─── Running them

    def both(self, text):
        self.log.append(text)
        found = self.world.nam.run(text)
        if found.sqlstate == "0A000":
            self.counts.refused += 1
            self.counts.refusals.setdefault(found.message, text)
            if self.in_transaction:
                self.world.postgres.run("select 1 / 0")
                self.failed = True
            return ""
        expected = self.world.postgres.run(text)
        if expected.sqlstate and self.in_transaction:
            self.failed = True
        return compare.difference(expected, found, False)

    def check(self, text):
        """What a SELECT sees, unless the transaction has failed."""
        if self.failed:
            return ""
        return compare.difference(self.world.postgres.run(text), self.world.nam.run(text), False)

    def end(self):
        """Ends the transaction in both."""
        text = self.pick("commit", "commit", "rollback")
        self.log.append(text)
        found, expected = self.world.nam.run(text), self.world.postgres.run(text)
        self.in_transaction, self.failed = 0, False
        return "" if found.sqlstate == expected.sqlstate else compare.difference(expected, found, False)

    def step(self):
        if self.in_transaction and self.r.random() < max(0.25, self.in_transaction / MOST_CHANGES):
            difference = self.end()
        elif not self.in_transaction and self.r.random() < 0.35:
            difference, self.in_transaction = self.both("begin"), 1
        else:
            difference = self.both(self.statement())
            self.in_transaction += bool(self.in_transaction)
        if difference:
            return difference
        return self.check("select count(*), sum(id), sum(k), sum(n), count(s), min(s), max(s), max(d), sum(u), count(b), max(r) from c") or \
            self.check("select * from c where id between %d and %d" % (self.touched - 100, self.touched + 100))

    def run(self, count):
        if count <= 0:
            return
        self.prepare()
        for i in range(count):
            difference = self.step() or (self.check("select * from c") if i % EVERY == EVERY - 1 else "")
            if not difference:
                self.counts.same_changes += 1
                continue
            statements = "\n  ".join(text + ";" for text in self.log[-12:])
            self.counts.differences.append((str(self.world), self.log[-1], difference))
            print("DIFFERENCE, %s, change %d\n  %s\n  NAM: %s\n" % (self.world, i, statements, difference), flush=True)
            if self.in_transaction:
                self.world.nam.run("rollback")
                self.world.postgres.run("rollback")
                self.in_transaction, self.failed = 0, False
            self.same_again()
        if self.in_transaction:
            self.end()

    def same_again(self):
        """NAM's table becomes PostgreSQL's."""
        if not self.check("select * from c"):
            return
        rows = self.world.postgres.must("select * from c").rows
        kinds = [c.kind for c in table().columns]
        self.world.nam.must("drop table c")
        self.world.nam.must("create table c (id bigint primary key, k bigint check (k > -50), n numeric(8, 2), s varchar(8), "
                            "d date, b boolean, u bigint not null, r double precision) with (storage = record)")
        shown = [["null" if v is None else v if kind in ("int", "num") else "'" + v.replace("'", "''") + "'"
                  for kind, v in zip(kinds, row)] for row in rows]
        for first in range(0, len(shown), 400):
            self.world.nam.must("insert into c values " + ", ".join("(" + ", ".join(row) + ")" for row in shown[first:first + 400]))
