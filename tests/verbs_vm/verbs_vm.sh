#!/usr/bin/env bash
# The verbs fabric on a real provider, without a NIC: boots Debian's stock kernel in QEMU (software emulation, no
# privileges needed), gives it one Soft-RoCE device for each simulated host, and runs suite.sh in it, once plain
# and once with a lossy network and jumbo frames. docs/testing.md describes it.
#
#   verbs_vm.sh NAM NAM_BENCH CONFORMANCE_TEST [plain|lossy]...
#
# The last line counts cases. Kept from run to run, in $XDG_CACHE_HOME/nam/verbs-vm (~/.cache): the kernel package
# unpacked, and the part of the initial file system that does not change.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nam=$(realpath "$1")
nam_bench=$(realpath "$2")
conformance=$(realpath "$3")
shift 3
(($#)) || set -- plain lossy

cache="${XDG_CACHE_HOME:-$HOME/.cache}/nam/verbs-vm"
hosts=4
processors=${NAM_VM_PROCESSORS:-2}
memory_mb=${NAM_VM_MEMORY_MB:-2048}
limit_s=${NAM_VM_LIMIT_S:-2400}
parts=${NAM_VM_PARTS:-conformance,benchmark,ssb,checkout}
cases=${NAM_VM_CASES:-*}  # of the conformance suite
# What is loaded in the guest; sch_netem loses packets.
modules=(crc32_generic rdma_rxe ib_uverbs veth bridge sch_netem)
programs=(busybox ip tc rdma ibv_devinfo ib_read_bw ib_write_bw ib_atomic_lat)

die() {
  echo "verbs_vm: $*" >&2
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

program() {
  PATH="$PATH:/usr/sbin:/sbin" command -v "$1" || die "there is no $1: see the packages that ./run installs"
}

# copy_with_libraries ROOT FILE DESTINATION: with the shared libraries that it needs, where it looks for them.
copy_with_libraries() {
  local root="$1" file="$2" destination="$3" library
  install -D -m755 "$file" "$root$destination"
  while read -r library; do
    [[ -e "$root$library" ]] || install -D -m755 "$library" "$root$library"
  done < <(ldd "$file" 2>/dev/null | awk '/=> \//{print $3} $1 ~ /^\//{print $1}')
}

archive() {
  (cd "$1" && find . | "$(program busybox)" cpio -o -H newc 2>/dev/null) >"$2.new"
  mv "$2.new" "$2"
}

# The kernel: downloaded and unpacked, not installed, and uncompressed here, where that takes no time.
fetch_kernel() {
  local package
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends:/{print $2; exit}')
  [[ -n "$package" ]] || die "apt knows no kernel: apt-get update"
  release=${package#linux-image-}
  kernel="$cache/vmlinux-$release"
  [[ -e "$kernel" ]] && return
  echo "verbs_vm: fetching $package" >&2
  mkdir -p "$cache/debs" "$cache/root-$release"
  (cd "$cache/debs" && { ls "${package}"_*.deb >/dev/null 2>&1 || apt-get -q download "$package" >&2; }) ||
    die "could not download $package"
  dpkg-deb --fsys-tarfile "$cache/debs/${package}"_*.deb |
    tar -x -C "$cache/root-$release" --wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' \
      './lib/modules/*/kernel/'{drivers/infiniband,drivers/net,net,crypto,lib,arch}'/*'
  "$(program depmod)" -b "$cache/root-$release" "$release"
  python3 - "$cache/root-$release/boot/vmlinuz-$release" "$kernel.new" <<'PY'
import lzma, sys
image = open(sys.argv[1], "rb").read()
start = image.find(b"\xfd7zXZ\0")
assert start > 0, "the kernel is not compressed by xz"
with open(sys.argv[2], "wb") as out:
    out.write(lzma.LZMADecompressor().decompress(image[start:]))
PY
  mv "$kernel.new" "$kernel"
  rm -rf "$cache/debs"
}

# Everything but what is tested.
make_base() {
  base="$cache/base-$release.cpio"
  [[ -e "$base" && "$base" -nt "$here/init" && "$base" -nt "$here/verbs_vm.sh" ]] && return
  echo "verbs_vm: packing the guest" >&2
  local root="$cache/base" name path module
  rm -rf "$root"
  mkdir -p "$root"/{bin,usr/bin,modules,proc,sys,dev,tmp,run,etc/libibverbs.d,var}
  install -m755 "$here/init" "$root/init"
  for name in "${programs[@]}"; do
    path=$(program "$name")
    copy_with_libraries "$root" "$(realpath "$path")" "/usr/bin/$name"
  done
  # The provider of Soft-RoCE is loaded by name at run time.
  install -m644 /etc/libibverbs.d/rxe.driver "$root/etc/libibverbs.d/"
  for path in /usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so; do copy_with_libraries "$root" "$path" "$path"; done
  for module in "${modules[@]}"; do
    "$(program modprobe)" -d "$cache/root-$release" -S "$release" --show-depends "$module" ||
      die "the kernel has no module $module"
  done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' | while read -r path; do
    install -m644 "$path" "$root/modules/"
    basename "$path"
  done >"$cache/order"
  mv "$cache/order" "$root/modules/order"
  echo 'root:x:0:0::/tmp:/bin/sh' >"$root/etc/passwd"
  echo '127.0.0.1 localhost' >"$root/etc/hosts"
  archive "$root" "$base"
}

# What is tested, with what it links to.
make_payload() {
  payload="$cache/payload.cpio"
  [[ -e "$payload" && "$payload" -nt "$nam" && "$payload" -nt "$nam_bench" && "$payload" -nt "$conformance" &&
    "$payload" -nt "$here/suite.sh" ]] && return
  local root="$cache/payload" name
  rm -rf "$root"
  mkdir -p "$root"
  copy_with_libraries "$root" "$nam" /nam/nam
  copy_with_libraries "$root" "$nam_bench" /nam/nam-bench
  copy_with_libraries "$root" "$conformance" /nam/verbs_conformance_test
  for name in nam nam-bench verbs_conformance_test; do strip "$root/nam/$name"; done
  install -m755 "$here/suite.sh" "$root/nam/suite.sh"
  archive "$root" "$payload"
}

# boot NAME MTU LOSS: the guest's exit code comes back through isa-debug-exit; 200 if it did not report.
boot() {
  local log="$cache/$1.log" code=0
  # Without erms the kernel copies by words: emulated, a byte-wise copy would tear them.
  timeout --kill-after=10 "$limit_s" qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none \
    -M q35 -accel tcg,thread=multi,tb-size=512 -cpu max,la57=off,erms=off,fsrm=off -smp "$processors" -m "$memory_mb" \
    -kernel "$kernel" -initrd "$cache/initrd" -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=0x04 \
    -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on vm.hosts=$hosts vm.mtu=$2 vm.loss=$3 vm.suite=$1 vm.parts=$parts vm.cases=$cases" \
    </dev/null >"$log" 2>&1 || code=$?
  if ((code >= 33 && code < 124)); then
    code=$(((code - 33) / 2))
  else
    echo "verbs_vm: the guest did not report (QEMU's exit code is $code); its console is $log" >&2
    code=200
  fi
  return "$code"
}

fetch_kernel
make_base
make_payload
cat "$base" "$payload" >"$cache/initrd"
passed=0 failed=0 skipped=0
for name in "$@"; do
  case "$name" in
    plain) mtu=1500 loss=0 ;;
    lossy) mtu=9000 loss=1 ;;
    *) die "no run is called $name: plain or lossy" ;;
  esac
  echo "verbs_vm: $name (MTU $mtu, $loss % of the packets lost)" >&2
  code=0
  boot "$name" "$mtu" "$loss" || code=$?
  grep -av '^@@COUNT' "$cache/$name.log" | sed "s/^/$name: /"
  while read -r _ p f s; do
    ((passed += p, failed += f, skipped += s)) || true
  done < <(tr -d '\r' <"$cache/$name.log" | grep -a '^@@COUNT')
  # A guest that died, or failed by more than it counted.
  if ((code != 0 && failed == 0)); then ((failed += 1)); fi
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
