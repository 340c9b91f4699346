#!/bin/sh
# Every source is formatted as .clang-format says; `./run format` does it.
set -eu
root=$(dirname "$(readlink -f .clang-format)")
test -f "$root/WORKSPACE"
cd "$root"
find ./*/ \( -name '.*' -o -name 'bazel-*' -o -name node_modules -o -path ./third_party \) -prune -o \
  -type f \( -name '*.cc' -o -name '*.h' \) -print0 |
  xargs -0 -P 2 -n 40 clang-format --dry-run --Werror
