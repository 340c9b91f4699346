"""The real processes of a cluster, for tests.

    Scratch ── nam(…) ──▶ Result                 one command, run to its end
       ├────── start(…) ─▶ Process               one in the background; its lines can be waited for
       └────── Cluster ──▶ catalog, memory servers, compute servers, started one by one

Every wait is for an event: a line, the end of a process, a condition. Its deadline is only for what hangs, so it is
HANG_SECONDS away or more, on any host. What is promised in seconds is asked for by Case.within().
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import uuid

NAM = os.path.abspath(os.path.join("cli", "nam"))
MIB = 1 << 20
# A sanitizer's build gets so many times as long as others.
SLOWNESS = float(os.environ.get("END_TO_END_SLOWNESS", "1"))
HANG_SECONDS = 120


def load():
    """The load average per processor, within bounds."""
    return min(4.0, max(1.0, os.getloadavg()[0] / os.cpu_count()))


LOAD_AT_START = load()
PATIENCE = SLOWNESS * LOAD_AT_START


def patience():
    """How much longer than promised a busy machine may take; others may have begun to work meanwhile."""
    return SLOWNESS * max(LOAD_AT_START, load())

MARK = "END_TO_END_SCRATCH"  # in the environment of everything that a scratch directory starts


# At scale factor 0.05 it runs for about 20 s on two processors, and takes blocks from the memory servers all the time.
LONG_QUERY = ("SELECT sum(a.lo_revenue + b.lo_revenue) AS s FROM lineorder a, lineorder b "
              "WHERE a.lo_quantity = b.lo_quantity AND a.lo_discount < b.lo_tax")


class Failed(AssertionError):
    pass


def wait_until(condition, timeout, what, pause=0.01, least=HANG_SECONDS):
    """The first true value of condition(), asked again and again; `what` is a text, or gives one in the end. `least`: no
    timeout is shorter."""
    timeout = max(timeout, least) * PATIENCE
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed("not within %.0f s: %s" % (timeout, what() if callable(what) else what))
        time.sleep(pause)  # between two looks at something that has no event of its own


def processor_seconds(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_in_use(pid):
    """Bytes that were touched: of its own memory, and by anybody of its anonymous files (shared memory)."""
    with open("/proc/%d/status" % pid) as status:
        total = int(re.search(r"RssAnon:\s+(\d+) kB", status.read()).group(1)) * 1024
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            if os.readlink(path).startswith("/memfd:"):
                total += os.stat(path).st_blocks * 512
        except OSError:
            pass
    return total


def alive(pid):
    """Zombies have ended."""
    try:
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def marked_processes(mark):
    """pid → command line of the living processes that carry a mark."""
    found = {}
    wanted = ("%s=%s" % (MARK, mark)).encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as environ:
                if wanted not in environ.read().split(b"\0"):
                    continue
            with open("/proc/%s/cmdline" % name, "rb") as command:
                line = command.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if alive(int(name)):
            found[int(name)] = line
    return found


class Result:
    """How a command ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return "exit code %s\nstdout: …%s\nstderr: …%s" % (self.code, self.out[-1500:], self.err[-1500:])


class Process:
    """A command in the background. Threads take its lines, so it never waits for a reader."""

    def __init__(self, arguments, env, preexec=None, own_group=False):
        self.name = " ".join(arguments[:1])
        self.child = subprocess.Popen([NAM] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=env, preexec_fn=preexec,
                                      start_new_session=own_group)
        self.pid = self.child.pid
        self.lines = {"out": [], "err": []}
        self.news = threading.Condition()
        self.open = 2
        for name, pipe in (("out", self.child.stdout), ("err", self.child.stderr)):
            threading.Thread(target=self._take, args=(name, pipe), daemon=True).start()

    def _take(self, name, pipe):
        for line in pipe:
            with self.news:
                self.lines[name].append(line.decode(errors="replace").rstrip("\n"))
                self.news.notify_all()
        with self.news:
            self.open -= 1
            self.news.notify_all()

    def out(self):
        with self.news:
            return "\n".join(self.lines["out"])

    def err(self):
        with self.news:
            return "\n".join(self.lines["err"])

    def find(self, pattern, where="out"):
        """The first match among the lines that are there."""
        with self.news:
            for line in self.lines[where]:
                match = re.search(pattern, line)
                if match:
                    return match
        return None

    def said(self):
        """The end of both outputs, for messages."""
        return "stdout: …%s\nstderr: …%s" % (self.out()[-1500:], self.err()[-1500:])

    def await_line(self, pattern, timeout=30, where="out", count=1):
        """Waits for `count` lines that match; the match of the last of them."""
        deadline = time.monotonic() + max(timeout, HANG_SECONDS) * PATIENCE
        with self.news:
            while True:
                matches = [m for m in (re.search(pattern, line) for line in self.lines[where]) if m]
                if len(matches) >= count:
                    return matches[count - 1]
                left = deadline - time.monotonic()
                if left <= 0 or self.open == 0:
                    break
                self.news.wait(left)
        raise Failed("%s did not print %s:\n%s" % (self.name, pattern, self.said()))

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, timeout=30):
        """Its exit code, once its output is complete too."""
        timeout = max(timeout, HANG_SECONDS) * PATIENCE
        try:
            code = self.child.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failed("%s did not end within %.0f s:\n%s" % (self.name, timeout, self.said()))
        with self.news:
            self.news.wait_for(lambda: self.open == 0, 30)
        return code

    def running(self):
        return self.child.poll() is None

    def kill(self):
        if self.running():
            self.signal(signal.SIGKILL)
            self.child.wait(HANG_SECONDS * PATIENCE)

    def stop(self, timeout=30):
        if self.running():
            self.signal(signal.SIGTERM)
        return self.wait(timeout)


class Scratch:
    """A directory, and the environment of what runs for one case."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="nam-e2e-")
        self.mark = uuid.uuid4().hex
        self.runtime = self.file("runtime")  # where nam puts what it does not name
        os.mkdir(self.runtime, 0o700)
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("NAM_") and key != "XDG_DATA_HOME"}
        self.env.update({MARK: self.mark, "XDG_RUNTIME_DIR": self.runtime, "HOME": self.path})

    def file(self, name, text=None, mode=0o600):
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, "w") as out:
                out.write(text)
            os.chmod(path, mode)
        return path

    def nam(self, *arguments, timeout=60, stdin=""):
        """Runs a command to its end."""
        timeout = max(timeout, HANG_SECONDS) * PATIENCE
        child = subprocess.Popen([NAM] + [str(a) for a in arguments], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        try:
            out, err = child.communicate(stdin.encode(), timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            raise Failed("nam %s did not end within %.0f s\n%s" % (
                " ".join(map(str, arguments)), timeout,
                Result(None, out.decode(errors="replace"), err.decode(errors="replace"))))
        return Result(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def start(self, *arguments, preexec=None, own_group=False):
        return Process([str(a) for a in arguments], self.env, preexec, own_group)

    def processes(self):
        return marked_processes(self.mark)

    def await_no_process(self, timeout):
        wait_until(lambda: not self.processes(), timeout, "all processes have ended; left: %s" % self.processes())

    def end_processes(self):
        """Kills what is left; its command lines."""
        left = self.processes()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if left:
            self.await_no_process(10)
        return sorted(left.values())

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


def free_port():
    """A port that no connection takes as its own end, as the system's choice could be before the server listens."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as ports:
        ephemeral = int(ports.read().split()[0])
    for port in random.sample(range(10240, max(ephemeral, 20480)), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise Failed("100 ports of 127.0.0.1 are in use")


class Server:
    """A memory or compute server that is up."""

    def __init__(self, process, ready):
        self.process = process
        self.values = dict(pair.split("=", 1) for pair in ready.split())
        self.id = int(self.values.get("id", 0))
        self.pid = process.pid


class Cluster:
    """Servers started one by one in the foreground. Ends with the case."""

    def __init__(self, case, fabric="shm", memory=(512 * MIB,), compute=1, threads=1, lease_ms=1000,
                 store=None, secret="a secret of the tests", catalog_preexec=None, timestamps="leased",
                 bury_after=600, scratch=None):
        self.scratch, self.fabric, self.threads = case.scratch, fabric, threads
        self.lease_ms = int(lease_ms * min(PATIENCE, 3))
        self.lease = self.lease_ms / 1000
        self.timestamps = timestamps
        self.bury_after = bury_after  # far behind every wait's end, unless the case is about it
        self.scratch_bytes = scratch  # of each memory server; None: a quarter
        self.secret_file = self.scratch.file("secret-%s" % uuid.uuid4().hex[:8], secret + "\n")
        self.store = store or self.scratch.file("store-%s.db" % uuid.uuid4().hex[:8])
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.memory, self.compute = [], []
        self.catalog = None
        case.addCleanup(self.stop)
        self.start_catalog(preexec=catalog_preexec)
        self.add_memory(*memory)
        self.add_compute(compute)

    def start_catalog(self, *more, preexec=None):
        self.catalog = self.scratch.start(
            "catalog", "--listen=" + self.address, "--store=" + self.store, "--fabric=" + self.fabric,
            "--secret-file=" + self.secret_file, "--lease-ms=%d" % self.lease_ms,
            "--timestamps=" + self.timestamps, "--bury-after=%g" % self.bury_after, *more, preexec=preexec)
        self.catalog.await_line("^READY catalog ")

    @property
    def options(self):
        return ["--catalog=" + self.address, "--secret-file=" + self.secret_file]

    def _add(self, known, role, argument_lists):
        started = [self.scratch.start(role, *self.options, *arguments) for arguments in argument_lists]
        fresh = [Server(process, process.await_line("^READY %s (.*)" % role).group(1)) for process in started]
        known.extend(fresh)
        return fresh

    def add_memory(self, *memory_bytes):
        scratch = [] if self.scratch_bytes is None else ["--scratch=%d" % self.scratch_bytes]
        return self._add(self.memory, "memserver", [["--memory=%d" % n] + scratch for n in memory_bytes])

    def add_compute(self, count=1):
        return self._add(self.compute, "compute", [["--threads=%d" % self.threads]] * count)

    def stop(self):
        """Kills: what an orderly end is worth has its own tests."""
        for server in self.compute + self.memory:
            server.process.kill()
        if self.catalog is not None:
            self.catalog.kill()

    # --- as a client ------------------------------------------------------------------------

    def nam(self, *arguments, timeout=60, stdin=""):
        """`nam <command> <this cluster's options> …`; the command may be two words in one argument."""
        return self.scratch.nam(*arguments[0].split(), *self.options, *arguments[1:], timeout=timeout,
                                stdin=stdin)

    def start(self, *arguments, **how):
        return self.scratch.start(*arguments[0].split(), *self.options, *arguments[1:], **how)

    def done(self, *arguments, **how):
        """As nam(), and it must succeed."""
        result = self.nam(*arguments, **how)
        if result.code != 0:
            raise Failed("nam %s: %s" % (" ".join(map(str, arguments)), result))
        return result

    def load(self, scale_factor, *more, timeout=120):
        return self.done("ssb load", "--scale-factor=%g" % scale_factor, "--replace", *more, timeout=timeout)

    def query(self, text):
        """The rows of a statement, as dictionaries."""
        return self.done("sql", "--format=json", "-c", text).json()

    def count(self, table):
        return self.query("SELECT count(*) AS n FROM %s" % table)[0]["n"]

    def answers(self, *more, timeout=120):
        """Query → its rows."""
        report = self.done("ssb run", "--format=json", *more, timeout=timeout).json()
        return {row["query"]: row["result"] for row in report["rows"]}

    def status(self):
        return self.done("status", "--format=json").json()

    def member(self, server):
        """What the catalog says about a server; None if it has forgotten it."""
        role = "memory" if server in self.memory else "compute"
        for row in self.status()["rows"]:
            if row["role"] == role and row["id"] == server.id:
                return row
        return None

    def living_pids(self):
        return [row["pid"] for row in self.status()["rows"] if row["alive"]]

    def used_bytes(self, *servers):
        """Of the memory servers, as of their last renewal."""
        wanted = [server.id for server in servers or self.memory]
        return {row["id"]: row["used_bytes"] for row in self.status()["rows"]
                if row["role"] == "memory" and row["id"] in wanted and row["alive"]}

    def scratch_used_bytes(self):
        """Of all memory servers that answer."""
        return sum(row.get("scratch_used_bytes", 0) for row in self.status()["rows"])

    def scratch_of_each(self, field):
        """`scratch_used_bytes`, `scratch_highest_bytes` or `scratch_bytes` of all memory servers that answer."""
        return [row[field] for row in self.status()["rows"] if field in row]

    def tables(self):
        """Name → rows."""
        return {row["table"]: row["rows"] for row in self.status()["tables"]}

    def table_bytes(self):
        """Memory server → bytes that tables hold there."""
        held = {}
        for table in self.status()["tables"]:
            for server in table["memory_servers"]:
                held[server["id"]] = held.get(server["id"], 0) + server["bytes"]
        return held

    def await_state(self, server, state):
        """alive, suspect or buried."""
        wait_until(lambda: (self.member(server) or {"state": "buried"})["state"] == state, 5 * self.lease,
                   "%s is %s" % (server.values, state))

    def await_dead(self, server):
        """Until the catalog does not count on it any more."""
        wait_until(lambda: not (self.member(server) or {"alive": False})["alive"], 5 * self.lease,
                   "%s is given up" % server.values)
