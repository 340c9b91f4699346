#!/bin/bash
# `nam bench blocks` on little data: usage and the report.
source tests/bench/prelude.sh

refuse "--rounds is 1" blocks --rounds=0
refuse "--sizes are 1 to" blocks --sizes=2KiB,1GiB
refuse "there is no query Q9" blocks --queries=Q9

"$nam" bench blocks --scale-factor=0.002 --sizes=2KiB,64KiB --rounds=2 --repeat=3 --queries=Q1.1,Q4.1 --format=json \
  >"$work/report.json" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
python3 - "$work/report.json" <<'PYTHON' || failures=$((failures + 1))
import json, sys
report = json.load(open(sys.argv[1]))
assert report["command"] == "bench blocks"
assert [row["block_bytes"] for row in report["rows"]] == [2048, 65536]
for row in report["rows"]:
    assert sorted(row["queries"]) == ["Q1.1", "Q4.1"]
    for way in ("in_place", "copy"):
        times = sorted(query[way + "_ms"] for query in row["queries"].values())
        assert 0 < times[0] - 0.001 <= row[way + "_ms_geomean"] <= times[-1] + 0.001, row
    assert row["load_rows_per_s"] > 0
assert report["summary"]["same_rows"] is True
assert 0 < report["summary"]["in_place_best_over_default"] <= 1
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
