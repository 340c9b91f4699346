#!/bin/bash
# `nam bench join` and `nam bench aggregate` in virtual time, on little data: usage, reports, and that equal runs give
# equal figures.
source tests/bench/prelude.sh

for bench in join aggregate; do
  refuse "--peer is none" $bench --fabric=sim --peer=duckdb
  refuse "--cache-divisor is 1" $bench --fabric=sim --cache-divisor=0
  refuse "no network card model" $bench --fabric=sim --generation=abacus
  refuse "1 to 64" $bench --fabric=sim --compute-servers=65
done

join() {
  "$nam" bench join --fabric=sim --threads=8 --format=json "$@" 2>"$work/stderr" ||
    fail "exit code $?: $(cat "$work/stderr")"
}
join --tuples=64K --selectivity=0.5,1 --html="$work/page.html" >"$work/join.json"
join --tuples=64K --selectivity=0.5,1 >"$work/again.json"
# Caches in which nothing fits: look-ups cost more.
join --tuples=512K --selectivity=1 >"$work/fits.json"
join --tuples=512K --selectivity=1 --cache-divisor=1024 >"$work/exceeds.json"
grep -q '<svg' "$work/page.html" || fail "no plot in the page"
grep -q 'Caches of 2 x Intel Xeon E5-2660 v2, 8 times smaller' "$work/page.html" || fail "the page says no sizes"
"$nam" bench aggregate --fabric=sim --tuples=64K --groups=1,1K,64K --threads=8 --format=json \
  >"$work/aggregate.json" 2>"$work/stderr" || fail "exit code $?: $(cat "$work/stderr")"
"$nam" bench aggregate --fabric=sim --tuples=8K --groups=1 --threads=4 >"$work/table" 2>"$work/stderr" ||
  fail "exit code $?: $(cat "$work/stderr")"
grep -q 'paper_order is of 64M tuples' "$work/table" || fail "nothing is said of the size: $(cat "$work/table")"
grep -q 'fdr network of 2 ports' "$work/table" || fail "the table says no model: $(cat "$work/table")"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
def report(name):
    return json.load(open("%s/%s.json" % (sys.argv[1], name)))
def times(figures):
    return {(row.get("selectivity", row.get("groups")), row["algorithm"]): row["median_ms"] for row in figures["rows"]}

join, again, fits, exceeds = report("join"), report("again"), report("fits"), report("exceeds")
model = join["config"]["model"]
assert model["cache_divisor"] == 8 and model["l2_bytes"] == 32768, model
assert model["l2_access_ps"] < model["l3_access_ps"] < model["memory_access_ps"], model
assert join["config"]["fabric"] == "sim" and join["config"]["memory_servers"] == 4, join["config"]
assert all(row["answer"] == "equal" and len(row["rounds_ms"]) == 1 for row in join["rows"])
assert times(join) == times(again), "equal seeds give other times"
assert all(times(exceeds)[key] > 1.1 * ms for key, ms in times(fits).items()), (times(fits), times(exceeds))

def within(figures, faster, slower, most=1.0):
    return figures[faster] <= most * figures[slower]
summary = join["summary"]
for percent in 50, 100:
    ms = {algorithm: time for (key, algorithm), time in times(join).items() if round(100 * key) == percent}
    assert {"rrj", "rdma_ghj", "ghj"} <= set(ms), ms
    order = ["rrj", "rdma_ghj", "ghj"]
    keeps = all(within(ms, a, b) for a, b in zip(order, order[1:]))
    if "ghj_bloom" in ms:
        keeps &= within(ms, "rdma_ghj", "ghj_bloom") and within(ms, "rrj", "ghj_bloom")
        keeps &= within(ms, *(("ghj_bloom", "ghj") if percent < 70 else ("ghj", "ghj_bloom")))
    assert summary["paper_order_at_%d" % percent] == keeps, (percent, ms, summary)
    assert abs(summary["rrj_over_ghj_at_%d" % percent] - ms["ghj"] / ms["rrj"]) < 0.01
assert summary["paper_order"] == (summary["paper_order_at_50"] and summary["paper_order_at_100"])

aggregate = report("aggregate")
summary = aggregate["summary"]
for groups, name, most in (1, "1", 1.1), (1024, "1k", 1.1), (65536, "64k", 1.0):
    ms = {algorithm: time for (key, algorithm), time in times(aggregate).items() if key == groups}
    assert summary["paper_order_" + name] == within(ms, "rdma", "dist", most), (ms, summary)
PYTHON

((failures == 0)) && echo "all passed"
exit $((failures > 0))
