#include "base/process_limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/exhausted.h"

namespace nam {
namespace {

constexpr char kProcess[] = "process";

std::optional<uint64_t> LimitOf(__rlimit_resource resource) {
  struct rlimit limit;
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

size_t StackBytes() {
  pthread_attr_t attributes;
  size_t bytes = size_t{8} << 20;
  if (pthread_attr_init(&attributes) != 0) return bytes;  // no memory, which CheckRoomFor finds
  pthread_attr_getstacksize(&attributes, &bytes);
  pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace

absl::Status NoAddressesLeft(absl::string_view what) {
  const std::optional<uint64_t> addresses = LimitOf(RLIMIT_AS);
  const std::string limit =
      addresses.has_value()
          ? absl::StrCat("its address space is limited to ", *addresses >> 10, " KiB; raise `ulimit -v`")
          : std::string(
                "the host has none (vm.overcommit_memory), or the process has as "
                "many mappings as it may (vm.max_map_count)");
  return Exhausted(kProcess, absl::StrCat("this process gets no memory for ", what, ": ", limit));
}

absl::Status CheckRoomFor(absl::string_view what, size_t bytes) {
  void* const room = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return NoAddressesLeft(what);
  munmap(room, bytes);
  return absl::OkStatus();
}

absl::Status NoThreadsLeft() {
  // The system gives one error for both limits.
  if (const absl::Status room = CheckRoomFor("the stack of a thread", StackBytes()); !room.ok()) return room;
  const std::optional<uint64_t> threads = LimitOf(RLIMIT_NPROC), addresses = LimitOf(RLIMIT_AS);
  std::string limits = threads.has_value() ? absl::StrCat("`ulimit -u` (", *threads, ")") : "`ulimit -u`";
  absl::StrAppend(&limits, ", pids.max of its control group");
  if (addresses.has_value()) absl::StrAppend(&limits, ", or `ulimit -v` (", *addresses >> 10, " KiB)");
  return Exhausted(kProcess, absl::StrCat("the system gives this process no more threads; raise ", limits));
}

bool IsProcessLimit(const absl::Status& status) {
  return status.GetPayload(kExhaustedPayload) == kProcess;
}

}  // namespace nam
