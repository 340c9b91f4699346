"""Kinds of columns: their SQL types, random values, and how values are written and stored.

int, big (at the extremes of 64 bits), num, text, bool, date, timestamp, double; and the later ones: time, zoned (timestamp
with time zone), uuid, bytes (bytea), interval, and span: intervals that are equal but have other parts."""
import datetime
import math
import struct
import uuid
from decimal import Decimal

TYPES = {"int": "bigint", "big": "bigint", "bool": "boolean", "date": "date", "timestamp": "timestamp",
         "double": "double precision", "time": "time", "zoned": "timestamptz", "uuid": "uuid", "bytes": "bytea",
         "interval": "interval", "span": "interval"}
# Of parameters, too, which have no length.
LOOSE_TYPES = {**TYPES, "num": "numeric", "text": "text"}
LATE = ["time", "zoned", "uuid", "bytes", "interval"]
# Analytical tables, as load_tables.cc loads them, have no others.
STORED = {"int": "integer", "big": "integer", "num": "decimal", "text": "string", "bool": "boolean", "date": "date",
          "timestamp": "timestamp", "double": "double", "time": "time", "zoned": "timestamptz"}

EPOCH = datetime.date(1970, 1, 1)
UTC = datetime.timezone.utc
MICROSECOND = datetime.timedelta(microseconds=1)

WORDS = ["", "a", "ab", "abc", "b", "Ab", "été", "x y", "c d", "zz", "a%b", "a_b", "12", "日本", "-3", "  pad"]
# Nullable columns do not span all 64 bits: NULL is a code, too.
EXTREMES = [-2**62, -2**63 + 2, 2**63 - 1, 2**63 - 2, 0, 1, -1, 2**31, -2**31 - 1, 2**53 + 1, 10**18, -10**18]
DOUBLES = [0.0, 1.0, -1.5, 0.1, 1e10, -1e-5, 123456.789, 2.5, 1 / 3, 1e15, 7e-3]
TIMES = [0, 86_400_000_000, 86_399_999_999, 43_200_000_000, 1, 43_199_999_999, 3_600_000_000]
# Changes of clocks in Berlin and New York, local mean time, years far off.
MOMENTS = [datetime.datetime(1995, 3, 26, 1), datetime.datetime(1995, 9, 24, 0, 30), datetime.datetime(1995, 9, 24, 1, 30),
           datetime.datetime(1996, 4, 7, 6, 59, 59, 999999), datetime.datetime(1850, 1, 1), datetime.datetime(2450, 7, 1, 12),
           datetime.datetime(1970, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)]
UUIDS = [0, 2**128 - 1, 2**127, 2**127 - 1, 1, 2**64, 0x0123456789ABCDEF << 64]
BYTES = [b"", b"\0", b"\0\0", b"\xff", b"a", b"ab", b"a\0", b"\\x", b"\xc3\xa9", b"\x80" * 9, b"ab\0cd", b"'"]
# In the form that justify_interval leaves, so that no two that are equal differ.
INTERVALS = ["00:00:00", "1 mon", "-1 mons", "29 days 23:59:59.999999", "1 day", "-00:00:00.000001", "300 years",
             "-300 years", "1 year 2 mons 3 days 04:05:06.7", "-1 days -12:00:00"]
SPANS = ["1 mon", "30 days", "29 days 24:00:00", "1 year", "360 days", "24:00:00", "1 day", "-1 mons 30 days", "00:00:00",
         "2 days -24:00:00", "-30 days", "-1 mons"]


class Time(int):
    """Microseconds of a day."""

    def __str__(self):
        seconds, us = divmod(int(self), 1_000_000)
        return "%02d:%02d:%02d.%06d" % (seconds // 3600, seconds // 60 % 60, seconds % 60, us)


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
    if kind == "double":
        return DOUBLES[n] if n < len(DOUBLES) else (n - 100) / 8
    return late_value(kind, n)


def late_value(kind, n):
    if kind == "time":
        return Time(TIMES[n] if n < len(TIMES) else n * 60_000_123 % 86_400_000_000)
    if kind == "zoned":
        at = MOMENTS[n] if n < len(MOMENTS) else datetime.datetime(1995, 9, 20) + n * 5_400_000_321 * MICROSECOND
        return at.replace(tzinfo=UTC)
    if kind == "uuid":
        return uuid.UUID(int=UUIDS[n] if n < len(UUIDS) else n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)
    if kind == "bytes":
        return BYTES[n] if n < len(BYTES) else bytes(n * k % 256 for k in range(3, 3 + n % 7))
    if kind == "span":
        return SPANS[n % len(SPANS)]
    return INTERVALS[n] if n < len(INTERVALS) else "%d mons %d days %02d:%02d:00" % (n % 5, n % 30, n % 24, n % 60)


def literal(v):
    if v is None:
        return "null"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, Time):
        return "'%s'" % v
    if isinstance(v, (int, Decimal)):
        return str(v)
    if isinstance(v, float):
        return "'%r'" % v
    if isinstance(v, bytes):
        return "'\\x%s'" % v.hex()
    return "'" + str(v).replace("'", "''") + "'"


def stored(v, column):
    """A value as storage holds it."""
    if v is None:
        return "\\N"
    if column.kind == "num":
        return str(int(v.scaleb(column.modifier[1])))
    if column.kind == "date":
        return str((v - EPOCH).days)
    if column.kind == "timestamp":
        return str((v - datetime.datetime(1970, 1, 1)) // MICROSECOND)
    if column.kind == "zoned":
        return str((v - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND)
    if column.kind == "double":
        return str(ordered_bits(v))
    return str(int(v)) if column.kind in ("bool", "time") else str(v)


def ordered_bits(v):
    """types/real.h."""
    if math.isnan(v):
        v = float("nan")
    bits, = struct.unpack("<q", struct.pack("<d", v + 0.0))
    return bits if bits >= 0 else bits ^ 0x7fffffffffffffff


def plain(v):
    """For SQLite, which has no types of times; and nothing is asked of the later kinds there."""
    if isinstance(v, Decimal):
        return float(v)
    if v is None or isinstance(v, (str, float)):
        return v
    return int(v) if isinstance(v, (bool, int)) and not isinstance(v, Time) else str(v)
