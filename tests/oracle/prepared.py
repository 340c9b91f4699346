"""Prepared statements at random: a generator's constants become parameters, and EXECUTE is asked with these and with others.

    prepare s (bigint, text) as select …; execute s (1, 'ab'); execute s (null, 'b'); deallocate s"""
import re

from kinds import LOOSE_TYPES

PARAMETER = re.compile(r"\$(\d+)")
SEPARATOR = "; "
END = "deallocate all"


def is_prepared(text):
    return text.startswith("prepare ")


def parts(text):
    return [part for part in (p.strip() for p in text.split(";")) if part]


class Prepared:
    """The parameters of the statement that is being made; `constants` by kind are what else they may be."""

    def __init__(self, r, constants):
        self.r, self.constants = r, constants
        self.begin()

    def begin(self):
        self.parameters = []

    def parameter(self, kind, text, fixed=False):
        """$n in place of the constant. `fixed`: it has this value alone."""
        self.parameters.append((kind, text, fixed))
        return "$%d" % len(self.parameters)

    def arguments(self, again):
        texts = [self.r.choice(self.constants[kind]) if again and not fixed and self.r.random() < 0.6 else text
                 for kind, text, fixed in self.parameters]
        return " (%s)" % ", ".join(texts) if texts else ""

    def keep_named(self, body):
        """The body with the parameters that it names, from $1 on: not all that was made is in it."""
        named = sorted({int(n) for n in PARAMETER.findall(body)})
        self.parameters = [self.parameters[n - 1] for n in named]
        return PARAMETER.sub(lambda match: "$%d" % (named.index(int(match.group(1))) + 1), body)

    def statements(self, body):
        body = self.keep_named(body)
        # Without types their surroundings tell them, and where nothing does they are texts, in both.
        # Integers beside which they stand would have 32 bits in PostgreSQL, which large ones do not fit.
        listed = self.parameters and (self.r.random() < 0.8 or any(kind == "big" for kind, *_ in self.parameters))
        types = " (%s)" % ", ".join(LOOSE_TYPES[kind] for kind, *_ in self.parameters) if listed else ""
        calls = ["execute s" + self.arguments(False)]
        if self.r.random() < 0.5:
            calls.append("execute s" + self.arguments(True))
        return SEPARATOR.join(["prepare s%s as %s" % (types, body), *calls])
