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

# interrupted TEXT ARGUMENT…: runs it on a terminal and interrupts it once it has said the text; prints all that it said
interrupted() {
  python3 - "$nam" "$@" <<'PYTHON' || fail "${*:2} does not end by Ctrl-C"
import os, pty, signal, subprocess, sys
program, text, arguments = sys.argv[1], sys.argv[2].encode(), sys.argv[3:]
ours, theirs = pty.openpty()
nam = subprocess.Popen([program, "bench"] + arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
seen = b""
while text not in seen:
    seen += os.read(ours, 65536)
nam.send_signal(signal.SIGINT)
try:
    while more := os.read(ours, 65536):
        seen += more
except OSError:
    pass  # all have closed the terminal
assert nam.wait() == 130, nam.returncode
print(seen.decode(errors="replace"))
PYTHON
}
