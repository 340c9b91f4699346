#include "execution/rows/values_source.h"

#include <algorithm>

#include "plan/work_cost.h"

namespace nam::execution {

ValuesSource::ValuesSource(const std::vector<std::vector<Value>>& rows, const plan::Schema& schema)
    : rows_(rows.size()) {
  for (size_t slot = 0; slot < schema.size(); ++slot) {
    Values& values = slots_.emplace_back();
    const Physical physical = PhysicalOf(schema[slot].type);
    const bool number = physical != Physical::kText && physical != Physical::kTruth;
    values.physical = number ? Physical::kInt128 : physical;
    for (const std::vector<Value>& row : rows) {
      const Value& value = row[slot];
      if (physical == Physical::kTruth) {
        values.truths.push_back(value.null ? kUnknown : value.number != 0 ? kTrue : kFalse);
        continue;
      }
      values.nulls.push_back(value.null);
      if (number) {
        values.numbers.push_back(value.null ? 0 : value.number);
      } else {
        values.texts.push_back(value.null ? std::string_view() : std::string_view(value.text));
      }
    }
  }
}

class ValuesSource::Task final : public SourceTask {
 public:
  explicit Task(ValuesSource& source) : source_(source) {}

  Step Next(TaskContext& context, Chunk& out) override {
    const size_t first = source_.next_.fetch_add(kChunkRows, std::memory_order_relaxed);
    out.SelectAll(0);
    if (first >= source_.rows_) return Step::kDone;
    for (size_t i = 0; i < source_.slots_.size(); ++i) out.columns()[i] = ColumnOf(source_.slots_[i], first);
    out.SelectAll(static_cast<uint32_t>(std::min<size_t>(kChunkRows, source_.rows_ - first)));
    context.Charge(out.size(), plan::work_cost::kFinishRowPs);
    return Step::kHaveMore;
  }

 private:
  static Column ColumnOf(const Values& values, size_t first) {
    const void* base = values.numbers.data() + first;
    if (values.physical == Physical::kText) base = values.texts.data() + first;
    if (values.physical == Physical::kTruth) base = values.truths.data() + first;
    return {.kind = Column::Kind::kValues,
            .width = WidthOf(values.physical),
            .physical = values.physical,
            .base = static_cast<const std::byte*>(base),
            .nulls = values.physical == Physical::kTruth ? nullptr : values.nulls.data() + first};
  }

  ValuesSource& source_;
};

std::unique_ptr<SourceTask> ValuesSource::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
