#include "execution/series_step.h"

#include <vector>

#include "base/status_macros.h"
#include "execution/take_along.h"
#include "plan/work_cost.h"
#include "types/interval.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

absl::Status StepOfZero() {
  return UserError(sqlstate::kBadParameter, "step size cannot equal zero", -1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SeriesOperator>> SeriesOperator::Make(const plan::SeriesStep& series,
                                                                     const plan::Schema& input,
                                                                     uint32_t input_row_sets,
                                                                     MemoShare* memos) {
  const plan::Expr ends[] = {series.first, series.last, series.step};
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> program, Program::Compile(ends, input, memos));
  return std::unique_ptr<SeriesOperator>(new SeriesOperator(
      input.size(), series.step.type.kind == TypeKind::kInterval, std::move(program), input_row_sets));
}

class SeriesOperator::Task final : public StepTask {
 public:
  explicit Task(const SeriesOperator& series)
      : series_(series),
        frame_(series.ends_->NewFrame()),
        along_(series.input_row_sets_),
        numbers_(std::make_unique_for_overwrite<__int128[]>(kChunkRows)) {
    for (uint32_t slot = 0; slot < series.input_columns_; ++slot) slots_.push_back(slot);
  }

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const Selection rows = in.selection();
    if (!pushing_) {
      if (!Evaluate(in, rows)) return context.Fail(frame_.error());
      pushing_ = true;
      at_ = 0;
      if (absl::Status begun = Begin(rows); !begun.ok()) return context.Fail(std::move(begun));
    }
    uint32_t* const positions = out.row_set(0);
    uint32_t count = 0;
    while (at_ < rows.count && count < kChunkRows) {
      if (!live_) {
        ++at_;
        if (absl::Status begun = Begin(rows); !begun.ok()) return context.Fail(std::move(begun));
        continue;
      }
      positions[count] = rows[at_];
      numbers_[count++] = next_;
      if (absl::Status moved = Move(); !moved.ok()) return context.Fail(std::move(moved));
    }
    along_.Gather(in, slots_, positions, 0, count, 1, out);
    out.columns()[series_.input_columns_] = {.kind = Column::Kind::kValues,
                                             .width = WidthOf(Physical::kInt128),
                                             .physical = Physical::kInt128,
                                             .base = reinterpret_cast<const std::byte*>(numbers_.get())};
    out.SelectAll(count);
    context.Charge(count, plan::work_cost::kPartnerRowPs);
    if (at_ < rows.count) return Step::kHaveMore;
    pushing_ = false;
    return Step::kNeedInput;
  }

 private:
  bool Evaluate(const Chunk& in, Selection rows) {
    first_ = series_.ends_->Evaluate(0, frame_, in, rows);
    if (first_ != nullptr) last_ = series_.ends_->Evaluate(1, frame_, in, rows);
    if (first_ != nullptr && last_ != nullptr) step_ = series_.ends_->Evaluate(2, frame_, in, rows);
    return first_ != nullptr && last_ != nullptr && step_ != nullptr;
  }

  /// Begins the series of the tuple at at_.
  absl::Status Begin(Selection rows) {
    live_ = false;
    if (at_ >= rows.count) return absl::OkStatus();
    const uint32_t position = rows[at_];
    if (first_->null(position) || last_->null(position) || step_->null(position)) return absl::OkStatus();
    next_ = first_->number(position);
    end_ = last_->number(position);
    by_ = step_->number(position);
    const __int128 sign = series_.times_ ? SpanOf(UnpackInterval(by_)) : by_;
    if (sign == 0) return StepOfZero();
    falls_ = sign < 0;
    live_ = falls_ ? next_ >= end_ : next_ <= end_;
    return absl::OkStatus();
  }

  /// Moves to the next number.
  absl::Status Move() {
    if (series_.times_) {
      const absl::StatusOr<int64_t> moved =
          AddToTimestamp(static_cast<int64_t>(next_), UnpackInterval(by_), 1);
      if (!moved.ok()) return UserError(sqlstate::kDateOutOfRange, "timestamp out of range", -1);
      next_ = *moved;
    } else if (__builtin_add_overflow(next_, by_, &next_)) {
      live_ = false;
      return absl::OkStatus();
    }
    live_ = falls_ ? next_ >= end_ : next_ <= end_;
    return absl::OkStatus();
  }

  const SeriesOperator& series_;
  Frame frame_;
  ColumnsAlong along_;
  std::vector<uint32_t> slots_;
  const std::unique_ptr<__int128[]> numbers_;  // of the chunk emitted last
  // State of the current input chunk:
  bool pushing_ = false;
  const Vector *first_ = nullptr, *last_ = nullptr, *step_ = nullptr;
  uint32_t at_ = 0;  // position in the selection
  // State of the tuple there:
  bool live_ = false;   // next_ belongs to it
  bool falls_ = false;  // its step is negative
  __int128 next_ = 0, end_ = 0, by_ = 0;
};

std::unique_ptr<StepTask> SeriesOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
