#!/usr/bin/env bash
# Installs a nam that was built: the binary, its manual pages, and completion for bash, zsh and fish.
#
#   install.sh NAM [--prefix=DIR]        the default is ~/.local
#
# With DESTDIR everything goes below that directory, as packagers expect; what is installed does not know of it.
set -euo pipefail

usage() {
  echo "usage: ${0##*/} NAM [--prefix=DIR]" >&2
  exit 2
}

(($# >= 1)) || usage
nam="$1" prefix=""
shift
while (($#)); do
  case "$1" in
    --prefix=?*) prefix="${1#--prefix=}" ;;
    --prefix) (($# >= 2)) || usage && prefix="$2" && shift ;;
    *) usage ;;
  esac
  shift
done
if [[ -z "$prefix" ]]; then
  [[ -n "${HOME:-}" ]] || { echo "install: there is no HOME to install below; say --prefix=DIR" >&2 && exit 2; }
  prefix="$HOME/.local"
fi
[[ "$prefix" == /* ]] || prefix="$PWD/$prefix"
root="${DESTDIR:-}$prefix"

pages="$(mktemp -d)"
trap 'rm -rf "$pages"' EXIT
"$nam" man --out="$pages" >/dev/null

install -D -m 755 "$nam" "$root/bin/nam"
install -d "$root/share/man/man1"
# Pages of commands that are gone would stay otherwise.
rm -f "$root"/share/man/man1/nam.1 "$root"/share/man/man1/nam-*.1
install -m 644 "$pages"/*.1 "$root/share/man/man1/"
completion() {
  install -d "$(dirname "$root/$2")"
  "$nam" completion "$1" >"$root/$2"
}
completion bash share/bash-completion/completions/nam
completion zsh share/zsh/site-functions/_nam
completion fish share/fish/vendor_completions.d/nam.fish

echo "Installed $prefix/bin/nam, manual pages and completion${DESTDIR:+ below $DESTDIR}."
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) [[ -n "${DESTDIR:-}" ]] || echo "$prefix/bin is not in PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
