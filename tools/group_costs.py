#!/usr/bin/env python3
"""Measures what each compilation costs: processor seconds (user and system) and memory.

usage: group_costs.py [TARGET...]      of //... without targets

Each is repeated by Bazel's own command, with as many at a time as the host has processors; what it writes is thrown
away. Build the targets before, so that generated headers exist. The dearest come first. The exit code is 1 if one is
dearer than it may be (third_party/cc.bzl: files_per_group, alone).
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

SECONDS_MAX = 12.0
MEMORY_MAX_MIB = 1536


def commands(targets):
    query = ["bazel", "aquery", "--output=jsonproto", "--noshow_progress",
             'mnemonic("CppCompile", %s)' % " + ".join(targets)]
    graph = json.loads(subprocess.run(query, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return [action["arguments"] for action in graph["actions"]]


def cost(arguments, folder, scratch, number):
    """(processor seconds, MiB, source) of one compilation."""
    arguments = list(arguments)
    source = arguments[arguments.index("-c") + 1]
    arguments[arguments.index("-o") + 1] = os.path.join(scratch, "%d.o" % number)
    arguments[arguments.index("-MF") + 1] = os.path.join(scratch, "%d.d" % number)
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit("group_costs: %s does not compile; build it before" % source)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, source


def main():
    targets = sys.argv[1:] or ["//..."]
    folder = subprocess.run(["bazel", "info", "execution_root"], check=True, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout.strip()
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as processors:
        costs = sorted(processors.map(lambda item: cost(item[1], folder, scratch, item[0]),
                                      enumerate(commands(targets))), reverse=True)
    for seconds, memory_mib, source in costs:
        dear = " *" if seconds > SECONDS_MAX or memory_mib > MEMORY_MAX_MIB else ""
        print("%6.1f s %6.0f MiB  %s%s" % (seconds, memory_mib, source.split("/bin/", 1)[-1], dear))
    print("%d compilations, %.0f processor seconds, the dearest %.1f s, the largest %.0f MiB" %
          (len(costs), sum(c[0] for c in costs), costs[0][0], max(c[1] for c in costs)))
    return 1 if costs[0][0] > SECONDS_MAX or max(c[1] for c in costs) > MEMORY_MAX_MIB else 0


sys.exit(main())
