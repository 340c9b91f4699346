"""Expressions and conditions of random queries, over the columns that a query sees."""
from functions import Functions
from kinds import LATE

CONSTANTS = {
    "int": ["0", "1", "2", "3", "10", "-7", "42", "null::bigint"],
    "big": ["9223372036854775807", "0", "1", "-4611686018427387904", "2147483648"],
    "num": ["1.50", "0.00", "2.25", "-1.5", "10.001", "0.0000001", "123456789.12"],
    "text": ["'ab'", "'b'", "''", "'c d'", "'été'", "'Ab'", "null::text"],
    "bool": ["true", "false", "null::boolean"],
    "date": ["date '1994-03-01'", "date '1995-02-28'", "date '1996-01-01'", "null::date"],
    "timestamp": ["timestamp '1996-01-01 00:00:00'", "timestamp '1995-12-31 23:59:59.5'"],
    "double": ["1.5::double precision", "0::double precision", "'1e10'::double precision",
               "'-0.1'::double precision"],
    "time": ["time '00:00'", "time '24:00'", "time '12:00'", "time '23:59:59.999999'", "null::time"],
    # The second and the third are read in the session's zone.
    "zoned": ["timestamptz '1996-01-01 00:00:00+00'", "timestamptz '1995-03-26 02:30:00'", "timestamptz '1995-09-24'",
              "timestamptz '1970-01-01 00:00:00 America/New_York'", "null::timestamptz"],
    "uuid": ["uuid '00000000-0000-0000-0000-000000000000'", "uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff'",
             "'7FFFFFFFffffffffffffffffffffffff'::uuid", "'{00000000-0000-0000-0000-000000000001}'::uuid", "null::uuid"],
    "bytes": ["'\\x'::bytea", "'\\x00'::bytea", "'ab'::bytea", "'\\xff'::bytea", "'a\\000'::bytea", "null::bytea"],
    "interval": ["interval '1 month'", "interval '1 day'", "interval '0'", "interval '-1 days -12:00:00'",
                 "interval '1 year 2 mons 3 days 04:05:06.7'", "null::interval"],
}
ALL_KINDS = list(CONSTANTS)
EARLY_SHARE = 0.6  # of conditions whose kind may be any
COMPARISONS = ["=", "=", "<>", "<", ">", "<=", ">="]
PATTERNS = ["'a%'", "'%b'", "'_b%'", "'%a%b%'", "''", "'%'", "'été'", "'%\\%%'", "'A%'", "'%1%2'"]
REGEXES = ["'^a'", "'b$'", "'[0-9]+'", "'a|b'", "'^.b'", "'é'", "'(ab)+c?'", "'\\s'", "'^[^a]'"]


class Item:
    """A column that expressions may name."""

    def __init__(self, name, kind, distinct):
        self.name, self.kind, self.distinct = name, kind, distinct


class Scope:
    """What a query sees: its own columns, about how many rows of them, and the queries around it."""

    def __init__(self, items, rows, outer=None):
        self.items, self.rows, self.outer = items, rows, outer

    def loops(self):
        """How often something within is computed if nothing is clever."""
        return max(1, self.rows) * (self.outer.loops() if self.outer else 1)


class Expressions(Functions):
    """What Generator (queries.py) makes of columns. It has the random source `r`, `tables`, `kinds`, `plain` and `prepared`
    (prepared.py), if constants may be parameters."""

    def chance(self, p):
        return self.r.random() < p

    def pick(self, *options):
        return self.r.choice(options)

    def constant(self, kind):
        if self.plain:
            return self.r.choice({"int": ["0", "1", "3", "10", "-7"], "text": ["'ab'", "'b'", "''"],
                                  "date": ["'1994-03-01'", "'1995-02-28'"], "bool": ["1 = 1", "1 = 0"]}[kind])
        text = self.r.choice(CONSTANTS[kind])
        return self.prepared.parameter(kind, text) if self.prepared and self.chance(0.5) else text

    def any_kind(self):
        """One of the kinds, of which there are many late ones."""
        return self.r.choice([k for k in self.kinds if k not in LATE] if self.chance(EARLY_SHARE) else self.kinds)

    # ─── Columns

    def column(self, kind, scope, correlate=0.3):
        levels, level = [], scope
        while level is not None:
            own = [item.name for item in level.items if item.kind == kind]
            if own:
                levels.append(own)
            level = level.outer
        if not levels:
            return None
        at = 0
        while at + 1 < len(levels) and self.chance(correlate):
            at += 1
        return self.r.choice(levels[at])

    def leaf(self, kind, scope):
        column = self.column(kind, scope)
        return column if column and self.chance(0.88) else self.constant(kind)

    # ─── Expressions. `leaf` makes what columns stand for: after GROUP BY, keys and aggregates.

    def value(self, kind, scope, depth, leaf=None):
        grouped = leaf is not None
        leaf = leaf or (lambda k: self.leaf(k, scope))
        roll = self.r.random()
        if depth > 0 and roll < 0.12 and not grouped:
            return self.scalar(kind, scope, depth - 1)
        if roll < 0.18:
            return f"coalesce({leaf(kind)}, {leaf(kind)}, {self.constant(kind)})"
        if roll < 0.26 and depth > 0:
            condition = f"{leaf('int')} > {leaf('int')}" if grouped else self.condition(scope, depth - 1)
            other = "" if self.chance(0.2) else f" else {leaf(kind)}"
            if self.chance(0.2):
                return f"case {leaf('int')} when 1 then {leaf(kind)} when {leaf('int')} then {leaf(kind)}{other} end"
            return f"case when {condition} then {leaf(kind)}{other} end"
        if roll < 0.29 and kind not in ("bool", "double"):
            return f"nullif({leaf(kind)}, {self.constant(kind)})"
        if roll < 0.32 and kind not in ("bool",) and not self.plain:
            return f"{self.pick('greatest', 'least')}({leaf(kind)}, {leaf(kind)})"
        if roll < 0.6:
            return self.computed(kind, leaf)
        return leaf(kind)

    def scalar(self, kind, scope, depth):
        """A subquery of one row and column."""
        from_, inner = self.from_clause(scope, depth, small=True)
        where = self.where(inner, depth, 0.85)
        own = Scope(inner.items, inner.rows)
        if kind in ("int", "num"):
            # The aggregate of an outer query's column is that query's: so it is over a column of this one.
            argument = self.column(kind, own)
            function = self.pick("max", "min", "sum")
            if argument is None:
                return f"(select count(*) from {from_}{where})" if kind == "int" else self.constant(kind)
            if kind == "int" and self.chance(0.4):
                function, argument = "count", self.pick("*", argument, f"distinct {argument}")
            having = f" having count(*) {self.pick('<', '>')} {self.r.randint(0, 3)}" if self.chance(0.15) else ""
            total = f"{function}({argument})"
            return f"(select {total}{'::bigint' if function == 'sum' and kind == 'int' and not self.plain else ''} from {from_}{where}{having})"
        if kind == "bool":
            return f"exists (select 1 from {from_}{where})"
        item = self.value(kind, inner, 0)
        return f"(select {item} from {from_}{where} order by 1 {self.nulls()} limit 1)"

    def condition(self, scope, depth):
        roll = self.r.random()
        kind = self.any_kind()
        kind = "int" if kind == "bool" else kind
        if depth > 0 and roll < 0.10:
            from_, inner = self.from_clause(scope, depth - 1, small=True)
            where = self.where(inner, depth - 1, 0.9)
            return f"{'not ' if self.chance(0.5) else ''}exists (select {self.pick('1', '*')} from {from_}{where})"
        if depth > 0 and roll < 0.24:
            sub = self.query(scope, depth - 1, [kind], small=True)
            hows = ["in", "not in"] + ([] if self.plain else ["= any", "<> all", "> any", "< all", ">= some", "<= all", "<> any"])
            return f"{self.value(kind, scope, 0)} {self.r.choice(hows)} ({sub})"
        if depth > 0 and roll < 0.28:
            sub = self.query(scope, depth - 1, ["int", "text"], small=True)
            return f"({self.leaf('int', scope)}, {self.leaf('text', scope)}) {self.pick('in', 'not in')} ({sub})"
        if depth > 0 and roll < 0.40:
            return f"({self.condition(scope, depth - 1)} {self.pick('and', 'or')} {self.condition(scope, depth - 1)})"
        if depth > 0 and roll < 0.46:
            return f"not ({self.condition(scope, depth - 1)})"
        return self.simple_condition(kind, scope, depth)

    def simple_condition(self, kind, scope, depth):
        roll = self.r.random()
        x = self.leaf(kind, scope)
        if roll < 0.10:
            return f"{x} is {'not ' if self.chance(0.5) else ''}null"
        if roll < 0.17:
            return f"{x} {'not ' if self.chance(0.3) else ''}in ({self.constant(kind)}, {self.constant(kind)}, {self.leaf(kind, scope)})"
        if roll < 0.24:
            return f"{x} {'not ' if self.chance(0.3) else ''}between {self.leaf(kind, scope)} and {self.leaf(kind, scope)}"
        if roll < 0.34:
            text = self.leaf("text", scope)
            if self.plain or self.chance(0.5):
                return f"{text} {'not ' if self.chance(0.3) else ''}like {self.r.choice(PATTERNS[:6] if self.plain else PATTERNS)}"
            if self.chance(0.4):
                return f"{text} {'not ' if self.chance(0.3) else ''}ilike {self.r.choice(PATTERNS)}"
            return f"{text} {self.pick('~', '~*', '!~', '!~*')} {self.r.choice(REGEXES)}"
        if roll < 0.40 and not self.plain:
            return f"{x} is {'not ' if self.chance(0.5) else ''}distinct from {self.leaf(kind, scope)}"
        if roll < 0.45 and not self.plain:
            b = self.leaf("bool", scope)
            return self.pick(b, f"{b} is {self.pick('true', 'false', 'unknown', 'not true', 'not false', 'not unknown')}",
                             f"{b} = {self.leaf('bool', scope)}")
        if roll < 0.5 and kind in ("int", "num", "double") and not self.plain:
            other = self.r.choice(["int", "num", "double"])
            return f"{x} {self.r.choice(COMPARISONS)} {self.leaf(other, scope)}"
        if roll < 0.55 and kind in ("date", "timestamp", "zoned") and not self.plain:
            other = self.r.choice(["date", "timestamp", "zoned"])
            return f"{x} {self.r.choice(COMPARISONS)} {self.leaf(other, scope)}"
        if roll < 0.58 and not self.plain:
            return self.computed("bool", lambda k: self.leaf(k, scope))
        return f"{self.value(kind, scope, depth)} {self.r.choice(COMPARISONS)} {self.leaf(kind, scope)}"

    def where(self, scope, depth, p):
        """Correlated facts are joined by equality: PostgreSQL would take forever otherwise."""
        conditions = []
        if scope.outer and (self.chance(0.55) or scope.loops() > 2_000_000):
            pairs = [(a.name, b.name) for a in scope.items for b in scope.outer.items
                     if a.kind == b.kind == "int" and a.distinct * 50 >= scope.rows]
            if pairs:
                conditions.append("%s = %s" % self.r.choice(pairs))
        outer = scope.outer if scope.loops() <= 2_000_000 or conditions else None
        inner = Scope(scope.items, scope.rows, outer)
        if self.chance(p):
            conditions.append(self.condition(inner, depth if scope.loops() < 4_000_000 else 0))
        return " where " + " and ".join(conditions) if conditions else ""
