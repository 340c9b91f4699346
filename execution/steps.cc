#include "execution/steps.h"

#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "execution/expression/vector_column.h"
#include "execution/positions.h"
#include "execution/take_along.h"
#include "plan/work_cost.h"

namespace nam::execution {

class FilterOperator::Task final : public StepTask {
 public:
  explicit Task(const Program& conditions) : conditions_(conditions), frame_(conditions.NewFrame()) {}

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const Selection rows = in.selection();
    context.Charge(rows.count, plan::work_cost::kFilterRowPs);
    const std::optional<uint32_t> kept = SelectWhere(conditions_, frame_, in, rows, positions_);
    if (!kept.has_value()) return context.Fail(frame_.error());
    out.columns() = in.columns();
    out.Reset(in.size(), {positions_, *kept});
    return Step::kNeedInput;
  }

 private:
  const Program& conditions_;
  Frame frame_;
  uint32_t positions_[kChunkRows];
};

std::unique_ptr<StepTask> FilterOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*conditions_);
}

class ProjectOperator::Task final : public StepTask {
 public:
  explicit Task(const Program& outputs) : outputs_(outputs), frame_(outputs.NewFrame()) {}

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const Selection rows = in.selection();
    for (size_t i = 0; i < outputs_.outputs(); ++i) {
      if (const std::optional<uint32_t> slot = outputs_.slot_of(i)) {
        out.columns()[i] = in.column(*slot);
        continue;
      }
      context.Charge(rows.count, plan::work_cost::kFilterRowPs);
      const Vector* const values = outputs_.Evaluate(i, frame_, in, rows);
      if (values == nullptr) return context.Fail(frame_.error());
      // The register stays as it is until the next chunk, as the output has to.
      out.columns()[i] = ColumnOf(*values);
    }
    out.Reset(in.size(), rows);
    return Step::kNeedInput;
  }

 private:
  const Program& outputs_;
  Frame frame_;
};

std::unique_ptr<StepTask> ProjectOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*outputs_);
}

ExpandOperator::ExpandOperator(plan::ExpandStep expand, const plan::Schema& input)
    : expand_(std::move(expand)), input_columns_(input.size()) {
  for (const uint32_t key : expand_.keys) keys_.push_back(PhysicalOf(input[key].type));
  for (const std::vector<uint32_t>& set : expand_.sets) {
    std::vector<uint8_t>& has = has_.emplace_back(expand_.keys.size(), uint8_t{0});
    for (const uint32_t place : set) has[place] = 1;
    numbers_.push_back(std::ssize(numbers_));
  }
}

class ExpandOperator::Task final : public StepTask {
 public:
  explicit Task(const ExpandOperator& expand) : expand_(expand) {}

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const std::vector<uint8_t>& has = expand_.has_[set_];
    const size_t columns = expand_.input_columns_, keys = has.size();
    std::copy_n(in.columns().begin(), columns, out.columns().begin());
    for (size_t k = 0; k < keys; ++k) {
      out.columns()[columns + k] =
          has[k] != 0 ? in.column(expand_.expand_.keys[k]) : NullColumn(expand_.keys_[k]);
    }
    out.columns()[columns + keys] = {.kind = Column::Kind::kConstant,
                                     .base = reinterpret_cast<const std::byte*>(&expand_.numbers_[set_])};
    out.Reset(in.size(), in.selection());
    context.Charge(in.selection().count, plan::work_cost::kFirstFilterRowPs);
    set_ = set_ + 1 < expand_.has_.size() ? set_ + 1 : 0;
    return set_ > 0 ? Step::kHaveMore : Step::kNeedInput;
  }

 private:
  const ExpandOperator& expand_;
  size_t set_ = 0;  // emitted by the next call
};

std::unique_ptr<StepTask> ExpandOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

absl::StatusOr<std::unique_ptr<RepeatOperator>> RepeatOperator::Make(const plan::RepeatStep& repeat,
                                                                     const plan::Schema& input,
                                                                     uint32_t input_row_sets) {
  plan::Expr times;
  times.op = plan::Op::kColumn;
  times.type = input[repeat.times].type;
  times.column = {0, static_cast<int>(repeat.times)};
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> program, Program::Compile({&times, 1}, input));
  return std::unique_ptr<RepeatOperator>(
      new RepeatOperator(input.size(), std::move(program), input_row_sets));
}

class RepeatOperator::Task final : public StepTask {
 public:
  explicit Task(const RepeatOperator& repeat)
      : repeat_(repeat), frame_(repeat.times_->NewFrame()), along_(repeat.input_row_sets_) {
    for (uint32_t slot = 0; slot < repeat.columns_; ++slot) slots_.push_back(slot);
  }

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const Selection rows = in.selection();
    if (times_ == nullptr) {
      times_ = repeat_.times_->Evaluate(0, frame_, in, rows);
      if (times_ == nullptr) return context.Fail(frame_.error());
      at_ = 0;
      left_ = Times(rows);
    }
    uint32_t* const positions = out.row_set(0);
    uint32_t count = 0;
    while (at_ < rows.count && count < kChunkRows) {
      const auto part = static_cast<uint32_t>(std::min<__int128>(left_, kChunkRows - count));
      std::fill_n(positions + count, part, rows[at_]);
      count += part;
      left_ -= part;
      if (left_ > 0) break;
      if (++at_ < rows.count) left_ = Times(rows);
    }
    along_.Gather(in, slots_, positions, 0, count, 1, out);
    out.SelectAll(count);
    context.Charge(count, plan::work_cost::kPartnerRowPs);
    if (at_ < rows.count) return Step::kHaveMore;
    times_ = nullptr;
    return Step::kNeedInput;
  }

 private:
  /// How often the tuple at at_ is emitted.
  __int128 Times(Selection rows) const {
    const uint32_t position = rows[at_];
    return times_->null(position) ? 0 : std::max<__int128>(times_->number(position), 0);
  }

  const RepeatOperator& repeat_;
  Frame frame_;
  ColumnsAlong along_;
  std::vector<uint32_t> slots_;
  // State of the current input chunk:
  const Vector* times_ = nullptr;
  uint32_t at_ = 0;    // position in the selection
  __int128 left_ = 0;  // remaining emissions of the tuple there
};

std::unique_ptr<StepTask> RepeatOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
