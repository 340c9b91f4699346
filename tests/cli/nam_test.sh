#!/bin/bash
# The binary itself: usage, configuration, and a local cluster up and down.
set -uo pipefail
nam=$PWD/cli/nam
work=$(mktemp -d /tmp/nam-cli-test-XXXXXX)
trap '"$nam" down --state-dir="$work/state" >/dev/null 2>&1; rm -rf "$work"' EXIT
failures=0
unset NAM_CONFIG NAM_STATE_DIR NAM_CATALOG NAM_SECRET_FILE

# expect CODE PATTERN COMMAND…: exit code and a piece of the output
expect() {
  local code=$1 pattern=$2 output actual
  shift 2
  output=$("$@" 2>&1 </dev/null)
  actual=$?
  if [[ $actual != "$code" || $output != *"$pattern"* ]]; then
    echo "FAILED: $* gave $actual, not $code with \"$pattern\":"
    echo "$output"
    failures=$((failures + 1))
  fi
}

# expect_full COMMAND…: what cannot be written is a failure, with the reason
expect_full() {
  local output actual
  output=$("$@" 2>&1 >/dev/full </dev/null)
  actual=$?
  if [[ $actual != 1 || $output != *"cannot write the output: No space left on device"* ]]; then
    echo "FAILED: $* on a full disk gave $actual, not 1 with the reason:"
    echo "$output"
    failures=$((failures + 1))
  fi
}

# Each shared library costs every command some time: third_party/static_libraries.bzl. Sanitizers share all.
loaded=$(ldd "$nam")
if [[ $loaded != *san.so* && $(wc -l <<<"$loaded") -gt 20 ]]; then
  echo "FAILED: nam loads too many shared libraries:"
  echo "$loaded"
  failures=$((failures + 1))
fi

# Usage and help.
expect 0 "nam 0" "$nam" version
expect 0 "Star Schema Benchmark" "$nam" --help
expect 2 "" "$nam"
expect 2 'there is no command "nam frobnicate"; `nam --help` lists' "$nam" frobnicate
expect 2 'did you mean "nam status"?' "$nam" stauts --format=json
expect 2 'did you mean "nam ssb load"?' "$nam" ssb laod
expect 2 'did you mean "nam scale out"?' "$nam" scale ot
expect 2 'nam: A subcommand is required; `nam --help` lists what it takes' "$nam"
expect 2 'nam bury: server is required; `nam bury --help` lists what it takes' "$nam" bury
expect 2 'nam backup: directory is required; `nam backup --help` lists what it takes' "$nam" backup
expect 2 'nam restore: directory is required; `nam restore --help` lists what it takes' "$nam" restore
expect 1 'is no backup: it has no manifest' "$nam" restore "$work" --state-dir="$work/state"
expect 2 '; `nam scale out --help` lists what it takes' "$nam" scale out --nothing=1
expect 2 "nam ssb generate needs --out=DIR" "$nam" ssb generate
expect 2 "which --catalog does not name" "$nam" scale out --catalog=127.0.0.1:1
expect 2 "which --catalog does not name" "$nam" scale --catalog=127.0.0.1:1 out
expect 2 "choose at most --memory=" "$nam" up --state-dir="$work/state" --memory=900TiB
expect 2 "choose at most --memory=" "$nam" demo --memory=900TiB
expect 2 "choose at least --scratch=256KiB" "$nam" up --state-dir="$work/state" --memory=64MiB --scratch=1
expect 2 "choose at least --scratch=256KiB" "$nam" demo --scratch=1
# Servers by hand: what they need, and sizes that they cannot work with.
expect 2 "nam catalog needs --store=FILE and --secret-file=FILE; make" "$nam" catalog
for role in memserver compute; do
  expect 2 "nam $role needs --catalog=HOST:PORT and --secret-file=FILE; " "$nam" $role
  expect 2 "nam $role needs --secret-file=FILE; " "$nam" $role --catalog=127.0.0.1:1
done
(umask 077 && echo 0123456789abcdef0123456789abcdef >"$work/secret")
server=(--catalog=127.0.0.1:1 --secret-file="$work/secret")
expect 2 "choose at least --scratch=256KiB" "$nam" memserver "${server[@]}" --scratch=1
for size in 0 1 8MiB; do
  expect 2 "choose at least --memory=16MiB" "$nam" compute "${server[@]}" --memory=$size
done
expect 2 "choose at most --memory=" "$nam" compute "${server[@]}" --memory=100TiB
for command in --help version "ssb --help" doctor "sim --seeds=1"; do
  read -ra words <<<"$command"
  expect_full "$nam" "${words[@]}"
done
expect 2 "" "$nam" demo --frobnicate
expect 2 "4GB" "$nam" up --memory=4GB
expect 2 "local cluster has" "$nam" up --state-dir="$work/state" --memory-servers=0
for command in "catalog --secret-file=none" up demo doctor; do
  read -ra words <<<"$command"
  expect 2 "nam sim" "$nam" "${words[@]}" --fabric=sim
done
expect 2 "output format" "$nam" status --format=xml
expect 2 "there is no query Q9" "$nam" ssb run --queries=Q9
expect 2 "" "$nam" ssb load --scale-factor=-1

# Completion for bash, as Tab calls it: WORDS… and what may stand in the place of the last one.
"$nam" completion bash >"$work/completion.bash"
complete_words() {
  (
    # shellcheck disable=SC1091
    source "$work/completion.bash"
    compopt() { :; }  # knows only calls by Tab
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _nam
    echo " ${COMPREPLY[*]} "
  )
}
touch "$work/history-1" "$work/history-2"
mkdir "$work/history-directory"
expect 0 " status scale sql ssb sim " complete_words nam s
[[ $(complete_words nam "") != *supervise* ]] || { echo "FAILED: supervise is for nam alone" && failures=$((failures + 1)); }
expect 0 " load " complete_words nam ssb l
expect 0 " out in " complete_words nam --config = x scale ""
expect 0 " --format " complete_words nam status --fo
expect 0 " --config " complete_words nam ssb load --conf
expect 0 " json " complete_words nam status --format = j
expect 0 " shm tcp verbs " complete_words nam up --fabric =
expect 0 " verbs " complete_words nam up --fabric v
expect 0 " debug " complete_words nam memserver --catalog = x --log-level d
expect 0 " $work/history-1 " complete_words nam sql -f "$work/history-1"
expect 0 " $work/history-directory " complete_words nam up --state-dir = "$work/history"
expect 0 " $work/history-2 " complete_words nam check-history "$work/history-1" "$work/history-2"
expect 0 " bash zsh fish " complete_words nam completion ""
expect 0 "  " complete_words nam up --memory = ""
expect 0 "#compdef nam" "$nam" completion zsh
expect 0 "complete -c nam -n 'string match -q -- \"nam ssb\" (__nam_command)' -a load" "$nam" completion fish
expect 2 "not in {bash,zsh,fish}" "$nam" completion tcsh
for shell in zsh fish; do
  "$nam" completion $shell >"$work/completion.$shell"
  ! command -v $shell >/dev/null || expect 0 "" $shell -n "$work/completion.$shell"
done

# Manual pages, and where all of it is installed.
expect 0 '.TH "nam"' "$nam" man
expect 1 "cannot" "$nam" man --out=/dev/null/pages
expect 0 "Installed $work/opt/bin/nam" env DESTDIR="$work/root" tools/install.sh "$nam" --prefix="$work/opt"
expect 2 "usage" tools/install.sh "$nam" --perfix="$work/opt"
installed="$work/root$work/opt"
expect 0 "nam 0" "$installed/bin/nam" version
cmp -s "$work/completion.bash" "$installed/share/bash-completion/completions/nam" &&
  cmp -s "$work/completion.zsh" "$installed/share/zsh/site-functions/_nam" &&
  cmp -s "$work/completion.fish" "$installed/share/fish/vendor_completions.d/nam.fish" ||
  { echo "FAILED: the installed completion is another one" && failures=$((failures + 1)); }
expect 2 "say --prefix" env -u HOME tools/install.sh "$nam"
page="$installed/share/man/man1/nam-ssb-load.1"
expect 0 '\fB\-\-replace\fR' cat "$page"
expect 0 'Environment: \fBNAM_SCALE_FACTOR\fR' cat "$page"
expect 0 '\fBnam\-ssb\fR(1)' cat "$page"
expect 0 '\fB\-\-format\fR=\fItable|json|csv|markdown\fR' cat "$installed/share/man/man1/nam-status.1"
[[ ! -e "$installed/share/man/man1/nam-supervise.1" ]] || { echo "FAILED: a page for supervise" && failures=$((failures + 1)); }
if command -v groff >/dev/null; then
  for page in "$installed"/share/man/man1/*.1; do
    [[ -z $(groff -man -ww -z "$page" 2>&1) ]] || { echo "FAILED: groff warns of $page" && failures=$((failures + 1)); }
  done
fi

# Simulated clusters.
expect 0 "2 seeds, 0 failed" "$nam" sim --seeds=2
expect 0 '"failed_seeds": 0' "$nam" sim --seed=7 --generation=ndr --faults=deaths,partitions --verify --format=json
expect 2 "no kind of fault" "$nam" sim --faults=gremlins
expect 2 "" "$nam" sim --generation=cdr

# No cluster. Flag over environment over file.
expect 3 "nam up" "$nam" sql --state-dir="$work/none" -c 'select 1'
expect 2 "--secret-file" "$nam" sql --catalog=127.0.0.1:1 -c 'select 1'
printf 'state-dir = "%s"\n[status]\nformat = "json"\n' "$work/from-file" >"$work/nam.toml"
expect 3 "$work/from-file" "$nam" --config="$work/nam.toml" status
expect 3 "$work/from-file" env NAM_CONFIG="$work/nam.toml" "$nam" status
expect 3 "$work/from-env" env NAM_STATE_DIR="$work/from-env" "$nam" --config="$work/nam.toml" status
expect 3 "$work/from-flag" env NAM_STATE_DIR="$work/from-env" "$nam" --config="$work/nam.toml" status --state-dir="$work/from-flag"
# Also of commands that have a sibling with the same options.
expect 3 "$work/from-flag" env NAM_STATE_DIR="$work/from-env" "$nam" scale out --state-dir="$work/from-flag"
expect 3 "$work/from-flag" env NAM_STATE_DIR="$work/from-env" "$nam" scale in --state-dir="$work/from-flag"
expect 2 '"flagged"' env NAM_FABRIC=shm "$nam" up --fabric=flagged --state-dir="$work/none"
printf '[status]\nfromat = "json"\n' >"$work/bad.toml"
expect 2 "bad.toml:2:1" "$nam" --config="$work/bad.toml" status
printf '[stauts]\nformat = "json"\n' >"$work/bad.toml"
expect 2 "stauts" "$nam" --config="$work/bad.toml" status
printf '[ssb.run]\nrepeat = "often"\n' >"$work/bad.toml"
expect 2 "bad.toml:2:1" "$nam" --config="$work/bad.toml" status
expect 2 "none.toml" "$nam" --config="$work/none.toml" status
expect 2 "cannot read the configuration $work" "$nam" --config="$work" status
expect 0 "" "$nam" --config=/dev/null version

# A cluster in the background.
state=(--state-dir="$work/state")
expect 3 "$work/from-flag" env NAM_STATE_DIR="$work/from-env" "$nam" scale out --state-dir="$work/from-flag"
expect 0 "runs in $work/state" env NAM_STATE_DIR="$work/from-env" "$nam" up "${state[@]}" --memory-servers=1 --compute-servers=1 --memory=64MiB
expect 1 "nam down" "$nam" up "${state[@]}"
expect 0 "memory" "$nam" status "${state[@]}"
expect 0 '"command": "status"' "$nam" status "${state[@]}" --format=json
expect 0 "" "$nam" ssb load "${state[@]}" --scale-factor=0.002
expect 1 "or ask to replace it; --replace loads it again" "$nam" ssb load "${state[@]}" --scale-factor=0.002
for replace in "" --replace; do
  expect 1 "there is another table supplier, that of the Star Schema Benchmark; rename or drop it" \
    "$nam" tpch load "${state[@]}" --scale-factor=0.001 $replace
done
expect_full "$nam" status "${state[@]}"
expect_full "$nam" sql "${state[@]}" -c 'select count(*) from date'
expect_full "$nam" sql "${state[@]}" --format=csv -c 'select d_datekey, d_date, d_dayofweek from date'
expect_full "$nam" ssb run "${state[@]}" --queries=Q1.1 --repeat=1
expect_full "$nam" checkout "${state[@]}" --transactions=10 --products=100
expect 0 "choose at most" bash -c "'$nam' memserver --catalog=127.0.0.1:1 --secret-file='$work/state/secret' --memory=900TiB 2>&1; [[ \$? == 2 ]]"
supervisor=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["supervisor"]["pid"])' "$work/state/cluster.json")
expect 0 "has stopped" "$nam" down "${state[@]}"
expect 0 "No cluster runs" "$nam" down "${state[@]}"
# A zombie has ended too: not every container has an init that takes orphans.
if grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$supervisor/status"; then
  echo "FAILED: the supervisor $supervisor is still there"
  failures=$((failures + 1))
fi

# Options of the network reach the fabric, from every kind of process.
expect 2 "--multicast-ttl" "$nam" memserver --catalog=127.0.0.1:1 --secret-file=none --multicast-ttl=256
expect 0 "runs in" "$nam" up "${state[@]}" --fabric=tcp --memory-servers=1 --compute-servers=1 --memory=64MiB --data-dir=none
catalog=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["catalog"])' "$work/state/cluster.json")
member=(--catalog="$catalog" --secret-file="$work/state/secret")
for role in memserver compute; do
  expect 1 '"nosuch0" is up with an IPv4 address, which datagrams need: choose another by --multicast-interface' \
    "$nam" "$role" "${member[@]}" --multicast-interface=nosuch0
done
expect 3 '"nosuch0"' env NAM_MULTICAST_INTERFACE=nosuch0 "$nam" status "${member[@]}"
printf 'multicast-interface = "nosuch0"\nmulticast-ttl = 4\n' >"$work/multicast.toml"
expect 3 '"nosuch0"' "$nam" --config="$work/multicast.toml" sql "${member[@]}" -c 'select 1'
expect 0 "memory" "$nam" --config="$work/multicast.toml" status "${member[@]}" --multicast-interface=lo
expect 0 "has stopped" "$nam" down "${state[@]}"

# One whose supervisor was killed.
expect 0 "runs in" "$nam" up "${state[@]}" --memory-servers=1 --compute-servers=1 --memory=64MiB
supervisor=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["supervisor"]["pid"])' "$work/state/cluster.json")
kill -KILL "$supervisor"
expect 0 "Cleaned up" "$nam" down "${state[@]}"
[[ ! -e "$work/state/secret" ]] || { echo "FAILED: the secret is still there" && failures=$((failures + 1)); }

exit $((failures > 0))
