#include "execution/aggregate/aggregate_sink.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "execution/aggregate/charge_groups.h"
#include "execution/rows/row_appender.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"

namespace nam::execution {
namespace {

/// Fewer groups of all threads than this are merged faster than a part starts.
constexpr uint64_t kPartGroups = 4096;
/// A task with so many groups divides them when it ends, in parallel with the others.
constexpr uint32_t kDivideGroups = 1024;

/// Numbers n with n * parts / numbers == part, see Groups::PartOf.
Groups::Range RangeOf(uint64_t numbers, uint32_t part, uint32_t parts) {
  const auto first = [&](uint64_t p) { return (p * numbers + parts - 1) / parts; };
  return {.first = first(part), .count = first(part + 1) - first(part)};
}

class Task final : public SinkTask {
 public:
  Task(const AggregatePlan& plan, GroupSet& set) : plan_(plan), set_(set) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    const absl::Status status = set_.Consume(in);
    if (!status.ok()) return context.Fail(status);
    ChargeGroups(context, plan_, set_, in.selection().count);
    return Step::kNeedInput;
  }

  Step Finish(TaskContext& context) override {
    if (set_.size() < kDivideGroups) return Step::kDone;
    const absl::Status status = set_.Divide();
    return status.ok() ? Step::kDone : context.Fail(status);
  }

 private:
  const AggregatePlan& plan_;
  GroupSet& set_;
};

}  // namespace

AggregateSink::AggregateSink(const AggregatePlan& plan, MemoryBudget& budget, std::vector<uint32_t> totals)
    : plan_(plan), budget_(budget), totals_(std::move(totals)), rows_(plan, budget) {}

AggregateSink::~AggregateSink() = default;

std::unique_ptr<Source> AggregateSink::RowsAtRest(bool /*in_order*/) {
  return std::make_unique<AggregateSource>(*this, totals_);
}

void AggregateSink::Count(proto::PipelineCounters& out) const {
  out.set_by_row_nodes(out.by_row_nodes() + plan_.program().by_row_nodes());
}

GroupSet& AggregateSink::NewSet() {
  auto set = std::make_unique<GroupSet>(plan_, rows_, budget_);
  const MutexLock lock(mutex_);
  sets_.push_back(std::move(set));
  return *sets_.back();
}

std::unique_ptr<SinkTask> AggregateSink::NewTask(TaskContext&) {
  NAM_CHECK(plan_.input() == AggregateInput::kRows || !plan_.has_distinct(),
            "pairs come in by StoredGroups alone");
  return std::make_unique<Task>(plan_, NewSet());
}

uint32_t AggregateSink::CombineParts() {
  std::erase_if(sets_, [](const auto& set) { return set->size() == 0; });
  if (sets_.size() <= 1) {
    results_ = std::move(sets_);
    return 0;
  }
  combine_error_ = PrepareCombine();
  if (!combine_error_.ok()) parts_ = 1;
  parts_left_ = parts_;
  return parts_;
}

absl::Status AggregateSink::PrepareCombine() {
  uint64_t groups = 0;
  for (const auto& set : sets_) groups += set->size();
  const bool rows = std::any_of(sets_.begin(), sets_.end(),
                                [](const auto& set) { return set->form() == GroupForm::kRows; });
  parts_ =
      static_cast<uint32_t>(std::bit_floor(std::clamp<uint64_t>(groups / kPartGroups, 1, Buckets::kBuckets)));
  if (parts_ == 1) {
    results_.push_back(std::move(sets_.front()));
    sets_.erase(sets_.begin());
    if (rows) NAM_RETURN_IF_ERROR(results_[0]->ChangeToRows());
  } else {
    results_.resize(parts_);
  }
  for (const auto& set : sets_) {
    const bool other_form = rows && set->form() != GroupForm::kRows;
    if (other_form) NAM_RETURN_IF_ERROR(set->ChangeToRows());
    if (other_form || !set->divided()) NAM_RETURN_IF_ERROR(set->Divide());
  }
  return absl::OkStatus();
}

absl::Status AggregateSink::Combine(TaskContext& context, uint32_t part) {
  NAM_RETURN_IF_ERROR(combine_error_);
  std::unique_ptr<GroupSet>& result = results_[part];
  if (result == nullptr) {
    // Sets that have become rows ignore the range.
    const Groups::Range range = plan_.keys().form() == GroupForm::kDirect
                                    ? RangeOf(plan_.keys().numbers(), part, parts_)
                                    : Groups::Range();
    result = std::make_unique<GroupSet>(plan_, rows_, budget_, range);
    if (sets_.front()->form() == GroupForm::kRows) NAM_RETURN_IF_ERROR(result->ChangeToRows());
  }
  for (const auto& set : sets_) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    NAM_RETURN_IF_ERROR(result->MergePart(*set, part, parts_));
    context.Charge(set->PartSize(part, parts_), plan::work_cost::kCombineGroupPs);
    ChargeGroups(context, plan_, *result, set->PartSize(part, parts_));
  }
  // A few groups can wait for the sink's end.
  if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) == 1 && parts_ > 1) sets_.clear();
  return absl::OkStatus();
}

absl::Status AggregateSink::Store(TaskContext& context, uint64_t attempt,
                                  std::vector<std::span<const std::byte>>& pages) {
  NAM_RETURN_IF_ERROR(StoreGroups(context));
  for (size_t a = 0, distinct = 0; a < plan_.size(); ++a) {
    if (plan_.aggregate(a).pairs != nullptr) {
      NAM_RETURN_IF_ERROR(StorePairs(context, distinct++, *plan_.aggregate(a).pairs));
    }
  }
  for (const std::unique_ptr<RowTable>& table : stored_) SealPages(*table, attempt, pages);
  return absl::OkStatus();
}

absl::Status AggregateSink::StoreGroups(TaskContext& context) {
  const RowLayout& layout = plan_.partial_layout();
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(layout, budget_, PagesMax(layout, budget_)));
  RowAppender appender(*table, plan_.partial_slots());
  Chunk chunk(plan_.partial_schema().size(), 0);
  GroupSet::Memory memory;
  for (const auto& result : results_) {
    for (uint32_t first = 0; first < result->size(); first += kChunkRows) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      const uint32_t count = std::min(kChunkRows, result->size() - first);
      context.Charge(count, plan::work_cost::kFinishRowPs);
      result->ReadPartial(first, count, memory, chunk);
      NAM_RETURN_IF_ERROR(appender.Append(chunk, chunk.selection(), nullptr));
    }
  }
  stored_.push_back(std::move(table));
  return absl::OkStatus();
}

absl::Status AggregateSink::StorePairs(TaskContext& context, size_t distinct, const GroupKeys& keys) {
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(keys.layout(), budget_, PagesMax(keys.layout(), budget_)));
  RowAppender appender(*table, keys.slots());
  std::vector<uint32_t> pairs(kChunkRows);
  uint64_t base = 0;
  for (const auto& result : results_) {
    DistinctValues& values = result->distinct(distinct);
    for (uint32_t first = 0; first < values.size(); first += kChunkRows) {
      if (context.cancelled()) return absl::CancelledError("the query was cancelled");
      const uint32_t count = std::min(kChunkRows, values.size() - first);
      context.Charge(count, plan::work_cost::kFinishRowPs);
      std::iota(pairs.begin(), pairs.begin() + count, first);
      NAM_ASSIGN_OR_RETURN(const Chunk* chunk, values.Read({pairs.data(), count}, base));
      NAM_RETURN_IF_ERROR(appender.Append(*chunk, chunk->selection(), nullptr));
    }
    base += result->size();
  }
  stored_.push_back(std::move(table));
  return absl::OkStatus();
}

}  // namespace nam::execution
