#include "base/process_limits.h"

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

absl::Status NoThreadsLeft() {
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
