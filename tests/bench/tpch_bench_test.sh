#!/bin/bash
# `nam bench tpch` without a peer, on little data: usage and the report.
source tests/bench/prelude.sh

refuse "there is no query Q23; they are Q1 to Q22" tpch --queries=Q23
refuse "DuckDB" tpch --peer=duckdb --peer-dir="$work"

"$nam" bench tpch --scale-factor=0.002 --repeat=2 --memory=128MiB --queries=Q1,Q13,Q19 --parameters-seed=3 \
  --format=json >"$work/report.json" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
report = json.load(open(sys.argv[1] + "/report.json"))
assert report["command"] == "bench tpch"
assert [row["query"] for row in report["rows"]] == ["Q1", "Q13", "Q19"]
assert report["summary"]["correct_queries"] == 3, report["summary"]
assert report["summary"]["load_lineitem_rows_per_second"] > 0
for row in report["rows"]:
    assert len(row["in_place_ms"]) == 2, row
    assert "scan" in row["plan"], row["plan"]
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
