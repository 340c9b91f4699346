#include "execution/aggregate/aggregate_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/status_macros.h"
#include "execution/partition/parts.h"
#include "plan/aggregate_slots.h"
#include "plan/expression_tree.h"
#include "plan/slot_of.h"

namespace nam::execution {
namespace {

using plan::AggregateFunction;

constexpr plan::Bounds kCounts = {.low = 0, .high = INT64_MAX, .known = true};
plan::Slot CountSlot() {
  return {.type = Type::Integer(), .nullable = false, .bounds = kCounts};
}

/// Describes the argument of an aggregate over rows.
struct Argument {
  plan::Slot slot;
  std::optional<uint32_t> of;  // slot of the input
};

/// The pairs of a distinct aggregate: group, value. Group numbers begin with the aggregate's number, so that
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

/// The form in which an unaggregated row is written.
struct StoredRow {
  std::vector<plan::Expr> fields;  // over the input
  plan::Schema schema;
  std::vector<plan::Aggregate> aggregates;  // over the fields
};

/// The argument itself; for a text that is only counted, whether it is present.
plan::Expr FieldFor(const plan::Aggregate& aggregate, const plan::Expr& argument) {
  if (aggregate.function != AggregateFunction::kCount || PhysicalOf(argument.type) != Physical::kText)
    return argument;
  plan::Expr null = plan::MakeNode(plan::Op::kIsNull, Type::Bool(), -1, {argument});
  return plan::MakeNode(plan::Op::kCase, Type::Bool(), -1,
                        {std::move(null), plan::MakeLiteral(Value::Null(Type::Bool()), -1),
                         plan::MakeLiteral(Value::Bool(true), -1)});
}

absl::StatusOr<StoredRow> StoreRow(const AggregatePlan::Options& options) {
  StoredRow row{.fields = {options.group_by.begin(), options.group_by.end()},
                .schema = {},
                .aggregates = {options.aggregates.begin(), options.aggregates.end()}};
  std::vector<std::pair<plan::Expr*, size_t>> arguments;
  for (plan::Aggregate& aggregate : row.aggregates) {
    const size_t count = plan::ArgumentsOf(aggregate.function);
    for (plan::Expr* argument : {&aggregate.argument, &aggregate.second}) {
      if (count < (argument == &aggregate.argument ? 1 : 2)) continue;
      const plan::Expr wanted = FieldFor(aggregate, *argument);
      size_t field = 0;
      while (field < row.fields.size() && !plan::SameExpr(row.fields[field], wanted)) ++field;
      if (field == row.fields.size()) row.fields.push_back(wanted);
      arguments.emplace_back(argument, field);
    }
  }
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<const Program> program,
                       Program::Compile(row.fields, options.schema));
  for (size_t i = 0; i < row.fields.size(); ++i) {
    NAM_ASSIGN_OR_RETURN(plan::Slot slot, plan::SlotOf(row.fields[i], options.schema));
    if (!slot.bounds.known) slot.bounds = program->bounds(i);
    row.schema.push_back(std::move(slot));
  }
  for (const auto& [argument, field] : arguments)
    *argument = plan::SlotExpr(row.schema, static_cast<uint32_t>(field));
  return row;
}

/// The domain of the keys, if a part has few enough numbers for an array.
plan::KeyDomain DomainOf(const plan::Schema& keys, uint32_t parts) {
  if (keys.size() != 1 || keys[0].nullable || !std::has_single_bit(parts)) return {};
  const plan::Bounds& bounds = keys[0].bounds;
  if (PhysicalOf(keys[0].type) != Physical::kInt64 || !bounds.known || bounds.low < INT64_MIN ||
      bounds.high < bounds.low || bounds.high - bounds.low > (__int128{1} << plan::KeyDomain::kBitsMax) - 1)
    return {};
  const auto range = static_cast<uint64_t>(bounds.high - bounds.low) + 1;
  const uint64_t size = std::bit_ceil(std::max<uint64_t>({range, parts, 2}));
  if (size / parts > GroupKeys::kDirectNumbers) return {};
  return {static_cast<int64_t>(bounds.low), static_cast<uint32_t>(std::countr_zero(size))};
}

/// Marks pages of rows; those of states have the same size.
constexpr uint32_t kRowMark = 1;

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
  // Only distinct aggregates, without keys: the one group needs no state.
  const bool only_pairs = partial_slot == 0;

  NAM_ASSIGN_OR_RETURN(RowLayout layout, options.parts > 0 ? PartLayout(partial, options.parts)
                                                           : RowLayout::Of(partial, options.page_bytes));
  const std::vector<plan::Expr> slots = SlotsOf(partial);
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> partial_slots, Program::Compile(slots, partial));
  std::unique_ptr<AggregatePlan> made(new AggregatePlan(std::move(layout)));
  if (options.input == AggregateInput::kGroups) {
    const plan::KeyDomain domain =
        options.part_by_part ? DomainOf(keys->schema(), options.parts) : plan::KeyDomain();
    NAM_ASSIGN_OR_RETURN(made->keys_, GroupKeys::Make(std::span(slots).first(keys->size()), partial, {},
                                                      options.page_bytes, nullptr, domain));
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
  if (options.parts > 0) NAM_RETURN_IF_ERROR(made->AddRows(options));
  return made;
}

absl::Status AggregatePlan::AddRows(const Options& options) {
  NAM_ASSIGN_OR_RETURN(const StoredRow row, StoreRow(options));
  NAM_ASSIGN_OR_RETURN(const RowLayout layout, PartLayout(row.schema, options.parts));
  const uint32_t page_bytes = std::max(layout.page_bytes(), partial_layout_.page_bytes());
  row_layout_ = layout.Resized(page_bytes).Marked(kRowMark);
  partial_layout_ = partial_layout_.Resized(page_bytes);
  domain_ = DomainOf(keys_->schema(), options.parts);
  if (input_ == AggregateInput::kRows) {
    NAM_ASSIGN_OR_RETURN(row_program_, Program::Compile(row.fields, options.schema, options.memos));
    return absl::OkStatus();
  }
  const std::vector<plan::Expr> slots = plan::SlotExprs(row.schema);
  NAM_ASSIGN_OR_RETURN(rows_, Make({.group_by = std::span(slots).first(keys_->size()),
                                    .aggregates = row.aggregates,
                                    .schema = row.schema,
                                    .meanings = {}}));
  return absl::OkStatus();
}

}  // namespace nam::execution
