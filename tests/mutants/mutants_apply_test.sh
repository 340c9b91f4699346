#!/bin/sh
# Checks the tree itself: the link to a file of its root leads there.
set -eu
root=$(dirname "$(readlink -f .clang-format)")
test -f "$root/WORKSPACE"
exec /usr/bin/python3 "$root/tools/mutants.py" --check
