#!/bin/bash
# `nam bench fabric` in short: usage, and what its report holds on every fabric that runs here.
source tests/bench/prelude.sh

refuse "faa or send, not swap" fabric --operations=swap
refuse "8 B to 1 MiB" fabric --sizes=7
refuse "8 B to 1 MiB" fabric --sizes=2MiB
refuse "--in-flight is 1 to 64" fabric --in-flight=65
refuse "--threads is 1 to 64" fabric --threads=0
refuse "--span is" fabric --span=4KiB
refuse "--repeat is 1" fabric --repeat=0
refuse "fabric" fabric --fabric=carrier-pigeon
refuse "output format" fabric --format=xml

quick() {
  "$nam" bench fabric --repeat=3 --round-ms=2 --span=8MiB --format=json "$@" 2>"$work/stderr" </dev/null
}
quick --fabric=shm --in-flight=1,10 --sizes=8,2KiB >"$work/shm.json" || fail "exit code $?: $(cat "$work/stderr")"
quick --fabric=tcp --in-flight=1,10 --sizes=8,2KiB --threads=1,2 >"$work/tcp.json" || fail "exit code $?: $(cat "$work/stderr")"
[[ ! -s $work/stderr ]] || fail "said on stderr: $(cat "$work/stderr")"
"$nam" bench fabric --repeat=1 --round-ms=1 --operations=faa --in-flight=1 >"$work/table" 2>&1 </dev/null || fail "exit code $?"
grep -q '^ faa ' "$work/table" || fail "no row in the table: $(cat "$work/table")"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
shm, tcp = (json.load(open("%s/%s.json" % (sys.argv[1], name))) for name in ("shm", "tcp"))
for report in (shm, tcp):
    assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
    assert report["command"] == "bench fabric"
    for row in report["rows"]:
        assert row["operations_per_second"] > 0, row
        assert 0 < row["p50_us"] <= row["p99_us"] <= row["p999_us"], row
        if "over_limit" in row:
            assert row["limit_operations_per_second"] > 0, row
for report in (shm, tcp):
    assert {row["operation"] for row in report["rows"]} >= {"read", "write", "cas", "faa", "send"}
    for key in ("read_8B_over_limit", "read_2KiB_over_limit", "cas_over_limit", "faa_over_limit"):
        assert report["summary"][key] > 0, report["summary"]
assert not any("over_limit" in row for row in shm["rows"] if row["operation"] == "send")
assert {row["threads"] for row in tcp["rows"]} == {1, 2}
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

# Ctrl-C ends it between two rounds. A terminal is told how far it has come.
interrupted "read of 8 B, 1 thread" fabric --repeat=10000 >/dev/null
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
