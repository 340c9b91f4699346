"""Tables that the queries on logical trees are over, for PostgreSQL and for tests/sql/logical_results.h."""

# name, (column, PostgreSQL's type, the result file's type, nullable), rows
TABLES = [
    ("t", [("id", "integer", "integer", False), ("a", "integer", "integer", True), ("b", "integer", "integer", True),
           ("s", "varchar(10)", "varchar10", True), ("d", "numeric(10,2)", "decimal2", True),
           ("day", "date", "date", True), ("ok", "boolean", "boolean", False)],
     [(1, 1, 10, "ab", "1.50", "1994-01-01", True), (2, 1, None, "b", "2.25", "1994-02-28", False),
      (3, 2, 20, None, None, "1995-12-31", True), (4, None, 20, "ab", "-1.50", None, True),
      (5, 3, 10, "", "0.00", "1994-01-01", False), (6, 3, 30, "c d", "10.00", "1996-02-29", True),
      (7, None, None, None, None, None, False), (8, 5, 0, "b", "2.25", "1994-01-01", False)]),
    ("u", [("id", "integer", "integer", False), ("t_id", "integer", "integer", True), ("a", "integer", "integer", True),
           ("v", "numeric(10,2)", "decimal2", True), ("s", "varchar(10)", "varchar10", True)],
     [(1, 1, 1, "3.00", "ab"), (2, 1, 2, "4.50", "b"), (3, 2, None, "-2.25", None), (4, 3, 3, None, "c d"),
      (5, None, 3, "10.00", "x"), (6, 9, 1, "1.50", "ab"), (7, 3, 2, "0.00", ""), (8, 8, None, None, None),
      (9, 5, 5, "2.25", "b"), (10, 5, 5, "2.25", "b")]),
    ("w", [("k", "integer", "integer", True), ("x", "integer", "integer", True)],
     [(1, 1), (1, 1), (1, 2), (2, None), (None, 2), (None, None), (3, 7), (3, -7), (2, 0)]),
    ("e", [("x", "integer", "integer", True), ("y", "varchar(10)", "varchar10", True)], []),
]


def literal(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def shown(value):
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(value)


def create_script():
    lines = []
    for name, columns, rows in TABLES:
        lines.append(f"drop table if exists {name};")
        lines.append("create table %s (%s);" % (name, ", ".join(
            f"{c} {sql}{'' if nullable else ' not null'}" for c, sql, _, nullable in columns)))
        for row in rows:
            lines.append(f"insert into {name} values ({', '.join(literal(v) for v in row)});")
    return "\n".join(lines) + "\n"


def result_header():
    lines = []
    for name, columns, rows in TABLES:
        lines.append("table " + name + " " + " ".join(
            f"{c}:{kind}{'?' if nullable else ''}" for c, _, kind, nullable in columns))
        lines += ["row " + "|".join(shown(v) for v in row) for row in rows]
    return "\n".join(lines) + "\n"
