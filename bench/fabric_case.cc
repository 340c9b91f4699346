#include "bench/fabric_case.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "fabric/fabric.h"
#include "terminal/units.h"

namespace nam::bench {
namespace {

absl::Status CheckRange(const char* option, const std::vector<uint32_t>& values, uint32_t max) {
  if (values.empty()) return absl::InvalidArgumentError(absl::StrFormat("%s has no value", option));
  for (const uint32_t value : values) {
    if (value < 1 || value > max)
      return absl::InvalidArgumentError(absl::StrFormat("%s is 1 to %d, not %d", option, max, value));
  }
  return absl::OkStatus();
}

template <typename T>
std::vector<T> SortedUnique(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

const char* Name(Operation operation) {
  switch (operation) {
    case Operation::kRead:
      return "read";
    case Operation::kWrite:
      return "write";
    case Operation::kCompareAndSwap:
      return "cas";
    case Operation::kFetchAdd:
      return "faa";
    case Operation::kSend:
      return "send";
    case Operation::kMulticast:
      return "multicast";
  }
  return "unknown";
}

absl::StatusOr<Operation> ParseOperation(std::string_view name) {
  for (const Operation operation : kOperations) {
    if (name == Name(operation)) return operation;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "there is no operation \"%s\"; there are read, write, cas, faa, send and multicast", name));
}

uint32_t BytesMax(Operation operation) {
  switch (operation) {
    case Operation::kRead:
    case Operation::kWrite:
      return kBytesMax;
    case Operation::kCompareAndSwap:
    case Operation::kFetchAdd:
      return sizeof(uint64_t);
    case Operation::kSend:
      return fabric::kMaxSendBytes;
    case Operation::kMulticast:
      return fabric::kMaxDatagramBytes;
  }
  return 0;
}

absl::StatusOr<FabricGrid> ParseGrid(const std::vector<std::string>& operations,
                                     const std::vector<std::string>& sizes,
                                     const std::vector<uint32_t>& in_flight,
                                     const std::vector<uint32_t>& threads) {
  FabricGrid grid{.in_flight = in_flight, .threads = threads};
  for (const std::string& name : operations) {
    NAM_ASSIGN_OR_RETURN(const Operation operation, ParseOperation(name));
    grid.operations.push_back(operation);
  }
  for (const std::string& text : sizes) {
    NAM_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(text));
    if (bytes < kBytesMin || bytes > kBytesMax || bytes % kBytesMin != 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--sizes is 8 B to 1 MiB in steps of 8 B, not \"%s\"", text));
    }
    grid.sizes.push_back(static_cast<uint32_t>(bytes));
  }
  if (grid.operations.empty()) return absl::InvalidArgumentError("--operations has no value");
  if (grid.sizes.empty()) return absl::InvalidArgumentError("--sizes has no value");
  NAM_RETURN_IF_ERROR(CheckRange("--in-flight", grid.in_flight, kInFlightMax));
  NAM_RETURN_IF_ERROR(CheckRange("--threads", grid.threads, kBenchThreadsMax));
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
      if (operation == Operation::kMulticast && threads > 1) continue;  // a group has one sender
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
