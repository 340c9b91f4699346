#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/aggregate/stored_groups.h"
#include "plan/aggregate.h"
#include "plan/slot_of.h"
#include "tests/execution/step_driver.h"

/// Aggregations of tests: run by the engine, on one or several servers, and by a naive model.
namespace nam::execution {

struct Aggregation {
  plan::Schema schema;
  std::vector<plan::Expr> keys;
  std::vector<plan::Aggregate> aggregates;
  std::vector<const CodeMeaning*> meanings;

  std::unique_ptr<const AggregatePlan> Plan(AggregateInput input = AggregateInput::kRows) const;
};

inline plan::Slot Bounded(Type type, __int128 low, __int128 high, bool nullable = true) {
  return {.type = type, .nullable = nullable, .bounds = {low, high, true}};
}
using plan::SlotExpr;
/// Functions of two arguments get the slot twice.
plan::Aggregate MakeAggregate(plan::AggregateFunction function, const plan::Schema& schema, uint32_t slot);

/// Seven slots of any types that groups and aggregates have, the first `keys` of them as keys, and up to four
/// aggregates. Sums of the slots' values stay small.
Aggregation RandomAggregation(RandomStream& random, size_t keys);

/// The rows of the final schema, in the order of their cells.
std::vector<Tuple> Model(const Aggregation& aggregation, std::span<const Tuple> input);

/// What a sink yields once its parts are combined, in the order of its cells.
absl::StatusOr<std::vector<Tuple>> ReadFinal(StepDriver& driver, AggregateSink& sink);
/// The pages that a sink stores, one after the other.
absl::StatusOr<std::vector<std::byte>> PagesOf(StepDriver& driver, AggregateSink& sink, uint64_t attempt);

/// Aggregates each server's rows with this many tasks, merges what they store, and reads the result.
absl::StatusOr<std::vector<Tuple>> Distributed(const Aggregation& aggregation, StepDriver& driver,
                                               std::span<const std::vector<Tuple>> servers, int tasks);

}  // namespace nam::execution
