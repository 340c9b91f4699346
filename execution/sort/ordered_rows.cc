#include "execution/sort/ordered_rows.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// Restores the heap below `at`, whose run's first row has changed: runs[0] has the row that stands first.
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

absl::Status MergeRuns(TaskContext& context, const RowOrder& order,
                       std::vector<std::span<const OrderedRow>> runs, OrderedRow* out) {
  std::erase_if(runs, [](std::span<const OrderedRow> run) { return run.empty(); });
  for (size_t i = runs.size() / 2; i-- > 0;) SiftDown(order, runs, i);
  while (runs.size() > 1) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    for (uint32_t i = 0; i < kRunRows && runs.size() > 1; ++i) {
      *out++ = runs[0].front();
      runs[0] = runs[0].subspan(1);
      if (runs[0].empty()) {
        runs[0] = runs.back();
        runs.pop_back();
      }
      SiftDown(order, runs, 0);
    }
  }
  if (!runs.empty()) std::copy(runs[0].begin(), runs[0].end(), out);
  return absl::OkStatus();
}

class OrderedRows::Task final : public SourceTask {
 public:
  explicit Task(const OrderedRows& rows)
      : rows_(rows), numbers_(std::make_unique_for_overwrite<uint32_t[]>(kChunkRows)) {}

  Step Next(TaskContext& context, Chunk& out) override {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kChunkRows, rows_.size() - done_));
    for (uint32_t j = 0; j < count; ++j) numbers_[j] = rows_.rows_[done_ + j].row;
    for (size_t i = 0; i < rows_.plan_.schema().size(); ++i) {
      out.columns()[i] = rows_.table_.ColumnOf(i, numbers_.get());
    }
    out.SelectAll(count);
    done_ += count;
    context.Charge(count, plan::work_cost::kFinishRowPs);
    return count > 0 ? Step::kHaveMore : Step::kDone;
  }

 private:
  const OrderedRows& rows_;
  uint64_t done_ = 0;
  std::unique_ptr<uint32_t[]> numbers_;
};

std::unique_ptr<SourceTask> OrderedRows::NewSourceTask() const {
  return std::make_unique<Task>(*this);
}

absl::Status OrderedRows::Store(TaskContext& context, uint64_t attempt,
                                std::vector<std::span<const std::byte>>& pages) {
  NAM_ASSIGN_OR_RETURN(stored_, RowTable::Make(plan_.layout(), budget_, PagesMax(plan_.layout(), budget_)));
  RowAppender appender(*stored_, plan_.slots());
  Task task(*this);
  Chunk chunk(plan_.schema().size(), 0);
  while (task.Next(context, chunk) == Step::kHaveMore) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    NAM_RETURN_IF_ERROR(appender.Append(chunk, chunk.selection(), nullptr));
  }
  SealPages(*stored_, attempt, pages);
  return absl::OkStatus();
}

}  // namespace nam::execution
