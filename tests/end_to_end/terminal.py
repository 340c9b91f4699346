"""A shell on a pseudo terminal."""
import os
import pty
import re
import select
import signal
import time

from cluster import HANG_SECONDS, NAM, PATIENCE, Failed, wait_until


class Terminal:
    """A shell on a terminal of its own."""

    def __init__(self, case, cluster, options=()):
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.execve(NAM, ["nam", "sql", *cluster.options, *options], dict(cluster.scratch.env, TERM="dumb"))
        case.addCleanup(self.kill)
        self.seen = ""
        self.at = 0

    def expect(self, pattern, timeout=20):
        """Waits for text behind what was expected last."""
        deadline = time.monotonic() + max(timeout, HANG_SECONDS) * PATIENCE
        while True:
            match = re.search(pattern, self.seen[self.at:])
            if match:
                self.at += match.end()
                return match
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise Failed("the terminal does not show %s:\n%s" % (pattern, self.seen[self.at:]))
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace").replace("\r\n", "\n")
            except OSError:
                raise Failed("the shell ended before it showed %s:\n%s" % (pattern, self.seen[self.at:]))

    def send(self, text):
        os.write(self.fd, text.encode())

    def command(self, text, pattern):
        self.send(text + "\n")
        match = self.expect(pattern)
        self.expect("nam=> ")
        return match

    def full(self):
        """Whether the shell waits for room for its output."""
        write_to_terminal = ["1", "0x1"]  # the system call on x86-64, and the descriptor
        with open("/proc/%d/syscall" % self.child) as call, open("/proc/%d/stat" % self.child) as stat:
            return call.read().split()[:2] == write_to_terminal and stat.read().rsplit(")", 1)[1].split()[0] == "S"

    def await_full(self):
        wait_until(self.full, 20, "the shell waits for room")

    def fill(self, text):
        """Types `text` again and again, and reads nothing, until the shell waits for room for its output."""
        def filled():
            if select.select([], [self.fd], [], 0)[1]:
                self.send(text)
            return self.full()
        wait_until(filled, 20, "the shell waits for room")

    def interrupt(self):
        """As Ctrl-C, which would wait behind what was typed before."""
        os.kill(self.child, signal.SIGINT)

    def end(self, timeout=20):
        """Its exit code."""
        def ended():
            if select.select([self.fd], [], [], 0)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.child, os.WNOHANG)
            return [status] if pid else None
        status = wait_until(ended, timeout, "the shell ends")[0]
        os.close(self.fd)
        self.child = None
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        if self.child is not None:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            os.close(self.fd)
            self.child = None
