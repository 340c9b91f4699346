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

/// What an aggregation is fed with.
enum class AggregateInput : uint8_t {
  kRows,    // rows that are to be aggregated
  kGroups,  // groups of other aggregations: chunks of AggregatePlan::partial_schema
};

/// An aggregation, prepared once for a stage; immutable, shared by its threads.
///
/// Groups travel in the partial schema, which plan::StatesOf describes. By parts, rows travel beside them
/// that no table has made fewer: their keys, and each number or text once that an aggregate looks at. Pages
/// of both have one size and are told apart by their digest. All of it follows from the plan alone, so it is
/// the same on every server.
class AggregatePlan {
 public:
  struct Options {
    std::span<const plan::Expr> group_by;
    std::span<const plan::Aggregate> aggregates;
    plan::Schema schema;  // of the rows that are aggregated, also where groups come in
    std::span<const CodeMeaning* const> meanings;  // by slot, see GroupKeys::Make; kRows
    AggregateInput input = AggregateInput::kRows;
    uint32_t page_bytes = RowLayout::kMostPageBytes;
    uint32_t parts =
        0;  // above 0: groups travel in the layout of so many parts (execution/partition/parts.h)
    bool part_by_part = false;   // kGroups of parts: a set has groups of one part at a time (Groups::Range)
    MemoShare* memos = nullptr;  // of the expressions; see Program::Compile
  };
  static absl::StatusOr<std::unique_ptr<const AggregatePlan>> Make(const Options& options);

  struct Aggregate {
    plan::AggregateFunction function = plan::AggregateFunction::kCountRows;
    Type type;
    Type argument_type;
    Physical physical = Physical::kInt64;  // of the argument
    /// Input::kRows: the program's output that is the argument. kGroups: its first of the aggregate's slots.
    size_t argument = 0;
    size_t second = 0;  // kRows: the program's output that is the second one
    Type second_type;
    bool argument_nullable = true;
    std::optional<uint32_t> slot;  // the argument, if it is a slot as it is
    /// Of the first of its slots in the partial schema, and how many.
    size_t partial_slot = 0;
    size_t partial_slots = 0;
    /// Distinct ones: pairs of group and value, see DistinctValues.
    std::unique_ptr<const GroupKeys> pairs;
    plan::Schema pair_schema;
    /// The same aggregate over the values of pairs. nullptr: they are counted.
    std::unique_ptr<const Aggregate> of_values;
  };

  AggregateInput input() const { return input_; }
  const GroupKeys& keys() const { return *keys_; }
  size_t size() const { return aggregates_.size(); }
  const Aggregate& aggregate(size_t i) const { return aggregates_[i]; }
  /// What the input yields the aggregates by.
  const Program& program() const { return *program_; }

  const plan::Schema& partial_schema() const { return partial_schema_; }
  const RowLayout& partial_layout() const { return partial_layout_; }
  /// Slot i of the partial schema, over chunks of it.
  const Program& partial_slots() const { return *partial_slots_; }
  /// The keys and the values of the aggregates.
  const plan::Schema& final_schema() const { return final_schema_; }

  // Where groups go by parts:
  /// The only key is of it, and says the part; not known: the keys' hash says it.
  const plan::KeyDomain& domain() const { return domain_; }
  const RowLayout& row_layout() const { return *row_layout_; }
  /// kRows: field i of what is written of a row, over the input.
  const Program& row_program() const { return *row_program_; }
  /// kGroups: the same aggregates, of kRows, over rows that were written.
  const AggregatePlan* rows() const { return rows_.get(); }
  bool has_distinct() const { return has_distinct_; }
  /// Nothing travels but pairs: the partial schema has one slot, which is 0.
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
