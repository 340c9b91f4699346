#!/bin/sh
# Checks the tree itself, which is more than Bazel could list as data: the link to a file of its root leads there.
set -eu
root=$(dirname "$(readlink -f .clang-tidy)")
test -f "$root/WORKSPACE"
/usr/bin/python3 tests/lint/house_rules.py --self-test
/usr/bin/python3 tests/lint/documents.py --self-test
/usr/bin/python3 tests/lint/documents.py "$root"
exec /usr/bin/python3 tests/lint/house_rules.py "$root"
