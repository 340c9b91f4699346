#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "computeserver/batch.h"
#include "computeserver/vector_expression.h"

namespace nam::computeserver {

/// Numbers the groups of a GROUP BY in the order in which they come. One thread.
/// Keys that are columns are taken as codes; all keys together are one mixed-radix number where that fits
/// 64 bits: a small one is an index into an array, a larger one is hashed. What does not fit, and keys that
/// are text expressions, is hashed as the bytes of the partial result.
class GroupTable {
 public:
  GroupTable(const std::vector<plan::Expr>& keys, const ColumnSpace& space);

  /// groups[i] becomes the group of tuple i.
  absl::Status Assign(const Batch& batch, uint32_t* groups);
  uint32_t size() const { return size_; }
  /// The keys of a group in the stored form of a partial result.
  std::string Stored(uint32_t group) const;
  /// Takes over the groups of another thread's table for the same query: where each is in this one.
  std::vector<uint32_t> Adopt(const GroupTable& other);

 private:
  struct Key {
    Type type;
    bool column = false;
    plan::ColumnRef ref;
    std::unique_ptr<VectorExpression> expression;  // not a column
    uint64_t radix = 0;                            // number of different digits
    __int128 low = 0;                              // expressions: digit = value - low + 1, 0 is NULL
  };
  absl::Status Digits(const Batch& batch, const Key& key, uint64_t weight, bool first);
  absl::Status AssignStored(const Batch& batch, uint32_t* groups);
  uint32_t GroupOf(uint64_t number);
  uint32_t GroupOf(const std::string& stored);

  const ColumnSpace& space_;
  std::vector<Key> keys_;
  bool packed_ = false;
  uint32_t size_ = 0;
  std::vector<uint64_t> numbers_;  // packed: scratch, per tuple
  std::vector<uint32_t> direct_;   // packed and small: number → group + 1
  absl::flat_hash_map<uint64_t, uint32_t> hashed_;
  std::vector<uint64_t> number_of_;  // packed: group → number
  absl::flat_hash_map<std::string, uint32_t> by_bytes_;
  std::vector<std::string> bytes_of_;  // not packed: group → stored keys
};

}  // namespace nam::computeserver
