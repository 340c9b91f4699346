#include "execution/rows/page_source.h"

#include <algorithm>

#include "execution/rows/page_columns.h"
#include "plan/work_cost.h"

namespace nam::execution {

class PageSource::Task final : public SourceTask {
 public:
  explicit Task(PageSource& source) : source_(source) {}

  Step Next(TaskContext& context, Chunk& out) override {
    const RowLayout& layout = source_.layout_;
    out.SelectAll(0);
    while (done_ == rows_) {
      if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
      const Step step = NextPage(context);
      if (step != Step::kHaveMore) return step;
    }
    const uint32_t count = std::min(kChunkRows, rows_ - done_);
    columns_.Show(layout, page_, done_, count, out);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    return Step::kHaveMore;
  }

 private:
  /// kHaveMore: there is one, perhaps without rows.
  Step NextPage(TaskContext& context) {
    const uint32_t number = source_.next_page_.fetch_add(1, std::memory_order_relaxed);
    page_ = source_.PageAt(number);
    if (page_ == nullptr) return Step::kDone;
    if (source_.table_ == nullptr) {
      context.Charge(source_.pages_[number].size(), plan::work_cost::kChecksumBytePs);
      const absl::Status status = source_.layout_.CheckPage(source_.pages_[number], source_.attempt_);
      if (!status.ok()) return context.Fail(status);
    }
    rows_ = source_.table_ == nullptr ? PageHeaderOf(page_).rows : source_.table_->page_rows(number);
    done_ = 0;
    return Step::kHaveMore;
  }

  PageSource& source_;
  const std::byte* page_ = nullptr;
  uint32_t done_ = 0, rows_ = 0;
  PageColumns columns_;
};

const std::byte* PageSource::PageAt(uint32_t number) const {
  if (table_ != nullptr) return number < table_->pages() ? table_->page(number) : nullptr;
  return number < pages_.size() ? pages_[number].data() : nullptr;
}

std::unique_ptr<SourceTask> PageSource::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
