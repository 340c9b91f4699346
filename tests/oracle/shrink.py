"""Makes a statement on which two systems differ smaller, and then the tables' rows fewer.

A statement is a list of tokens. Whatever stands between two places of equal depth of brackets may be left out, and a
bracket may become what is in it, or a constant; candidates that PostgreSQL refuses cost next to nothing."""
import re

TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|[A-Za-z_][A-Za-z_0-9.]*|[0-9]+(?:\.[0-9]+)?|\$[0-9]+|::|<<|>>|<>|<=|>=|\|\||!~\*?|~\*|.")
CONSTANTS = [["null"], ["1"], ["true"], ["'a'"]]


def tokens(text):
    return [t for t in TOKEN.findall(text) if not t.isspace()]


def brackets(words):
    """(position of the opening, of the closing), large ones first."""
    open_, pairs = [], []
    for i, word in enumerate(words):
        if word == "(":
            open_.append(i)
        elif word == ")" and open_:
            pairs.append((open_.pop(), i))
    return sorted(pairs, key=lambda pair: pair[0] - pair[1])


# Where something begins or ends that may be left out.
EDGES = set(", and or where having group order limit offset join left right full cross union intersect except filter "
            "over not distinct when else end with partition rows range groups lateral all :: on is between + - * / % || "
            "desc nulls from select coalesce case ) (".split())


def spans(words):
    """(begin, end) of balanced pieces between edges, long ones first."""
    found = []
    for low, word in enumerate(words):
        if word not in EDGES and (low == 0 or words[low - 1] not in EDGES):
            continue
        depth = 0
        for high in range(low, len(words)):
            depth += (words[high] == "(") - (words[high] == ")")
            if depth < 0:
                break
            if depth == 0 and (high + 1 == len(words) or words[high + 1] in EDGES or words[high] in EDGES):
                found.append((low, high + 1))
    return sorted(found, key=lambda span: span[0] - span[1])


def candidates(words):
    """Smaller statements, those that are much smaller first."""
    for low, high in brackets(words):
        inner = words[low + 1:high]
        if inner and inner[0] in ("select", "with", "values"):
            yield inner
    for low, high in spans(words):
        yield words[:low] + words[high:]
    for low, high in brackets(words):
        if high - low > 1:
            yield words[:low] + words[low + 1:high] + words[high + 1:]
            for constant in CONSTANTS:
                yield words[:low] + constant + words[high + 1:]
            # With the name before it: a call.
            for constant in CONSTANTS:
                yield words[:max(low - 1, 0)] + constant + words[high + 1:]


def statement(text, valid, differs, budget=400):
    """`valid(text)`: cheap. `differs(text)`: of valid ones; asked at most `budget` times."""
    words, seen = tokens(text), set()
    progress = True
    while progress and budget > 0:
        progress = False
        for candidate in candidates(words):
            smaller = " ".join(candidate)
            if smaller in seen or len(candidate) >= len(words):
                continue
            seen.add(smaller)
            if not valid(smaller):
                continue
            budget -= 1
            if differs(smaller):
                words, progress = candidate, True
                break
            if budget <= 0:
                break
    return " ".join(words)


def rows(tables, differs):
    """Leaves rows out of the tables, in halves and less; `differs()` loads and asks."""
    for table in tables:
        step = max(1, len(table.rows))
        while step >= 1 and table.rows:
            at, kept = 0, False
            while at < len(table.rows):
                before = table.rows
                table.rows = before[:at] + before[at + step:]
                if not differs():
                    table.rows = before
                    at += step
                else:
                    kept = True
            if step == 1 or (len(table.rows) > 64 and step < len(table.rows) / 64):
                break
            step = max(1, step // 2)
            if not kept and step < len(table.rows) / 256:
                break
