# shellcheck shell=bash
# What the tests of `nam bench` share; sourced. nam: the binary, work: a folder of the test's own, failures: so many.
set -uo pipefail
nam=$PWD/cli/nam
work=$(mktemp -d /tmp/nam-bench-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refuse PATTERN ARGUMENT…: exit code 2 and a message
refuse() {
  local pattern=$1 output code
  shift
  output=$("$nam" bench "$@" 2>&1 </dev/null)
  code=$?
  [[ $code == 2 && $output == *"$pattern"* ]] || fail "$* gave $code, not 2 with \"$pattern\": $output"
}
