#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

/// The cases of `nam bench fabric`: operations by size, operations in flight, and threads.
namespace nam::bench {

enum class Operation : uint8_t { kRead, kWrite, kCompareAndSwap, kFetchAdd, kSend };
inline constexpr std::array kOperations = {Operation::kRead, Operation::kWrite, Operation::kCompareAndSwap,
                                           Operation::kFetchAdd, Operation::kSend};
/// `read`, `write`, `cas`, `faa`, `send`.
const char* Name(Operation operation);
/// The one of that name, which must be one of them.
Operation OperationOf(std::string_view name);
/// The longest message of the operation.
uint32_t BytesMax(Operation operation);
constexpr bool IsAtomic(Operation operation) {
  return operation == Operation::kCompareAndSwap || operation == Operation::kFetchAdd;
}

inline constexpr uint32_t kInFlightMax = 64;
inline constexpr uint32_t kBenchThreadsMax = 64;
inline constexpr uint32_t kBytesMin = 8;
inline constexpr uint32_t kBytesMax = 1u << 20;

/// One row of the report.
struct FabricCase {
  Operation operation = Operation::kRead;
  uint32_t bytes = 0;
  uint32_t in_flight = 1;  // per thread
  uint32_t threads = 1;
  bool operator==(const FabricCase&) const = default;
};

/// Cases with one operation, size and number of threads, which take turns for comparison.
using FabricCaseGroup = std::vector<FabricCase>;

struct FabricGrid {
  std::vector<Operation> operations;
  std::vector<uint32_t> sizes;  // atomics always have 8 bytes
  std::vector<uint32_t> in_flight;
  std::vector<uint32_t> threads;
};
/// INVALID_ARGUMENT if a number is out of range.
absl::StatusOr<FabricGrid> ParseGrid(const std::vector<std::string>& operations,
                                     const std::vector<std::string>& sizes,
                                     const std::vector<uint32_t>& in_flight,
                                     const std::vector<uint32_t>& threads);
/// Omits sizes that an operation does not support.
std::vector<FabricCaseGroup> Groups(const FabricGrid& grid);

}  // namespace nam::bench
