#!/usr/bin/env python3
"""Runs mutants: plausible wrong edits of the tree, each with the test that must notice it.

A mutant is a row of a table in tests/mutants. The row's header names the mutated file and the mutant:

    ["txn/rsi/commit.cc".lock_before_look]
    rule = "A lock is taken before the version is looked at."
    test = "//tests/txn/rsi:session_test RsiSessionTest.TwoWritersOfOneRow"
    old = 'if (version == kOld) return;'
    new = 'if (version != kOld) return;'

`old` must occur exactly once in the file; `new` replaces it, byte for byte. Two arrays of the same length edit several
places. An empty `new` removes the lines of `old`, with their indentation and line ends, if `old` is all that they hold.

This tool applies each row in a scratch copy of what is committed or staged (.mutants/tree), builds and runs the row's
test alone, and restores the file. The verdict is:

    killed       the test failed or did not end, as it should
    survived     the test passed: it does not look at the rule
    stale        the row does not apply any more, or the edit does not compile
    unsound      the test fails without the edit too, so it shows nothing

.mutants/verdicts.json keeps the verdicts by row and tree, so an interrupted run continues where it stopped.

usage: mutants.py [NAME...] [--in-turn=N] [--again] [--check]
  NAME         runs only these; without a name, all
  --in-turn=N  runs N of them, others after every commit
  --again      also runs those that have a verdict for this tree
  --check      runs none and tells which no longer apply, and why; takes a second
"""
import argparse
import filecmp
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = "tests/mutants"
SCRATCH = os.path.join(ROOT, ".mutants")
TREE = os.path.join(SCRATCH, "tree")
VERDICTS = os.path.join(SCRATCH, "verdicts.json")
KILLED_AT_LEAST = 0.95
TEST_TIMEOUT_S = 300  # a mutant that hangs is killed
BUILD_TIMEOUT_S = 1800
GOOGLE_CASE = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
STATEMENTS = ".test"  # tests/statements: `== Case` in record_types.test is RecordTypes.Case
STATEMENTS_CASE = re.compile(r"^== (\w+)$", re.MULTILINE)
BAZEL_PASSED, BAZEL_BUILD_FAILED, BAZEL_TESTS_FAILED = 0, 1, 3


class Mismatch(Exception):
    """Says why a row does not apply."""


class Mutant:
    def __init__(self, table, file, name, row):
        self.table, self.file, self.name, self.row = table, file, name, row
        self.rule = row.get("rule", "")
        self.test, _, self.case = str(row.get("test", "")).partition(" ")

    def places(self):
        """A pair of old and new text for each place."""
        old, new = self.row["old"], self.row["new"]
        return [(old, new)] if isinstance(old, str) else list(zip(old, new))

    def digest(self):
        return hashlib.sha256(json.dumps([self.file, self.row], sort_keys=True).encode()).hexdigest()[:16]

    def malformed(self):
        """What the row lacks; empty if it is complete."""
        if set(self.row) != {"rule", "test", "old", "new"}:
            return "needs rule, test, old and new, and nothing else"
        if not (self.rule and self.case):
            return "needs a rule, and a test's label and case with a space between them"
        texts = [value if isinstance(value, list) else [value] for value in (self.row["old"], self.row["new"])]
        if type(self.row["old"]) is not type(self.row["new"]) or len(texts[0]) != len(texts[1]) or not all(
                isinstance(text, str) for text in texts[0] + texts[1]):
            return "old and new are not two texts, nor two arrays of the same length"
        if not all(texts[0]) or not texts[0]:
            return "old is empty"
        return "old and new are equal" if any(old == new for old, new in self.places()) else ""

    def apply(self, text):
        """The file's text with the edit."""
        edits = []
        for old, new in self.places():
            begin = text.find(old)
            if begin < 0:
                raise Mismatch("old text not found in %s: %s" % (self.file, old.strip().split("\n")[0]))
            if text.find(old, begin + 1) >= 0:
                raise Mismatch("old text found %d times in %s: %s" % (
                    len(re.findall("(?=%s)" % re.escape(old), text)), self.file, old.strip().split("\n")[0]))
            span = begin, begin + len(old)
            edits.append((*(span if new else whole_lines(text, *span)), new))
        edits.sort()
        if any(before[1] > after[0] for before, after in zip(edits, edits[1:])):
            raise Mismatch("old texts overlap in %s" % self.file)
        for begin, end, new in reversed(edits):
            text = text[:begin] + new + text[end:]
        return text


def whole_lines(text, begin, end):
    """Widens a span to the lines that it fills apart from indentation; leaves it as it is if it shares a line."""
    first = text.rfind("\n", 0, begin) + 1
    return (first, end + 1) if not text[first:begin].strip() and text.startswith("\n", end) else (begin, end)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


def rows_of(table):
    """The mutants of one table."""
    try:
        files = tomllib.loads(read(os.path.join(ROOT, table)))
    except tomllib.TOMLDecodeError as error:
        sys.exit("mutants: %s: %s" % (table, error))
    for file, rows in files.items():
        for name, row in rows.items() if isinstance(rows, dict) else [("", rows)]:
            if not isinstance(row, dict):
                sys.exit('mutants: %s: the header of a row is ["FILE".NAME], that of %s is not' % (table, file))
            yield Mutant(table, file, name, row)


def all_mutants(names):
    known = {}
    for table in sorted(os.listdir(os.path.join(ROOT, FOLDER))):
        for mutant in rows_of(os.path.join(FOLDER, table)) if table.endswith(".toml") else ():
            other = known.setdefault(mutant.name, mutant)
            if other is not mutant:
                sys.exit("mutants: two mutants are called %s: of %s in %s and of %s in %s" % (
                    mutant.name, other.file, other.table, mutant.file, mutant.table))
    missing = [name for name in names if name not in known]
    if missing:
        sys.exit("mutants: there is no mutant %s in %s" % (", ".join(missing), FOLDER))
    return [known[name] for name in sorted(set(names) or known)]


@functools.cache
def sources_below(package):
    return [read(os.path.join(where, file)) for where, _, files in os.walk(os.path.join(ROOT, package))
            for file in files if file.endswith((".cc", ".h", ".py", ".sh"))]


@functools.cache
def cases_below(package):
    cases = {case for text in sources_below(package) for case in GOOGLE_CASE.findall(text)}
    for where, _, files in os.walk(os.path.join(ROOT, package)):
        for file in files:
            if file.endswith(STATEMENTS):
                suite = "".join(word[:1].upper() + word[1:] for word in file[:-len(STATEMENTS)].split("_"))
                cases |= {(suite, case) for case in STATEMENTS_CASE.findall(read(os.path.join(where, file)))}
    return cases


def sources_hold(package, case):
    """Whether some source of the test's package has this case: Suite.Case of GoogleTest, or words of a script."""
    suite, _, name = case.partition(".")
    return (suite.split("/")[-1], name.split("/")[0]) in cases_below(package) or any(
        "RC_GTEST" in text and suite in text and name in text if name else case in text
        for text in sources_below(package))


@functools.cache
def build_file(package):
    path = os.path.join(ROOT, package, "BUILD")
    return read(path) if os.path.exists(path) else ""


def complaint(mutant):
    """What is wrong with the row; empty if nothing is."""
    if mutant.malformed():
        return mutant.malformed()
    label = re.fullmatch(r"//([\w/]+):([\w.-]+)", mutant.test)
    if not label:
        return "%s is no test's label" % mutant.test
    # By its name, or by that of its only file (own_process of third_party/cc.bzl).
    if not re.search('"%s(\\.cc)?"' % re.escape(label.group(2)), build_file(label.group(1))):
        return "there is no test %s" % mutant.test
    if not sources_hold(label.group(1), mutant.case):
        return "%s has no case %s" % (mutant.test, mutant.case)
    try:
        mutant.apply(read(os.path.join(ROOT, mutant.file)))
    except FileNotFoundError:
        return "there is no file %s" % mutant.file
    except Mismatch as mismatch:
        return str(mismatch)
    return ""


def check(mutants):
    wrong = [(mutant, complaint(mutant)) for mutant in mutants]
    wrong = [(mutant, text) for mutant, text in wrong if text]
    for mutant, text in wrong:
        print("%s (%s): %s" % (mutant.name, mutant.table, text))
    print("%d mutants, %d to mend" % (len(mutants), len(wrong)))
    return 1 if wrong else 0


def make_tree():
    """Makes the scratch copy of what git would commit now. Returns its digest."""
    digest = git("write-tree").strip()
    fresh = TREE + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    git("checkout-index", "--all", "--prefix=" + fresh + "/")
    wanted = set(files_below(fresh))
    for path in set(files_below(TREE)) - wanted:
        os.remove(os.path.join(TREE, path))
    # An unchanged file keeps its place and its time, so that Bazel builds only what has changed.
    for path in wanted:
        source, target = os.path.join(fresh, path), os.path.join(TREE, path)
        if not os.path.exists(target) or not filecmp.cmp(source, target, shallow=False):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(source, target)
    shutil.rmtree(fresh)
    return digest


def files_below(folder):
    for where, _, files in os.walk(folder):
        for name in files:
            yield os.path.relpath(os.path.join(where, name), folder)


def run_test(mutant):
    """Bazel's exit code for the mutant's case in the scratch copy."""
    command = ["bazel", "test", "--noshow_progress", "--color=no", "--curses=no", "--test_output=summary",
               "--test_timeout=%d" % TEST_TIMEOUT_S, mutant.test]
    if "." in mutant.case:
        command.insert(-1, "--test_filter=*%s*" % mutant.case)
    try:
        with open(os.path.join(SCRATCH, "last.log"), "w") as log:
            return subprocess.run(command, cwd=TREE, stdout=log, stderr=subprocess.STDOUT,
                                  timeout=BUILD_TIMEOUT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        return BAZEL_BUILD_FAILED


def judge(mutant, sound):
    if mutant.malformed():
        return "stale"
    key = (mutant.test, mutant.case)
    if key not in sound:
        sound[key] = run_test(mutant) == BAZEL_PASSED
    if not sound[key]:
        return "unsound"
    path = os.path.join(TREE, mutant.file)
    try:
        text = read(path)
        edited = mutant.apply(text)
    except (FileNotFoundError, Mismatch):
        return "stale"
    try:
        write(path, edited)
        code = run_test(mutant)
    finally:
        write(path, text)
    return {BAZEL_PASSED: "survived", BAZEL_TESTS_FAILED: "killed"}.get(code, "stale")


def in_turn(mutants, count):
    commits = int(git("rev-list", "--count", "HEAD"))
    first = commits * count % max(len(mutants), 1)
    return (mutants + mutants)[first : first + min(count, len(mutants))]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--in-turn", type=int, default=0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    mutants = all_mutants(options.names)
    if options.check:
        return check(mutants)
    if options.in_turn:
        mutants = in_turn(mutants, options.in_turn)
    tree = make_tree()
    verdicts = json.load(open(VERDICTS)) if os.path.exists(VERDICTS) else {}
    sound, counts = {}, {}
    for number, mutant in enumerate(mutants, 1):
        key = "%s %s %s" % (mutant.name, mutant.digest(), tree)
        began = time.monotonic()
        if options.again or key not in verdicts:
            verdicts[key] = judge(mutant, sound)
            with open(VERDICTS + ".new", "w") as file:
                json.dump(verdicts, file, indent=1, sort_keys=True)
            os.replace(VERDICTS + ".new", VERDICTS)
        verdict = verdicts[key]
        counts[verdict] = counts.get(verdict, 0) + 1
        print("%3d/%d  %-8s  %s  (%.0f s)  %s" % (number, len(mutants), verdict, mutant.name,
                                                 time.monotonic() - began, mutant.rule), flush=True)
    killed = counts.get("killed", 0)
    print(", ".join("%d %s" % (count, verdict) for verdict, count in sorted(counts.items())))
    return 0 if mutants and killed >= KILLED_AT_LEAST * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
