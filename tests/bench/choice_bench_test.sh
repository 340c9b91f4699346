#!/bin/bash
# `nam bench choice` at two tiny points: usage and the report.
source tests/bench/prelude.sh

refuse "--points is 1" choice --points=0
refuse "--points is 1" choice --points=-1
refuse "--tuples-min is above" choice --tuples-min=2K --tuples-max=1K
refuse "--tuples-max=many" choice --tuples-max=many
refuse "not auto" choice --algorithms=auto
refuse "not hash" choice --algorithms=hash
refuse "--fabrics" choice --fabrics=sim
refuse "shm, tcp or verbs" choice --fabrics=shm,pigeon
refuse "--repeat is 1" choice --repeat=0

"$nam" bench choice --points=2 --seed=7 --tuples-min=2K --tuples-max=8K --repeat=1 --no-calibration --format=json \
  >"$work/choice.json" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
python3 - "$work/choice.json" <<'PYTHON' || failures=$((failures + 1))
import json, sys
report = json.load(open(sys.argv[1]))
assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
assert report["command"] == "bench choice"
config, rows, summary = report["config"], report["rows"], report["summary"]
ran = [algorithm for algorithm in config["algorithms"] if algorithm not in config["skipped"]]
assert {"pipelined", "rrj", "rdma_ghj", "ghj"} <= set(ran), config["skipped"]
assert [row["fabric"] for row in rows] == ["shm", "tcp"], rows
for row in rows:
    times = {algorithm: row[algorithm + "_ms"] for algorithm in ran}
    assert row["best"] == min(times, key=times.get) and row["chosen"] in times, row
    assert abs(row["chosen_over_best"] - times[row["chosen"]] / times[row["best"]]) < 0.01, row
    assert row["auto_ms"] > 0 and row["answers"] == "equal", row
    assert 2048 <= row["r_tuples"] <= 8192 and 2048 <= row["s_tuples"] <= 8192, row
assert summary["points"] == 2 and summary["equal_answers"] is True, summary
assert summary["within_15_percent"] == sum(row["chosen_over_best"] <= 1.15 for row in rows), (summary, rows)
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
