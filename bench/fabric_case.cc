#include "bench/fabric_case.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "fabric/fabric.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

/// By number of the operation.
struct OperationLimits {
  const char* name;
  uint32_t bytes_max;
};
constexpr std::array kLimits = {OperationLimits{"read", kBytesMax}, OperationLimits{"write", kBytesMax},
                                OperationLimits{"cas", sizeof(uint64_t)},
                                OperationLimits{"faa", sizeof(uint64_t)},
                                OperationLimits{"send", fabric::kMaxSendBytes}};

template <typename T>
std::vector<T> SortedUnique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

const char* Name(Operation operation) {
  return kLimits[static_cast<size_t>(operation)].name;
}

Operation OperationOf(std::string_view name) {
  const auto found = std::find_if(kOperations.begin(), kOperations.end(),
                                  [&](Operation operation) { return name == Name(operation); });
  NAM_CHECK(found != kOperations.end());
  return *found;
}

uint32_t BytesMax(Operation operation) {
  return kLimits[static_cast<size_t>(operation)].bytes_max;
}

absl::StatusOr<FabricGrid> ParseGrid(const std::vector<std::string>& operations,
                                     const std::vector<std::string>& sizes,
                                     const std::vector<uint32_t>& in_flight,
                                     const std::vector<uint32_t>& threads) {
  FabricGrid grid{.in_flight = in_flight, .threads = threads};
  for (const std::string& name : operations) grid.operations.push_back(OperationOf(name));
  for (const std::string& text : sizes) {
    NAM_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
    if (bytes < kBytesMin || bytes > kBytesMax || bytes % kBytesMin != 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--sizes is 8 B to 1 MiB in steps of 8 B, not \"%s\"", text));
    }
    grid.sizes.push_back(static_cast<uint32_t>(bytes));
  }
  grid.operations = SortedUnique(grid.operations);
  grid.sizes = SortedUnique(grid.sizes);
  grid.in_flight = SortedUnique(grid.in_flight);
  grid.threads = SortedUnique(grid.threads);
  return grid;
}

std::vector<FabricCaseGroup> Groups(const FabricGrid& grid) {
  std::vector<FabricCaseGroup> groups;
  for (const Operation operation : grid.operations) {
    const std::vector<uint32_t> sizes = IsAtomic(operation) ? std::vector<uint32_t>{8} : grid.sizes;
    for (const uint32_t threads : grid.threads) {
      for (const uint32_t bytes : sizes) {
        if (bytes > BytesMax(operation)) continue;
        FabricCaseGroup& group = groups.emplace_back();
        for (const uint32_t in_flight : grid.in_flight)
          group.push_back(
              {.operation = operation, .bytes = bytes, .in_flight = in_flight, .threads = threads});
      }
    }
  }
  return groups;
}

}  // namespace nam::bench
