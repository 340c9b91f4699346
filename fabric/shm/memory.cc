#include "fabric/shm/memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "absl/strings/str_format.h"
#include "base/host_memory.h"
#include "base/status_macros.h"
#include "fabric/populate.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace nam::fabric::shm {
namespace {

constexpr size_t kBytesMax = size_t{1} << 46;  // the address space of a process
constexpr int kAlignmentsTried = 16;

std::string Mebibytes(size_t bytes) {
  return absl::StrFormat("%d MiB", (bytes + (1 << 20) - 1) >> 20);
}

absl::Status Exhausted(size_t bytes, const char* step) {
  const int error = errno;
  const char* hint = error == EMFILE || error == ENFILE ? "too many open files: raise `ulimit -n`"
                     : error == EFBIG                   ? "above the file size limit: raise `ulimit -f`"
                                      : "free memory, or lower the memory that this server offers";
  return absl::ResourceExhaustedError(absl::StrFormat("cannot get %s of shared memory (%s: %s); %s",
                                                      Mebibytes(bytes), step, std::strerror(error), hint));
}

/// memfds are not limited by the size of /dev/shm, and the kernel overcommits: refuse now rather than be
/// killed at a later page fault.
absl::Status CheckAvailable(size_t bytes) {
  if (bytes < kHugePageBytes) return absl::OkStatus();
  const MemoryLimit least = LeastAvailable(ReadMemoryLimits());
  if (bytes <= least.available_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "cannot get %s of shared memory: %s has %s left; free memory, raise the limit, or lower the "
      "memory that this server offers",
      Mebibytes(bytes), least.name, Mebibytes(least.available_bytes)));
}

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Maps [begin, begin + bytes) of a file so that huge pages of the file align with those of the address
/// space. Returns MAP_FAILED and sets errno on failure. Never replaces a mapping, not even a reserved one: a
/// failing mmap may already have removed its target, and another thread's memory may lie there by the time
/// the rest is unmapped.
void* MapAligned(int fd, size_t begin, size_t bytes, int protection) {
  const auto at = static_cast<off_t>(begin);
  if (bytes < kHugePageBytes) return mmap(nullptr, bytes, protection, MAP_SHARED, fd, at);
  const size_t room = bytes + 2 * kHugePageBytes;
  for (int attempt = 0; attempt < kAlignmentsTried; ++attempt) {
    void* const free = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (free == MAP_FAILED) return MAP_FAILED;
    munmap(free, room);
    const size_t past = reinterpret_cast<uintptr_t>(free) % kHugePageBytes;
    std::byte* const wanted = static_cast<std::byte*>(free) + kHugePageBytes - past + begin % kHugePageBytes;
    void* const data = mmap(wanted, bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, at);
    if (data != MAP_FAILED || errno != EEXIST) return data;
  }
  return mmap(nullptr, bytes, protection, MAP_SHARED, fd, at);  // another thread took the range every time
}

absl::StatusOr<SharedMemory> TryCreate(const char* name, size_t bytes, PeerAccess peers, unsigned flags) {
  SharedMemory memory{UniqueFd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags)), {}};
  const int fd = memory.descriptor.get();
  if (fd < 0) return Exhausted(bytes, "memfd_create");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return Exhausted(bytes, "ftruncate");
  void* data = MapAligned(fd, 0, bytes, PROT_READ | PROT_WRITE);
  if (data == MAP_FAILED) return Exhausted(bytes, "mmap");
  memory.mapping = Mapping(static_cast<std::byte*>(data), bytes);
  // FUTURE_WRITE keeps the owner's mapping writable, but prevents new writable mappings.
  const int writes = peers == PeerAccess::kReadOnly ? F_SEAL_FUTURE_WRITE : 0;
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | writes) != 0) {
    return absl::InternalError(absl::StrFormat("cannot seal shared memory: %s (Linux 5.1 or newer is needed)",
                                               std::strerror(errno)));
  }
  return memory;
}

}  // namespace

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

absl::StatusOr<SharedMemory> CreateShared(const char* name, size_t bytes, PeerAccess peers, bool huge_pages) {
  if (bytes == 0) return absl::InvalidArgumentError("a region needs at least one byte");
  if (bytes > kBytesMax) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot get %s of shared memory: more than a process can address", Mebibytes(bytes)));
  }
  NAM_RETURN_IF_ERROR(CheckAvailable(bytes));
  if (huge_pages && bytes >= kHugePageBytes) {
    auto memory = TryCreate(name, RoundUp(bytes, kHugePageBytes), peers, MFD_HUGETLB | MFD_HUGE_2MB);
    if (memory.ok()) return memory;
  }
  NAM_ASSIGN_OR_RETURN(SharedMemory memory,
                       TryCreate(name, RoundUp(bytes, static_cast<size_t>(sysconf(_SC_PAGESIZE))), peers, 0));
  if (huge_pages && bytes >= kHugePageBytes && !PopulateHuge(memory.mapping.data(), memory.mapping.bytes())) {
    static std::once_flag told;
    std::call_once(told, [] {
      std::fprintf(stderr, "nam: no huge pages, using 4 KiB pages (sysctl vm.nr_hugepages reserves some)\n");
    });
  }
  return memory;
}

absl::Status Populate(const Mapping& mapping) {
  errno = fabric::Populate(mapping.data(), mapping.bytes());
  return errno == 0 ? absl::OkStatus() : Exhausted(mapping.bytes(), "populate");
}

absl::StatusOr<UniqueFd> DescriptorForPeer(int memfd, PeerAccess access) {
  UniqueFd fd;
  if (access == PeerAccess::kReadOnly) {
    fd.reset(open(absl::StrFormat("/proc/self/fd/%d", memfd).c_str(), O_RDONLY | O_CLOEXEC));
  }
  // Without /proc the seal alone keeps the pages read-only.
  if (!fd.valid()) fd.reset(fcntl(memfd, F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot duplicate a descriptor: %s", std::strerror(errno)));
  }
  return fd;
}

absl::StatusOr<Mapping> MapFromPeer(int memfd, size_t bytes, PeerAccess access) {
  struct stat status;
  const int seals = fcntl(memfd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(memfd, &status) != 0 || bytes == 0 ||
      bytes > static_cast<size_t>(status.st_size)) {
    return absl::InvalidArgumentError("the peer handed out memory that is not sealed, or too short");
  }
  // st_blksize is the huge page size if it has any: a mapping ends at the end of such a page.
  const size_t page_bytes =
      std::max(static_cast<size_t>(status.st_blksize), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  const size_t end = std::min(RoundUp(bytes, page_bytes), static_cast<size_t>(status.st_size));
  const int protection = access == PeerAccess::kReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  void* data = MapAligned(memfd, 0, end, protection);
  if (data == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot map %s of a peer: %s", Mebibytes(bytes), std::strerror(errno)));
  }
  return Mapping(static_cast<std::byte*>(data), end);
}

}  // namespace nam::fabric::shm
