#!/usr/bin/env python3
"""Runs mutants: plausible wrong edits of the tree, each with the test that must notice it.

A mutant is tests/mutants/NAME.patch, a diff with three lines before it:

    # rule: A lock is taken before the version is looked at.
    # test: //tests/txn/rsi:session_test
    # case: RsiSessionTest.TwoWritersOfOneRow

Each is applied in a scratch copy of what is committed or staged (.mutants/tree), its test alone is built and run,
and the edit is taken back:

    killed       the test failed, or did not end: as it should be
    survived     the test passed: it does not look at the rule
    stale        the patch does not apply any more, or does not compile
    unsound      the test fails without the edit too, so that it says nothing

Verdicts are kept in .mutants/verdicts.json by patch and tree, so that a run that was ended goes on where it was.

usage: mutants.py [NAME...] [--in-turn=N] [--again] [--check]
  NAME         only these; without any, all
  --in-turn=N  N of them, others with every commit
  --again      also those that have a verdict for this tree
  --check      only whether each patch applies and its test exists; takes a second
"""
import argparse
import filecmp
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = "tests/mutants"
SCRATCH = os.path.join(ROOT, ".mutants")
TREE = os.path.join(SCRATCH, "tree")
VERDICTS = os.path.join(SCRATCH, "verdicts.json")
KILLED_AT_LEAST = 0.95
TEST_TIMEOUT_S = 300  # a mutant that hangs is killed
BUILD_TIMEOUT_S = 1800
BAZEL_PASSED, BAZEL_BUILD_FAILED, BAZEL_TESTS_FAILED = 0, 1, 3


class Mutant:
    def __init__(self, path):
        self.name = os.path.basename(path)[: -len(".patch")]
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        header = dict(re.findall(r"^# (rule|test|case): (.+)$", self.text.split("diff --git", 1)[0], re.M))
        self.rule, self.test, self.case = (header.get(key, "").strip() for key in ("rule", "test", "case"))

    def digest(self):
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def git(*arguments, cwd=ROOT, check=True):
    return subprocess.run(["git", *arguments], cwd=cwd, check=check, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def all_mutants(names):
    folder = os.path.join(ROOT, FOLDER)
    known = {name[: -len(".patch")]: os.path.join(folder, name)
             for name in sorted(os.listdir(folder)) if name.endswith(".patch")}
    missing = [name for name in names if name not in known]
    if missing:
        sys.exit("mutants: there is no mutant %s in %s" % (", ".join(missing), FOLDER))
    return [Mutant(path) for name, path in known.items() if not names or name in names]


def source_holds(package, case):
    """Whether some source of the test's package has this case: Suite.Case of GoogleTest, or a word of a script."""
    suite, _, name = case.partition(".")
    pattern = re.compile(r"\bTEST(?:_F|_P)?\(\s*%s\s*,\s*%s\s*\)" % (re.escape(suite.split("/")[-1]), re.escape(
        name.split("/")[0])) if name else re.escape(case))
    for where, _, files in os.walk(os.path.join(ROOT, package)):
        for file in files:
            if file.endswith((".cc", ".h", ".py", ".sh")):
                with open(os.path.join(where, file), encoding="utf-8") as source:
                    text = source.read()
                if pattern.search(text) or ("RC_GTEST" in text and suite in text and name in text):
                    return True
    return False


def complaint(mutant):
    """What is wrong with the mutant as it is written; empty if nothing is."""
    if not (mutant.rule and mutant.test and mutant.case):
        return "needs the lines '# rule:', '# test:' and '# case:' before its diff"
    label = re.fullmatch(r"//([\w/]+):([\w.-]+)", mutant.test)
    if not label:
        return "%s is no test's label" % mutant.test
    build = os.path.join(ROOT, label.group(1), "BUILD")
    if not os.path.exists(build) or '"%s"' % label.group(2) not in open(build, encoding="utf-8").read():
        return "there is no test %s" % mutant.test
    if not source_holds(label.group(1), mutant.case):
        return "%s has no case %s" % (mutant.test, mutant.case)
    applied = git("apply", "--check", mutant.path, check=False)
    return "" if applied.returncode == 0 else "does not apply: " + applied.stderr.strip().split("\n")[0]


def check(mutants):
    wrong = [(mutant, complaint(mutant)) for mutant in mutants]
    wrong = [(mutant, text) for mutant, text in wrong if text]
    for mutant, text in wrong:
        print("%s: %s" % (mutant.name, text))
    print("%d mutants, %d to mend" % (len(mutants), len(wrong)))
    return 1 if wrong else 0


def make_tree():
    """The scratch copy: what git would commit now. Its digest."""
    digest = git("write-tree").stdout.strip()
    fresh = TREE + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    git("checkout-index", "--all", "--prefix=" + fresh + "/")
    wanted = set(files_below(fresh))
    for path in set(files_below(TREE)) - wanted:
        os.remove(os.path.join(TREE, path))
    # What has not changed keeps its place and its time, so that Bazel builds only what has.
    for path in wanted:
        source, target = os.path.join(fresh, path), os.path.join(TREE, path)
        if not os.path.exists(target) or not filecmp.cmp(source, target, shallow=False):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.replace(source, target)
    shutil.rmtree(fresh)
    # A checkout of its own, lest `git apply` takes the scratch copy for a folder of this one.
    if not os.path.isdir(os.path.join(TREE, ".git")):
        git("init", "--quiet", TREE)
    return digest


def files_below(folder):
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
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
    key = (mutant.test, mutant.case)
    if key not in sound:
        sound[key] = run_test(mutant) == BAZEL_PASSED
    if not sound[key]:
        return "unsound"
    if git("apply", "--check", mutant.path, cwd=TREE, check=False).returncode != 0:
        return "stale"
    git("apply", mutant.path, cwd=TREE)
    try:
        code = run_test(mutant)
    finally:
        git("apply", "--reverse", mutant.path, cwd=TREE)
    return {BAZEL_PASSED: "survived", BAZEL_TESTS_FAILED: "killed"}.get(code, "stale")


def in_turn(mutants, count):
    commits = int(git("rev-list", "--count", "HEAD").stdout)
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


sys.exit(main())
