#include "session/result_rows.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/expression/value_vector.h"
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

}  // namespace

class ResultRows::Task final : public execution::SinkTask {
 public:
  explicit Task(ResultRows& sink)
      : sink_(sink), frame_(sink.values_->NewFrame()), columns_(sink.columns_.size()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection rows = in.selection();
    if (rows.count == 0) return Step::kNeedInput;
    context.Charge(rows.count, plan::work_cost::kFinishRowPs);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Vector* const values = sink_.values_->Evaluate(i, frame_, in, rows);
      if (values == nullptr) return context.Fail(frame_.error());
      columns_[i] = execution::ValueColumnOf(*values, sink_.columns_[i].type);
    }
    const absl::Status added = sink_.Add({columns_, rows.positions, rows.count});
    return added.ok() ? Step::kNeedInput : context.Fail(added);
  }

 private:
  ResultRows& sink_;
  execution::Frame frame_;
  std::vector<ResultBatch::Column> columns_;
};

absl::StatusOr<std::unique_ptr<ResultRows>> ResultRows::Make(const plan::Schema& input,
                                                             std::vector<ResultSet::Column> columns,
                                                             RowReceiver& receiver,
                                                             execution::MemoryBudget& budget) {
  NAM_CHECK(columns.size() == input.size(), "a type for each column");
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> values,
                       Program::Compile(plan::SlotExprs(input), input));
  return std::unique_ptr<ResultRows>(new ResultRows(std::move(columns), std::move(values), receiver, budget));
}

ResultRows::ResultRows(std::vector<ResultSet::Column> columns, std::unique_ptr<const Program> values,
                       RowReceiver& receiver, execution::MemoryBudget& budget)
    : columns_(std::move(columns)), values_(std::move(values)), receiver_(receiver), budget_(budget) {}

std::unique_ptr<execution::SinkTask> ResultRows::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

absl::Status ResultRows::Begin() {
  if (std::exchange(begun_, true)) return absl::OkStatus();
  return receiver_.Begin(columns_);
}

absl::Status ResultRows::Add(const ResultBatch& rows) {
  NAM_RETURN_IF_ERROR(Begin());
  NAM_RETURN_IF_ERROR(receiver_.Add(rows));
  rows_ += rows.rows();
  const uint64_t held = receiver_.bytes_held();
  if (held > charged_ && !budget_.Reserve(held - charged_)) return execution::OverBudget(budget_);
  if (held < charged_) budget_.Release(charged_ - held);
  charged_ = held;
  return absl::OkStatus();
}

absl::Status ResultRows::End() {
  return Begin();
}

}  // namespace nam::session
