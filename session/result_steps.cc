#include "session/result_steps.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "plan/work_cost.h"

namespace nam::session {
namespace {

using execution::Chunk;
using execution::Column;
using execution::kChunkRows;
using execution::Program;
using execution::Selection;
using execution::Step;
using execution::TaskContext;
using execution::Vector;

/// Rows behind the last number are equal in their order to each other alone.
constexpr int64_t kLastNumber = UINT32_MAX;

/// What a row takes beside its values. A vector that grows holds its elements twice, and room for as many.
constexpr uint64_t kRowBytes = 3 * sizeof(std::vector<Value>);

/// A vector's values as a column.
Column ColumnOf(const Vector& vector) {
  return {.kind = Column::Kind::kValues,
          .width = execution::WidthOf(vector.physical),
          .physical = vector.physical,
          .base = reinterpret_cast<const std::byte*>(vector.narrow),
          .nulls = vector.nulls};
}

/// The same positions without the first `skip`, at most `most`. `places` has room for a chunk's.
Selection Part(Selection rows, uint32_t skip, uint32_t most, std::vector<uint32_t>& places) {
  const uint32_t count = std::min(rows.count - skip, most);
  if (skip == 0) return {rows.positions, count};
  if (rows.positions != nullptr) return {rows.positions + skip, count};
  std::iota(places.begin(), places.begin() + count, skip);
  return {places.data(), count};
}

/// What a value takes in memory beside the Value itself.
uint64_t TextBytes(size_t bytes) {
  constexpr size_t kWithin = 15;  // held by std::string itself
  return bytes <= kWithin ? 0 : bytes + 1;
}

}  // namespace

plan::Expr SlotExpr(const plan::Schema& schema, uint32_t slot) {
  plan::Expr expr;
  expr.op = plan::Op::kColumn;
  expr.type = schema[slot].type;
  expr.column = {0, static_cast<int>(slot)};
  return expr;
}

std::vector<plan::Expr> SlotExprs(const plan::Schema& schema) {
  std::vector<plan::Expr> slots;
  for (uint32_t slot = 0; slot < schema.size(); ++slot) slots.push_back(SlotExpr(schema, slot));
  return slots;
}

// ─── StoredRows

absl::Status StoredRows::Feed(std::span<const std::byte> pages, uint64_t attempt) {
  NAM_CHECK(pages_.empty() && done_ == rows_, "the pages before are used up");
  if (pages.size() % layout_.page_bytes() != 0)
    return absl::DataLossError("rows of another server are cut off");
  pages_ = pages;
  attempt_ = attempt;
  return absl::OkStatus();
}

Step StoredRows::Next(TaskContext& context, Chunk& out) {
  out.SelectAll(0);
  while (done_ == rows_) {
    if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
    if (pages_.empty()) return ended_ ? Step::kDone : Step::kNeedInput;
    page_ = pages_.first(layout_.page_bytes());
    pages_ = pages_.subspan(page_.size());
    const absl::Status checked = layout_.CheckPage(page_, attempt_);
    if (!checked.ok()) return context.Fail(checked);
    execution::PageHeader header;
    std::memcpy(&header, page_.data(), sizeof(header));
    rows_ = header.rows;
    done_ = 0;
  }
  const uint32_t count = std::min(kChunkRows, rows_ - done_);
  std::iota(places_.begin(), places_.begin() + count, done_);
  for (size_t i = 0; i < layout_.fields(); ++i) {
    out.columns()[i] = {.kind = Column::Kind::kField,
                        .width = layout_.field(i).width,
                        .physical = layout_.field(i).physical,
                        .base = page_.data(),
                        .rows = places_.data(),
                        .field = &layout_.field(i)};
  }
  done_ += count;
  out.SelectAll(count);
  return Step::kHaveMore;
}

// ─── Projection

class Projection::Task final : public execution::StepTask {
 public:
  explicit Task(const Projection& projection)
      : projection_(projection),
        condition_(projection.condition_->NewFrame()),
        outputs_(projection.outputs_->NewFrame()),
        kept_(kChunkRows),
        numbers_(projection.numbered_ ? kChunkRows : 0) {}

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    Selection rows = in.selection();
    if (projection_.condition_->outputs() > 0) {
      context.Charge(rows.count, plan::work_cost::kFilterRowPs);
      const std::optional<uint32_t> kept =
          execution::SelectWhere(*projection_.condition_, condition_, in, rows, kept_.data());
      if (!kept.has_value()) return context.Fail(condition_.error());
      rows = {kept_.data(), *kept};
    }
    out.Reset(in.size(), rows);
    return rows.count == 0 || Evaluate(in, rows, out) ? Step::kNeedInput : context.Fail(outputs_.error());
  }

 private:
  bool Evaluate(const Chunk& in, Selection rows, Chunk& out) {
    const Program& program = *projection_.outputs_;
    for (size_t i = 0; i < program.outputs(); ++i) {
      if (const std::optional<uint32_t> slot = program.slot_of(i); slot.has_value()) {
        out.columns()[i] = in.column(*slot);
        continue;
      }
      const Vector* const values = program.Evaluate(i, outputs_, in, rows);
      if (values == nullptr) return false;
      out.columns()[i] = ColumnOf(*values);
    }
    if (projection_.numbered_) {
      execution::ForEach(rows,
                         [&](uint32_t p) { numbers_[p] = next_ < kLastNumber ? next_++ : kLastNumber; });
      out.columns().back() = {.base = reinterpret_cast<const std::byte*>(numbers_.data())};
    }
    return true;
  }

  const Projection& projection_;
  execution::Frame condition_, outputs_;
  std::vector<uint32_t> kept_;
  std::vector<int64_t> numbers_;  // by position
  int64_t next_ = 0;
};

absl::StatusOr<std::unique_ptr<Projection>> Projection::Make(const Options& options) {
  std::unique_ptr<Projection> made(new Projection);
  std::vector<plan::Expr> conditions;
  if (options.condition.has_value()) conditions.push_back(*options.condition);
  NAM_ASSIGN_OR_RETURN(made->condition_, Program::Compile(conditions, options.input));
  NAM_ASSIGN_OR_RETURN(made->outputs_, Program::Compile(options.outputs, options.input));
  for (size_t i = 0; i < options.outputs.size(); ++i) {
    const std::optional<uint32_t> slot = made->outputs_->slot_of(i);
    made->schema_.push_back({.type = options.outputs[i].type,
                             .nullable = !slot.has_value() || options.input[*slot].nullable,
                             .bounds = made->outputs_->bounds(i)});
  }
  if (options.numbered) {
    made->schema_.push_back({.type = Type::Integer(), .nullable = false, .bounds = {0, kLastNumber, true}});
  }
  made->numbered_ = options.numbered;
  return made;
}

std::unique_ptr<execution::StepTask> Projection::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

// ─── ResultRows

class ResultRows::Task final : public execution::SinkTask {
 public:
  explicit Task(ResultRows& sink)
      : sink_(sink), frame_(sink.columns_->NewFrame()), columns_(sink.types_.size()), places_(kChunkRows) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection all = in.selection();
    const auto skip = static_cast<uint32_t>(std::min<uint64_t>(sink_.skip_, all.count));
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(sink_.left_, kChunkRows));
    sink_.skip_ -= skip;
    const Selection rows = Part(all, skip, most, places_);
    if (rows.count > 0) {
      context.Charge(rows.count, plan::work_cost::kFinishRowPs);
      for (size_t i = 0; i < columns_.size(); ++i) {
        columns_[i] = sink_.columns_->Evaluate(i, frame_, in, rows);
        if (columns_[i] == nullptr) return context.Fail(frame_.error());
      }
      const absl::Status added = sink_.Add(columns_, rows);
      if (!added.ok()) return context.Fail(added);
    }
    return sink_.Satisfied() ? Step::kDone : Step::kNeedInput;
  }

 private:
  ResultRows& sink_;
  execution::Frame frame_;
  std::vector<const Vector*> columns_;
  std::vector<uint32_t> places_;
};

absl::StatusOr<std::unique_ptr<ResultRows>> ResultRows::Make(const Options& options,
                                                             execution::MemoryBudget& budget) {
  std::vector<plan::Expr> slots = SlotExprs(options.input);
  NAM_CHECK(options.types.size() <= slots.size());
  slots.resize(options.types.size());
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> columns, Program::Compile(slots, options.input));
  return std::unique_ptr<ResultRows>(new ResultRows(options, std::move(columns), budget));
}

ResultRows::ResultRows(const Options& options, std::unique_ptr<const Program> columns,
                       execution::MemoryBudget& budget)
    : budget_(budget),
      columns_(std::move(columns)),
      types_(options.types.begin(), options.types.end()),
      skip_(options.offset),
      left_(options.limit.value_or(UINT64_MAX)) {}

std::unique_ptr<execution::SinkTask> ResultRows::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

absl::Status ResultRows::Add(const std::vector<const Vector*>& columns, Selection rows) {
  uint64_t bytes = rows.count * (kRowBytes + columns.size() * sizeof(Value));
  for (const Vector* column : columns) {
    if (column->physical != Physical::kText) continue;
    execution::ForEach(rows, [&](uint32_t p) {
      if (!column->null(p)) bytes += TextBytes(column->text[p].size());
    });
  }
  if (!budget_.Take(bytes)) return execution::OverBudget(budget_);
  charged_ += bytes;
  const size_t first = rows_.size();
  for (uint32_t j = 0; j < rows.count; ++j) rows_.emplace_back(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const Vector& column = *columns[i];
    for (uint32_t j = 0; j < rows.count; ++j) {
      Value& value = rows_[first + j][i];
      value.type = types_[i];
      value.null = column.null(rows[j]);
      if (value.null) continue;
      if (column.physical == Physical::kText) {
        value.text = column.text[rows[j]];
      } else {
        value.number = column.number(rows[j]);
      }
    }
  }
  left_ -= rows.count;
  return absl::OkStatus();
}

}  // namespace nam::session
