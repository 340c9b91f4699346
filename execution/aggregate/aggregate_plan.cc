#include "execution/aggregate/aggregate_plan.h"

#include <utility>

#include "base/status_macros.h"
#include "execution/partition/parts.h"
#include "plan/aggregate_slots.h"
#include "plan/slot_of.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

constexpr plan::Bounds kCounts = {.low = 0, .high = INT64_MAX, .known = true};
plan::Slot CountSlot() {
  return {.type = Type::Integer(), .nullable = false, .bounds = kCounts};
}

/// What is known of the argument of an aggregate over rows.
struct Argument {
  plan::Slot slot;
  std::optional<uint32_t> of;  // slot of the input
};

/// The pairs of a distinct aggregate: group, value. Groups are counted from the aggregate's number on, so
/// that the layouts of two aggregates, and their pages, differ even where their values are of one type.
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
  if (into.function == AggregateFunction::kCountDistinct) return absl::OkStatus();
  auto of_values = std::make_unique<AggregatePlan::Aggregate>();
  of_values->function = into.function;
  of_values->type = into.type;
  of_values->argument_type = into.argument_type;
  of_values->physical = into.pairs->slots().physical(1);
  of_values->argument = 1;
  of_values->argument_nullable = false;
  into.of_values = std::move(of_values);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<const AggregatePlan>> AggregatePlan::Make(const Options& options) {
  NAM_ASSIGN_OR_RETURN(
      std::unique_ptr<const GroupKeys> keys,
      GroupKeys::Make(options.group_by, options.schema, options.meanings, options.page_bytes, options.memos));
  std::vector<plan::Expr> arguments;
  for (const plan::Aggregate& aggregate : options.aggregates) {
    NAM_RETURN_IF_ERROR(plan::CheckAggregate(aggregate));
    const size_t count = plan::ArgumentsOf(aggregate.function);
    if (count > 0) arguments.push_back(aggregate.argument);
    if (count > 1) arguments.push_back(aggregate.second);
  }
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> program,
                       Program::Compile(arguments, options.schema, options.memos));

  plan::Schema final = keys->schema(), argument_slots;
  std::vector<Aggregate> aggregates;
  bool has_distinct = false;
  size_t output = 0, partial_slot = keys->size();
  for (const plan::Aggregate& aggregate : options.aggregates) {
    Aggregate& into = aggregates.emplace_back();
    into.function = aggregate.function;
    into.type = aggregate.type;
    Argument argument;
    if (plan::ArgumentsOf(aggregate.function) > 0) {
      argument.of = into.slot = program->slot_of(output);
      NAM_ASSIGN_OR_RETURN(argument.slot, plan::SlotOf(aggregate.argument, options.schema));
      if (!argument.slot.bounds.known) argument.slot.bounds = program->bounds(output);
      into.argument_type = argument.slot.type;
      into.argument_nullable = argument.slot.nullable;
      into.physical = program->physical(output);
      into.argument = output++;
    }
    if (plan::ArgumentsOf(aggregate.function) > 1) {
      into.second_type = aggregate.second.type;
      into.second = output++;
    }
    into.partial_slot = partial_slot;
    partial_slot += into.partial_slots = plan::StateSlotsOf(aggregate);
    argument_slots.push_back(argument.slot);
    final.push_back(plan::AggregateResult(aggregate.function, aggregate.type, {&argument.slot, 1}));
    if (!plan::IsDistinct(aggregate)) continue;
    has_distinct = true;
    NAM_RETURN_IF_ERROR(MakePairs(aggregates.size() - 1, argument, options, into));
  }
  plan::Schema partial = plan::StatesOf(keys->schema(), options.aggregates, argument_slots);
  // Only distinct ones, without keys: the group is there, and says nothing.
  const bool only_pairs = partial_slot == 0;

  NAM_ASSIGN_OR_RETURN(RowLayout layout, options.parts > 0 ? PartLayout(partial, options.parts)
                                                           : RowLayout::Of(partial, options.page_bytes));
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
