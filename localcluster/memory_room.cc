#include "localcluster/memory_room.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "terminal/units.h"

namespace nam {
namespace {

constexpr uint64_t kDefaultMax = uint64_t{4} << 30;
constexpr uint64_t kUnknownHost = uint64_t{6} << 30;
/// ComputeServerOptions::first_memory_bytes: with less, even queries that move little data fail.
constexpr uint64_t kComputeMin = uint64_t{16} << 20;
/// storage::ScratchSpace::kFirstSlabBytes: a query's first request to a memory server.
constexpr uint64_t kScratchMin = uint64_t{256} << 10;

uint64_t HostBytes(const std::vector<MemoryLimit>& limits) {
  return limits.empty() ? kUnknownHost : TightestLimit(limits).limit_bytes;
}

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

absl::Status CheckComputeMemory(uint64_t memory_bytes, const std::vector<MemoryLimit>& limits) {
  if (memory_bytes < kComputeMin) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--memory=%s: a query on a compute server begins with %s; choose at least --memory=%dMiB",
        FormatBytes(memory_bytes), FormatBytes(kComputeMin), kComputeMin >> 20));
  }
  return CheckMemoryRoom(memory_bytes, 1, limits);
}

absl::Status CheckScratch(uint64_t memory_bytes, std::optional<uint64_t> scratch_bytes) {
  const uint64_t bytes = scratch_bytes.value_or(0);
  if (bytes == 0) return absl::OkStatus();
  if (bytes < kScratchMin) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--scratch=%s: queries ask for %s of scratch memory at a time; choose at least --scratch=%dKiB, or "
        "--scratch=0 for none",
        FormatBytes(bytes), FormatBytes(kScratchMin), kScratchMin >> 10));
  }
  if (bytes < memory_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--scratch=%s: it is part of --memory=%s, and leaves nothing for tables; choose less",
                      FormatBytes(bytes), FormatBytes(memory_bytes)));
}

uint64_t DefaultComputeMemory(int servers, const std::vector<MemoryLimit>& limits) {
  return std::max(kComputeMin, HostBytes(limits) / 2 / static_cast<uint64_t>(std::max(servers, 1)));
}

uint64_t DefaultMemory(int servers, const std::vector<MemoryLimit>& limits) {
  const uint64_t each = HostBytes(limits) / 3 / static_cast<uint64_t>(std::max(servers, 1));
  return std::clamp(each / kServerRegionBytes * kServerRegionBytes, kServerRegionBytes, kDefaultMax);
}

}  // namespace nam
