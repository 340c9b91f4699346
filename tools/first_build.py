#!/usr/bin/env python3
"""Runs a Bazel build and says how long the first one takes on this host.

usage: first_build.py TARGET BAZEL_COMMAND...

TARGET is what is built; its compilations are counted before. After the first twenty, one line on standard error
tells the time that all of them take at this pace.
"""
import json
import os
import subprocess
import sys
import threading
import time

SAMPLE = 20
EVENTS = ".bazel_first_build.json"


def compilations(target, command):
    """How many files the build compiles; 0 if Bazel cannot tell, say because a BUILD file is wrong."""
    flags = [word for word in command[2:] if word.startswith("--")]  # the same, so that one analysis does for both
    query = [command[0], "aquery", *flags, "--noshow_progress", "--include_commandline=false", "--output=jsonproto",
             'mnemonic("CppCompile", deps(%s))' % target]
    result = subprocess.run(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return len(json.loads(result.stdout).get("actions", [])) if result.returncode == 0 else 0


def duration(seconds):
    minutes = round(seconds / 60)
    return "%d minutes" % minutes if minutes > 1 else "a minute"


def tell_pace(total, ended):
    began, compiled = time.monotonic(), 0
    with open(EVENTS, encoding="utf-8") as events:
        while not ended.wait(0.2):
            compiled += sum('"actionCompleted"' in line and '"type":"CppCompile"' in line for line in events)
            if compiled >= SAMPLE:
                seconds = (time.monotonic() - began) * total / compiled
                print("run: the first build takes about %s on this host, by the first %d of %d files" %
                      (duration(seconds), compiled, total), file=sys.stderr, flush=True)
                return


def main():
    target, command = sys.argv[1], sys.argv[2:]
    total = compilations(target, command)
    if total > SAMPLE:
        print("run: the first build compiles %d files; how long that takes, the first %d tell" % (total, SAMPLE),
              file=sys.stderr, flush=True)
        open(EVENTS, "w", encoding="utf-8").close()
        command = command[:2] + ["--build_event_json_file=" + EVENTS, "--build_event_publish_all_actions"] + command[2:]
    ended = threading.Event()
    pace = threading.Thread(target=tell_pace, args=(total, ended)) if total > SAMPLE else None
    if pace:
        pace.start()
    try:
        code = subprocess.run(command, stdout=sys.stderr, check=False).returncode
    except KeyboardInterrupt:
        code = 8  # Bazel's, for an interrupted build
    ended.set()
    if pace:
        pace.join()
        os.remove(EVENTS)
    return code


sys.exit(main())
