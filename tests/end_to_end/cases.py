"""Runs the cases of a test file, one after the other, and counts them for Bazel.

    class Faults(cases.Case):
        def test_memory_server_dies(self): ...

    cases.main()

Prints `[ case ] …` before and its outcome and time after each. Writes $XML_OUTPUT_FILE in the form that
tools/test_totals.py counts, and runs only what --test_filter (a piece of a name) selects.
"""
import os
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree as ET

import cluster


class Case(unittest.TestCase):
    """One scratch directory and no process left, for each case."""

    longMessage = True
    maxDiff = 4000

    def setUp(self):
        self.scratch = cluster.Scratch()
        self.addCleanup(self.scratch.remove)
        self.addCleanup(self.no_process_left)

    def no_process_left(self):
        """What a case leaves running is an error of the product or of the case; it ends here in any case."""
        left = self.scratch.end_processes()
        self.assertEqual(left, [], "processes were left")

    def small_disk(self, size, path=None):
        """A file system of `size`, as mount writes it, at a directory of the case; skips it where none can be mounted."""
        path = path or self.scratch.file("disk")
        os.makedirs(path, mode=0o700, exist_ok=True)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=700" % size, "tmpfs", path],
                              stderr=subprocess.PIPE)
        if made.returncode != 0:
            self.skipTest("cannot mount a file system here: %s" % made.stderr.decode().strip())
        self.addCleanup(subprocess.run, ["umount", "--lazy", path])
        return path

    def say(self, text):
        print("    " + text, flush=True)

    def within(self, seconds, since):
        """The deadline of a promise, on a slow host, too: what it tells apart is the time that the product's timeouts would
        take. `since` is time.monotonic()."""
        took = time.monotonic() - since
        self.say("took %.1f s" % took)
        self.assertLess(took, seconds * cluster.patience(), "took longer than promised")


class Report(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.cases = []  # name, seconds, kind of failure or None, text

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()
        self.outcome = (None, "")
        doc = test.shortDescription()
        print("[ case ] %s%s" % (test.id(), ": " + doc if doc else ""), flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self._fail(self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._fail(self.failures[-1][1])

    def _fail(self, text):
        """The case itself and its cleanups may all fail."""
        before = self.outcome[1] + "\n" if self.outcome[0] == "failure" else ""
        self.outcome = ("failure", before + text)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.outcome = ("skipped", reason)

    def stopTest(self, test):
        super().stopTest(test)
        seconds = time.monotonic() - self.started
        kind, text = self.outcome
        if kind is not None:
            print(text)
        print("[ %s ] %s (%.1f s)" % ({None: "  ok"}.get(kind, kind), test.id(), seconds), flush=True)
        self.cases.append((test.id(), seconds, kind, text))

    def write_xml(self, path, name):
        suite = ET.Element("testsuite", name=name, tests=str(len(self.cases)),
                           failures=str(sum(case[2] == "failure" for case in self.cases)))
        for case, seconds, kind, text in self.cases:
            element = ET.SubElement(suite, "testcase", name=case.rsplit(".", 1)[-1], classname=name,
                                    time="%.3f" % seconds, status="run",
                                    result="skipped" if kind == "skipped" else "completed")
            if kind is not None:
                clean = "".join(c for c in text if c >= " " or c in "\n\t")
                ET.SubElement(element, kind, message=clean.strip().rsplit("\n", 1)[-1]).text = clean
        root = ET.Element("testsuites")
        root.append(suite)
        ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def selected(suite, wanted):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from selected(test, wanted)
        elif wanted in test.id():
            yield test


def main():
    everything = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    tests = list(selected(everything, os.environ.get("TESTBRIDGE_TEST_ONLY", "")))
    report = Report()
    unittest.TestSuite(tests).run(report)
    failed = sum(case[2] == "failure" for case in report.cases)
    skipped = sum(case[2] == "skipped" for case in report.cases)
    print("%d passed, %d failed, %d skipped" % (len(report.cases) - failed - skipped, failed, skipped))
    if "XML_OUTPUT_FILE" in os.environ:
        report.write_xml(os.environ["XML_OUTPUT_FILE"], os.path.basename(sys.argv[0]).replace(".py", ""))
    sys.exit(1 if failed or not report.wasSuccessful() or not tests else 0)
