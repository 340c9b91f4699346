"""A private PostgreSQL 15 on a Unix socket, and a client of its protocol: simple queries, answers as text.

    with PostgreSql() as server:
        server.run("select 1")  ──▶  Answer(columns, rows, sqlstate)
"""
import os
import pwd
import shutil
import socket
import struct
import subprocess
import tempfile
import time

BINARIES = "/usr/lib/postgresql/15/bin"
SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off", "autovacuum": "off",
            "jit": "off", "max_parallel_workers_per_gather": "0", "listen_addresses": "''", "work_mem": "64MB",
            "shared_buffers": "64MB", "timezone": "UTC", "datestyle": "ISO", "intervalstyle": "postgres"}
# Type → kind, of pg_type.oid.
KINDS = {16: "bool", 20: "int", 21: "int", 23: "int", 1700: "num", 700: "real", 701: "double", 1082: "date",
         1114: "timestamp", 1083: "time", 1184: "timestamp", 1186: "interval"}
TIMED_OUT = "57014"


def installed():
    return os.path.exists(os.path.join(BINARIES, "postgres"))


class Answer:
    """What a statement returned: rows of texts and Nones, or an SQLSTATE."""

    def __init__(self, kinds=(), rows=(), sqlstate="", message="", tag=""):
        self.kinds, self.rows, self.sqlstate, self.message, self.tag = list(kinds), list(rows), sqlstate, message, tag


class PostgreSql:
    def __init__(self, **settings):
        """`settings` take the place of those above."""
        self.folder = tempfile.mkdtemp(prefix="nam-oracle-pg-")
        self.as_user = []
        if os.geteuid() == 0:  # which PostgreSQL does not run as
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user = ["runuser", "-u", "postgres", "--"]
        data = os.path.join(self.folder, "data")
        self._command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        with open(os.path.join(self.folder, "log"), "w") as log:
            options = [word for name, value in {**SETTINGS, **settings}.items()
                       for word in ("-c", name + "=" + value.strip("'"))]
            self.server = subprocess.Popen(
                self.as_user + [os.path.join(BINARIES, "postgres"), "-D", data, "-k", self.folder, *options],
                stdout=log, stderr=log, cwd=self.folder)
        self.socket = None
        self._connect()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.socket is not None:
            self.socket.close()
        self.server.terminate()
        self.server.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _command(self, name, *arguments):
        subprocess.run(self.as_user + [os.path.join(BINARIES, name), *arguments], check=True, cwd=self.folder,
                       stdout=subprocess.DEVNULL)

    # ─── The protocol, version 3

    def _connect(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(os.path.join(self.folder, ".s.PGSQL.5432"))
                self.buffer = b""
                parameters = b"user\0postgres\0database\0postgres\0client_encoding\0UTF8\0\0"
                self.socket.sendall(struct.pack("!ii", len(parameters) + 8, 196608) + parameters)
                while True:
                    kind, body = self._message()
                    if kind == b"E":
                        raise ConnectionError(body)
                    if kind == b"Z":
                        return
            except (OSError, ConnectionError):
                self.socket.close()
                if time.monotonic() > deadline or self.server.poll() is not None:
                    raise
                time.sleep(0.05)  # the server says nowhere that it has come up

    def _take(self, size):
        while len(self.buffer) < size:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("PostgreSQL has closed the connection")
            self.buffer += data
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def _message(self):
        kind, length = struct.unpack("!ci", self._take(5))
        return kind, self._take(length - 4)

    def run(self, text):
        """The answer to the last statement of the text."""
        query = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(query) + 4) + query)
        answer = Answer()
        while True:
            kind, body = self._message()
            if kind == b"T":
                answer.kinds, answer.rows = self._columns(body), []
            elif kind == b"D":
                answer.rows.append(self._row(body))
            elif kind == b"C":
                answer.tag = body[:-1].decode()
            elif kind == b"E":
                fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
                answer = Answer(sqlstate=fields[b"C"], message=fields[b"M"])
            elif kind == b"Z":
                return answer

    def must(self, text):
        answer = self.run(text)
        assert not answer.sqlstate, (answer.sqlstate, answer.message, text[:1000])
        return answer

    @staticmethod
    def _columns(body):
        kinds, at = [], 2
        for _ in range(struct.unpack_from("!h", body)[0]):
            at = body.index(b"\0", at) + 1
            kinds.append(KINDS.get(struct.unpack_from("!ihihih", body, at)[2], "text"))
            at += 18
        return kinds

    @staticmethod
    def _row(body):
        row, at = [], 2
        for _ in range(struct.unpack_from("!h", body)[0]):
            size, = struct.unpack_from("!i", body, at)
            at += 4
            row.append(None if size < 0 else body[at:at + size].decode())
            at += max(size, 0)
        return row
