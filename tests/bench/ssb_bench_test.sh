#!/bin/bash
# `nam bench ssb` without a peer, on little data: usage and the report.
source tests/bench/prelude.sh

refuse "--peer is none or duckdb, not oracle" ssb --peer=oracle
refuse "--repeat is 1" ssb --repeat=0
refuse "there is no query Q9" ssb --queries=Q9
refuse "local cluster has" ssb --compute-servers=0
refuse "DuckDB" ssb --peer=duckdb --peer-dir="$work"

run() {
  "$nam" bench ssb --scale-factor=0.002 --repeat=3 --memory=128MiB --queries=Q1.1,Q2.3,Q4.1 --format=json "$@" 2>"$work/stderr"
}
run >"$work/shm.json" || fail "exit code $?: $(cat "$work/stderr")"
run --fabric=tcp >"$work/tcp.json" || fail "exit code $?: $(cat "$work/stderr")"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
shm, tcp = (json.load(open("%s/%s.json" % (sys.argv[1], name))) for name in ("shm", "tcp"))
for report in (shm, tcp):
    assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
    assert report["command"] == "bench ssb"
    assert [row["query"] for row in report["rows"]] == ["Q1.1", "Q2.3", "Q4.1"]
    assert report["summary"]["correct_queries"] == 3, report["summary"]
    assert report["summary"]["load_lineorder_rows_per_second"] > 0
    assert all(len(row["copy_ms"]) == 3 for row in report["rows"])
assert all(row["in_place_median_ms"] > 0 and row["read_median_ms"] > 0 for row in shm["rows"])
assert "read_over_copy_min" in shm["summary"]
assert "in_place_median_ms" not in tcp["rows"][0] and "read_over_copy_min" in tcp["summary"]
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

# Ctrl-C between two queries leaves nothing behind either. A terminal is told how far it has come.
interrupted Q1.1 ssb --scale-factor=0.002 --repeat=10000 --memory=128MiB >/dev/null
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
