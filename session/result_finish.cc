#include "session/result_finish.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "execution/aggregate/aggregate_sink.h"
#include "execution/aggregate/stored_groups.h"
#include "execution/sort/ordered_rows.h"
#include "execution/sort/sorter.h"
#include "execution/sort/top_rows.h"
#include "plan/expression_tree.h"
#include "plan/post_order.h"
#include "types/sql_error.h"

namespace nam::session {
namespace {

using execution::AggregateInput;
using execution::AggregatePlan;
using execution::AggregateSink;
using execution::AggregateSource;
using execution::Chunk;
using execution::PipelineTask;
using execution::Step;
using plan::Expr;
using plan::Op;

/// The same over the slots of groups: their keys, then their aggregates.
absl::StatusOr<Expr> OverGroups(const Expr& expr, size_t keys) {
  NAM_RETURN_IF_ERROR(plan::ForPostOrder(expr, [](const Expr&) { return absl::OkStatus(); }));
  Expr out = expr;
  std::vector<Expr*> open{&out};
  while (!open.empty()) {
    Expr& e = *open.back();
    open.pop_back();
    if (e.op == Op::kGroup || e.op == Op::kAggregate) {
      e.column = {0, e.index + (e.op == Op::kAggregate ? static_cast<int>(keys) : 0)};
      e.op = Op::kColumn;
      e.index = -1;
    }
    for (Expr& child : e.children) open.push_back(&child);
  }
  return out;
}

/// The place of an expression of ORDER BY in the select list.
std::optional<uint32_t> SelectedAs(const sql::BoundQuery& query, const Expr& key) {
  const auto found =
      std::find_if(query.select.begin(), query.select.end(),
                   [&](const sql::OutputColumn& column) { return plan::SameExpr(column.expr, key); });
  if (found == query.select.end()) return std::nullopt;
  return static_cast<uint32_t>(found - query.select.begin());
}

absl::Status OrderedBySomethingElse(const Expr& key) {
  return UserError(sqlstate::kBadColumnReference,
                   "for SELECT DISTINCT, ORDER BY expressions must appear in the select list", key.position,
                   "add the expression to the select list");
}

/// How many rows in an order are enough; nothing: all.
std::optional<uint64_t> RowsWanted(const sql::BoundQuery& query) {
  int64_t rows = 0;
  if (!query.limit.has_value() || __builtin_add_overflow(*query.limit, query.offset, &rows))
    return std::nullopt;
  return static_cast<uint64_t>(rows);
}

/// What the user can do about a budget that is used up.
absl::Status Explained(const absl::Status& status, uint64_t budget_bytes) {
  if (!absl::IsResourceExhausted(status) || SqlErrorOf(status).has_value()) return status;
  return UserError(
      sqlstate::kOutOfMemory,
      absl::StrCat("the result needs more than the ", budget_bytes >> 20, " MiB that its session may hold"),
      -1, "add a LIMIT or a filter, or raise nam.result_mib_max");
}

std::vector<std::unique_ptr<Chunk>> ChunksFor(size_t columns, const Projection* step) {
  std::vector<std::unique_ptr<Chunk>> chunks;
  chunks.push_back(std::make_unique<Chunk>(columns, 0));
  if (step != nullptr) chunks.push_back(std::make_unique<Chunk>(step->schema().size(), 0));
  return chunks;
}

PipelineTask NewTask(execution::TaskContext& context, std::unique_ptr<execution::SourceTask> source,
                     size_t columns, Projection* step, execution::Sink& sink) {
  std::vector<std::unique_ptr<execution::StepTask>> steps;
  if (step != nullptr) steps.push_back(step->NewTask(context));
  return {std::move(source), std::move(steps), sink.NewTask(context), ChunksFor(columns, step)};
}

}  // namespace

/// The groups of all attempts. They are taken in by one thread, so they keep the order of their arrival.
struct ResultFinish::MergedGroups {
  MergedGroups(std::unique_ptr<const AggregatePlan> of, execution::MemoryBudget& budget)
      : plan(std::move(of)), sink(*plan, budget), stored(sink, budget) {}

  const std::unique_ptr<const AggregatePlan> plan;
  AggregateSink sink;
  execution::StoredGroups stored;
};

/// The select list's rows as groups of whole rows.
struct ResultFinish::DistinctRows {
  DistinctRows(std::unique_ptr<const AggregatePlan> of, std::unique_ptr<Projection> behind,
               execution::MemoryBudget& budget)
      : plan(std::move(of)), sink(*plan, budget), numbers(std::move(behind)) {}

  const std::unique_ptr<const AggregatePlan> plan;
  AggregateSink sink;
  const std::unique_ptr<Projection> numbers;  // with ORDER BY
};

/// ORDER BY, of which a limit needs the first rows alone.
struct ResultFinish::Ordering {
  execution::Sink& sink() {
    return first != nullptr ? static_cast<execution::Sink&>(*first) : static_cast<execution::Sink&>(*all);
  }
  const execution::OrderedRows& rows() { return first != nullptr ? first->rows() : all->rows(); }

  std::unique_ptr<const execution::RowsPlan> plan;
  std::unique_ptr<execution::TopRows> first;
  std::unique_ptr<execution::Sorter> all;
};

/// A pipeline that is fed while attempts end.
struct ResultFinish::ArrivingRows {
  std::unique_ptr<const execution::RowsPlan> plan;
  StoredRows* source = nullptr;  // of the task
  std::unique_ptr<PipelineTask> task;
};

absl::StatusOr<std::unique_ptr<ResultFinish>> ResultFinish::Make(const sql::BoundQuery& query,
                                                                 const optimizer::Plan& star,
                                                                 const plan::PhysicalPlan& physical,
                                                                 uint64_t budget_bytes, Clock& clock,
                                                                 const std::atomic<bool>& cancel) {
  std::unique_ptr<ResultFinish> made(new ResultFinish(query, budget_bytes, clock, cancel));
  const absl::Status prepared = made->Prepare(star, physical);
  if (!prepared.ok()) return Explained(prepared, budget_bytes);
  return made;
}

ResultFinish::ResultFinish(const sql::BoundQuery& query, uint64_t budget_bytes, Clock& clock,
                           const std::atomic<bool>& cancel)
    : query_(query), budget_(budget_bytes), context_(clock, budget_, cancel) {}

ResultFinish::~ResultFinish() = default;

// ─── Preparation

absl::Status ResultFinish::Prepare(const optimizer::Plan& star, const plan::PhysicalPlan& physical) {
  NAM_CHECK(!physical.pipelines.empty());
  const plan::Pipeline& pipeline = physical.pipelines.back();
  return star.aggregated ? PrepareGroups(star, pipeline) : PrepareRows(pipeline);
}

absl::Status ResultFinish::PrepareGroups(const optimizer::Plan& star, const plan::Pipeline& pipeline) {
  const auto* const node = std::get_if<plan::AggregateSink>(&pipeline.sink);
  NAM_CHECK(node != nullptr && node->phase == plan::AggregateSink::Phase::kPartial,
            "servers aggregate what the star's plan aggregates");
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const AggregatePlan> merging,
                       AggregatePlan::Make({.group_by = node->group_by,
                                            .aggregates = node->aggregates,
                                            .schema = pipeline.schemas.back(),
                                            .meanings = {},
                                            .input = AggregateInput::kGroups}));
  const plan::Schema& groups = merging->final_schema();
  NAM_ASSIGN_OR_RETURN(const std::vector<Expr> outputs, SelectList(star, groups));
  std::optional<Expr> having;
  if (query_.aggregated && query_.having.has_value()) {
    NAM_ASSIGN_OR_RETURN(having, OverGroups(*query_.having, query_.group_by.size()));
  }
  const bool distinct = query_.aggregated && query_.distinct, ordered = !order_slots_.empty();
  NAM_ASSIGN_OR_RETURN(projection_, Projection::Make({.input = groups,
                                                      .outputs = outputs,
                                                      .condition = std::move(having),
                                                      .numbered = ordered && !distinct}));
  const plan::Schema* flows = &projection_->schema();
  if (distinct) {
    const std::vector<Expr> slots = SlotExprs(*flows);
    NAM_ASSIGN_OR_RETURN(
        std::unique_ptr<const AggregatePlan> rows,
        AggregatePlan::Make({.group_by = slots, .aggregates = {}, .schema = *flows, .meanings = {}}));
    std::unique_ptr<Projection> numbers;
    if (ordered) {
      const plan::Schema& schema = rows->final_schema();
      NAM_ASSIGN_OR_RETURN(
          numbers, Projection::Make({.input = schema, .outputs = SlotExprs(schema), .numbered = true}));
    }
    distinct_ = std::make_unique<DistinctRows>(std::move(rows), std::move(numbers), budget_);
    flows = ordered ? &distinct_->numbers->schema() : &distinct_->plan->final_schema();
  }
  NAM_RETURN_IF_ERROR(PrepareEnd(*flows));
  groups_ = std::make_unique<MergedGroups>(std::move(merging), budget_);
  return absl::OkStatus();
}

/// The select list over the groups' slots, and behind it what ORDER BY needs besides; order_slots_ lead
/// there.
absl::StatusOr<std::vector<Expr>> ResultFinish::SelectList(const optimizer::Plan& star,
                                                           const plan::Schema& groups) {
  std::vector<Expr> outputs;
  if (query_.aggregated) {
    NAM_CHECK(groups.size() == query_.group_by.size() + query_.aggregates.size());
    for (const sql::OutputColumn& column : query_.select) {
      NAM_ASSIGN_OR_RETURN(Expr output, OverGroups(column.expr, query_.group_by.size()));
      outputs.push_back(std::move(output));
    }
  } else {
    // SELECT DISTINCT over plain rows: groups of whole rows.
    NAM_CHECK(star.group_by.size() == query_.select.size() && groups.size() == query_.select.size());
    outputs = SlotExprs(groups);
  }
  for (size_t k = 0; k < query_.order_by.size(); ++k) {
    const Expr& key = query_.order_by[k].expr;
    NAM_RETURN_IF_ERROR(plan::ForPostOrder(key, [](const Expr&) { return absl::OkStatus(); }));
    std::optional<uint32_t> slot = SelectedAs(query_, key);
    if (!slot.has_value()) {
      if (query_.distinct) return OrderedBySomethingElse(key);
      NAM_ASSIGN_OR_RETURN(Expr output, OverGroups(key, query_.group_by.size()));
      slot = static_cast<uint32_t>(outputs.size());
      outputs.push_back(std::move(output));
    }
    AddOrder(k, *slot);
  }
  return outputs;
}

absl::Status ResultFinish::PrepareRows(const plan::Pipeline& pipeline) {
  const plan::Schema& schema = pipeline.schemas.back();
  NAM_CHECK(std::holds_alternative<plan::ResultSink>(pipeline.sink));
  NAM_CHECK(schema.size() == query_.select.size() + query_.order_by.size(),
            "servers put out the select list, then what ORDER BY needs");
  rows_ = std::make_unique<ArrivingRows>();
  NAM_ASSIGN_OR_RETURN(rows_->plan, execution::RowsPlan::Make(schema));
  for (size_t k = 0; k < query_.order_by.size(); ++k) {
    AddOrder(k, static_cast<uint32_t>(query_.select.size() + k));
  }
  if (!order_slots_.empty()) {
    NAM_ASSIGN_OR_RETURN(projection_,
                         Projection::Make({.input = schema, .outputs = SlotExprs(schema), .numbered = true}));
  }
  NAM_RETURN_IF_ERROR(PrepareEnd(projection_ != nullptr ? projection_->schema() : schema));
  auto source = std::make_unique<StoredRows>(rows_->plan->layout());
  rows_->source = source.get();
  rows_->task = std::make_unique<PipelineTask>(
      NewTask(context_, std::move(source), schema.size(), projection_.get(), end()));
  return absl::OkStatus();
}

void ResultFinish::AddOrder(size_t key, uint32_t slot) {
  const plan::OrderKey& by = query_.order_by[key];
  order_slots_.push_back({.slot = slot, .descending = by.descending, .nulls_first = by.nulls_first});
}

absl::Status ResultFinish::PrepareEnd(const plan::Schema& input) {
  std::vector<Type> types;
  for (const sql::OutputColumn& column : query_.select) types.push_back(column.expr.type);
  std::optional<uint64_t> limit;
  if (query_.limit.has_value()) limit = static_cast<uint64_t>(*query_.limit);
  NAM_ASSIGN_OR_RETURN(
      result_,
      ResultRows::Make(
          {.input = input, .types = types, .offset = static_cast<uint64_t>(query_.offset), .limit = limit},
          budget_));
  if (order_slots_.empty()) return absl::OkStatus();
  // Behind all keys the rows' numbers, which are the last slot: equal rows stay in the order of their
  // arrival.
  order_slots_.push_back({.slot = static_cast<uint32_t>(input.size() - 1)});
  ordering_ = std::make_unique<Ordering>();
  NAM_ASSIGN_OR_RETURN(ordering_->plan, execution::RowsPlan::Make(input));
  const std::optional<uint64_t> wanted = RowsWanted(query_);
  if (wanted.has_value()) {
    NAM_ASSIGN_OR_RETURN(ordering_->first,
                         execution::TopRows::Make(*ordering_->plan, order_slots_, *wanted, budget_));
  } else {
    NAM_ASSIGN_OR_RETURN(ordering_->all, execution::Sorter::Make(*ordering_->plan, order_slots_, budget_));
  }
  return absl::OkStatus();
}

execution::Sink& ResultFinish::end() {
  if (ordering_ != nullptr) return ordering_->sink();
  return *result_;
}

// ─── Run

absl::Status ResultFinish::Add(std::span<const std::byte> pages, uint64_t attempt) {
  NAM_CHECK(!finished_, "pages come before the end");
  if (error_.ok()) error_ = Explained(AddPages(pages, attempt), budget_.bytes());
  return error_;
}

absl::Status ResultFinish::AddPages(std::span<const std::byte> pages, uint64_t attempt) {
  if (context_.cancelled()) return absl::CancelledError("the query was cancelled");
  if (groups_ != nullptr) {
    const absl::Status added = groups_->stored.Add(context_, pages, attempt);
    context_.Settle();
    return added;
  }
  if (result_->Satisfied()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(rows_->source->Feed(pages, attempt));
  return rows_->task->Run(context_) == Step::kFailed ? context_.error() : absl::OkStatus();
}

absl::StatusOr<ResultSet> ResultFinish::Finish() {
  NAM_CHECK(!std::exchange(finished_, true), "a query ends once");
  NAM_RETURN_IF_ERROR(error_);
  absl::StatusOr<ResultSet> result = FinishAll();
  if (result.ok()) return result;
  error_ = Explained(result.status(), budget_.bytes());
  return error_;
}

absl::StatusOr<ResultSet> ResultFinish::FinishAll() {
  if (groups_ != nullptr) {
    NAM_RETURN_IF_ERROR(FinishGroups());
  } else {
    NAM_RETURN_IF_ERROR(FinishRows());
  }
  if (ordering_ != nullptr) NAM_RETURN_IF_ERROR(FinishOrder());
  ResultSet result;
  for (const sql::OutputColumn& column : query_.select)
    result.columns.push_back({column.name, column.expr.type});
  result.rows = std::move(result_->rows());
  result.command = absl::StrCat("SELECT ", result.rows.size());
  return result;
}

/// Memory goes back to the budget as soon as what it held has been read.
absl::Status ResultFinish::FinishGroups() {
  NAM_RETURN_IF_ERROR(Combine(groups_->sink));
  AggregateSource merged(groups_->sink);
  execution::Sink& behind = distinct_ != nullptr ? static_cast<execution::Sink&>(distinct_->sink) : end();
  NAM_RETURN_IF_ERROR(Run(merged, groups_->plan->final_schema(), projection_.get(), behind));
  groups_.reset();
  if (distinct_ == nullptr) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Combine(distinct_->sink));
  AggregateSource rows(distinct_->sink);
  NAM_RETURN_IF_ERROR(Run(rows, distinct_->plan->final_schema(), distinct_->numbers.get(), end()));
  distinct_.reset();
  return absl::OkStatus();
}

absl::Status ResultFinish::FinishRows() {
  rows_->source->End();
  const Step step = rows_->task->Run(context_);
  if (step == Step::kFailed) return context_.error();
  NAM_CHECK(step == Step::kDone, "rows have come to their end");
  rows_.reset();
  return absl::OkStatus();
}

absl::Status ResultFinish::FinishOrder() {
  NAM_RETURN_IF_ERROR(Combine(ordering_->sink()));
  execution::OrderedSource sorted(ordering_->rows());
  NAM_RETURN_IF_ERROR(Run(sorted, ordering_->plan->schema(), nullptr, *result_));
  ordering_.reset();
  return absl::OkStatus();
}

absl::Status ResultFinish::Run(execution::Source& source, const plan::Schema& schema, Projection* step,
                               execution::Sink& sink) {
  PipelineTask task = NewTask(context_, source.NewTask(context_), schema.size(), step, sink);
  const Step ended = task.Run(context_);
  if (ended == Step::kFailed) return context_.error();
  NAM_CHECK(ended == Step::kDone, "nothing here waits");
  return absl::OkStatus();
}

absl::Status ResultFinish::Combine(execution::Sink& sink) {
  if (context_.cancelled()) return absl::CancelledError("the query was cancelled");
  const uint32_t parts = sink.CombineParts();
  for (uint32_t part = 0; part < parts; ++part) NAM_RETURN_IF_ERROR(sink.Combine(context_, part));
  context_.Settle();
  return absl::OkStatus();
}

}  // namespace nam::session
