#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/aggregate/group_keys.h"
#include "plan/aggregate.h"
#include "plan/key_domain.h"

namespace nam::execution {

/// The input of an aggregation.
enum class AggregateInput : uint8_t {
  kRows,    // rows to aggregate
  kGroups,  // groups of other aggregations: chunks of AggregatePlan::partial_schema
};

/// An aggregation, prepared once for a stage; immutable, shared by its threads.
///
/// Groups travel in the partial schema, which plan::StatesOf describes. By parts, unaggregated rows travel
/// beside them: their keys, and each number or text once that an aggregate reads. Pages of both have one
/// size; their digests distinguish them. All of it follows from the plan alone, so it is the same on every
/// server.
class AggregatePlan {
 public:
  struct Options {
    std::span<const plan::Expr> group_by;
    std::span<const plan::Aggregate> aggregates;
    plan::Schema schema;                           // of the aggregated rows, also where groups come in
    std::span<const CodeMeaning* const> meanings;  // by slot, see GroupKeys::Make; kRows
    AggregateInput input = AggregateInput::kRows;
    uint32_t page_bytes = RowLayout::kMostPageBytes;
    uint32_t parts =
        0;  // above 0: groups travel in the layout of so many parts (execution/partition/parts.h)
    bool part_by_part = false;   // kGroups of parts: a set has groups of one part at a time (Groups::Range)
    MemoShare* memos = nullptr;  // the expressions' memos; see Program::Compile
  };
  static absl::StatusOr<std::unique_ptr<const AggregatePlan>> Make(const Options& options);

  struct Aggregate {
    plan::AggregateFunction function = plan::AggregateFunction::kCountRows;
    Type type;
    Type argument_type;
    Physical physical = Physical::kInt64;  // the argument's
    /// kRows: the program's output for the argument. kGroups: the first of the aggregate's slots.
    size_t argument = 0;
    size_t second = 0;  // kRows: the program's output for the second argument
    Type second_type;
    bool argument_nullable = true;
    std::optional<uint32_t> slot;  // the argument, if it is a plain slot
    /// The first of its slots in the partial schema, and their number.
    size_t partial_slot = 0;
    size_t partial_slots = 0;
    /// Distinct aggregates: pairs of group and value, see DistinctValues.
    std::unique_ptr<const GroupKeys> pairs;
    plan::Schema pair_schema;
    /// The same aggregate over the values of pairs. nullptr: they are counted.
    std::unique_ptr<const Aggregate> of_values;
  };

  AggregateInput input() const { return input_; }
  const GroupKeys& keys() const { return *keys_; }
  size_t size() const { return aggregates_.size(); }
  const Aggregate& aggregate(size_t i) const { return aggregates_[i]; }
  /// Computes the aggregates' arguments from the input.
  const Program& program() const { return *program_; }

  const plan::Schema& partial_schema() const { return partial_schema_; }
  const RowLayout& partial_layout() const { return partial_layout_; }
  /// Reads slot i of the partial schema from its chunks.
  const Program& partial_slots() const { return *partial_slots_; }
  /// The keys and the aggregates' values.
  const plan::Schema& final_schema() const { return final_schema_; }

  // For groups by parts:
  /// The domain of the only key, which gives the part; unknown: the keys' hash gives it.
  const plan::KeyDomain& domain() const { return domain_; }
  const RowLayout& row_layout() const { return *row_layout_; }
  /// kRows: computes field i of a written row from the input.
  const Program& row_program() const { return *row_program_; }
  /// kGroups: the same aggregates, of kRows, over written rows.
  const AggregatePlan* rows() const { return rows_.get(); }
  bool has_distinct() const { return has_distinct_; }
  /// True if only the pairs of distinct aggregates travel: the partial schema has one slot, a constant 0.
  bool only_pairs() const { return only_pairs_; }

 private:
  explicit AggregatePlan(RowLayout layout) : partial_layout_(std::move(layout)) {}
  absl::Status AddRows(const Options& options);

  AggregateInput input_ = AggregateInput::kRows;
  std::unique_ptr<const GroupKeys> keys_;
  std::vector<Aggregate> aggregates_;
  std::unique_ptr<const Program> program_;
  plan::Schema partial_schema_;
  RowLayout partial_layout_;
  std::unique_ptr<const Program> partial_slots_;
  plan::Schema final_schema_;
  plan::KeyDomain domain_;
  std::optional<RowLayout> row_layout_;
  std::unique_ptr<const Program> row_program_;
  std::unique_ptr<const AggregatePlan> rows_;
  bool has_distinct_ = false;
  bool only_pairs_ = false;
};

}  // namespace nam::execution
