#!/bin/bash
# `nam bench figure7` and the options of `nam bench calibrate`.
source tests/bench/prelude.sh

refuse "output format" figure7 --format=xml
refuse "output format" calibrate --format=xml
refuse "--rounds is 1" calibrate --rounds=0

"$nam" bench figure7 --html="$work/page.html" >"$work/table" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
grep -q '^rrj_over_ghj: 2.5$' "$work/table" || fail "no summary: $(tail -3 "$work/table")"
grep -q '<svg' "$work/page.html" || fail "no plot in the page"
"$nam" bench figure7 --format=json >"$work/json" || fail "exit code $?"
python3 - "$work/json" <<'PYTHON' || failures=$((failures + 1))
import json, sys
report = json.load(open(sys.argv[1]))
assert report["command"] == "bench figure7" and len(report["rows"]) == 126, report["command"]
assert report["summary"]["rrj_over_rdma_ghj"] == 1.5, report["summary"]
PYTHON

((failures == 0)) && echo "all passed"
exit $((failures > 0))
