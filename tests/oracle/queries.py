"""Queries at random over the tables of tables.py. What they return does not depend on the order of the work:

- LIMIT comes with an order of all columns, and functions that number rows stand over orders of all that they see.
- Quotients, averages and what is like them stand only where nothing is compared or grouped by them.
- Nothing that might be an error is asked where the order of evaluation decides whether it is reached.

Nested loops get at most `MOST_LOOP_ROWS` rows; joins of facts are by columns of many values.

    queries.py SEED COUNT > QUERIES

writes queries over the tables of tests/sql/logical_tables.py, for tests/sql/make_logical_results.py."""
import os
import random
import sys

import shrink
import tables as table_kinds
from expressions import ALL_KINDS, CONSTANTS, Expressions, Item, Scope
from kinds import LATE
from prepared import Prepared

MOST_LOOP_ROWS = 2000
JOINED_KINDS = ["int", "text", "date"] + LATE
NO_EXTREMES = ["uuid", "bytes"]  # for which PostgreSQL has no min and max
MOST_ROWS = 40_000       # of an intermediate result, as estimated


class Generator(Expressions):
    def __init__(self, seed, tables, plain=False, prepared=False):
        """`plain`: only what SQLite understands alike. `prepared`: makes parameters of some constants (prepared.py)."""
        self.r = random.Random(seed)
        self.tables, self.plain = tables, plain
        self.prepared = Prepared(self.r, CONSTANTS) if prepared else None
        self.names, self.ctes = 0, []
        self.kinds = ["int", "text", "date"] if plain else ALL_KINDS

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # ─── FROM

    def table(self, small):
        options = [t for t in self.tables if t.row_count and not t.big()] * 2
        if self.chance(0.25):
            options += [t for t in self.tables if not t.row_count]
        if not small:
            options += [t for t in self.tables if t.big()] * 4
        return self.r.choice(options)

    def item(self, scope, left, depth, small):
        """A FROM item under a new alias: its text, columns, rows, and whether it is lateral."""
        alias = self.name("q")
        roll = self.r.random()
        if depth > 0 and roll < 0.28:
            lateral = left is not None and self.chance(0.5) and not self.plain and left.loops() <= 3000
            around = Scope(left.items, left.rows, scope) if lateral else scope
            if not lateral and around is not None and around.loops() > 3000:
                around = None
            kinds = [self.any_kind() for _ in range(self.r.randint(1, 3))]
            if "int" not in kinds:
                kinds[0] = "int"
            sql = self.query(around if lateral else None, depth - 1, kinds, small)
            names = [self.name("c") for _ in kinds]
            rows = 300 if small else 3000
            if self.plain:  # SQLite has no column aliases behind a table's alias
                body = f"select {', '.join(names)} from {self.name('w')}"
                with_ = body.split(" from ")[1]
                text = f"(with {with_} ({', '.join(names)}) as ({sql}) {body}) {alias}"
            else:
                text = f"{'lateral ' if lateral else ''}({sql}) {alias} ({', '.join(names)})"
            return text, [Item(f"{alias}.{n}", k, 10) for n, k in zip(names, kinds)], rows, lateral
        if self.ctes and roll < 0.45:
            cte, names, kinds = self.r.choice(self.ctes)
            return f"{cte} {alias}", [Item(f"{alias}.{n}", k, 10) for n, k in zip(names, kinds)], 300, False
        if roll > 0.97 and not self.plain:
            return self.series(alias, left)
        table = self.table(small)
        items = [Item(f"{alias}.{c.name}", kind, c.distinct) for c in table.columns
                 for kind in ["interval" if c.kind == "span" else c.kind] if kind in self.kinds]
        return f"{table.name} {alias}", items, table.row_count, False

    def series(self, alias, left):
        """generate_series, perhaps of a column that stands to its left."""
        name = self.name("c")
        column = self.column("int", Scope(left.items, left.rows)) if left is not None and left.rows <= 3000 and self.chance(0.5) else None
        if column:
            ends = self.pick(f"1, {column} % 7", f"{column} % 5, 3", f"{column} % 9, -2, -2", f"{column}, {column} + 2")
            return f"generate_series({ends}) {alias} ({name})", [Item(f"{alias}.{name}", "int", 10)], 4, True
        kind, ends, rows = self.pick(
            ("int", "1, 12", 12), ("int", "-3, 40, 7", 7), ("int", "10, 1, -1", 10), ("int", "5, 1", 0), ("int", "1, 900", 900),
            ("num", "0, 2, 0.25", 9), ("num", "10.5, -3, -1.5", 10),
            ("timestamp", "timestamp '1995-01-31', timestamp '1996-03-01', interval '1 month'", 14),
            ("timestamp", "timestamp '1996-01-02', '1995-12-30', '-12 hours'", 7),
            ("zoned", "timestamptz '1995-09-23 20:00+00', '1995-09-24 06:00+00', '1 hour'", 11))
        text = f"generate_series({ends}) {alias}"
        if self.chance(0.3):  # the column is called as the table
            return text, [Item(f"{alias}.{alias}", kind, rows)], rows, False
        return f"{text} ({name})", [Item(f"{alias}.{name}", kind, rows)], rows, False

    def from_clause(self, scope, depth, small=False):
        text, items, rows, _ = self.item(scope, None, depth, small)
        for _ in range(self.r.choice([0, 0, 0, 1] if small else [0, 0, 1, 1, 2])):
            left = Scope(items, rows, scope)
            right, more, count, lateral = self.item(scope, left, depth, small)
            joined = self.joined(left, Scope(more, count, scope), text, right, depth, lateral)
            if joined is None:
                continue
            text, rows = joined
            items = items + more
        return text, Scope(items, rows, scope)

    def joined(self, left, right, text, right_text, depth, lateral):
        """The join's text and rows; None if it would be too large."""
        pairs = [(a, b) for a in left.items for b in right.items if a.kind == b.kind and a.kind in JOINED_KINDS]
        rows = lambda pair: left.rows * right.rows / max(pair[0].distinct, pair[1].distinct, 1)
        pairs = [pair for pair in pairs if rows(pair) <= MOST_ROWS]
        loops = max(left.rows, right.rows) <= MOST_LOOP_ROWS and left.rows * right.rows <= MOST_ROWS
        kind = self.r.choice(["join", "join", "join", "left join", "left join", "cross join"] +
                             ([] if lateral else ["right join", "full join"]))
        if kind == "cross join" or (lateral and self.chance(0.3)):
            if not loops:
                return None
            return f"{text} cross join {right_text}", left.rows * right.rows
        if kind == "full join":
            if not pairs:
                return None
            a, b = self.r.choice(pairs)
            return f"{text} full join {right_text} on {a.name} = {b.name}", max(rows((a, b)), left.rows, right.rows)
        merged = [] if self.plain else self.merged(left, right, pairs)
        if merged and self.chance(0.3):
            a, b = self.r.choice(merged)
            return (f"{text} {kind} {right_text} using ({a.name.split('.')[1]})",
                    max(rows((a, b)), left.rows if kind == "left join" else 0))
        both = Scope(left.items + right.items, 1, left.outer)
        if pairs and (not loops or self.chance(0.7)):
            a, b = self.r.choice(pairs)
            condition = f"{a.name} = {b.name}"
            if self.chance(0.15):
                a, b = self.r.choice(pairs)
                condition += f" and {a.name} = {b.name}"
            if self.chance(0.35):
                condition += f" and {self.condition(both, 1 if loops and self.chance(0.3) else 0)}"
            return f"{text} {kind} {right_text} on {condition}", max(rows((a, b)), left.rows if kind == "left join" else 0)
        if not loops:
            return None
        return f"{text} {kind} {right_text} on {self.condition(both, depth if self.chance(0.2) else 0)}", left.rows * right.rows / 3

    @staticmethod
    def merged(left, right, pairs):
        """Pairs that USING may name: of columns whose name is there once on each side."""
        def once(side, name):
            return sum(item.name.split(".")[1] == name for item in side.items) == 1
        named = [(a, b, a.name.split(".")[1]) for a, b in pairs if a.name.split(".")[1] == b.name.split(".")[1]]
        return [(a, b) for a, b, name in named if once(left, name) and once(right, name)]

    # ─── Queries

    def nulls(self):
        if self.plain:
            return self.pick("nulls first", "nulls last", "desc nulls first", "desc nulls last")
        return self.pick("", "", "desc", "nulls first", "desc nulls last")

    def select(self, scope, depth, kinds, small=False, top=False):
        from_, inner = self.from_clause(scope, depth, small)
        where = self.where(inner, depth, 0.6)
        roll = self.r.random()
        if roll < 0.34:
            return self.grouped(inner, depth, kinds, from_, where, top)
        if roll < 0.46 and not (scope and self.plain):
            return self.windowed(inner, kinds, from_, where, top)
        outputs = [self.value(kind, inner, depth) for kind in kinds]
        if roll < 0.52 and not self.plain and inner.items:
            return self.distinct_on(inner, outputs, from_, where)
        distinct = "distinct " if self.chance(0.2) and "double" not in kinds else ""
        return f"select {distinct}{', '.join(outputs)} from {from_}{where}"

    def distinct_on(self, inner, outputs, from_, where):
        """The first row of each key, by an order of all columns."""
        names = [item.name for item in inner.items]
        self.r.shuffle(names)
        order = ", ".join(f"{name} {self.nulls()}" for name in names)
        return f"select distinct on ({', '.join(names[:self.r.randint(1, 2)])}) {', '.join(outputs)} from {from_}{where} order by {order}"

    def aggregate(self, kind, own, top):
        """A call of the kind over columns of this query."""
        argument = self.column(kind, own)
        filter_ = f" filter (where {self.condition(Scope(own.items, own.rows), 0)})" if self.chance(0.15) else ""
        if kind == "int":
            any_column = argument or self.column("text", own) or "1"
            options = ["count(*)", f"count({any_column})", f"count(distinct {any_column})"]
            if argument:
                if not self.plain:
                    options += [f"bit_and({argument})", f"bit_or({argument})", f"bit_xor({argument})"]
                options += [f"sum({argument})", f"max({argument})", f"min({argument})", f"sum(distinct {argument})"]
        elif argument is None:
            return self.constant(kind)
        elif kind == "bool":
            options = [f"bool_and({argument})", f"bool_or({argument})", f"every({argument})"]
        elif kind == "num":
            options = [f"sum({argument})", f"max({argument})", f"min({argument})", f"sum(distinct {argument})"]
            number = self.column(self.pick("int", "num"), own)
            if top and number:
                other = self.column(self.pick("int", "num"), own)
                options += [f"avg({number})", f"avg(distinct {number})", f"stddev({number})", f"stddev_pop({number})",
                            f"variance({number})", f"var_pop({number})", f"avg({number})"]
                x, y = self.column("int", own), self.column("int", own)
                if x and y:
                    # Near 0 floating point has few digits that are right.
                    options += [f"round(regr_slope({x}, {y}){filter_}::numeric, 4)", f"round(regr_r2({x}, {y}){filter_}::numeric, 5)",
                                f"round(regr_intercept({x}, {y}){filter_}::numeric, 2)", f"regr_count({x}, {other}){filter_}::numeric"]
        elif kind == "text" and not self.plain and self.chance(0.3):
            options = [f"string_agg({argument}, ',' order by {argument} {self.nulls()})", f"string_agg(distinct {argument}, '')",
                       f"string_agg(left({argument}, 1), {argument} order by {argument})"]
        elif kind == "double" and top and self.chance(0.5):
            # PostgreSQL computes them of doubles: of decimals that are all alike it may find a correlation.
            x, y = self.column("int", own), self.column("int", own)
            options = [f"{name}({x}, {y})" for name in ("corr", "covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_sxx",
                                                        "regr_syy")] if x and y else [f"max({argument})"]
            # What rounding leaves of it is as large as the arguments' squares are: so these are added.
            options += [f"(power({name}({argument}), {power}){filter_} + max({argument} * {argument}))" for name, power in
                        (("var_pop", 1), ("stddev", 2), ("variance", 1))] + [f"regr_avgx({x or 1}, {argument})"]
        elif kind == "interval":
            options = [f"max({argument})", f"min({argument})", f"sum({argument})"]
            if top:
                options += [f"avg({self.parts(lambda k: argument)})", f"avg({self.column('time', own) or argument})" if
                            self.column("time", own) else f"min({argument})"]
        elif kind == "uuid":
            options = [f"cast({self.pick('min', 'max')}({argument}::text){filter_} as uuid)"]
        elif kind == "bytes":
            options = [f"decode({self.pick('min', 'max')}(encode({argument}, 'hex')){filter_}, 'hex')"]
        else:
            options = [f"max({argument})", f"min({argument})"]
        call = self.r.choice(options)
        if call.startswith(("(power(", "cast(", "decode(")) or ("::numeric" in call and call.startswith(("round(", "regr_"))):
            return call
        # A sum of bigint is numeric: only in the result its type may be any.
        whole = kind == "int" and call.startswith("sum") and not (top and not self.plain and self.chance(0.5))
        return f"cast({call}{filter_} as bigint)" if whole else call + filter_

    def grouped(self, inner, depth, kinds, from_, where, top):
        own = Scope(inner.items, inner.rows)
        keys = []
        for kind in kinds + ["int"]:
            column = self.column(kind, own)
            if column and not self.plain and self.chance(0.2):
                column = self.computed(kind, lambda k: self.column(k, own) or self.constant(k))
            if column and self.chance(0.6) and (column, kind) not in keys:
                keys.append((column, kind))
        # A constant alone is a place in the select list, or no key at all.
        keys = [(k, m) for k, m in keys if any(item.name in k for item in own.items)]
        bare = [k for k, _ in keys]

        def leaf(kind):
            same = [k for k, m in keys if m == kind]
            if same and self.chance(0.6):
                return self.r.choice(same)
            return self.aggregate(kind, own, False)

        outputs = [self.aggregate(k, own, True) if top and self.chance(0.3) else self.value(k, inner, depth, leaf) for k in kinds]
        if not keys:
            group = ""
        elif self.chance(0.7) or self.plain:
            group = " group by " + ", ".join(bare)
        else:
            word = self.pick("rollup", "cube", "grouping sets")
            sets = ", ".join(bare) + (", ()" if word == "grouping sets" and self.chance(0.5) else "")
            group = f" group by {word} ({sets})"
            for i, k in enumerate(kinds):
                if k == "int" and self.chance(0.3):
                    outputs[i] = f"grouping({', '.join(bare)})"
        if keys and not self.plain and self.chance(0.15):
            place = self.r.randrange(len(kinds))
            if kinds[place] in ("int", "num"):
                partition = f"partition by {self.r.choice(bare)} " if self.chance(0.4) else ""
                call = self.pick(f"sum({leaf(kinds[place])})", f"max({leaf(kinds[place])})",
                                 "rank()" if kinds[place] == "int" else f"min({leaf(kinds[place])})")
                outputs[place] = f"{call} over ({partition}order by {leaf('int')} {self.nulls()}, {leaf('text')} {self.nulls()})"
                if kinds[place] == "int" and call.startswith("sum"):
                    outputs[place] = f"({outputs[place]})::bigint"
        having = f" having {leaf('int')} {self.pick('<', '>', '<>')} {leaf('int')}" if self.chance(0.25) else ""
        if keys and self.chance(0.06) and depth > 0:
            inside, sub = self.from_clause(Scope([Item(k, m, 10) for k, m in keys if "(" not in k], 10), depth - 1, small=True)
            having = f" having exists (select 1 from {inside}{self.where(sub, 0, 0.9)})"
        if not keys:
            having = having + " and count(*) >= 0" if having else " having count(*) >= 0"
        return f"select {', '.join(outputs)} from {from_}{where}{group}{having}"

    def frame(self, order_kind):
        """A frame that does not ask for the order of equal rows."""
        offset = {"int": ("1", "3"), "num": ("0.75", "10"), "big": ("1", "1000"), "double": ("0.5", "100"),
                  "date": ("interval '20 days'", "interval '1 year 1 month'"),
                  "timestamp": ("interval '1 day 02:00'", "interval '2 months'"),
                  "time": ("interval '1 minute'", "interval '5 hours'"), "zoned": ("interval '1 day'", "interval '2 months'"),
                  "interval": ("interval '1 day'", "interval '2 months'")}.get(order_kind)
        options = ["", "", "", " range between unbounded preceding and current row",
                   " groups between 1 preceding and 1 following", " groups between current row and unbounded following",
                   " groups between 2 preceding and 1 preceding", " range between current row and unbounded following"]
        if offset and order_kind != "big":
            low, high = offset
            if self.prepared and self.chance(0.3):
                low = self.prepared.parameter("interval" if low.startswith("interval") else order_kind, low, fixed=True)
            options += [f" range between {low} preceding and {high} following",
                        f" range between unbounded preceding and {low} preceding",
                        f" range between {low} following and {high} following"]
        return self.excluding(self.r.choice(options))

    def excluding(self, frame):
        if not frame or self.plain or self.chance(0.6):
            return frame
        return frame + self.pick(" exclude current row", " exclude group", " exclude ties", " exclude no others")

    def windowed(self, inner, kinds, from_, where, top):
        own = Scope(inner.items, inner.rows)
        # Rows that are alike in all columns may come in another order to the next call: so one call counts them.
        counting = self.r.randrange(len(kinds))
        outputs = [self.window(kind, inner, own, top, i == counting) for i, kind in enumerate(kinds)]
        return f"select {', '.join(outputs)} from {from_}{where}"

    def window(self, kind, inner, own, top, counts):
        argument = self.column(kind, own)
        if argument is None or self.chance(0.2):
            return self.value(kind, inner, 0)
        partition = self.column(self.any_kind(), own)
        over = f"partition by {partition}" if partition and self.chance(0.55) else ""
        unique = counts and len(own.items) <= 14 and self.chance(0.7)
        if unique:
            names = [item.name for item in own.items]
            self.r.shuffle(names)
            over += " order by " + ", ".join(f"{name} {self.nulls()}" for name in names)
            over += self.excluding(self.pick(
                "", "", " rows between 2 preceding and current row", " rows between 1 following and 3 following",
                " rows between unbounded preceding and 1 preceding", " rows between 1 preceding and 1 following",
                " rows between current row and unbounded following"))
            ranks = [f"lag({argument})", f"lead({argument}, 2)", f"first_value({argument})", f"last_value({argument})",
                     f"nth_value({argument}, 2)", f"lag({argument}, 1, {self.constant(kind)})"]
            if kind == "int":
                ranks += ["row_number()", "ntile(4)", "rank()", "count(*)", f"sum({argument}){''}"]
            call = self.r.choice(ranks + ([f"sum({argument})"] if kind == "num" else []))
            text = f"{call} over ({over})"
            return f"cast({text} as bigint)" if call.startswith("sum") and kind == "int" else text
        if kind in NO_EXTREMES:
            return f"first_value({argument}) over ({over} order by {argument} {self.nulls()})"
        order_kind = self.any_kind()
        order = self.column(order_kind, own)
        if order and self.chance(0.8):
            over += f" order by {order} {self.nulls()}{self.frame(order_kind)}"
        if kind in ("int", "num"):
            options = [f"sum({argument})", f"max({argument})", f"min({argument})"]
            options += ["rank()", "dense_rank()", "count(*)", f"count({argument})"] if kind == "int" else []
            options += [f"avg({argument})", f"stddev({argument})", f"var_pop({argument})"] if kind == "num" and top else []
            options += [f"bit_or({argument})"] if kind == "int" and not self.plain else []
        elif kind == "interval":
            options = [f"sum({argument})", f"max({argument})", f"min({argument})", f"avg({self.parts(lambda k: argument)})" if top else f"sum({argument})"]
        elif kind == "double" and top:
            options = ["percent_rank()", "cume_dist()", f"max({argument})"]
        elif kind == "bool":
            options = [f"bool_and({argument})", f"bool_or({argument})"]
        else:
            options = [f"max({argument})", f"min({argument})"]
        call = self.r.choice(options)
        filter_ = f" filter (where {self.condition(own, 0)})" if "rank" not in call and "dist" not in call and self.chance(0.1) else ""
        text = f"{call}{filter_} over ({over})"
        return f"cast({text} as bigint)" if call.startswith("sum") and kind == "int" else text

    def query(self, scope, depth, kinds, small=False, top=False):
        roll = self.r.random()
        if depth > 0 and roll < 0.15:
            words = ["union", "union all", "intersect", "except"] + ([] if self.plain else ["intersect all", "except all"])
            a, b = self.select(scope, depth - 1, kinds, small), self.select(scope, depth - 1, kinds, small)
            word = self.r.choice(words)
            sql = f"select * from ({a}) {self.name('u')} {word} select * from ({b}) {self.name('u')}" if self.plain else f"({a}) {word} ({b})"
            if self.plain:
                return sql
        elif depth > 0 and roll < 0.19 and not self.plain:
            rows = [", ".join(self.leaf(k, scope) for k in kinds) for _ in range(self.r.randint(1, 4))]
            sql = "select * from (values " + ", ".join(f"({row})" for row in rows) + f") {self.name('v')}"
        else:
            plain_select = self.select(scope, depth, kinds, small, top)
            if "distinct on" in plain_select:
                return plain_select
            sql = plain_select
        if self.chance(0.18) and not ("avg(" in sql or "stddev" in sql or "var" in sql):
            if not self.plain and self.chance(0.25):  # whole groups of ties, whatever the order within them
                order = ", ".join(f"{i + 1} {self.nulls()}" for i in range(self.r.randint(1, len(kinds))))
                return f"{sql} order by {order} fetch first {self.r.choice([0, 1, 3, 50])} rows with ties"
            order = ", ".join(f"{i + 1} {self.nulls()}" for i in range(len(kinds)))
            sql += f" order by {order}"
            if self.chance(0.7):
                count = str(self.r.choice([0, 1, 2, 4, 10, 500]))
                count = self.prepared.parameter("int", count, fixed=True) if self.prepared and self.chance(0.3) else count
                sql += f" limit {count}" + (" offset 1" if self.chance(0.3) else "")
        return sql

    def mistaken(self):
        """A statement with a word too many, too few or in the wrong place: mostly an error, of one kind."""
        words = shrink.tokens(self.statement()[0])
        for _ in range(20):
            if len(words) < 120:
                break
            words = shrink.tokens(self.statement()[0])
        at = self.r.randrange(len(words))
        roll = self.r.random()
        if roll < 0.3:
            del words[at]
        elif roll < 0.7:
            words[at] = self.r.choice(words)
        elif roll < 0.85:
            words[at] = self.pick("nothing", "q1.nothing", "sum(1)", "1.5", "'abc'", "true", "date '1995-01-01'", "count(*)", "q9.id",
                                  "nofunction(1)", "null", "(select 1, 2)", "*")
        else:
            other = self.r.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        return " ".join(words)

    def statement(self):
        """A statement, and whether the order of its rows counts."""
        if self.prepared:
            self.prepared.begin()
        self.names, self.ctes = 0, []
        depth = self.r.choice([0, 1, 1, 2, 2, 3])
        with_ = ""
        if self.chance(0.2):
            definitions = []
            for _ in range(self.r.randint(1, 2)):
                kinds = ["int"] + [self.any_kind() for _ in range(self.r.randint(0, 2))]
                sql = self.query(None, 1, kinds, small=True)
                name, names = self.name("w"), [self.name("c") for _ in kinds]
                definitions.append(f"{name} ({', '.join(names)}) as ({sql})")
                self.ctes.append((name, names, kinds))
            with_ = f"with {', '.join(definitions)} "
        kinds = [self.r.choice(["int", "int", "num", "text", self.any_kind(), self.any_kind(), self.any_kind()]) for _ in range(self.r.randint(1, 4))]
        if self.plain:
            kinds = [k if k in self.kinds else "int" for k in kinds]
        sql = self.query(None, depth, kinds, top=True)
        ordered = False
        if self.chance(0.15) and " order by " not in sql and "avg(" not in sql and "stddev" not in sql and "var" not in sql:
            sql += " order by " + ", ".join(f"{i + 1} {self.nulls()}" for i in range(len(kinds)))
            ordered = True
        if self.prepared:
            return self.prepared.statements(with_ + sql), ordered
        return with_ + sql, ordered


def of_logical_tables():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "sql"))
    import logical_tables
    kinds = {"integer": "int", "varchar10": "text", "decimal2": "num", "boolean": "bool", "date": "date"}
    return [table_kinds.Table(name, [table_kinds.Column(c, kinds[kind], 8, nullable=nullable) for c, _, kind, nullable in columns], len(rows))
            for name, columns, rows in logical_tables.TABLES]


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    generator = Generator(seed, of_logical_tables())
    generator.kinds = ["int", "num", "text", "bool", "date"]
    for _ in range(count):
        sql, ordered = generator.statement()
        # The trees' reference has no sums of squares and products.
        if not any(name in sql for name in ("stddev", "var", "corr", "regr")):
            print("=" if ordered else "~", sql)


if __name__ == "__main__":
    main()
