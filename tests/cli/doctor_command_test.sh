#!/bin/bash
# `nam doctor` itself on whatever host this is: exit codes, and what it prints.
set -uo pipefail
nam=$PWD/cli/nam
failures=0
unset NAM_CONFIG NAM_FABRIC NAM_MEMORY NAM_LISTEN NAM_FORMAT

fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# expect CODE PATTERN ARGUMENT…
expect() {
  local code=$1 pattern=$2 output actual
  shift 2
  output=$(timeout 240 "$nam" doctor "$@" 2>&1 </dev/null)
  actual=$?
  [[ $actual == "$code" && $output == *"$pattern"* ]] || fail "doctor $*: $actual, not $code with \"$pattern\": $output"
}

expect 0 "The shm fabric works here." --memory=1MiB
expect 0 "multicast" --memory=1MiB --fabric=tcp
expect 2 "no fabric" --fabric=carrier-pigeon
expect 2 "not an address" --listen=4700
expect 2 "output format" --format=xml
expect 2 "4GB" --memory=4GB
expect 4 "available memory" --memory=1048576GiB --fabric=shm
expect 4 "not an address of this host" --memory=1MiB --listen=192.0.2.1:4700
if [[ ! -e /sys/class/infiniband ]]; then
  expect 4 "RDMA devices" --memory=1MiB --fabric=verbs
fi

timeout 240 "$nam" doctor --memory=1MiB --format=json | python3 -c '
import json, sys
report = json.load(sys.stdin)
assert report["command"] == "doctor", report
assert report["summary"]["usable"]["shm"] is True, report
names = {row["finding"] for row in report["rows"]}
wanted = {"kernel", "processors", "SIMD", "clock", "TSC", "membarrier", "file descriptors", "available memory",
          "control group memory", "memfd", "/dev/shm", "huge pages", "transparent huge pages", "locked memory",
          "listen 127.0.0.1:0", "multicast", "RDMA devices"}
assert wanted <= names, wanted - names
for row in report["rows"]:
    assert row["state"] in ("ok", "warning", "missing"), row
    assert (row["remedy"] == "") == (row["state"] == "ok"), row
' || fail "the JSON report"

# A port that somebody has.
exec {ready}< <(exec python3 -c '
import signal, socket
held = socket.socket()
held.bind(("127.0.0.1", 0))
held.listen()
print(held.getsockname()[1], flush=True)
signal.pause()')
holder=$!
read -r -u "$ready" port
expect 4 "the port is in use" --memory=1MiB --listen="127.0.0.1:$port"
kill "$holder"

exit $((failures > 0))
