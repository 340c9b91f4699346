#include "execution/steps.h"

#include <algorithm>
#include <optional>

#include "execution/positions.h"
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
      out.columns()[i] = ColumnOf(*values);
    }
    out.Reset(in.size(), rows);
    return Step::kNeedInput;
  }

 private:
  /// The register stays as it is until the next chunk, as the output has to.
  static Column ColumnOf(const Vector& values) {
    Column column;
    column.physical = values.physical;
    column.width = WidthOf(values.physical);
    column.base = reinterpret_cast<const std::byte*>(values.narrow);
    column.nulls = values.physical == Physical::kTruth ? nullptr : values.nulls;
    return column;
  }

  const Program& outputs_;
  Frame frame_;
};

std::unique_ptr<StepTask> ProjectOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*outputs_);
}

class LimitOperator::Task final : public StepTask {
 public:
  explicit Task(LimitOperator& limit) : limit_(limit) {}

  Step Push(TaskContext&, const Chunk& in, Chunk& out) override {
    const Selection rows = in.selection();
    const uint64_t seen = limit_.seen_.fetch_add(rows.count, std::memory_order_relaxed);
    const uint64_t first = std::clamp(seen, limit_.offset_, limit_.end_);
    const uint64_t behind = std::min(std::max(seen + rows.count, first), limit_.end_);
    const auto count = static_cast<uint32_t>(behind - first);
    out.columns() = in.columns();
    out.Reset(in.size(),
              count == 0 ? Selection{nullptr, 0} : Selection{PositionsOf(rows) + (first - seen), count});
    return behind == limit_.end_ ? Step::kDone : Step::kNeedInput;
  }

 private:
  LimitOperator& limit_;
};

std::unique_ptr<StepTask> LimitOperator::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
