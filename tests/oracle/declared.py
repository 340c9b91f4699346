"""The declared types of a query's columns, as pg_typeof shows them: a query around it that computes none of its rows.

    select x, y …  ──▶  select pg_typeof(c0), pg_typeof(c1) from … left join (select … limit 0) …  ──▶  bigint, numeric"""


def query(text, columns):
    """`text` is one query without parameters."""
    names = ["c%d" % i for i in range(columns)]
    # One row, of NULLs: a type does not depend on values.
    return "select %s from (select 1) one left join (select * from (%s) asked (%s) limit 0) none on true" % (
        ", ".join("pg_typeof(none.%s)" % name for name in names), text, ", ".join(names))


def difference(expected, found):
    """Of the two answers to `query`; empty if they are the same."""
    if found.sqlstate:
        return "types fail: %s (%s)" % (found.sqlstate, found.message)
    return "" if found.rows == expected.rows else "types %s, expected %s" % (found.rows, expected.rows)
