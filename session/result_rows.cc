#include "session/result_rows.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "plan/slot_of.h"
#include "plan/work_cost.h"

namespace nam::session {
namespace {

using execution::Chunk;
using execution::Program;
using execution::Selection;
using execution::Step;
using execution::TaskContext;
using execution::Vector;

/// What a row takes beside its values. A vector that grows holds its elements twice, and room for as many.
constexpr uint64_t kRowBytes = 3 * sizeof(std::vector<Value>);

/// What a value takes in memory beside the Value itself.
uint64_t TextBytes(size_t bytes) {
  constexpr size_t kWithin = 15;  // held by std::string itself
  return bytes <= kWithin ? 0 : bytes + 1;
}

}  // namespace

class ResultRows::Task final : public execution::SinkTask {
 public:
  explicit Task(ResultRows& sink)
      : sink_(sink), frame_(sink.columns_->NewFrame()), columns_(sink.types_.size()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection rows = in.selection();
    if (rows.count == 0) return Step::kNeedInput;
    context.Charge(rows.count, plan::work_cost::kFinishRowPs);
    for (size_t i = 0; i < columns_.size(); ++i) {
      columns_[i] = sink_.columns_->Evaluate(i, frame_, in, rows);
      if (columns_[i] == nullptr) return context.Fail(frame_.error());
    }
    const absl::Status added = sink_.Add(columns_, rows);
    return added.ok() ? Step::kNeedInput : context.Fail(added);
  }

 private:
  ResultRows& sink_;
  execution::Frame frame_;
  std::vector<const Vector*> columns_;
};

absl::StatusOr<std::unique_ptr<ResultRows>> ResultRows::Make(const plan::Schema& input,
                                                             std::vector<Type> types,
                                                             execution::MemoryBudget& budget) {
  NAM_CHECK(types.size() == input.size(), "a type for each column");
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> columns,
                       Program::Compile(plan::SlotExprs(input), input));
  return std::unique_ptr<ResultRows>(new ResultRows(std::move(types), std::move(columns), budget));
}

ResultRows::ResultRows(std::vector<Type> types, std::unique_ptr<const Program> columns,
                       execution::MemoryBudget& budget)
    : budget_(budget), columns_(std::move(columns)), types_(std::move(types)) {}

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
  return absl::OkStatus();
}

}  // namespace nam::session
