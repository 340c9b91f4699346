"""A cluster of NAM's processes, and one session that stays: `nam sql --format=json` on pipes.

What ends a statement's output is the error that the shell prints about a command that does not exist."""
import json
import os
import re
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end_to_end"))
import cluster as processes  # noqa: E402
from postgres import Answer  # noqa: E402

MIB = 1 << 20


class Lost(Exception):
    """The session, or a server, has ended, or does not answer."""


class Slow(Lost):
    """No answer in time."""


class Number(str):
    """A number as the shell printed it, with its decimals."""


class Case:
    """What tests/end_to_end/cluster.py wants of a test case."""

    def __init__(self):
        self.scratch, self.cleanups = processes.Scratch(), []

    def addCleanup(self, action):
        self.cleanups.append(action)


class Nam:
    def __init__(self, nam, loader, fabric, compute, settings=(), patience=60):
        processes.NAM = os.path.abspath(nam)
        self.loader, self.patience = os.path.abspath(loader), patience
        self.case = Case()
        self.cluster = processes.Cluster(self.case, fabric=fabric, memory=(256 * MIB, 256 * MIB), compute=compute,
                                         threads=1, lease_ms=5000)
        self.marks, self.settings = 0, settings
        self.shell = None
        self.open_shell()

    def stop(self):
        if self.shell is not None:
            self.shell.kill()
            self.shell.wait()
        for action in self.case.cleanups:
            action()
        self.case.scratch.end_processes()
        self.case.scratch.remove()

    def open_shell(self):
        if self.shell is not None:
            self.shell.kill()
            self.shell.wait()
        self.shell = subprocess.Popen(
            [processes.NAM, "sql", *self.cluster.options, "--format=json", "--keep-going"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.case.scratch.env)
        for pipe in (self.shell.stdout, self.shell.stderr):
            os.set_blocking(pipe.fileno(), False)
        for setting in self.settings:
            self.must("set " + setting)

    def load(self, text):
        """Columnar tables, as load_tables.cc reads them."""
        done = subprocess.run([self.loader, self.cluster.address, self.cluster.secret_file], input=text.encode(),
                              env=self.case.scratch.env, capture_output=True)
        if done.returncode != 0:
            raise Lost("load_tables: " + done.stderr.decode()[-2000:])

    def run(self, statement):
        """The answer to one statement."""
        self.marks += 1
        mark = "mark%d" % self.marks
        try:
            self.shell.stdin.write(("%s;\n\\%s\n" % (statement, mark)).encode())
            self.shell.stdin.flush()
        except BrokenPipeError:
            raise Lost("the shell has ended: " + self._rest())
        out, err = self._await(mark)
        return self._answer(out, err)

    def must(self, statement):
        answer = self.run(statement)
        assert not answer.sqlstate, (answer.sqlstate, answer.message, statement[:1000])
        return answer

    def _await(self, mark):
        pipes = {self.shell.stdout: b"", self.shell.stderr: b""}
        deadline = time.monotonic() + self.patience
        wanted = mark.encode() + b"\\b"
        while not re.search(wanted, pipes[self.shell.stderr]):
            ready, _, _ = select.select(list(pipes), [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise Slow("no answer within %d s" % self.patience)
            for pipe in ready:
                data = pipe.read(1 << 20)
                if data == b"":
                    raise Lost("the shell has ended: " + pipes[self.shell.stderr].decode()[-2000:] + self._servers())
                pipes[pipe] += data or b""
        while select.select([self.shell.stdout], [], [], 0)[0]:  # it was flushed before the mark
            data = self.shell.stdout.read(1 << 20)
            if not data:
                break
            pipes[self.shell.stdout] += data
        lines = [line for line in pipes[self.shell.stderr].decode().split("\n") if mark not in line]
        return pipes[self.shell.stdout].decode(), "\n".join(lines)

    def _rest(self):
        return (self.shell.stderr.read() or b"").decode()[-2000:]

    def _servers(self):
        """What servers that have ended said last."""
        servers = self.cluster.memory + self.cluster.compute
        return "".join("\nserver %d: %s" % (s.id, s.process.err()[-1500:]) for s in servers if not s.process.running())

    def _answer(self, out, err):
        error = re.search(r"ERROR:  (.*)", err)
        if error:
            state = re.search(r"\(SQLSTATE (\w+)\)", err)
            return Answer(sqlstate=state.group(1) if state else "?????", message=error.group(1) + self._servers())
        # An object of the one document that all statements make, behind what joins it to those before.
        try:
            members = dict(json.loads(out.lstrip("[,\n"), object_pairs_hook=list, parse_float=Number, parse_int=Number,
                                      parse_constant=Number))
        except ValueError as wrong:
            return Answer(sqlstate="JSON", message="%s: %s" % (wrong, out[:300]))
        if "rows" not in members:
            return Answer(tag=members["command"])
        return Answer(rows=[[value for _, value in row] for row in members["rows"]], tag=members["command"])
