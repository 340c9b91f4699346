#!/usr/bin/env python3
"""House rules of the source tree. Usage: house_rules.py ROOT | house_rules.py --self-test

Prints one line `file:line: rule` for every offence; the exit code is 1 if there is one.
"""
import os
import re
import sys
import tempfile

# Which folders a folder's files may include, beside its own and proto/. As in the design's layout.
MAY_INCLUDE = {
    "base": set(),
    "proto": set(),
    "fabric": {"base"},
    "storage": {"fabric", "base"},
    "memserver": {"fabric", "storage", "catalog", "base"},
    "catalog": {"fabric", "base"},
    "types": {"base"},
    "csv": {"types", "base"},
    "plan": {"types", "base"},
    "partitioner": {"types", "storage", "catalog", "fabric", "base"},
    # Of partitioner/ the encoding of record tables' rows, whose sizes CREATE TABLE checks.
    "sql": {"partitioner", "plan", "csv", "types", "catalog", "base"},
    "optimizer": {"sql", "plan", "types", "partitioner", "catalog", "base"},
    "txn": {"storage", "catalog", "fabric", "base"},
    # What it needs of queries lies below the text: in plan/, types/ and partitioner/.
    "execution": {"plan", "types", "partitioner", "txn", "storage", "catalog", "fabric", "base"},
    # The process alone: queries are the engine's.
    "computeserver": {"execution", "plan", "types", "txn", "storage", "partitioner", "catalog", "fabric", "base"},
    # Coordinators know compute servers by their methods alone.
    "session": {"sql", "optimizer", "execution", "plan", "csv", "types", "partitioner", "txn", "storage", "catalog",
                "fabric", "base"},
    # What benchmarks share.
    "dataset": {"partitioner", "types", "catalog", "fabric", "base"},
    "ssb": {"dataset", "partitioner", "types", "base"},
    "tpch": {"dataset", "partitioner", "types", "base"},
    "tpcw": {"txn", "partitioner", "types", "storage", "catalog", "fabric", "base"},
    "terminal": {"session", "dataset", "types", "catalog", "base"},
    "localcluster": {"terminal", "catalog", "base"},
    "workload": {"terminal", "dataset", "ssb", "tpch", "tpcw", "session", "txn", "partitioner", "types", "catalog",
                 "fabric", "base"},
    "simulation": {"workload", "dataset", "ssb", "tpcw", "session", "computeserver", "memserver", "txn", "partitioner",
                   "sql", "storage", "catalog", "fabric", "base"},
    # Of localcluster/ where data lie.
    "backup": {"localcluster", "session", "memserver", "storage", "catalog", "fabric", "base"},
    # The programs. Neither includes the other: what both need lies below both.
    "cli": {"backup", "terminal", "csv", "localcluster", "workload", "simulation", "dataset", "ssb", "tpcw", "session", "computeserver",
            "memserver", "txn", "partitioner", "sql", "types", "catalog", "fabric", "base"},
    "bench": {"terminal", "localcluster", "workload", "simulation", "dataset", "ssb", "tpcw", "session",
              "computeserver", "memserver", "txn", "execution", "optimizer", "partitioner", "sql", "plan", "types", "storage", "catalog",
              "fabric", "base"},
}
FOLDERS = set(MAY_INCLUDE) | {"tests"}
SPEAKS_PROTO = {"memserver", "catalog", "types", "plan", "partitioner", "sql", "optimizer", "txn", "execution",
                "computeserver", "session", "ssb", "tpcw", "terminal", "backup", "cli", "bench"}
LINES_MAX = 700
BELOW_THE_CLOCK = ("base/", "fabric/", "tests/fabric/")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')
WAITS = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|clock_nanosleep|clock_gettime|gettimeofday)\s*\("
                   r"|\b(steady_clock|system_clock|high_resolution_clock)::now\b|(?<![\w:.>])sleep\s*\(")
BAD_NAME = re.compile(r"\b(class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w*(?:Utils?|Managers?|Helpers?))\b")
BAD_FILE = re.compile(r"(^|_)(utils?|managers?|helpers?|common|misc)(_|\.|$)")
# A function of nothing else has no effect in GCC's eyes, and its calls are left out: see base/prefetch.h.
PREFETCH = re.compile(r"\b(__builtin_prefetch|_mm_prefetch)\b")
# Locks that clang's -Wthread-safety does not see, and what would take one of them.
UNSEEN_LOCK = re.compile(r"\bstd::(?:\w*mutex|lock_guard|scoped_lock|unique_lock|shared_lock|condition_variable\w*)\b"
                         r"|\babsl::(?:Reader|Writer)?Mutex(?:Lock)?\b")
# Above fabric/ a fabric is asked what it can do; cli/ and bench/ tell users about kinds.
OF_A_KIND = re.compile(r"[!=]= *fabric::Kind::k|\bfabric(?:\(\)|_)?(?:\.|->)kind\(\) *[!=]=")
ASKS_FOR_KINDS = {"fabric", "cli", "bench", "tests"}
SQLSTATES = "types/sql_error.h"  # the table of those that have a name
SQLSTATE = re.compile(r'"([0-9A-Z]{5})"')
# What a file's anonymous namespaces declare, as clang-format writes it: nothing in a namespace is indented.
DECLARED_TYPE = re.compile(r"^(?:template <.*> )?(?:class|struct|enum(?: class)?|union) (?:alignas\([^)]*\) )?(\w+)"
                           r"|^using (\w+) =")
DECLARED = re.compile(r"^[\w:<>,&*\s\[\]()\"]*?[\s&*>](?!const\b|sizeof\b)(\w+)(?:\[[^\]]*\])*\s*[(={;]")
FURTHER = re.compile(r", (k[A-Z]\w*) =")
NO_DECLARATION = re.compile(r"^(?:[ }/#]|$|TEST|TYPED_|RC_|INSTANTIATE_|template|namespace|using|extern|static_assert)")
SUITE = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_(?:FIXTURE_)?PROP)\((\w+),")
COMPILED_ALONE = ("tests/fuzz/", "tests/fabric/provider_")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def strip_comment(line):
    return line.split("//", 1)[0]


def named_sqlstates(root):
    try:
        with open(os.path.join(root, SQLSTATES), encoding="utf-8") as table:
            return set(SQLSTATE.findall(table.read()))
    except FileNotFoundError:
        return set()


def offences_in(path, lines, sqlstates):
    """(line, rule) for each offence of one file; `path` is relative to the root."""
    folder = path.split("/", 1)[0]
    if len(lines) > LINES_MAX:
        yield len(lines), "longer than %d lines" % LINES_MAX
    if any(BAD_FILE.search(part) for part in path.split("/")[:-1] + [os.path.splitext(os.path.basename(path))[0]]):
        yield 1, "a name that says nothing (utils, manager, helper, common)"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work in the tree"
        include = INCLUDE.match(line)
        if include:
            yield from ((number, rule) for rule in include_offences(path, folder, include.group(1)))
        code = strip_comment(line)
        if WAITS.search(code) and not path.startswith(BELOW_THE_CLOCK):
            yield number, "sleeps or reads a clock above fabric/"
        if PREFETCH.search(code) and path != "base/prefetch.h":
            yield number, "asks for memory without base/prefetch.h"
        if OF_A_KIND.search(code) and folder not in ASKS_FOR_KINDS:
            yield number, "asks for a fabric's kind, not for its capabilities"
        if UNSEEN_LOCK.search(code) and path != "base/mutex.h":
            yield number, "a lock other than base/mutex.h's"
        if folder != "tests" and path != SQLSTATES and sqlstates.intersection(SQLSTATE.findall(code)):
            yield number, "a SQLSTATE that has a name in %s" % SQLSTATES
        name = BAD_NAME.search(code)
        if name:
            yield number, "%s: a name that says nothing" % name.group(2)


def local_names(lines):
    """(line, name) of what a source's anonymous namespaces declare, and of its test suites."""
    anonymous, names = False, {}
    for number, line in enumerate(lines, 1):
        if line in ("namespace {", "}  // namespace"):
            anonymous = line == "namespace {"
        suite = SUITE.match(line)
        if suite:
            names.setdefault(suite.group(1), number)
        if not anonymous:
            continue
        declared = DECLARED_TYPE.match(line) or (not NO_DECLARATION.match(line) and DECLARED.match(line))
        if declared:
            names.setdefault(next(filter(None, declared.groups())), number)
            for further in FURTHER.findall(line) if line.startswith("const") else ():
                names.setdefault(further, number)
    return [(number, name) for name, number in names.items()]


class FolderNames:
    """The sources of a folder are compiled in groups (third_party/cc.bzl): a name is local to one of them."""

    def __init__(self):
        self.first = {}

    def offences_in(self, path, lines):
        if not path.endswith(".cc") or path.startswith(COMPILED_ALONE):
            return
        for number, name in local_names(lines):
            first = self.first.setdefault((os.path.dirname(path), name), path)
            if first != path:
                yield number, "%s is local to %s, too: one name of the two says more" % (name, first)


def include_offences(path, folder, included):
    if included.startswith(("infiniband/", "rdma/")) and not path.startswith(("fabric/verbs/", "tests/fabric/verbs/")):
        yield "only fabric/verbs includes <%s>" % included
    if included == "CLI/CLI.hpp" and path != "terminal/command_line.h":
        yield "only terminal/command_line.h includes CLI11"
    if included == "terminal/command_line.h" and not path.endswith("/main.cc"):
        yield "only main files include CLI11's command line"
    target = included.split("/", 1)[0]
    if target not in FOLDERS or "/" not in included or folder not in MAY_INCLUDE or target == folder:
        return
    if target == "proto":
        if folder not in SPEAKS_PROTO:
            yield "%s does not speak the control plane's protocols" % folder
    elif target not in MAY_INCLUDE[folder]:
        yield "%s must not include %s" % (folder, included)


def sources(root):
    for folder in sorted(FOLDERS):
        for where, folders, files in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".cc", ".h")) and ".pb." not in name:
                    yield os.path.relpath(os.path.join(where, name), root)


def check(root):
    count, offences, sqlstates, names = 0, [], named_sqlstates(root), FolderNames()
    for path in sources(root):
        count += 1
        with open(os.path.join(root, path), encoding="utf-8") as source:
            lines = source.read().splitlines()
        for number, rule in [*offences_in(path, lines, sqlstates), *names.offences_in(path, lines)]:
            offences.append("%s:%d: %s" % (path, number, rule))
    return count, offences


def self_test():
    """Every rule finds its own offence, and nothing in clean files."""
    clean = {
        "storage/block.cc": '#include "fabric/fabric.h"\n// sleep_for(1) in a remark\nclass Block {};\n',
        "fabric/tcp/wait.cc": "nanosleep(&t, nullptr);\n",
        "fabric/verbs/device.cc": "#include <infiniband/verbs.h>\n",
        "catalog/client.cc": '#include "proto/catalog.pb.h"\n',
        "types/wire.cc": '#include "proto/type.pb.h"\n',
        "terminal/command_line.h": "#include <CLI/CLI.hpp>\n",
        "cli/main.cc": '#include "terminal/command_line.h"\n',
        "base/mutex.h": "std::mutex mutex_;\n",
        "fabric/b.h": "Mutex mutex_;\nstd::once_flag once_;\n// std::mutex\n",
        "memserver/c.cc": "Open({.kind = fabric::Kind::kTcp});\n",
        "cli/j.cc": "if (kind == fabric::Kind::kTcp) {\n",
        "base/prefetch.h": "__builtin_prefetch(line);\n",
        "session/a.cc": 'Fail("2BP01", sqlstate::kBadText);\n',
        "tests/sql/b_test.cc": 'Fails("22P02");\n',
    }
    dirty = {
        "storage/a.cc": '#include "sql/bound_query.h"\n',
        "base/b.h": '#include "fabric/fabric.h"\n',
        "types/r.h": '#include "sql/bound_query.h"\n',
        "storage/c.cc": '#include "proto/catalog.pb.h"\n',
        "memserver/d.cc": '#include "session/session.h"\n',
        "session/s.cc": '#include "computeserver/server.h"\n',
        "execution/t.h": '#include "optimizer/slots.h"\n',
        "execution/u.h": '#include "sql/bound_query.h"\n',
        "computeserver/w.h": '#include "optimizer/slots.h"\n',
        "plan/v.h": '#include "catalog/client.h"\n',
        "csv/x.h": '#include "plan/expression.h"\n',
        "storage/y.cc": '#include "csv/dialect.h"\n',
        "storage/e.cc": "#include <infiniband/verbs.h>\n",
        "cli/f.cc": "#include <CLI/CLI.hpp>\n",
        "storage/g.cc": "std::this_thread::sleep_for(x);\n",
        "tests/storage/h_test.cc": "usleep(1000);\n",
        "cli/i.cc": "auto t = std::chrono::steady_clock::now();\n",
        "sql/j.h": "class BlockManager {\n",
        "sql/string_utils.h": "\n",
        "txn/m.cc": "__builtin_prefetch(line);\n",
        "fabric/x.h": "std::mutex mutex_;\n",
        "tests/sql/y_test.cc": "const std::lock_guard lock(mutex_);\n",
        "sql/z.h": "mutable absl::Mutex mutex_;\n",
        "base/w.h": "std::condition_variable_any changed_;\n",
        "session/a2.cc": "const bool sim = kind == fabric::Kind::kSim;\n",
        "memserver/b2.cc": "if (fabric_->kind() == other) return;\n",
        "sql/k.cc": "\n" * (LINES_MAX + 1),
        "simulation/n.cc": '#include "cli/shell.h"\n',
        "bench/o.cc": '#include "cli/shell.h"\n',
        "cli/p.cc": '#include "bench/plot.h"\n',
        "cli/q.cc": '#include "terminal/command_line.h"\n',
        "sql/l.cc": "// " + "TO" + "DO: more\n",
        "sql/r.cc": 'Fail("22P02");\n',
    }
    local = "namespace {\n%s\n}  // namespace\n"
    pairs = [
        (1, local % "constexpr int kRows = 1;", local % "const std::string kRows(3, 'x');"),
        (1, local % "constexpr int kA = 1, kRows = 1;", local % "constexpr size_t kRows = 3;"),
        (1, local % "struct Row {", local % "absl::StatusOr<int> Row(int a) {"),
        (1, local % "bool Has(int a) { return a > 0; }", local % "bool Has(const std::string& a,"),
        (1, local % "using Key = int;", local % "template <typename T> class Key {"),
        (1, "TEST(RowTest, A) {\n", "TEST_F(RowTest, B) {\n"),
        (0, local % "struct Row {\n  int key;\n  int Key() const;", local % "int Name();\n// Row(a) {"),
        (0, local % "int Row();", "int Row(int a) { return a; }\n"),
    ]
    cases = [({path: text}, expected) for files, expected in ((clean, 0), (dirty, 1)) for path, text in files.items()]
    cases += [({"sql/s.cc": one, "sql/t.cc": other}, expected) for expected, one, other in pairs]
    cases.append(({"sql/s.cc": pairs[0][1], "plan/s.cc": pairs[0][1], "sql/t.h": pairs[0][1]}, 0))
    for files, expected in cases:
        with tempfile.TemporaryDirectory() as root:
            for name, content in {SQLSTATES: 'constexpr const char* kBadText = "22P02";\n', **files}.items():
                os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
                with open(os.path.join(root, name), "w", encoding="utf-8") as source:
                    source.write(content)
            count, offences = check(root)
            if count != 1 + len(files) or len(offences) != expected:
                print("self test: %s: %s" % (files, offences))
                return 1
    return 0


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    count, offences = check(sys.argv[1])
    for offence in offences:
        print(offence)
    print("%d files, %d offences" % (count, len(offences)))
    return 1 if offences or count == 0 else 0


sys.exit(main())
