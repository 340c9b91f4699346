#!/usr/bin/env python3
"""Queries at random over the tables of logical_tables.py, for make_logical_results.py.

    random_queries.py SEED COUNT > QUERIES

What they return does not depend on the order of the work: LIMIT comes with an order of all columns, scalar
subqueries have one row, functions that number rows stand over unique orders only."""

import random
import sys

import logical_tables

KINDS = {"integer": "int", "varchar10": "text", "decimal2": "num", "boolean": "bool", "date": "date"}
BASE = {name: [(c, KINDS[kind]) for c, _, kind, _ in columns] for name, columns, _ in logical_tables.TABLES}
CONSTANTS = {"int": ["0", "1", "2", "3", "10", "-7", "null::integer"], "num": ["1.50", "0.00", "2.25", "-1.5"],
             "text": ["'ab'", "'b'", "''", "'c d'"], "bool": ["true", "false"], "date": ["date '1994-01-01'"]}


class Scope:
    """What a query sees: its own columns, and those of the queries around it."""

    def __init__(self, columns, outer=None):
        self.columns, self.outer = columns, outer


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.names = 0
        self.ctes = []

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def chance(self, p):
        return self.r.random() < p

    # ─── Expressions

    def column(self, kind, scope, correlate=0.35):
        levels, level = [], scope
        while level is not None:
            own = [name for name, k in level.columns if k == kind]
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
        return column if column and self.chance(0.85) else self.r.choice(CONSTANTS[kind])

    def value(self, kind, scope, depth, aggregate=None):
        """An expression; `aggregate` makes what columns stand for after GROUP BY."""
        leaf = aggregate or (lambda k: self.leaf(k, scope))
        roll = self.r.random()
        if depth > 0 and roll < 0.16:
            return self.scalar(kind, scope, depth - 1) if aggregate is None else leaf(kind)
        if kind == "int" and roll < 0.3:
            return f"({self.value(kind, scope, depth - 1, aggregate)} {self.r.choice('+-')} {leaf(kind)})"
        if roll < 0.36:
            return f"coalesce({leaf(kind)}, {self.r.choice(CONSTANTS[kind])})"
        if roll < 0.42 and depth > 0:
            condition = f"{leaf('int')} > {leaf('int')}" if aggregate else self.condition(scope, depth - 1)
            return f"case when {condition} then {leaf(kind)} else {leaf(kind)} end"
        if roll < 0.45 and kind != "bool":
            return f"nullif({leaf(kind)}, {self.r.choice(CONSTANTS[kind])})"
        return leaf(kind)

    def scalar(self, kind, scope, depth):
        """A subquery of one row and column."""
        from_, columns = self.from_clause(scope, depth, small=True)
        inner = Scope(columns, scope)
        where = self.where(inner, depth, 0.85)
        if kind in ("int", "num"):
            argument = self.value(kind, inner, 0)
            functions = ["max", "min", "sum"] + (["count"] if kind == "int" else [])
            function = self.r.choice(functions)
            # The aggregate of an outer query's column is that query's.
            argument = self.column(kind, Scope(columns)) or argument
            if function == "count":
                argument = self.r.choice(["*", argument, f"distinct {argument}"])
            having = f" having count(*) {self.r.choice('<>')} {self.r.randint(0, 3)}" if self.chance(0.15) else ""
            return f"(select {function}({argument}) from {from_}{where}{having})"
        if kind == "bool":
            return f"exists (select 1 from {from_}{where})"
        item = self.value(kind, inner, 0)
        return f"(select {item} from {from_}{where} order by 1 {self.nulls()} limit 1)"

    def condition(self, scope, depth):
        roll = self.r.random()
        kind = self.r.choice(["int", "int", "int", "num", "text"])
        if depth > 0 and roll < 0.14:
            from_, columns = self.from_clause(scope, depth - 1, small=True)
            where = self.where(Scope(columns, scope), depth - 1, 0.9)
            return f"{'not ' if self.chance(0.5) else ''}exists (select {self.r.choice(['1', '*', ''])} from {from_}{where})"
        if depth > 0 and roll < 0.34:
            sub = self.query(scope, depth - 1, [kind])[0]
            how = self.r.choice(["in", "not in", "= any", "<> all", "> any", "< all", ">= some"])
            return f"{self.value(kind, scope, 0)} {how} ({sub})"
        if depth > 0 and roll < 0.38:
            sub = self.query(scope, depth - 1, ["int", "text"])[0]
            return f"({self.leaf('int', scope)}, {self.leaf('text', scope)}) {self.r.choice(['in', 'not in'])} ({sub})"
        if depth > 0 and roll < 0.48:
            word = self.r.choice(["and", "or"])
            return f"({self.condition(scope, depth - 1)} {word} {self.condition(scope, depth - 1)})"
        if roll < 0.53:
            return f"not ({self.condition(scope, depth - 1)})" if depth > 0 else "true"
        if roll < 0.6:
            return f"{self.leaf(kind, scope)} is {'not ' if self.chance(0.5) else ''}null"
        if roll < 0.66:
            column = self.column("int", scope)
            return f"{column or 'null'} in (1, 3, {self.leaf('int', scope)})"
        return f"{self.value(kind, scope, depth)} {self.r.choice(['=', '=', '=', '<>', '<', '>', '<=', '>='])} {self.leaf(kind, scope)}"

    def where(self, scope, depth, p):
        if not self.chance(p):
            return ""
        text = self.condition(scope, depth)
        if self.chance(0.5):
            column = self.column("int", Scope(scope.columns))
            other = self.column("int", scope.outer, 0.2) if scope.outer else None
            if column and other:
                text = f"{column} = {other} and {text}"
        return f" where {text}"

    # ─── FROM

    def item(self, scope, left, depth):
        """A FROM item under a new alias; `left` is what LATERAL sees."""
        alias = self.name("q")
        roll = self.r.random()
        if depth > 0 and roll < 0.3:
            lateral = left is not None and self.chance(0.5)
            around = Scope(left, scope) if lateral else scope
            kinds = [self.r.choice(["int", "int", "num", "text"]) for _ in range(self.r.randint(1, 3))]
            sql, columns = self.query(around, depth - 1, kinds)
            names = [self.name("c") for _ in columns]
            return (f"{'lateral ' if lateral else ''}({sql}) {alias} ({', '.join(names)})",
                    [(f"{alias}.{n}", k) for n, k in zip(names, kinds)], lateral)
        if self.ctes and roll < 0.45:
            cte, columns = self.r.choice(self.ctes)
            return f"{cte} {alias}", [(f"{alias}.{n}", k) for n, k in columns], False
        table = self.r.choice(["t", "t", "u", "u", "w", "w", "e"] if self.chance(0.3) else ["t", "u", "w"])
        return f"{table} {alias}", [(f"{alias}.{n}", k) for n, k in BASE[table]], False

    def from_clause(self, scope, depth, small=False):
        text, columns, _ = self.item(scope, None, depth)
        count = self.r.choice([1, 1, 1, 2] if small else [1, 1, 2, 2, 3])
        for _ in range(count - 1):
            right, more, lateral = self.item(scope, columns, depth)
            kind = self.r.choice(["join", "join", "left join", "cross join", ","] +
                                 ([] if lateral else ["right join", "full join"]))
            if kind in ("cross join", ","):
                text = f"{text} cross join {right}"
            elif kind == "full join":
                pairs = [(a, b) for a, k in columns for b, m in more if k == m == "int"]
                if not pairs:
                    continue
                a, b = self.r.choice(pairs)
                text = f"{text} full join {right} on {a} = {b}"
            else:
                on = Scope(columns + more, scope)
                condition = self.condition(on, depth if self.chance(0.3) else 0)
                pairs = [(a, b) for a, k in columns for b, m in more if k == m == "int"]
                if pairs and self.chance(0.7):
                    a, b = self.r.choice(pairs)
                    condition = f"{a} = {b}" + (f" and {condition}" if self.chance(0.4) else "")
                text = f"{text} {kind} {right} on {condition}"
            columns = columns + more
        return text, columns

    # ─── Queries

    def nulls(self):
        return self.r.choice(["", "", "desc", "nulls first", "desc nulls last"])

    def select(self, scope, depth, kinds):
        from_, columns = self.from_clause(scope, depth)
        inner = Scope(columns, scope)
        where = self.where(inner, depth, 0.6)
        roll = self.r.random()
        if roll < 0.3:
            return self.grouped(inner, depth, kinds, from_, where)
        if roll < 0.42:
            return self.windowed(inner, kinds, from_, where)
        outputs = [self.value(kind, inner, depth) for kind in kinds]
        return f"select {'distinct ' if self.chance(0.2) else ''}{', '.join(outputs)} from {from_}{where}"

    def grouped(self, inner, depth, kinds, from_, where):
        keys = []
        for kind in kinds + ["int"]:
            column = self.column(kind, Scope(inner.columns))
            if column and self.chance(0.6) and (column, kind) not in keys:
                keys.append((column, kind))
        bare = [k for k, _ in keys]

        def leaf(kind):
            own = [k for k, m in keys if m == kind]
            if own and self.chance(0.6):
                return self.r.choice(own)
            argument = self.column(kind, Scope(inner.columns))
            if argument is None or kind == "bool":
                return self.r.choice(CONSTANTS[kind])
            if kind == "int":
                distinct = "distinct " if self.chance(0.2) else ""
                call = self.r.choice([f"sum({distinct}{argument})", f"count({distinct}{argument})", "count(*)",
                                      f"max({argument})", f"min({argument})"])
            else:
                call = f"{self.r.choice(['max', 'min'])}({argument})"
            return call + (f" filter (where {self.condition(Scope(inner.columns), 0)})" if self.chance(0.15) else "")

        outputs = [self.value(kind, inner, depth, leaf) for kind in kinds]
        if not keys:
            group = ""
        elif self.chance(0.7):
            group = " group by " + ", ".join(bare)
        else:
            kind = self.r.choice(["rollup", "cube", "grouping sets"])
            group = f" group by {kind} ({', '.join(bare)}{', ()' if kind == 'grouping sets' and self.chance(0.5) else ''})"
            for i, k in enumerate(kinds):
                if k == "int" and self.chance(0.3):
                    outputs[i] = f"grouping({', '.join(bare)})"
        if not keys and not any("(" in o for o in outputs):
            outputs[0] = "count(*) > 1" if kinds[0] == "bool" else {"int": "count(*)"}.get(kinds[0], f"max({outputs[0]})")
        having = f" having {leaf('int')} {self.r.choice(['<', '>', '<>'])} {leaf('int')}" if self.chance(0.3) else ""
        if not keys and not having and all(not o.startswith(("sum", "count", "max", "min")) for o in outputs):
            having = " having count(*) >= 0"
        return f"select {', '.join(outputs)} from {from_}{where}{group}{having}"

    def windowed(self, inner, kinds, from_, where):
        own = Scope(inner.columns)
        outputs = []
        for kind in kinds:
            argument = self.column(kind, own)
            if argument is None or kind not in ("int", "num"):
                outputs.append(self.value(kind, inner, 0))
                continue
            partition = self.column(self.r.choice(["int", "text"]), own)
            order = self.column("int", own)
            frame = self.r.choice(["", "", " range between 1 preceding and 2 following",
                                   " range between unbounded preceding and 1 preceding",
                                   " groups between 1 preceding and 1 following",
                                   " groups between current row and unbounded following"])
            over = f"partition by {partition}" if partition and self.chance(0.5) else ""
            if order and self.chance(0.8):
                over += f" order by {order} {self.nulls()}{frame}"
            ranks = ["rank()", "dense_rank()"] if kind == "int" else []
            call = self.r.choice([f"sum({argument})", f"max({argument})", f"min({argument})"] + ranks)
            outputs.append(f"{call} over ({over})")
        return f"select {', '.join(outputs)} from {from_}{where}"

    def query(self, scope, depth, kinds):
        if depth > 0 and self.chance(0.15):
            word = self.r.choice(["union", "union all", "intersect", "intersect all", "except", "except all"])
            sql = f"({self.select(scope, depth - 1, kinds)}) {word} ({self.select(scope, depth - 1, kinds)})"
        elif depth > 0 and self.chance(0.05) and kinds[0] in ("int", "text"):
            rows = [", ".join(self.leaf(k, scope) for k in kinds) for _ in range(self.r.randint(1, 3))]
            sql = "select * from (values " + ", ".join(f"({row})" for row in rows) + f") {self.name('v')}"
        else:
            sql = self.select(scope, depth, kinds)
        if self.chance(0.15):
            order = ", ".join(f"{i + 1} {self.nulls()}" for i in range(len(kinds)))
            sql += f" order by {order} limit {self.r.randint(0, 4)}" + (" offset 1" if self.chance(0.3) else "")
        return sql, kinds

    def statement(self):
        self.names, self.ctes = 0, []
        depth = self.r.choice([1, 2, 2, 3])
        with_ = ""
        if self.chance(0.2):
            definitions = []
            for _ in range(self.r.randint(1, 2)):
                kinds = ["int"] + [self.r.choice(["int", "num", "text"]) for _ in range(self.r.randint(0, 2))]
                sql, _ = self.query(None, 1, kinds)
                name, names = self.name("w"), [self.name("c") for _ in kinds]
                definitions.append(f"{name} ({', '.join(names)}) as ({sql})")
                self.ctes.append((name, list(zip(names, kinds))))
            with_ = f"with {', '.join(definitions)} "
        kinds = [self.r.choice(["int", "int", "num", "text", "bool"]) for _ in range(self.r.randint(1, 4))]
        sql, _ = self.query(None, depth, kinds)
        return "~ " + with_ + sql


def main():
    generator = Generator(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(generator.statement())


if __name__ == "__main__":
    main()
