"""Changes at random of a record table, in transactions with savepoints and alone, and what the table holds after each.

    Changes(world, counts).run(250)

A statement that NAM refuses by name (0A000) fails in PostgreSQL as well, so that a transaction ends alike in both.
Nothing is tried where NAM differs on purpose (docs/design/numbers-and-types.md): UPDATE that moves keys over each other,
integers beyond 32 bits on their way into a column, and several errors at once."""
import compare
import kinds
import postgres
import prepared
import tables
from expressions import CONSTANTS
from tables import Column, Table

ROWS = 10_500
STEP = 3              # between the keys that are there first
SMALL = 40            # rows of the small table
EVERY = 40            # changes, between comparisons of all rows
MOST_CHANGES = 8      # of a transaction
PREPARED_SHARE = 0.12
SAVEPOINT_SHARE = 0.3  # of the statements of a transaction
BACK_SHARE = 0.7       # of transactions that have failed behind a savepoint go on from one
SMALL_COLUMNS = "id bigint primary key, a bytea, o uuid, y timestamptz default timestamptz '1996-02-03 04:05+00', w time default '12:30'"
PARENTS = 12            # keys of parents, about as many as there are
PARENT_COLUMNS = "id int primary key, u int, w varchar(3), n int, unique (w, u)"
CHILD_COLUMNS = "id int primary key, r int references fp, u int, w varchar(3) default 'a', up int references fc, n int, foreign key (u, w) references fp (u, w)"
REFERENCE_SHARE = 0.12
CHECKS = {"k": "check (k > -50)", "w": "check (w <> '12:34:56')", "i": "check (i < interval '1000 years')"}


def table():
    c = Column
    return Table("c", [c("id", "int", ROWS, nullable=False), c("k", "int", 40), c("n", "num", 400, (8, 2)),
                       c("s", "text", 14, 8), c("d", "date", 700), c("b", "bool", 2), c("u", "int", ROWS, nullable=False),
                       c("r", "double", 300), c("w", "time", 300), c("y", "zoned", 500), c("o", "uuid", 400),
                       c("i", "interval", 200), c("z", "timestamp", 500)], ROWS, records=True)


def definition():
    return ", ".join(" ".join([c.name, c.type(), "primary key" if c.name == "id" else "" if c.nullable else "not null", CHECKS.get(c.name, "")])
                     for c in table().columns)


NAMES = ", ".join(column.name for column in table().columns)
BEHIND_ID = NAMES.removeprefix("id, ")


class Changes:
    def __init__(self, world, counts):
        self.world, self.counts, self.r = world, counts, world.r
        self.in_transaction, self.failed, self.log = 0, False, []
        self.savepoints = []  # names that the transaction has given; some of them are released again
        self.touched = 1

    def prepare(self):
        t = table()
        tables.fill(self.r, [t])
        for i, row in enumerate(t.rows):
            row[0], row[6] = (i + 1) * STEP, i
        self.world.postgres.must("set statement_timeout = 0; drop table if exists c, g; create table c (%s)" % definition())
        self.world.nam.must("create table c (%s) with (storage = record)" % definition())
        for first in range(0, len(t.rows), 400):
            statement = "insert into c values " + tables.values(t.rows[first:first + 400])
            self.world.postgres.must(statement)
            self.world.nam.must(statement)
        self.world.postgres.must("create index on c (k)")
        for column in ("k", "w", "y", "o"):
            if self.r.random() < 0.4:
                self.world.nam.must("create index on c (%s)" % column)
        self.prepare_bytes()

    def prepare_bytes(self):
        """A small table of its own: bytea takes 1,000 bytes of a row."""
        self.world.postgres.must("create table g (%s)" % SMALL_COLUMNS)
        self.world.nam.must("create table g (%s) with (storage = record)" % SMALL_COLUMNS)
        for i in range(SMALL):
            statement = self.insert_small(i + 1)
            self.world.postgres.must(statement)
            self.world.nam.must(statement)
        self.prepare_references()

    def prepare_references(self):
        """A parent and its child, both small, so that their rows meet."""
        self.world.postgres.must("drop table if exists fc, fp; create table fp (%s); create table fc (%s)" % (PARENT_COLUMNS, CHILD_COLUMNS))
        for name, columns in (("fp", PARENT_COLUMNS), ("fc", CHILD_COLUMNS)):
            self.world.nam.must("create table %s (%s) with (storage = record)" % (name, columns))

    # ─── Statements

    def constant(self, kind):
        return self.r.choice(CONSTANTS[kind])

    def insert_small(self, key):
        a, o, y = (tables.literal(kinds.value(self.r, Column("", kind, 40))) for kind in ("bytes", "uuid", "zoned"))
        return "insert into g (id, a, o, y) values (%d, %s, %s, %s)" % (key, a, o, self.pick(y, "default"))

    def small(self):
        """A change of the small table."""
        key = self.r.randint(1, SMALL + 10)
        a, o, y, w = (self.constant(kind) for kind in ("bytes", "uuid", "zoned", "time"))
        where = self.pick("id = %d" % key, "a = %s" % a, "o >= %s and id < %d" % (o, key), "a in (%s, %s)" % (a, self.constant("bytes")),
                          "y < %s" % y, "w = %s or id = %d" % (w, key), "length(a) > 2", "o is null")
        return self.pick("insert into g (id, a, o) values (%d, %s, %s) on conflict (id) do update set a = excluded.a || g.a, w = %s" % (key, a, o, w),
                         "insert into g (id, a) values (%d, %s) on conflict do nothing returning id, a, o, y, w" % (key, a),
                         "update g set a = substring(a || %s from 1 for 12), y = y + interval '1 month' where %s" % (a, where),
                         "update g set o = %s, w = w + interval '90 minutes' where %s returning id, o, w" % (o, where),
                         "update g set a = %s, y = %s where %s returning *" % (a, y, where),
                         "delete from g where %s and id > 20 returning id, encode(a, 'hex')" % where,
                         "select * from g where %s" % where, "select o, count(*), max(y), min(w) from g group by o")

    def reference(self):
        """A change of the parent or of its child."""
        p, q, c, d = (self.r.randint(1, PARENTS) for _ in range(4))
        w = self.pick("'a'", "'a'", "'b'", "null")
        r, u, up = (self.pick(str(self.r.randint(1, PARENTS)), "null") for _ in range(3))
        where = self.pick("id = %d" % p, "id in (%d, %d)" % (p, q), "u = %d" % q, "id between %d and %d" % (p, p + 2), "n is null")
        of_child = self.pick("id = %d" % c, "r = %d" % p, "up = %d" % d, "id in (%d, %d)" % (c, d), "u = %d and w = %s" % (q, w))
        return self.pick("insert into fp values (%d, %d, %s, %s) on conflict (id) do nothing" % (p, p, w, u),
                         "insert into fp values (%d, %d, %s, 1) on conflict (id) do update set u = excluded.u, n = fp.n" % (p, q + 20, w),
                         "insert into fp (id, u, w) select g, g, 'a' from generate_series(%d, %d) g on conflict do nothing" % (p, p + 2),
                         "insert into fc values (%d, %s, %s, %s, %s)" % (c, r, u, w, up), "insert into fc (id, r, up) values (%d, %s, %d)" % (c, r, c),
                         "insert into fc (id, r, u) values (%d, %s, %s), (%d, %d, null)" % (c, r, u, d + 20, q),
                         "insert into fc (id, r, up) values (%d, %s, %s) on conflict (id) do update set r = excluded.r, n = 1" % (c, r, up),
                         "insert into fc (id, r) select id + 30, id from fp where %s on conflict do nothing returning id, r" % where,
                         "update fc set r = %s, n = 5 where %s" % (r, of_child), "update fc set up = %s where %s returning id" % (up, of_child),
                         "update fc set u = %s, w = %s where %s" % (u, w, of_child), "update fc set id = %d where id = %d" % (d + 50, c),
                         "update fc set n = fp.n from fp where fp.id = fc.r and " + "fc.id = %d" % c,
                         "update fp set id = %d where id = %d" % (q + 70, p), "update fp set u = u + 40, n = 2 where %s" % where,
                         "update fp set n = 3 where %s" % where, "update fp set w = %s where id = %d" % (w, p),
                         "delete from fp where %s" % where, "delete from fp where %s returning id, u" % where,
                         "delete from fp where id not in (select r from fc where r is not null) and id = %d" % p,
                         "delete from fc where %s" % of_child, "delete from fc where id = %d returning *" % c)

    def prepared(self):
        """A change with parameters, prepared, executed and forgotten: three statements."""
        key, many = self.key(), self.r.randint(1, 10**9) * STEP + 1
        w, y, o, i = (self.constant(kind) for kind in ("time", "zoned", "uuid", "interval"))
        types, body, arguments = self.pick(
            ("bigint, time, timestamptz", "update c set w = $2, y = $3 where id = $1", (key, w, y)),
            ("", "update c set w = $2, o = $3, i = $4 where id = $1 returning id, w, o, i", (key, w, o, i)),
            ("bigint, uuid, interval", "update c set o = $2, i = i + $3 where id between $1 and $1 + 30 and i < interval '5 years'", (key, o, i)),
            ("bigint, interval", "delete from c where id between $1 and $1 + 20 and y < timestamptz '1996-01-01 00:00+00' + $2", (key, i)),
            ("", "insert into c (id, u, w, y, o, i) values ($1, 5, $2, $3, $4, $5) returning *", (many, w, y, o, i)),
            ("bigint, numeric, text, date, boolean", "insert into c (id, u, n, s, d, b) values ($1, $1, $2, $3, $4, $5)",
             (many, self.constant("num").replace("123456789.12", "7.125"), self.constant("text"), self.constant("date"), self.constant("bool"))),
            ("", "select * from c where id = $1 and (w = $2 or y <= $3 or o > $4 or i = $5)", (key, w, y, o, i)),
            ("bigint", "insert into c (id, u) select $1 + g, $1 from generate_series(1, 3) g returning id", (many,)))
        return ["prepare s%s as %s" % (" (%s)" % types if types else "", body), "execute s (%s)" % ", ".join(map(str, arguments)), "deallocate s"]

    def savepoint(self):
        """Of any name, which may not be there; of a transaction that has failed mostly the way back."""
        name = self.r.choice(self.savepoints) if self.savepoints and self.r.random() < 0.9 else self.pick("a", "b", "c")
        if self.failed:
            return self.pick("rollback to ", "rollback to ", "rollback to savepoint ", "release ", "savepoint ") + name
        if not self.savepoints or self.r.random() < 0.4:
            name = self.pick("a", "b", "c")
            self.savepoints.append(name)
            return "savepoint " + name
        return self.pick("rollback to ", "rollback work to savepoint ", "release ") + name

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
                         "id between %d and %d and exists (select 1 from v where v.k = c.k)" % (key, key + 40),
                         "id between %d and %d and w >= %s" % (key, key + 60, self.constant("time")),
                         "id between %d and %d and (y < %s or i > %s)" % (key, key + 60, self.constant("zoned"), self.constant("interval")),
                         "y = %s and id < %d" % (self.constant("zoned"), self.r.randint(1, 9000)),
                         "w in (%s, %s) and id < %d" % (self.constant("time"), self.constant("time"), self.r.randint(1, 4000)),
                         "o = %s and id < %d" % (self.constant("uuid"), self.r.randint(1, 20000)),
                         "o between %s and %s and id < 300" % (self.constant("uuid"), self.constant("uuid")),
                         "id between %d and %d and o in (select q.o from q where q.w > c.w)" % (key, key + 90))

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
                                    (2, "1 / 0"), (4, "'1995-02-30'"), (3, "'ends in blanks    '"), (8, "'25:00'"),
                                    (8, "'12:34:56'"), (9, "'1995-13-01 00:00+00'"), (9, "'1995-03-26 02:30'"), (10, "'no uuid'"),
                                    (11, "'1 fortnight'"), (11, "'2000 years'"), (9, "timestamp '1995-09-24 02:30'"), (12, "timestamptz '1995-09-24 02:30'"))
            texts[-1][place] = text
        if self.r.random() < 0.1:
            texts = [[v if i != 1 else "default" for i, v in enumerate(row)] for row in texts]
        body = ", ".join("(" + ", ".join(row) + ")" for row in texts)
        columns = "" if self.r.random() < 0.7 else " (%s)" % NAMES
        return "insert into c%s values %s" % (columns, body)

    def update(self):
        sets = self.r.sample(["k = k + 1", "n = n * 2", "s = s || 'x'", "s = upper(s)", "d = d + 1", "b = not b", "u = u + id",
                              "k = null", "n = case when n > 1 then n - 1 else n + 0.125 end", "s = coalesce(s, 'none')",
                              "r = r * 2", "k = length(s)", "n = k", "d = '1999-12-31'", "k = k - 60", "n = n * 1000000",
                              "w = w + interval '1 hour'", "w = '24:00'", "w = y::time", "y = y + interval '1 month'", "y = d", "y = z",
                              "o = md5(s)::uuid", "o = null", "i = i + interval '1 day'", "i = z - timestamp '1996-01-01'",
                              "i = justify_interval(least(i, interval '2 years') * 2)", "z = y", "z = d + w", "d = y", "y = %s" % self.constant("zoned"),
                              "w = %s" % self.constant("time"), "i = %s" % self.constant("interval"), "o = %s" % self.constant("uuid"),
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
            return self.pick("insert into c select id + %d, %s from c where %s" % (more, BEHIND_ID, self.where()),
                             "with w as (select * from c where %s) insert into c select id + %d, %s from w" % (self.where(), more, BEHIND_ID),
                             "insert into c (id, u, w, y, o, i) select q.id + %d, q.id, q.w, q.y, q.o, q.i from q where q.id < 12" % more,
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
        if text.startswith("rollback ") and not expected.sqlstate:
            self.failed = False
            self.forget_prepared()
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
        self.in_transaction, self.failed, self.savepoints = 0, False, []
        self.forget_prepared()
        return "" if found.sqlstate == expected.sqlstate else compare.difference(expected, found, False)

    def step(self):
        goes_back = self.failed and self.savepoints and self.r.random() < BACK_SHARE
        if self.in_transaction and (goes_back or self.r.random() < SAVEPOINT_SHARE):
            difference = self.both(self.savepoint())
        elif self.in_transaction and self.r.random() < max(0.25, self.in_transaction / MOST_CHANGES):
            difference = self.end()
        elif not self.in_transaction and self.r.random() < 0.35:
            difference, self.in_transaction = self.both("begin"), 1
        else:
            statements = self.prepared() if self.r.random() < PREPARED_SHARE else [self.reference() if self.r.random() < REFERENCE_SHARE else self.small() if self.r.random() < 0.1 else self.statement()]
            difference = ""
            for statement in statements:
                difference = difference or self.both(statement)
            self.in_transaction += bool(self.in_transaction)
        if difference:
            return difference
        sums = "count(*), sum(id), sum(k), sum(n), count(s), min(s), max(s), max(d), sum(u), count(b), max(r), min(w), max(y), " \
               "sum(justify_interval(i)), count(distinct o), max(o::text)"
        near = "id between %d and %d" % (self.touched - 100, self.touched + 100)
        return self.check("select %s from c" % sums) or self.check("select * from c where " + near) or self.check("select * from g") or \
            self.check("select * from fp") or self.check("select * from fc")

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
                self.in_transaction, self.failed, self.savepoints = 0, False, []
            self.same_again()
        if self.in_transaction:
            self.end()

    def forget_prepared(self):
        """What DEALLOCATE could not, in a transaction that had failed."""
        self.world.nam.run(prepared.END)
        self.world.postgres.run(prepared.END)

    def same_again(self):
        """NAM's tables become PostgreSQL's."""
        self.forget_prepared()
        if self.check("select * from fp") or self.check("select * from fc"):
            self.world.nam.must("drop table fc")
            self.world.nam.must("drop table fp")
            self.prepare_references()
        if not (self.check("select * from c") or self.check("select * from g")):
            return
        for name, columns in (("c", definition()), ("g", SMALL_COLUMNS)):
            answer = self.world.postgres.must("select * from %s" % name)
            self.world.nam.must("drop table %s" % name)
            self.world.nam.must("create table %s (%s) with (storage = record)" % (name, columns))
            shown = [["null" if v is None else v if kind in ("int", "num") else "'" + v.replace("'", "''") + "'"
                      for kind, v in zip(answer.kinds, row)] for row in answer.rows]
            for first in range(0, len(shown), 400):
                rows = ", ".join("(" + ", ".join(row) + ")" for row in shown[first:first + 400])
                self.world.nam.must("insert into %s values %s" % (name, rows))
