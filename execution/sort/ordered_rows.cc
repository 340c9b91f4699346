#include "execution/sort/ordered_rows.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// The range that a task takes of an order that several read.
constexpr uint64_t kRangeRows = 8 * kChunkRows;

/// Restores the heap below `at`, whose run's first row has changed: runs[0] has the least row.
void SiftDown(const RowOrder& order, std::vector<std::span<const OrderedRow>>& runs, size_t at) {
  while (true) {
    size_t least = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < runs.size(); ++child) {
      if (order.Before(runs[child].front(), runs[least].front())) least = child;
    }
    if (least == at) return;
    std::swap(runs[at], runs[least]);
    at = least;
  }
}

}  // namespace

SpanMerge::SpanMerge(const RowOrder& order, std::vector<std::span<const OrderedRow>> spans)
    : order_(order), spans_(std::move(spans)) {
  std::erase_if(spans_, [](std::span<const OrderedRow> span) { return span.empty(); });
  for (size_t i = spans_.size() / 2; i-- > 0;) SiftDown(order_, spans_, i);
}

uint64_t SpanMerge::Take(OrderedRow* out, uint64_t most) {
  OrderedRow* const first = out;
  for (; most > 0 && spans_.size() > 1; --most) {
    *out++ = spans_[0].front();
    spans_[0] = spans_[0].subspan(1);
    if (spans_[0].empty()) {
      spans_[0] = spans_.back();
      spans_.pop_back();
    }
    SiftDown(order_, spans_, 0);
  }
  if (most > 0 && !spans_.empty()) {
    const std::span<const OrderedRow> last = spans_[0].first(std::min<uint64_t>(most, spans_[0].size()));
    out = std::copy(last.begin(), last.end(), out);
    spans_[0] = spans_[0].subspan(last.size());
    if (spans_[0].empty()) spans_.clear();
  }
  return static_cast<uint64_t>(out - first);
}

absl::Status MergeRuns(TaskContext& context, const RowOrder& order,
                       std::vector<std::span<const OrderedRow>> runs, OrderedRow* out) {
  SpanMerge merge(order, std::move(runs));
  while (true) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    const uint64_t taken = merge.Take(out, kRunRows);
    if (taken == 0) return absl::OkStatus();
    out += taken;
  }
}

void OrderedRows::Read(uint64_t first, uint32_t count, uint32_t* numbers, Chunk& out) const {
  for (uint32_t j = 0; j < count; ++j) numbers[j] = rows_[first + j].row;
  for (size_t i = 0; i < plan_.schema().size(); ++i) out.columns()[i] = table_.ColumnOf(i, numbers);
  out.SelectAll(count);
}

absl::Status OrderedRows::Store(TaskContext& context, uint64_t attempt,
                                std::vector<std::span<const std::byte>>& pages) {
  NAM_ASSIGN_OR_RETURN(stored_, RowTable::Make(plan_.layout(), budget_, PagesMax(plan_.layout(), budget_)));
  RowAppender appender(*stored_, plan_.slots());
  std::vector<uint32_t> numbers(kChunkRows);
  Chunk chunk(plan_.schema().size(), 0);
  for (uint64_t done = 0; done < size_; done += kChunkRows) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    Read(done, static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, size_ - done)), numbers.data(), chunk);
    context.Charge(chunk.size(), plan::work_cost::kFinishRowPs);
    NAM_RETURN_IF_ERROR(appender.Append(chunk, chunk.selection(), nullptr));
  }
  SealPages(*stored_, attempt, pages);
  return absl::OkStatus();
}

OrderedSource::OrderedSource(const OrderedRows& rows, const Options& options)
    : rows_(rows),
      range_rows_(options.in_order ? UINT64_MAX : kRangeRows),
      end_(options.offset + std::min(options.limit, UINT64_MAX - options.offset)),
      next_(options.offset) {}

class OrderedSource::Task final : public SourceTask {
 public:
  explicit Task(OrderedSource& source)
      : source_(source), numbers_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {}

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    if (done_ == range_end_ && !NextRange()) return Step::kDone;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, range_end_ - done_));
    source_.rows_.Read(done_, count, numbers_.get(), out);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    return Step::kHaveMore;
  }

 private:
  bool NextRange() {
    const uint64_t end = std::min(source_.end_, source_.rows_.size());
    uint64_t first = source_.next_.load(std::memory_order_relaxed);
    do {
      if (first >= end) return false;
      range_end_ = first + std::min(source_.range_rows_, end - first);
    } while (!source_.next_.compare_exchange_weak(first, range_end_, std::memory_order_relaxed));
    done_ = first;
    return true;
  }

  OrderedSource& source_;
  uint64_t done_ = 0, range_end_ = 0;
  std::unique_ptr<uint32_t[]> numbers_;
};

std::unique_ptr<SourceTask> OrderedSource::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

}  // namespace nam::execution
