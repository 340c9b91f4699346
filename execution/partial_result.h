#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/aggregate.h"
#include "types/value.h"

/// What a compute server leaves in registered memory for the coordinator to READ.
///
///     ├ magic u32 ┼ kind u32 ┼ count u64 ┼ entry 0 ┼ entry 1 ┼ … ┤        little-endian, no padding
///     rows:    an entry is the values of the output expressions
///     groups:  an entry is the values of the group keys, then per aggregate
///              count i64 │ number i128 │ for min, max: value │ for count distinct: n u64, n values
///     value:   u8 null │ number: i128, or text: u32 bytes, bytes
namespace nam::execution {

inline constexpr uint32_t kPartialMagic = 0x504d414e;  // "NAMP"
enum class PartialKind : uint32_t { kRows = 1, kGroups = 2 };

void PutU32(std::string& out, uint32_t n);
void PutU64(std::string& out, uint64_t n);
void PutNumber(std::string& out, __int128 n);
void PutValue(std::string& out, const Value& value);
void PutText(std::string& out, bool null, std::string_view text);
void PutNumberValue(std::string& out, bool null, __int128 number);

/// One aggregate of one group while partial results are merged.
struct Accumulated {
  int64_t count = 0;
  __int128 sum = 0;
  Value best;                                 // min, max
  absl::flat_hash_set<std::string> distinct;  // values as stored
};

/// A group of a merged result.
struct MergedGroup {
  std::vector<Value> keys;
  std::vector<Accumulated> aggregates;
};

/// Collects partial results. DATA_LOSS if bytes are not a partial result of this query.
class PartialMerger {
 public:
  PartialMerger(std::vector<Type> columns_or_keys, std::vector<plan::Aggregate> aggregates, PartialKind kind)
      : types_(std::move(columns_or_keys)), aggregates_(std::move(aggregates)), kind_(kind) {}
  /// CANCELLED soon after `cancel`, if there is one, is set; what has been merged is of no use then.
  absl::Status Add(std::span<const std::byte> bytes, const std::atomic<bool>* cancel = nullptr);

  /// With an order and a limit (-1: none) keeps the first rows alone, as PruneRows. RESOURCE_EXHAUSTED if
  /// what has been merged takes more than `bytes_max`.
  absl::Status Bound(const std::vector<plan::OrderKey>& order, int64_t limit, uint64_t bytes_max);

  std::vector<std::vector<Value>>& rows() { return rows_; }
  std::vector<MergedGroup>& groups() { return groups_; }
  /// The value of aggregate `i`. OUT_OF_RANGE if a sum has more than 38 digits.
  static absl::StatusOr<Value> Finish(const plan::Aggregate& aggregate, const Accumulated& accumulated);

 private:
  class Reader;
  absl::Status ReadGroup(Reader& reader);
  absl::Status ReadAggregate(Reader& reader, const plan::Aggregate& aggregate, Accumulated& into);

  const std::vector<Type> types_;
  const std::vector<plan::Aggregate> aggregates_;
  const PartialKind kind_;
  std::vector<std::vector<Value>> rows_;
  std::vector<MergedGroup> groups_;
  uint64_t bytes_ = 0;                                 // of rows_ and groups_, about
  absl::flat_hash_map<std::string, size_t> group_of_;  // by stored keys
};

}  // namespace nam::execution
