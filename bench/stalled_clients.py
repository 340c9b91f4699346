#!/usr/bin/env python3
"""How long others wait to see a commit while a client stands still in the middle of its own.

usage: stalled_clients.py --nam=BINARY [--fabric=shm|tcp] [--stops=300] [--stop-seconds=1] [--clients=2]
                          [--memory=4GiB]

A process buys without a pause (nam checkout); it is stopped (SIGSTOP) and continued, wherever it is just then. Beside
it one session changes a row, and another one asks for it, a new snapshot each time, until it sees the change. What is
measured is the time from the answer to the change until then: some times during each stop, and as often before it, as
a control. Ends with exit code 1 if the 99th percentile is more than 20 ms above the control's, or if the purchases do
not add up. Prints JSON.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time

from old_and_new import Contender

WORTH_MS = 20
LOOKS_OF_A_STOP = 5


class Ended(Exception):
    """A shell ends with the first error: one is to be tried again (40001) if it was passed over itself."""


class Session:
    """A shell whose statements are given one by one. Each returns one line."""

    def __init__(self, cluster):
        self.child = subprocess.Popen(cluster.command("sql", "--format=csv"), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, bufsize=1)

    def value(self, statement):
        self.child.stdin.write(statement + ";\n")
        self.child.stdin.flush()
        if not self.child.stdout.readline():
            raise Ended()
        return int(self.child.stdout.readline())

    def end(self):
        self.child.stdin.close()
        self.child.wait()


class Watch:
    """Changes of one row, and when another session sees them."""

    def __init__(self, cluster):
        cluster.run("sql", "-c", "create table watched (k bigint primary key, v bigint) with (storage = record); "
                                 "insert into watched values (1, 0)")
        self.cluster, self.writer, self.reader = cluster, Session(cluster), Session(cluster)
        self.changes = self.tried_again = 0

    def look(self):
        """Milliseconds."""
        self.changes += 1
        told = None
        while told is None:
            try:
                told = self.writer.value("update watched set v = %d where k = 1 returning v" % self.changes)
            except Ended:
                self.writer, self.tried_again = Session(self.cluster), self.tried_again + 1
                if self.tried_again > self.changes + 10:
                    raise
        began = time.monotonic()
        if told != self.changes:
            raise RuntimeError("the change was told as %d, not %d" % (told, self.changes))
        while self.reader.value("select v from watched where k = 1") != self.changes:
            pass
        return (time.monotonic() - began) * 1e3


def percentile(times, part):
    return round(sorted(times)[min(len(times) - 1, int(len(times) * part))], 2)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--nam", required=True)
    parser.add_argument("--fabric", default="shm", choices=["shm", "tcp"])
    parser.add_argument("--stops", type=int, default=300)
    parser.add_argument("--stop-seconds", type=float, default=1)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--memory", default="4GiB", help="of each memory server: it fills with orders")
    options = parser.parse_args()
    drawn, cluster = random.Random(1), Contender(options.nam, options)
    try:
        cluster.up()
        watch = Watch(cluster)
        seconds = options.stops * (options.stop_seconds + 0.1) + 10
        buyer = subprocess.Popen(cluster.command("checkout", "--clients=%d" % options.clients, "--products=100000",
                                                 "--replace", "--seconds=%d" % seconds, "--format=json"),
                                 stdout=subprocess.PIPE, text=True)
        time.sleep(5)  # the products are made
        control, stopped = [], []
        for _ in range(options.stops):
            time.sleep(drawn.uniform(0.01, 0.05))
            control += [watch.look() for _ in range(LOOKS_OF_A_STOP)]
            os.kill(buyer.pid, signal.SIGSTOP)
            end = time.monotonic() + options.stop_seconds
            for _ in range(LOOKS_OF_A_STOP):
                stopped.append(watch.look())
            time.sleep(max(0, end - time.monotonic()))
            os.kill(buyer.pid, signal.SIGCONT)
        report = json.loads(buyer.communicate()[0])
        above = percentile(stopped, 0.99) - percentile(control, 0.99)
        figures = {"fabric": options.fabric, "stops": options.stops, "buyer_exit_code": buyer.returncode,
                   "changes": watch.changes, "changes_tried_again": watch.tried_again,
                   "control_median_ms": percentile(control, 0.5), "control_99_ms": percentile(control, 0.99),
                   "stopped_median_ms": percentile(stopped, 0.5), "stopped_99_ms": percentile(stopped, 0.99),
                   "stopped_most_ms": percentile(stopped, 1), "above_control_99_ms": round(above, 2),
                   "checkout": report["summary"]}
        print(json.dumps(figures, indent=2))
        return 1 if above > WORTH_MS or buyer.returncode != 0 else 0
    finally:
        cluster.end()


sys.exit(main())
