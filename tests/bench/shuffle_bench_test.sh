#!/bin/bash
# `nam bench shuffle` in short: usage, and its report in virtual time and over processes.
source tests/bench/prelude.sh

refuse "--tables is 2 to 4" shuffle --tables=5
refuse "--compute-servers is 0" shuffle --compute-servers=65
refuse "--batch-bytes is" shuffle --batch-bytes=100
refuse "--credits is" shuffle --credits=3
refuse "--multicast is" shuffle --multicast=maybe
refuse "--tuples is" shuffle --tuples=tiny
refuse "--repeat is 1" shuffle --repeat=0
refuse "--fan-out is" shuffle --fan-out=100
refuse "fabric" shuffle --fabric=carrier-pigeon
refuse "output format" shuffle --format=xml
refuse "no network card model" shuffle --fabric=sim --generation=qdr

quick() {
  "$nam" bench shuffle --scale-factor=0.01 --repeat=2 --format=json "$@" 2>"$work/stderr" </dev/null
}
quick --fabric=sim --compute-servers=4 --memory-servers=2 --threads=2 --html="$work/page.html" >"$work/sim.json" ||
  fail "exit code $?: $(cat "$work/stderr")"
quick --fabric=shm >"$work/shm.json" || fail "exit code $?: $(cat "$work/stderr")"
quick --fabric=tcp >"$work/tcp.json" || fail "exit code $?: $(cat "$work/stderr")"
[[ ! -s $work/stderr ]] || fail "said on stderr: $(cat "$work/stderr")"
grep -q '<svg' "$work/page.html" || fail "no plot in the page"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
sim, shm, tcp = (json.load(open("%s/%s.json" % (sys.argv[1], name))) for name in ("sim", "shm", "tcp"))
plans = {"pipelined", "shuffle", "shuffle, materialized"}
for report in (sim, shm, tcp):
    assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
    assert report["command"] == "bench shuffle"
    assert {row["plan"] for row in report["rows"]} == plans
    assert {row["tables"] for row in report["rows"]} == {2, 3, 4}
    for row in report["rows"]:
        assert row["median_ms"] > 0 and row["answer"] == "equal", row
    for tables in (2, 3, 4):
        for plan in ("shuffle", "shuffle_materialized"):
            assert report["summary"]["%s_over_pipelined_%d_tables" % (plan, tables)] > 0, report["summary"]
    assert report["summary"]["equal_answers"] is True
assert len(shm["rows"]) == len(tcp["rows"]) == len(sim["rows"]) == 9
assert all(0 < row["busy"] <= 1 for row in sim["rows"]), sim["rows"]
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
