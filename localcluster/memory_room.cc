#include "localcluster/memory_room.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "terminal/units.h"

namespace nam {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{64} << 20;  // of a memory server
constexpr uint64_t kDefaultMax = uint64_t{4} << 30;
constexpr uint64_t kUnknownHost = uint64_t{6} << 30;

}  // namespace

absl::Status CheckMemoryRoom(uint64_t memory_bytes, int servers, const std::vector<MemoryLimit>& limits) {
  const MemoryLimit tightest = TightestLimit(limits);
  const uint64_t count = static_cast<uint64_t>(std::max(servers, 1));
  if (memory_bytes <= tightest.limit_bytes / count) return absl::OkStatus();
  const std::string wanted = servers > 1 ? absl::StrFormat("%d memory servers of --memory=%s each", servers,
                                                           FormatBytes(memory_bytes))
                                         : absl::StrCat("--memory=", FormatBytes(memory_bytes));
  return absl::InvalidArgumentError(absl::StrFormat("%s: %s has %s; choose at most --memory=%dMiB", wanted,
                                                    tightest.name, FormatBytes(tightest.limit_bytes),
                                                    tightest.limit_bytes / count >> 20));
}

uint64_t DefaultMemory(int servers, const std::vector<MemoryLimit>& limits) {
  const uint64_t host = limits.empty() ? kUnknownHost : TightestLimit(limits).limit_bytes;
  const uint64_t each = host / 3 / static_cast<uint64_t>(std::max(servers, 1));
  return std::clamp(each / kRegionBytes * kRegionBytes, kRegionBytes, kDefaultMax);
}

}  // namespace nam
