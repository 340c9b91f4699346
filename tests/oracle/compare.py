"""Whether two answers say the same: rows as multisets or in their order.

docs/design/numbers-and-types.md says where numbers differ: a number that has a scale of its own has 36 digits and 38
decimals at most. NAM's number must be PostgreSQL's, or if that has more, PostgreSQL's rounded to NAM's decimals. Its last
digits may be off if it was computed from such numbers."""
import math
import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

MOST_DIGITS = 36
MOST_DECIMALS = 38
OFF_BY = 2
DOUBLE_DIGITS = 12


def number(text):
    return Decimal(text)


def rounded(value, scale):
    with localcontext() as context:
        context.prec = 200
        return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)


def scale_of(value):
    return max(0, -value.as_tuple().exponent)


def same_double(a, b):
    x, y = float(a), float(b)
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or math.isinf(y):
        return x == y or (math.isnan(x) and math.isnan(y))
    return x == y or abs(x - y) <= max(abs(x), abs(y)) * 10.0**-DOUBLE_DIGITS


def same(kind, expected, found):
    """Of one value. `found` is what the JSON had: a text, a Number, True, False or None."""
    if expected is None or found is None:
        return expected is None and found is None
    if kind == "bool":
        return found == (expected == "t")
    if isinstance(found, bool):
        return False
    if kind in ("double", "real"):
        return same_double(expected, found)
    if kind in ("int", "num"):
        try:
            a, b = number(expected), number(found)
        except InvalidOperation:
            return False
        if a == b:
            return True
        if kind != "num" or (len(a.as_tuple().digits) < MOST_DIGITS and scale_of(a) < MOST_DECIMALS):
            return False
        scale = min(scale_of(a), scale_of(b))
        return abs(rounded(a, scale) - rounded(b, scale)) <= Decimal(OFF_BY).scaleb(-scale)
    if kind == "interval":
        return expected == found or span(expected) == span(found)
    return expected == found


INTERVAL = re.compile(r"(?:([-+]?\d+) years? ?)?(?:([-+]?\d+) mons? ?)?(?:([-+]?\d+) days? ?)?(?:([-+]?)(\d+):(\d+):(\d+(?:\.\d+)?))?$")


def span(text):
    """An interval in microseconds, as it compares: of equal ones a group, DISTINCT, min and max show any."""
    match = INTERVAL.match(text)
    if not match:
        return text
    years, months, days, sign, *clock = match.groups()
    hours, minutes, seconds = (Decimal(c or 0) for c in clock)
    us = int((hours * 3600 + minutes * 60 + seconds) * 1_000_000) * (-1 if sign == "-" else 1)
    return ((int(years or 0) * 12 + int(months or 0)) * 30 + int(days or 0)) * 86_400_000_000 + us


def sort_key(kinds, row, scale):
    """Equal for values that are the same; numbers to so many decimals."""
    key = []
    for kind, value in zip(kinds, row):
        if value is None:
            key.append((0, 0))
        elif kind == "bool":
            key.append((1, value in (True, "t")))
        elif kind in ("int", "num"):
            try:
                key.append((1, rounded(number(value), scale if kind == "num" else 0)))
            except InvalidOperation:
                key.append((2, str(value)))
        elif kind in ("double", "real"):
            key.append((1, float(("%.10g" if scale < 10 else "%.17g") % float(value)) if not math.isnan(float(value)) else 1e400))
        else:
            key.append((1, "%030d" % (span(value) + 10**29)) if kind == "interval" else (1, str(value)))
    return key


def difference(expected, found, ordered):
    """Empty if the answers are the same."""
    if expected.sqlstate or found.sqlstate:
        if expected.sqlstate == found.sqlstate:
            return ""
        return "error %s (%s), expected %s (%s)" % (found.sqlstate or "none", found.message, expected.sqlstate or "none",
                                                    expected.message)
    if expected.rows and not expected.rows[0]:
        return ""  # rows without columns, which JSON does not show
    if len(expected.rows) != len(found.rows):
        return "%d rows, expected %d" % (len(found.rows), len(expected.rows))
    a, b = expected.rows, found.rows
    if a and len(a[0]) != len(b[0]):
        return "%d columns, expected %d" % (len(b[0]), len(a[0]))
    if ordered:
        told = first_difference(expected.kinds, a, b)
        if not told or not same_order(expected.kinds, a, b):
            return told
    # Few decimals pair rounded numbers, many those that are close to each other.
    answers = []
    for scale in (5, 20):
        try:
            answers.append(first_difference(expected.kinds, *(sorted(rows, key=lambda row: sort_key(
                expected.kinds, row, scale)) for rows in (a, b))))
        except (TypeError, ValueError):
            return "values of other types: %s, expected %s" % (b[:2], a[:2])
        if not answers[-1]:
            return ""
    return answers[0]


def same_order(kinds, a, b):
    """Rows in order of their columns, one after the other: behind doubles whose last digits differ, any order will do."""
    real = next((i for i, kind in enumerate(kinds) if kind in ("double", "real")), None)
    if real is None:
        return False
    return all(same(kinds[i], x[i], y[i]) for x, y in zip(a, b) for i in range(real + 1))


def first_difference(kinds, a, b):
    for x, y in zip(a, b):
        if not all(same(kind, u, v) for kind, u, v in zip(kinds, x, y)):
            return "row %s, expected %s" % (y, x)
    return ""
