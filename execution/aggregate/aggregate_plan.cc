#include "execution/aggregate/aggregate_plan.h"

#include <utility>

#include "base/status_macros.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

constexpr plan::Bounds kCounts = {.low = 0, .high = INT64_MAX, .known = true};
constexpr plan::Bounds kHalves = {.low = INT64_MIN, .high = INT64_MAX, .known = true};
constexpr plan::Bounds kZero = {.low = 0, .high = 0, .known = true};

plan::Slot CountSlot() {
  return {.type = Type::Integer(), .nullable = false, .bounds = kCounts};
}

/// What is known of the argument of an aggregate over rows.
struct Argument {
  plan::Slot slot;
  std::optional<uint32_t> of;  // slot of the input
};

/// Adds the slots that an aggregate's state travels in.
void AddPartial(const plan::Aggregate& aggregate, const Argument& argument, plan::Schema& schema) {
  switch (aggregate.function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
      schema.push_back(CountSlot());
      break;
    case AggregateFunction::kSum:
    case AggregateFunction::kAverage:
      schema.push_back({.type = Type::Integer(), .nullable = true, .bounds = kHalves});
      schema.push_back({.type = Type::Integer(), .nullable = false, .bounds = kHalves});
      if (aggregate.function == AggregateFunction::kAverage) schema.push_back(CountSlot());
      break;
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      schema.push_back({.type = aggregate.type, .bounds = argument.slot.bounds});
      break;
    case AggregateFunction::kCountDistinct:
      break;
  }
}

plan::Slot FinalSlot(const plan::Aggregate& aggregate, const Argument& argument) {
  switch (aggregate.function) {
    case AggregateFunction::kCountRows:
    case AggregateFunction::kCount:
    case AggregateFunction::kCountDistinct:
      return CountSlot();
    case AggregateFunction::kMin:
    case AggregateFunction::kMax:
      return {.type = aggregate.type, .bounds = argument.slot.bounds};
    default:
      return {.type = aggregate.type, .bounds = {}};
  }
}

/// The pairs of a count(distinct): group, value. Groups are counted from the aggregate's number on, so that
/// the layouts of two aggregates, and their pages, differ even where their values are of one type.
absl::Status MakePairs(size_t number, const Argument& argument, const AggregatePlan::Options& options,
                       AggregatePlan::Aggregate& into) {
  plan::Slot group = CountSlot();
  group.bounds.low = static_cast<int64_t>(number);
  group.bounds.high = group.bounds.low + UINT32_MAX;
  plan::Slot value = argument.slot;
  value.nullable = false;
  into.pair_schema = {group, value};
  const CodeMeaning* const meaning =
      options.input == AggregateInput::kRows && argument.of && *argument.of < options.meanings.size()
          ? options.meanings[*argument.of]
          : nullptr;
  const CodeMeaning* const meanings[] = {nullptr, meaning};
  NAM_ASSIGN_OR_RETURN(
      into.pairs, GroupKeys::Make(SlotsOf(into.pair_schema), into.pair_schema, meanings, options.page_bytes));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const AggregatePlan>> AggregatePlan::Make(const Options& options) {
  NAM_ASSIGN_OR_RETURN(
      std::unique_ptr<const GroupKeys> keys,
      GroupKeys::Make(options.group_by, options.schema, options.meanings, options.page_bytes));
  std::vector<plan::Expr> arguments;
  for (const plan::Aggregate& aggregate : options.aggregates) {
    if (aggregate.function != AggregateFunction::kCountRows) arguments.push_back(aggregate.argument);
  }
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> program, Program::Compile(arguments, options.schema));

  plan::Schema partial = keys->schema(), final = keys->schema();
  std::vector<Aggregate> aggregates;
  bool has_distinct = false;
  size_t output = 0;
  for (const plan::Aggregate& aggregate : options.aggregates) {
    Aggregate& into = aggregates.emplace_back();
    into.function = aggregate.function;
    into.type = aggregate.type;
    Argument argument;
    if (aggregate.function != AggregateFunction::kCountRows) {
      argument.of = into.slot = program->slot_of(output);
      argument.slot = {.type = aggregate.argument.type,
                       .nullable = !into.slot || options.schema[*into.slot].nullable,
                       .bounds = program->bounds(output)};
      into.argument_type = argument.slot.type;
      into.argument_nullable = argument.slot.nullable;
      into.physical = program->physical(output);
      into.argument = output++;
    }
    into.partial_slot = partial.size();
    AddPartial(aggregate, argument, partial);
    into.partial_slots = partial.size() - into.partial_slot;
    final.push_back(FinalSlot(aggregate, argument));
    if (aggregate.function != AggregateFunction::kCountDistinct) continue;
    has_distinct = true;
    NAM_RETURN_IF_ERROR(MakePairs(aggregates.size() - 1, argument, options, into));
  }

  // Only count(distinct), without keys: the group is there, and says nothing.
  const bool only_pairs = partial.empty();
  if (only_pairs) partial.push_back({.type = Type::Integer(), .nullable = false, .bounds = kZero});

  NAM_ASSIGN_OR_RETURN(RowLayout layout, RowLayout::Of(partial, options.page_bytes));
  const std::vector<plan::Expr> slots = SlotsOf(partial);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> partial_slots, Program::Compile(slots, partial));
  std::unique_ptr<AggregatePlan> made(new AggregatePlan(std::move(layout)));
  if (options.input == AggregateInput::kGroups) {
    NAM_ASSIGN_OR_RETURN(
        made->keys_, GroupKeys::Make(std::span(slots).first(keys->size()), partial, {}, options.page_bytes));
    NAM_ASSIGN_OR_RETURN(made->program_, Program::Compile(slots, partial));
    for (Aggregate& aggregate : aggregates) {
      aggregate.argument = aggregate.partial_slot;
      if (aggregate.partial_slots > 0) aggregate.physical = made->program_->physical(aggregate.argument);
    }
  } else {
    made->keys_ = std::move(keys);
    made->program_ = std::move(program);
  }
  made->input_ = options.input;
  made->aggregates_ = std::move(aggregates);
  made->partial_schema_ = std::move(partial);
  made->partial_slots_ = std::move(partial_slots);
  made->final_schema_ = std::move(final);
  made->has_distinct_ = has_distinct;
  made->only_pairs_ = only_pairs;
  return made;
}

}  // namespace nam::execution
