#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "execution/aggregate/aggregate_plan.h"
#include "execution/aggregate/group_sums.h"
#include "execution/aggregate/moments.h"
#include "execution/aggregate/real_moments.h"
#include "execution/budget_array.h"

namespace nam::execution {

/// Keeps texts for groups and replaces them by better ones. The space of a replaced text serves the next text
/// of the same group, so less space is idle than used.
class KeptTexts {
 public:
  struct Text {
    char* text;
    uint32_t bytes;
    uint32_t capacity;
  };
  explicit KeptTexts(MemoryBudget& budget) : budget_(budget) {}
  absl::Status Keep(std::string_view text, Text& in);
  /// Forgets all texts. No pointer to them is left.
  void Clear() {
    blocks_.clear();
    used_ = 0;
    bytes_ = 0;
  }
  /// The memory held.
  uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kBlockBytes = 16 << 10;

  MemoryBudget& budget_;
  std::vector<BudgetArray<char>> blocks_;
  uint64_t used_ = 0;   // in the last block
  uint64_t bytes_ = 0;  // all blocks
};

/// One aggregate over all groups of one thread, by columns. Empty for distinct aggregates: see
/// DistinctValues.
class AggregateState {
 public:
  AggregateState(const AggregatePlan::Aggregate& aggregate, MemoryBudget& budget);

  /// The memory of texts.
  uint64_t text_bytes() const { return kept_.bytes(); }
  /// Gives every group below `groups` a state.
  absl::Status Grow(uint32_t groups);

  /// Resets the first `groups` to empty states. Keeps the memory.
  void Reset(uint32_t groups);

  /// Takes in the selected tuples: the i-th belongs to groups[i]. `single`: all are of group 0. `of` names
  /// the argument, for AggregateInput::kRows.
  absl::Status Consume(const AggregatePlan::Aggregate& of, const Program& program, Frame& frame,
                       const Chunk& chunk, const uint32_t* groups, bool single);
  /// The same for tuples of the partial schema. DATA_LOSS for impossible counts.
  absl::Status ConsumeGroups(const Program& program, Frame& frame, const Chunk& chunk,
                             const uint32_t* groups);
  /// Merges the groups theirs[i] of another state into groups mine[i].
  absl::Status Merge(const AggregateState& other, std::span<const uint32_t> theirs, const uint32_t* mine);

  /// Memory for what a state's arrays do not hold as columns.
  struct Memory {
    std::unique_ptr<uint8_t[]> nulls;
    std::unique_ptr<std::byte[]> values;
  };
  /// Reads the states of the groups first, first + 1, …, `count` of them, as slots of the partial schema.
  void ReadPartial(uint32_t first, uint32_t count, Memory& memory, Column* columns) const;
  /// Reads the aggregate's values. OUT_OF_RANGE if a sum has more than 38 digits.
  absl::Status ReadFinal(uint32_t first, uint32_t count, Memory& memory, Column& column) const;

 private:
  absl::Status Sum(const Vector& values, Selection rows, const uint32_t* groups);
  template <typename Body>
  void WithSeen(Body&& body);
  /// False: the column's values must be loaded first.
  absl::StatusOr<bool> SumColumn(const Column& column, bool nullable, Selection rows, const uint32_t* groups,
                                 bool single);
  absl::Status SumCodes(const Column& column, bool nullable, Selection rows, const uint32_t* groups);
  absl::Status SumFields(const Column& column, Selection rows, const uint32_t* groups);
  absl::StatusOr<bool> SumStored(const Column& column, bool nullable, Selection rows);
  absl::Status SumSingle(const Vector& values, Selection rows);
  absl::Status AccumulateMoments(const Vector& values, const AggregatePlan::Aggregate& of,
                                 const Program& program, Frame& frame, const Chunk& chunk,
                                 const uint32_t* groups);
  absl::Status AccumulateWords(const Program& program, Frame& frame, const Chunk& chunk,
                               const uint32_t* groups);
  void Bits(const Vector& values, Selection rows, const uint32_t* groups);
  void AddBits(uint32_t group, int64_t bits);
  void Count(const Vector& values, Selection rows, const uint32_t* groups);
  absl::Status Best(const Vector& values, Selection rows, const uint32_t* groups);
  template <typename T, typename Kept>
  void BestNumber(const T* values, const Vector& vector, Selection rows, const uint32_t* groups, Kept* best);
  absl::Status BestText(const Vector& values, Selection rows, const uint32_t* groups);
  absl::Status KeepText(uint32_t group, std::string_view text);
  absl::Status AddCount(uint32_t group, int64_t count);
  absl::Status AddSum(uint32_t group, __int128 sum);
  __int128 SumOf(uint32_t group) const { return real() ? real_sums_[group] : sums_.of(group); }
  bool counts() const;
  bool sums() const;
  /// Whether it aggregates floating point: RealSum, RealMoments.
  bool real() const { return aggregate_.argument_type.real(); }
  bool best() const;
  bool least() const;
  bool bits() const;
  bool moments() const;
  /// A distinct aggregate: DistinctValues holds its values.
  bool idle() const { return aggregate_.pairs != nullptr; }
  void ReadNulls(uint32_t first, uint32_t count, Memory& memory, Column& column) const;
  void ReadBest(uint32_t first, uint32_t count, Memory& memory, Column& column) const;
  void ReadMoments(uint32_t first, uint32_t count, Memory& memory, Column* columns) const;
  absl::Status ReadNumerics(uint32_t first, uint32_t count, Memory& memory, Column& column) const;
  void ReadRealResults(uint32_t first, uint32_t count, Memory& memory, Column& column) const;
  absl::Status ReadReals(uint32_t first, uint32_t count, Memory& memory, Column& column) const;
  absl::Status ReadSums(uint32_t first, uint32_t count, Memory& memory, Column& column) const;

  const AggregatePlan::Aggregate& aggregate_;
  // By group; only those that the function needs.
  BudgetArray<int64_t> counts_;
  GroupSums sums_;                   // integers
  BudgetArray<__int128> real_sums_;  // RealSum
  BudgetArray<uint8_t> seen_;        // whether a value that is not NULL has come
  BudgetArray<int64_t> narrow_;
  BudgetArray<__int128> wide_;
  BudgetArray<Moments> moments_;
  BudgetArray<RealMoments> real_moments_;
  BudgetArray<KeptTexts::Text> texts_;
  KeptTexts kept_;
};

/// The error 22003 for floating point.
absl::Status RealOutOfRange();

/// A sum of floating point with its rounding error, so that the order of additions hardly matters. In states
/// the two are the halves of a 128-bit number.
struct RealSum {
  double sum = 0, lost = 0;

  /// OUT_OF_RANGE if finite numbers have an infinite sum.
  absl::Status Add(double x);
  double total() const { return sum + lost; }
  __int128 Packed() const;
  static RealSum Unpacked(__int128 packed);
};

/// sum / count as a numeric's word. `count` is above 0; `scale` is the sum's.
absl::StatusOr<__int128> AverageOf(__int128 sum, int64_t count, int scale);

}  // namespace nam::execution
