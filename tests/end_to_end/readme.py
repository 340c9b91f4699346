"""README's tour: its commands run as they stand there, and print what it shows.

Of results of SQL every digit counts; elsewhere numbers, their units and how lines are broken are left aside. `…` in a
sample stands for anything.
"""
import os
import re
import subprocess

import cases
from cluster import NAM, PATIENCE, Failed

README = os.path.abspath("README.md")
STATE_IN_README = "/tmp/nam-1000"
HOME_IN_README = "/home/ada"
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?( (B|KiB|MiB|GiB|us|ms|s)\b)?")
ON_TMPFS = re.compile(r", which is in memory \(tmpfs\) and ends with this host: --data-dir=DIR names another")
# On hosts without reserved huge pages, from the first client with a large buffer.
NO_HUGE_PAGES = re.compile(r"^nam: no huge pages.*\n", re.MULTILINE)
TOGETHER_S = 300


def tour():
    """Command and sample of everything behind a `$ ` in the tour's blocks."""
    with open(README, encoding="utf-8") as file:
        text = file.read()
    section = text[text.index("\n## A tour\n"):text.index("\n### Further\n")]
    for block in re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            yield split(piece.split("\n"))


def split(lines):
    """A command goes on while a quote or a document behind << is open."""
    for count in range(1, len(lines) + 1):
        command = "\n".join(lines[:count])
        end = re.search(r"<<(\w+)", lines[0])
        if command.count('"') % 2 == 0 and (end is None or lines[count - 1] == end.group(1)):
            return command, "\n".join(lines[count:]).strip()
    raise Failed("README has a command without an end: " + lines[0])


def plain(text, exact):
    text = re.sub(r"^[-+\s]+$", "", ON_TMPFS.sub("", NO_HUGE_PAGES.sub("", text)), flags=re.MULTILINE)  # lines below heads of tables
    if not exact:
        text = NUMBER.sub("#", text)
    return " ".join(text.split())


def shows(sample, output, exact):
    pattern = " ?.*? ?".join(re.escape(part.strip()) for part in plain(sample, exact).split("…"))
    return re.fullmatch(pattern, plain(output, exact)) is not None


class Readme(cases.Case):
    def shell(self, command):
        """What a command prints, on a path where nam is."""
        programs = self.scratch.file("bin")
        if not os.path.exists(programs):
            os.mkdir(programs)
            os.symlink(NAM, os.path.join(programs, "nam"))
        env = dict(self.scratch.env, PATH=programs + ":" + os.environ.get("PATH", "/usr/bin:/bin"))
        done = subprocess.run(["bash", "-c", command], cwd=self.scratch.path, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=TOGETHER_S * PATIENCE)
        self.assertEqual(done.returncode, 0, "%s\n%s" % (command, done.stdout))
        return done.stdout

    def test_tour(self):
        samples = list(tour())
        self.addCleanup(self.shell, "nam down --discard-records")  # after a failure, too
        self.assertGreater(len(samples), 10)
        for command, sample in samples:
            output = self.shell(command)
            expected = sample.replace(STATE_IN_README, os.path.join(self.scratch.runtime, "nam")).replace(
                HOME_IN_README, self.scratch.path)
            exact = command.startswith("nam sql") and "explain" not in command
            self.assertTrue(shows(expected, output, exact), "README shows\n%s\nand %s prints\n%s"
                            % (expected, command, output))

    def test_samples_are_compared(self):
        """A sample that is wrong is found."""
        self.assertEqual(split(['nam sql -c "select 1', '  from t"', " one", ""]),
                         ('nam sql -c "select 1\n  from t"', "one"))
        self.assertEqual(split(["cat > f <<END", "a", "END", "b"]), ("cat > f <<END\na\nEND", "b"))
        self.assertTrue(shows(" n\n---\n 1\n(1 row)", " n \n-----\n 1\n(1 row)\n", exact=True))
        self.assertFalse(shows(" n\n---\n 1\n(1 row)", " n \n-----\n 2\n(1 row)\n", exact=True))
        self.assertTrue(shows("date 2,556 rows 8.0 KiB\n…\npart", "date 25 rows 9 B\nsupplier\npart\n", exact=False))
        self.assertFalse(shows("date 2,556 rows", "customer 2,556 rows", exact=False))
        self.assertFalse(shows("date\n…\npart", "date\nsupplier", exact=False))


cases.main()
