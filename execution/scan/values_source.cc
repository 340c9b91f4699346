#include "execution/scan/values_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "plan/work_cost.h"

namespace nam::execution {

class ValuesSource::Task final : public SourceTask {
 public:
  explicit Task(ValuesSource& source) : source_(source) {
    for (const plan::Slot& slot : source.schema_) {
      Array& array = arrays_.emplace_back();
      array.physical = PhysicalOf(slot.type);
      array.values = std::make_unique<std::byte[]>(kChunkRows * WidthOf(array.physical));
      array.nulls = std::make_unique<uint8_t[]>(kChunkRows);
    }
  }

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
    const size_t first = source_.next_.fetch_add(kChunkRows, std::memory_order_relaxed);
    if (first >= source_.rows_.size()) return Step::kDone;
    const auto count = static_cast<uint32_t>(std::min<size_t>(kChunkRows, source_.rows_.size() - first));
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Array& array = arrays_[i];
      for (uint32_t p = 0; p < count; ++p) Put(array, p, source_.rows_[first + p][i]);
      out.columns()[i] = {.kind = Column::Kind::kValues,
                          .width = WidthOf(array.physical),
                          .physical = array.physical,
                          .base = array.values.get(),
                          .nulls = array.physical == Physical::kTruth ? nullptr : array.nulls.get()};
    }
    context.Charge(count, plan::work_cost::kSinkRowPs);
    out.SelectAll(count);
    return Step::kHaveMore;
  }

 private:
  struct Array {
    Physical physical = Physical::kInt64;
    std::unique_ptr<std::byte[]> values;
    std::unique_ptr<uint8_t[]> nulls;
  };

  template <typename T>
  static void Set(const Array& array, uint32_t p, T value) {
    reinterpret_cast<T*>(array.values.get())[p] = value;
  }
  static void Put(const Array& array, uint32_t p, const Value& value) {
    array.nulls[p] = value.null;
    switch (array.physical) {
      case Physical::kTruth:
        return Set<uint8_t>(array, p, value.null ? kUnknown : static_cast<uint8_t>(value.number));
      case Physical::kInt64:
        return Set(array, p, static_cast<int64_t>(value.number));
      case Physical::kText:
        return Set(array, p, std::string_view(value.text));
      default:
        return Set(array, p, value.number);
    }
  }

  ValuesSource& source_;
  std::vector<Array> arrays_;
};

std::unique_ptr<SourceTask> ValuesSource::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
