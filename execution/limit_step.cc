#include "execution/limit_step.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "execution/positions.h"
#include "plan/slot_of.h"
#include "plan/work_cost.h"

namespace nam::execution {

absl::StatusOr<std::unique_ptr<LimitOperator>> LimitOperator::Make(const plan::LimitStep& limit,
                                                                   const plan::Schema& input) {
  const auto offset = static_cast<uint64_t>(limit.offset);
  const uint64_t rows = limit.rows < 0 ? UINT64_MAX - offset : static_cast<uint64_t>(limit.rows);
  std::unique_ptr<const Program> ties;
  if (!limit.ties.empty() && rows > 0) {
    std::vector<plan::Expr> slots;
    for (const uint32_t slot : limit.ties) slots.push_back(plan::SlotExpr(input, slot));
    NAM_ASSIGN_OR_RETURN(ties, Program::Compile(slots, input));
  }
  return std::unique_ptr<LimitOperator>(new LimitOperator(offset, offset + rows, std::move(ties)));
}

class LimitOperator::Task final : public StepTask {
 public:
  explicit Task(LimitOperator& limit) : limit_(limit) {
    if (limit.ties_ == nullptr) return;
    frame_.emplace(limit.ties_->NewFrame());
    last_.resize(limit.ties_->outputs());
  }

  Step Push(TaskContext& context, const Chunk& in, Chunk& out) override {
    const Selection rows = in.selection();
    const uint64_t seen = limit_.seen_.fetch_add(rows.count, std::memory_order_relaxed);
    const uint64_t first = std::clamp(seen, limit_.offset_, limit_.end_);
    uint64_t behind = std::min(std::max(seen + rows.count, first), limit_.end_);
    bool done = behind == limit_.end_;
    if (done && limit_.ties_ != nullptr) {
      const auto from = static_cast<uint32_t>(behind - std::min(seen, behind));
      const std::optional<uint32_t> alike = Ties(context, in, seen < limit_.end_, from);
      if (!alike.has_value()) return context.Fail(frame_->error());
      done = from + *alike < rows.count;
      return PutOut(in, seen < first ? static_cast<uint32_t>(first - seen) : 0, from + *alike, done, out);
    }
    return PutOut(in, static_cast<uint32_t>(first - seen), static_cast<uint32_t>(behind - seen), done, out);
  }

 private:
  /// One value of the last tuple of the limit.
  struct Kept {
    bool null = false;
    __int128 number = 0;
    std::string text;
  };

  /// Passes the selected [from, to).
  static Step PutOut(const Chunk& in, uint32_t from, uint32_t to, bool done, Chunk& out) {
    const Selection rows = in.selection();
    out.columns() = in.columns();
    out.Reset(in.size(), from >= to ? Selection{nullptr, 0} : Selection{PositionsOf(rows) + from, to - from});
    return done ? Step::kDone : Step::kNeedInput;
  }

  /// How many of the selected from `from` on equal the limit's last tuple, which `here` is the one before
  /// them. nullopt if the frame has an error.
  std::optional<uint32_t> Ties(TaskContext& context, const Chunk& in, bool here, uint32_t from) {
    const Selection rows = in.selection();
    uint32_t alike = rows.count - from;
    for (size_t i = 0; i < last_.size(); ++i) {
      const Vector* const values = limit_.ties_->Evaluate(i, *frame_, in, rows);
      if (values == nullptr) return std::nullopt;
      if (here) Keep(*values, rows[from - 1], last_[i]);
      uint32_t same = 0;
      while (same < alike && Same(*values, rows[from + same], last_[i])) ++same;
      alike = same;
    }
    context.Charge(rows.count, plan::work_cost::kFilterRowPs);
    return alike;
  }

  static void Keep(const Vector& values, uint32_t at, Kept& kept) {
    kept.null = values.null(at);
    if (kept.null) return;
    if (values.physical == Physical::kText) {
      kept.text = values.text[at];
    } else {
      kept.number = values.number(at);
    }
  }
  static bool Same(const Vector& values, uint32_t at, const Kept& kept) {
    if (values.null(at) || kept.null) return values.null(at) == kept.null;
    return values.physical == Physical::kText ? values.text[at] == kept.text
                                              : values.number(at) == kept.number;
  }

  LimitOperator& limit_;
  std::optional<Frame> frame_;
  std::vector<Kept> last_;
};

std::unique_ptr<StepTask> LimitOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
