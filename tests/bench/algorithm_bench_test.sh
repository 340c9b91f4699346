#!/bin/bash
# `nam bench join` and `nam bench aggregate` without a peer, on little data: usage and the reports.
source tests/bench/prelude.sh

for bench in join aggregate; do
  refuse "--peer is none or duckdb, not oracle" $bench --peer=oracle --tuples=1K
  refuse "--repeat is 1" $bench --repeat=0
  refuse "or auto, not hash" $bench --algorithms=hash
  refuse "local cluster has" $bench --compute-servers=-1
  refuse "--tuples=many" $bench --tuples=many
  refuse "shm, tcp, verbs or sim" $bench --fabric=pigeon
done
refuse "--selectivity" join --selectivity=0
refuse "--selectivity" join --selectivity=1.5
refuse "--zipf" join --zipf=2
refuse "are more than --tuples" aggregate --tuples=1K --groups=2K,4K
refuse "DuckDB" join --tuples=1K --peer=duckdb --peer-dir="$work"
refuse "DuckDB" aggregate --tuples=1K --groups=1 --peer=duckdb --peer-dir="$work"
refuse "cannot" join --tuples=1K --html="$work/no/such/folder/page.html"

# An algorithm is measured or named as left out, never replaced.
"$nam" bench join --tuples=4K,64K --selectivity=0.5,1 --zipf=0,1 --repeat=3 --format=json --html="$work/page.html" \
  >"$work/join.json" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
"$nam" bench join --tuples=2000 --fabric=tcp --algorithms=auto --threads=4 --compute-servers=1 --repeat=1 --zipf=0 \
  >"$work/table" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
grep -q 'auto *|.*| equal' "$work/table" || fail "no row of auto: $(cat "$work/table")"
grep -q '4 threads on each side, ours on 1 compute servers' "$work/table" || fail "remarks: $(cat "$work/table")"
grep -q '<svg' "$work/page.html" || fail "no plot in the page"
"$nam" bench aggregate --tuples=8K --groups=1,1K,8K,16K --repeat=2 --format=json >"$work/aggregate.json" 2>"$work/stderr" ||
  fail "exit code $?: $(cat "$work/stderr")"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
work = sys.argv[1]

def check(name, algorithms, cases, settings):
    report = json.load(open("%s/%s.json" % (work, name)))
    assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
    assert report["command"] == "bench " + name
    config, rows, summary = report["config"], report["rows"], report["summary"]
    assert config["algorithms"] == algorithms and config["fabric"] == "shm" and config["threads"] >= 2
    ran = [algorithm for algorithm in algorithms if algorithm not in config["skipped"]]
    assert all(why for why in config["skipped"].values()), config["skipped"]
    assert [row["algorithm"] for row in rows] == cases * ran, rows
    for row in rows:
        assert list(row) == settings + ["algorithm", "median_ms", "min_ms", "million_tuples_per_second", "answer",
                                        "rounds_ms"], list(row)
        assert row["answer"] == "equal" and 0 < row["min_ms"] <= row["median_ms"], row
        assert len(row["rounds_ms"]) == config["repeat"]
    assert summary["equal_answers"] is True
    return ran, summary

ran, summary = check("join", ["rrj", "rdma_ghj", "ghj", "ghj_bloom"], 8, ["tuples", "selectivity", "zipf"])
ratios = ["rrj_over_" + name for name in ran if name != "rrj"] + ["uniform_over_zipf_1"]
assert "rrj" in ran, ran
for ratio in ratios:
    for key in ratio, ratio + "_4k", ratio + "_64k":
        assert summary[key] > 0, (key, summary)
assert "rrj_over_duckdb" not in summary
ran, summary = check("aggregate", ["rdma", "dist"], 3, ["tuples", "groups"])
remarks = json.load(open(work + "/aggregate.json"))["config"]["remarks"]
assert remarks == ["Skipped: 16K groups, which are more than 8K tuples."], remarks
assert ran == ["rdma", "dist"] and summary["rdma_over_dist_1k"] > 0, (ran, summary)
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

# Ctrl-C between two rounds leaves nothing behind either. A terminal is told how far it has come.
interrupted "auto, 1 of" join --tuples=1K --algorithms=auto --repeat=1000 --zipf=0,1 >"$work/said"
grep -q "1K tuples, selectivity 1, Zipf 0: " "$work/said" || fail "it says: $(cat "$work/said")"
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
