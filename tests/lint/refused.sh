#!/bin/sh
# Whether clang-tidy, by .clang-tidy, refuses each file of refused/ for what the file is about. `./run lint` runs it.
set -eu
cd "$(dirname "$0")/../.."

# refuses FILE WARNING
refuses() {
  said=$(clang-tidy --quiet --warnings-as-errors='*' "tests/lint/refused/$1" -- -std=c++20 -I. 2>/dev/null) || true
  case "$said" in
    *"$2"*) ;;
    *) echo "tests/lint/refused/$1: clang-tidy does not say $2" >&2 && exit 1 ;;
  esac
}

refuses unguarded.cc clang-diagnostic-thread-safety-analysis
