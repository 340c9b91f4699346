#!/bin/bash
# `nam bench checkout` in short: usage, and its reports on a cluster and in virtual time.
source tests/bench/prelude.sh

refuse "--clients is one number" checkout --clients=2,4
refuse "--clients is 1 to 2000" checkout --clients=0
refuse "--seconds is 0.001" checkout --seconds=0
refuse "--repeat is 1" checkout --repeat=0
refuse "fabric" checkout --fabric=carrier-pigeon
refuse "rsi, 2pc-send or 2pc-tcp" checkout --fabric=sim --protocols=3pc
refuse "no network card model" checkout --fabric=sim --generation=qdr

# report NAME ARGUMENT…: its JSON goes to $work/NAME.json
report() {
  local name=$1
  shift
  "$nam" bench checkout --format=json "$@" >"$work/$name.json" 2>"$work/stderr" </dev/null ||
    fail "$* gave exit code $?: $(cat "$work/stderr")"
}
report shm --products=1000 --clients=2 --seconds=0.5 --repeat=1 --html="$work/page.html"
sim=(--fabric=sim --products=2000 --clients=4,8 --row-servers=2 --client-machines=2 --participants=2)
report sim "${sim[@]}"
report again "${sim[@]}"
cmp -s "$work/sim.json" "$work/again.json" || diff <(grep -v load_average "$work/sim.json") \
  <(grep -v load_average "$work/again.json") || fail "the simulation's figures differ from run to run"
grep -q '<svg' "$work/page.html" || fail "no plot in the page"
python3 - "$work" <<'PYTHON' || failures=$((failures + 1))
import json, sys
shm, sim = (json.load(open("%s/%s.json" % (sys.argv[1], name))) for name in ("shm", "sim"))
for report in (shm, sim):
    assert list(report) == ["command", "config", "host", "rows", "summary"], list(report)
    assert report["command"] == "bench checkout" and report["summary"]["adds_up"] is True, report
    assert all(row["committed_per_s"] > 0 for row in report["rows"]), report["rows"]

rates = {row["side"]: row["committed_per_s"] for row in shm["rows"]}
assert list(rates) == ["equal loop", "rsi", "rsi, 4 versions", "SQLite", "2pc-tcp", "2pc-send"], rates
assert all(len(row["rounds_per_s"]) == 1 for row in shm["rows"]), shm["rows"]
for key, side in (("equal_loop", "equal loop"), ("sqlite", "SQLite"), ("2pc_tcp", "2pc-tcp"), ("2pc_send", "2pc-send")):
    ratio = shm["summary"]["rsi_over_" + key]
    assert abs(ratio - rates["rsi"] / rates[side]) <= 0.001 + 0.01 * ratio, (key, ratio, rates)

assert [(row["protocol"], row["clients"]) for row in sim["rows"]] == [
    (protocol, clients) for protocol in ("rsi", "2pc-send", "2pc-tcp") for clients in (4, 8)], sim["rows"]
assert all(0 < row["p50_us"] <= row["p99_us"] and 0 < row["busy"] <= 1 for row in sim["rows"]), sim["rows"]
assert sim["summary"]["rsi_over_2pc_tcp"] > 1, sim["summary"]
PYTHON
[[ -z $(ls -A "$TMPDIR") ]] || fail "left behind: $(ls -A "$TMPDIR")"

((failures == 0)) && echo "all passed"
exit $((failures > 0))
