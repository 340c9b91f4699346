#!/bin/bash
# `nam bench prefetch` and `multicast` in short on every fabric that runs here, and I-Store's figures 7b and 7c on
# the simulated network, with all three benchmarks.
source tests/bench/prelude.sh

refuse "--windows is 1 to 64" prefetch --windows=65
refuse "--block-bytes is" prefetch --block-bytes=512
refuse "--threads is" prefetch --threads=1000
refuse "fdr, edr, hdr, ndr" prefetch --fabric=sim --generation=qdr
refuse "--receivers is 1 to 16" multicast --receivers=17
refuse "--blocks is" multicast --blocks=1

# report NAME ARGUMENT…: its JSON goes to $work/NAME.json
report() {
  local name=$1
  shift
  "$nam" bench "$@" --format=json >"$work/$name.json" 2>"$work/stderr" </dev/null ||
    fail "$* gave exit code $?: $(cat "$work/stderr")"
}
for fabric in shm tcp; do
  report "prefetch-$fabric" prefetch --fabric=$fabric --repeat=3 --windows=1,10
  report "multicast-$fabric" multicast --fabric=$fabric --repeat=1 --blocks=512 --receivers=1,2
done
report fabric fabric --fabric=sim --operations=read,write,cas,faa,send --sizes=8,2KiB,64KiB
report prefetch prefetch --fabric=sim
report multicast multicast --fabric=sim --blocks=4096
report again prefetch --fabric=sim
cmp -s "$work/prefetch.json" "$work/again.json" || diff <(grep -v load_average "$work/prefetch.json") \
  <(grep -v load_average "$work/again.json") || fail "the simulation's figures differ from run to run"

python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
def read(name):
    report = json.load(open("%s/%s.json" % (sys.argv[1], name)))
    assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
    return report
for fabric in ("shm", "tcp"):
    prefetch, multicast = read("prefetch-" + fabric), read("multicast-" + fabric)
    ways = ["read", "read"] + (["in place", "in place"] if fabric == "shm" else [])
    assert [row["blocks"] for row in prefetch["rows"]] == ways
    assert all(row["blocks_per_second"] > 0 for row in prefetch["rows"] + multicast["rows"])
    assert prefetch["summary"]["window_10_over_1"] > 0
    assert [(row["way"], row["receivers"]) for row in multicast["rows"]] == [
        ("read", 1), ("read", 2), ("multicast", 1), ("multicast", 2)]
    assert multicast["summary"]["multicast_over_read_2_receivers"] > 0

# Two ports of FDR: 1 and 2 microseconds, and the line from 2 KiB on.
fabric = read("fabric")
alone = {row["operation"]: row["p50_us"] for row in fabric["rows"] if row["in_flight"] == 1 and row["bytes"] == 8}
for operation, microseconds in (("read", 2), ("write", 1), ("cas", 2), ("faa", 2), ("send", 1)):
    assert abs(alone[operation] - microseconds) < 0.15, alone
for size in ("2KiB", "64KiB"):
    for operation in ("read", "write"):
        ratio = fabric["summary"]["%s_%s_over_limit" % (operation, size)]
        assert 0.95 <= ratio <= 1, (operation, size, ratio)

# Figure 7b: a window of 10 blocks is about three times one of 1, and 5 are nearly enough.
prefetch = read("prefetch")["summary"]
assert 2.5 <= prefetch["window_10_over_1"] <= 4, prefetch
assert 0.9 <= prefetch["window_5_over_10"] <= 1.02, prefetch

# Figure 7c: READ falls as the network divided by the receivers, multicast does not.
multicast = read("multicast")
rates = {(row["way"], row["receivers"]): row["blocks_per_second"] / 1e6 for row in multicast["rows"]}
for receivers in range(1, 9):
    expected = min(5, 6.4 / receivers)
    assert abs(rates["read", receivers] - expected) < 0.15 * expected, (receivers, rates)
    assert 0.85 < rates["multicast", receivers] / rates["multicast", 1] < 1.15, rates
    if receivers >= 2:
        assert rates["multicast", receivers] > rates["read", receivers], rates
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
