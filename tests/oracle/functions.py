"""Functions and operators of random queries, by the kind of their result. `leaf(kind)` makes an argument.

Intervals that are equal may have other parts, and which of them a group or DISTINCT shows is open. So what looks into an
interval gets it from justify_interval (`parts`), or from a column whose values are all in that form."""
import re

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Europe/Lisbon",
         "America/St_Johns"]
JUSTIFIED = re.compile(r"q\d+\.i$")
TIME_FIELDS = ["hour", "minute", "second"]
DAY_FIELDS = ["year", "month", "day", "dow", "isodow", "doy", "week", "quarter", "decade", "century", "isoyear"]
STAMP_PATTERNS = ["YYYY-MM-DD HH24:MI:SS.US", "FMDay, FMDDth FMMonth YYYY", "HH12:MI AM", "IYYY-IW-ID", "Q WW W D DDD J",
                  "Dy DD Mon YY, HH:MI:SS.MS p.m.", "YYYY\"T\"HH24 SSSS", "RM Y,YYY CC", "FF3 a.m."]
ZONED_PATTERNS = STAMP_PATTERNS + ["YYYY-MM-DD HH24:MI:SS TZH:TZM", "HH24 OF", "DD HH24:MI TZ"]
TIME_PATTERNS = ["HH24:MI:SS.US", "HH12:MI:SS AM", "HH:MI a.m.", "MS US SSSS", "FMHH24.FMMI", "HH24 FF2"]
INTERVAL_PATTERNS = ["HH24:MI:SS", "DD HH24:MI:SS.MS", "YYYY MM DD", "FMDDD FMHH12 AM"]
NUMBER_PATTERNS = ["999999", "FM000", "9G999D99", "S99", "99PR", "RN", "FM9999th", "99V9", "MI999"]


class Functions:
    """Of Expressions (expressions.py)."""

    def parts(self, leaf):
        x = leaf("interval")
        return x if JUSTIFIED.match(x) or x.startswith("interval '") else f"justify_interval({x})"

    def short(self, leaf):
        """An interval that leaves timestamps within the years that there are."""
        return f"greatest(least({self.parts(leaf)}, interval '9 years'), interval '-9 years')"

    def of_text(self, pattern):
        return "'" + pattern.replace("'", "''") + "'"

    def zone(self):
        return self.of_text(self.r.choice(ZONES))

    def computed(self, kind, leaf):
        """A function or an operator of the kind."""
        x = leaf(kind)
        by_kind = {"int": self.of_integers, "num": self.of_decimals, "text": self.of_texts, "date": self.of_dates,
                   "timestamp": self.of_timestamps, "double": self.of_doubles, "bool": self.of_truths, "time": self.of_times,
                   "zoned": self.of_moments, "uuid": self.of_uuids, "bytes": self.of_bytes, "interval": self.of_intervals}
        return self.r.choice(by_kind[kind](x, leaf) if kind in by_kind else [x])

    def of_integers(self, x, leaf):
        options = [f"({x} + {leaf('int')})", f"({x} - {leaf('int')})", f"({x} * 3)", f"(- ({x}))", f"abs({x})",
                   f"length({leaf('text')})", f"({x} % 7)", f"({x} / 3)"]
        if self.plain:
            return options
        options += [f"extract({self.pick('year', 'month', 'day', 'dow', 'doy', 'week', 'quarter')} from {leaf('date')})::bigint",
                    f"({leaf('date')} - date '1995-01-01')", f"position('a' in {leaf('text')})",
                    f"cast({leaf('num')} as bigint)", f"mod({x}, 5)", f"ascii({leaf('text')})",
                    f"({leaf('bool')})::int", f"sign({x})::bigint", f"octet_length({leaf('text')})",
                    f"extract(hour from {leaf('timestamp')})::bigint", f"({x} & 6)", f"({x} | {leaf('int')})", f"({x} # 5)",
                    f"(~ {x})", f"gcd({x}, {leaf('int')})", f"regexp_count({leaf('text')}, '[ab]')",
                    f"regexp_instr({leaf('text')}, 'b+')",
                    f"extract(minute from {leaf('timestamp')}::time)::bigint",
                    f"extract(day from {leaf('timestamp')}::timestamptz)::bigint"]
        return options + self.of_late_integers(x, leaf)

    def of_late_integers(self, x, leaf):
        field, a = self.r.choice(DAY_FIELDS + TIME_FIELDS), leaf("bytes")
        return [f"({x} << {self.r.randint(0, 5)})", f"({x} >> {self.r.randint(0, 3)})", f"lcm({x} % 50, {leaf('int')} % 9)",
                f"gcd({x} % 100, 12)", f"extract({self.r.choice(TIME_FIELDS)} from {leaf('time')})::bigint",
                f"extract({field} from {leaf('zoned')})::bigint", f"date_part('{field}', {leaf('zoned')})::bigint",
                f"extract({self.pick('timezone', 'timezone_hour', 'timezone_minute')} from {leaf('zoned')})::bigint",
                f"extract({field} from {leaf('timestamp')})::bigint", f"date_part('{field}', {leaf('timestamp')})::bigint",
                f"extract({self.pick('year', 'month', 'day', 'hour', 'minute', 'quarter', 'decade')} from {self.parts(leaf)})::bigint",
                f"length({a})", f"octet_length({a})", f"bit_length({a})", f"position({leaf('bytes')} in {a})",
                f"case when length({a}) > 0 then get_byte({a}, 0) + get_bit({a}, 3) end",
                f"(extract(epoch from {leaf('zoned')}) / 60)::bigint", f"({leaf('date')} - {leaf('zoned')}::date)"]

    def of_decimals(self, x, leaf):
        options = [f"({x} + {leaf('num')})", f"({x} - {leaf('int')})", f"({x} * 1.5)", f"(- ({x}))", f"abs({x})",
                   f"round({x}, 1)", f"trunc({x}, 1)", f"floor({x})", f"ceil({x})", f"({leaf('int')})::numeric(12, 2)",
                   f"({x} * {leaf('int')})", f"round({x})", f"({x} % 2.5)", f"cast({x} as numeric(20, 1))"]
        if self.plain:
            return options
        field = self.pick("epoch", "second", "milliseconds", "microseconds")
        return options + [f"extract({field} from {leaf(self.pick('time', 'zoned', 'timestamp'))})",
                          f"extract({field} from {self.parts(leaf)})"]

    def of_texts(self, x, leaf):
        options = [f"upper({x})", f"lower({x})", f"substr({x}, 2)", f"substr({x}, 1, 2)", f"replace({x}, 'a', 'bb')",
                   f"trim({x})", f"({x} || {leaf('text')})"]
        if self.plain:
            return options
        options += [f"substring({x} from 2 for 3)", f"left({x}, 2)", f"right({x}, -1)", f"lpad({x}, 5, 'xy')",
                    f"({leaf('int')})::text", f"({leaf('date')})::text", f"concat({x}, {leaf('int')}, {leaf('text')})",
                    f"reverse({x})", f"split_part({x}, 'b', 1)", f"initcap({x})", f"translate({x}, 'abc', 'xy')",
                    f"md5({x})", f"({leaf('bool')})::text", f"repeat({x}, 2)", f"cast({x} as varchar(2))",
                    f"concat_ws('-', {x}, {leaf('text')})", f"to_char({leaf('date')}, 'YYYY-MM')",
                    f"rtrim({x}, 'b0123')", f"ltrim({x}, 'a')", f"regexp_replace({x}, '[ab]+', '<\\&>', 'g')",
                    f"substring({x} from 'a.?|b')", f"regexp_substr({x}, '[^ ]', 1, 2)",
                    f"overlay({x} placing 'zz' from 2 for 1)", f"format('%s|%L', {x}, {leaf('int')})",
                    f"({leaf('timestamp')}::timestamptz)::text", f"({leaf('timestamp')}::time)::text",
                    f"({leaf('date')} at time zone 'Asia/Tokyo')::text"]
        return options + self.of_late_texts(x, leaf)

    def of_late_texts(self, x, leaf):
        late = self.pick("time", "zoned", "uuid", "bytes")
        pattern = lambda patterns: self.of_text(self.r.choice(patterns))
        return [f"({leaf(late)})::text", f"({self.parts(leaf)})::text", f"format('%L %s', {leaf(late)}, {self.parts(leaf)})",
                f"concat({leaf(late)}, '/', {leaf(late)})", f"concat_ws(' ', {leaf('zoned')}, {leaf('bytes')})",
                f"to_char({leaf('zoned')}, {pattern(ZONED_PATTERNS)})", f"to_char({leaf('timestamp')}, {pattern(STAMP_PATTERNS)})",
                f"to_char({leaf('time')}, {pattern(TIME_PATTERNS)})", f"to_char({self.parts(leaf)}, {pattern(INTERVAL_PATTERNS)})",
                f"to_char({leaf('int')}, {pattern(NUMBER_PATTERNS)})", f"to_char({leaf('num')}, {pattern(NUMBER_PATTERNS)})",
                f"encode({leaf('bytes')}, '{self.pick('hex', 'base64', 'escape')}')", f"md5({leaf('bytes')})",
                f"overlay({x} placing {leaf('text')} from {self.r.randint(1, 4)})", f"format('%2$s%1$I', coalesce({x}, 'a'), {leaf('int')})",
                f"format('%-5s|%4s', {x}, {leaf('bool')})", f"({leaf('zoned')} at time zone {self.zone()})::text"]

    def of_dates(self, x, leaf):
        if self.plain:
            return [x]
        return [f"({x} + 30)", f"({x} - 1)", f"cast({leaf('timestamp')} as date)", f"({x} + ({leaf('int')} % 100)::int)",
                f"({leaf('zoned')})::date", f"to_date(to_char({x}, 'DD.MM.YYYY'), 'DD.MM.YYYY')", f"date({leaf('zoned')})",
                f"to_date(to_char({leaf('timestamp')}, 'YYYYMMDD'), 'YYYYMMDD')",
                f"to_date(to_char({x}, 'YYYY DDD'), 'YYYY DDD')"]

    def of_timestamps(self, x, leaf):
        options = [f"date_trunc('{self.pick('month', 'day', 'hour', 'year')}', {x})", f"({x} + interval '1 day')",
                   f"({x} - interval '1 month 2 hours')", f"cast({leaf('date')} as timestamp)"]
        if self.plain:
            return options
        return options + [f"({x} at time zone 'Europe/Berlin' at time zone 'UTC')", f"({leaf('date')} + {x}::time)",
                          f"({x}::timestamptz + interval '1 month')::timestamp",
                          f"greatest({x}, {leaf('date')}::timestamptz)::timestamp", f"({leaf('zoned')})::timestamp",
                          f"({leaf('zoned')} at time zone {self.zone()})", f"({leaf('date')} + {leaf('time')})",
                          f"({x} {self.pick('+', '-')} {self.short(leaf)})",
                          f"date_trunc('{self.pick('week', 'quarter', 'minute', 'second', 'decade', 'milliseconds')}', {x})",
                          f"to_timestamp(to_char({leaf('date')}, 'YYYY-MM-DD'), 'YYYY-MM-DD')::timestamp"]

    def of_doubles(self, x, leaf):
        options = [f"({x} + {leaf('double')})", f"({x} * 2)", f"abs({x})", f"(- ({x}))", f"({leaf('int')})::double precision",
                   f"({leaf('num')})::double precision", f"floor({x})", f"({x} - {leaf('int')})"]
        return options if self.plain else options + [f"date_part('epoch', {leaf('zoned')})", f"date_part('second', {leaf('time')})"]

    def of_truths(self, x, leaf):
        options = [f"({x} is not true)", f"({leaf('int')} < {leaf('int')})", f"({leaf('text')} is null)"]
        if self.plain:
            return options
        stamps = self.pick("timestamp", "zoned", "date", "time")
        span = "interval '2 hours'" if stamps == "time" else self.short(leaf)
        return options + [
            f"(({leaf(stamps)}, {leaf(stamps)}) overlaps ({leaf(stamps)}, {leaf(stamps)}))",
            f"(({leaf(stamps)}, {span}) overlaps ({leaf(stamps)}, {leaf(stamps)}))",
            f"(({leaf(stamps)}, {span}) overlaps ({leaf(stamps)}, interval '90 minutes'))",
            f"({leaf(self.pick('timestamp', 'zoned', 'date'))} {self.pick('<', '=', '>=')} {leaf(self.pick('timestamp', 'zoned', 'date'))})",
            f"starts_with({leaf('text')}, 'a')"]

    def of_times(self, x, leaf):
        return [f"({leaf('timestamp')})::time", f"({leaf('zoned')})::time", f"({x} + interval '{self.pick('1 hour', '90 minutes 1 day')}')",
                f"({x} - interval '12:34:56')", f"({self.parts(leaf)})::time", f"({x} + {self.parts(leaf)})",
                f"(({leaf('zoned')} at time zone {self.zone()})::time)"]

    def of_moments(self, x, leaf):
        field = self.pick("hour", "day", "week", "month", "quarter", "year", "minute")
        return [f"({x} + interval '{self.pick('1 day', '1 month', '36 hours', '1 month 1 day 1 hour')}')",
                f"({x} - interval '{self.pick('1 day', '2 hours', '1 year -1 days')}')", f"({leaf('date')})::timestamptz",
                f"({leaf('timestamp')})::timestamptz", f"({leaf('timestamp')} at time zone {self.zone()})",
                f"date_trunc('{field}', {x})", f"date_trunc('{field}', {x}, {self.zone()})", f"to_timestamp({leaf('int')} % 1000000000)",
                f"({x} {self.pick('+', '-')} {self.short(leaf)})", f"greatest({x}, {leaf('timestamp')})"]

    def of_uuids(self, x, leaf):
        return [f"(({x})::text)::uuid", f"md5({leaf('text')})::uuid", f"md5({leaf('bytes')})::uuid", x]

    def of_bytes(self, x, leaf):
        return [f"({x} || {leaf('bytes')})", f"substring({x} from 1 for 2)", f"substr({x}, 2)", f"decode(md5({leaf('text')}), 'hex')",
                f"sha256({x})", f"convert_to({leaf('text')}, 'UTF8')", f"btrim({x}, '\\x0061'::bytea)", f"ltrim({x}, '\\x61'::bytea)",
                f"decode(encode({x}, 'base64'), 'base64')", f"case when length({x}) > 1 then set_byte({x}, 1, 7) end",
                f"case when length({x}) > 0 then set_bit({x}, 2, 1) end", f"overlay({x} placing {leaf('bytes')} from 2 for 1)"]

    def of_intervals(self, x, leaf):
        made = self.pick(f"{x} + {leaf('interval')}", f"{x} - {leaf('interval')}", f"- {x}", f"{leaf('time')}::interval",
                         f"{self.parts(leaf)} * {self.pick('2', '0.5', '1.25', '-3')}", f"{self.parts(leaf)} / {self.pick('2', '7', '0.3')}",
                         f"{leaf('timestamp')} - {leaf('timestamp')}", f"{leaf('zoned')} - {leaf('zoned')}", f"{leaf('time')} - {leaf('time')}",
                         f"age({leaf('timestamp')}, {leaf('timestamp')})", f"age({leaf('zoned')}, {leaf('zoned')})",
                         f"date_trunc('{self.pick('hour', 'day', 'month', 'year')}', {self.parts(leaf)})",
                         f"justify_days({self.parts(leaf)})", f"justify_hours({x})")
        return [f"justify_interval({made})"] * 3 + [f"({made})"]
