#!/usr/bin/busybox sh
# shellcheck shell=dash
# suite.sh NAME HOSTS PARTS CASES: what runs in the guest. Every command has a time limit; `@@COUNT passed failed skipped` lines are
# summed up outside; the exit code is 1 if anything failed.
name=$1
hosts=$2
parts=$3
cases=$4
failures=0
nam=/nam/nam
# Emulated, everything takes longer; no check is weaker for it.
export NAM_TEST_TIMEOUT_FACTOR=6
# A connection may be lost without anybody's fault.
[ "$name" = lossy ] && export NAM_TEST_LOSSY=1

host() { echo "10.98.0.$1"; }
uptime_s() { cut -d. -f1 /proc/uptime; }

# count NAME CODE: one case that is no GoogleTest case.
count() {
  if [ "$2" = 0 ]; then
    echo "@@COUNT 1 0 0"
  else
    echo "FAILED: $1 (exit code $2)"
    echo "@@COUNT 0 1 0"
    failures=1
  fi
}

conformance() {
  NAM_TEST_HOSTS=$(host 1)
  for i in $(seq 2 "$hosts"); do NAM_TEST_HOSTS="$NAM_TEST_HOSTS,$(host "$i")"; done
  export NAM_TEST_HOSTS
  # RapidCheck's default is 100 sequences, each of tens of round trips.
  RC_PARAMS="max_success=20" timeout 1000 \
    /nam/verbs_conformance_test --gtest_color=no --gtest_filter="$cases" >/tmp/conformance 2>&1
  code=$?
  grep -E '^\[  (FAILED|SKIPPED)' /tmp/conformance | sort -u
  [ $code = 0 ] || grep -vE '^\[ +(RUN|OK)|^$' /tmp/conformance | head -150
  [ $code != 143 ] || grep -E '^\[ +RUN' /tmp/conformance | tail -1 # that did not end
  passed=$(grep -c '^\[       OK' /tmp/conformance)
  skipped=$(grep -cE '^\[  SKIPPED \] .* ms\)' /tmp/conformance)
  failed=$(grep -cE '^\[  FAILED  \] .* ms\)' /tmp/conformance)
  # It died, or was killed, in the middle.
  [ $code != 0 ] && [ "$failed" = 0 ] && failed=1
  [ "$failed" = 0 ] || failures=1
  echo "conformance: $passed passed, $failed failed, $skipped skipped, at $(uptime_s) s"
  echo "@@COUNT $passed $failed $skipped"
}

# perftest NAME OPTION...: between hosts 2 (server) and 1; its table goes to the output.
perftest() {
  tool=$1
  shift
  timeout 100 "$tool" -d rxe2 -x 1 -F "$@" >/tmp/server 2>&1 &
  server=$!
  sleep 2
  timeout 90 "$tool" -d rxe1 -x 1 -F "$@" "$(host 2)" >/tmp/client 2>&1
  code=$?
  wait $server
  echo "perftest: $tool $*"
  grep -A1 '#bytes' /tmp/client
  return $code
}

# Beside the provider's own limit, measured in the same guest.
benchmark() {
  "$nam" bench --help 2>/dev/null | grep -q '^ *fabric ' || { echo "no nam bench fabric in this build"; return; }
  perftest ib_read_bw -s 65536 -n 200
  count ib_read_bw $?
  perftest ib_write_bw -s 65536 -n 200
  count ib_write_bw $?
  perftest ib_atomic_lat -n 200 -A FETCH_AND_ADD
  count ib_atomic_lat $?
  timeout 200 "$nam" bench fabric --operations=read,write,faa --sizes=64KiB --in-flight=1,16 --fabric=verbs --rdma=rxe1 --server-rdma=rxe2 --server-host="$(host 2)"
  count "nam bench fabric" $?
}

# serve NAME COMMAND...: in the background until it says READY; its log is /tmp/NAME.
serve() {
  log=/tmp/$1
  shift
  timeout 1200 "$@" >"$log" 2>&1 &
  servers="$servers $!"
  for _ in $(seq 1 300); do
    grep -q '^READY' "$log" && return 0
    sleep 0.2
  done
  echo "not ready: $*"
  cat "$log"
  return 1
}

# start_cluster NAME COMPUTE-SERVERS: a catalog, memory servers on hosts 1 and 2, compute servers on hosts 3 and 4,
# each on a device of its own. Sets $catalog and $secret.
start_cluster() {
  servers=
  echo "a secret of the guest" >/tmp/secret
  secret=--secret-file=/tmp/secret
  chmod 600 /tmp/secret
  catalog=$(host 1):7000
  rm -f "/tmp/$1.db"
  serve catalog "$nam" catalog --listen="$catalog" --store="/tmp/$1.db" --fabric=verbs $secret --lease-ms=20000 &&
    serve memory1 "$nam" memserver --catalog="$catalog" --memory=96M --control-listen="$(host 1):0" $secret &&
    serve memory2 "$nam" memserver --catalog="$catalog" --memory=96M --control-listen="$(host 2):0" $secret &&
    { [ "$2" -lt 1 ] || serve compute1 "$nam" compute --catalog="$catalog" --threads=1 --control-listen="$(host 3):0" $secret; } &&
    { [ "$2" -lt 2 ] || serve compute2 "$nam" compute --catalog="$catalog" --threads=1 --control-listen="$(host 4):0" --rdma=rxe4:1,gid=1 $secret; }
}

# stop_cluster: and what passed the devices so far.
stop_cluster() {
  for server in $servers; do kill "$server" 2>/dev/null; done
  wait
  for i in $(seq 1 "$hosts"); do
    counters=/sys/class/infiniband/rxe$i/ports/1/hw_counters
    echo "rxe$i: sent $(cat "$counters/sent_pkts"), received $(cat "$counters/rcvd_pkts") packets," \
      "retries $(cat "$counters/completer_retry_err")"
  done
}

# SSB with every server and the client on devices of their own; -1 for host 3 and 4.
ssb() {
  start_cluster ssb 2
  code=$?
  if [ $code = 0 ]; then
    timeout 600 "$nam" ssb load --catalog="$catalog" $secret --scale-factor=0.01 --rdma=rxe1 >/tmp/load 2>&1
    code=$?
    cat /tmp/load
  fi
  count "ssb load" $code
  if [ $code = 0 ]; then
    timeout 900 "$nam" ssb run --catalog="$catalog" $secret --scale-factor=0.01 --rdma=rxe3:1 --check >/tmp/ssb 2>&1
    code=$?
    cat /tmp/ssb
    right=$(sed -n 's/^\([0-9]*\) of [0-9]* queries correct.*/\1/p' /tmp/ssb)
    right=${right:-0}
    echo "ssb: $right of 13 right, exit code $code, at $(uptime_s) s"
    [ $code = 0 ] && [ "$right" = 13 ] || failures=1
    echo "@@COUNT $right $((13 - right)) 0"
    [ $code = 0 ] || { tail -n 5 /tmp/memory1 /tmp/memory2 /tmp/compute1 /tmp/compute2; }
  fi
  stop_cluster
}

# checkout_run RDMA OPTION...: memory servers on hosts 1 and 2, the clients on another; the exit code says whether
# stocks, orders and the history are as they must be.
checkout_run() {
  device=$1
  shift
  timeout 600 "$nam" checkout --catalog="$catalog" $secret --rdma="$device" --product-bytes=1024 --check "$@" \
    >/tmp/checkout 2>&1
  code=$?
  cat /tmp/checkout
  echo "checkout on $device: exit code $code, at $(uptime_s) s"
  [ $code = 0 ] || tail -n 5 /tmp/memory1 /tmp/memory2
}

# Transactions by one-sided verbs and their atomics: without contention, then with much of it, by other clients on
# another device. With losses a tenth must do.
checkout() {
  transactions=2000
  [ "$name" = plain ] || transactions=200
  start_cluster checkout 0
  code=$?
  count "cluster for checkout" $code
  if [ $code = 0 ]; then
    checkout_run rxe3 --clients=2 --transactions=$transactions --products=500
    count "checkout --check" $code
    checkout_run rxe4:1,gid=1 --replace --clients=3 --transactions=300 --products=20 --zipf=0.9 --versions=2
    count "checkout --check, few products" $code
  fi
  stop_cluster
}

wanted() {
  case ,$parts, in *,"$1",*) return 0 ;; esac
  return 1
}

wanted conformance && conformance
# Loss makes no difference to a limit worth measuring.
[ "$name" = plain ] && wanted benchmark && benchmark
wanted ssb && ssb
wanted checkout && checkout
exit $failures
