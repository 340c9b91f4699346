#include "execution/partition/parted_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/partition/parts.h"
#include "plan/work_cost.h"

namespace nam::execution {
namespace {

/// A table pays if it leaves less than so many groups of 32 rows: what it keeps back costs more than a row
/// that is written.
constexpr uint64_t kGroupsOf32Rows = 30;
/// Groups with their table, keys and states take about so many bytes besides their row, while arrays grow.
constexpr uint64_t kGroupBytes = 96;

std::vector<uint32_t> FirstFields(size_t count) {
  std::vector<uint32_t> fields(count);
  std::iota(fields.begin(), fields.end(), 0);
  return fields;
}

/// A quarter of the budget is for the tables of all threads, and as much for their open pages. A chunk has
/// come in before a table is seen to be full.
uint32_t TableGroups(const PartedGroups::Options& options, const RowLayout& layout,
                     const MemoryBudget& budget) {
  const uint64_t share = budget.bytes() / 4 / static_cast<uint64_t>(std::max(options.threads, 1));
  const uint64_t groups = share / (kGroupBytes + 2 * uint64_t{layout.stride()});
  return static_cast<uint32_t>(std::clamp<uint64_t>(groups, 1, options.table_groups));
}

uint32_t OpenPages(const PartedGroups::Options& options, const RowLayout& layout,
                   const MemoryBudget& budget) {
  const uint64_t share = budget.bytes() / 4 / static_cast<uint64_t>(std::max(options.threads, 1));
  return static_cast<uint32_t>(std::clamp<uint64_t>(share / layout.page_bytes(), 1, options.parts));
}

}  // namespace

/// One thread's table, and its writer once it has written.
class PartedGroups::Task final : public SinkTask {
 public:
  Task(PartedGroups& sink, GroupSet& set)
      : sink_(sink), set_(set), states_(sink.plan_.partial_schema().size(), 0) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const absl::Status status = without_table_ > 0 ? WriteRows(context, in) : Group(context, in);
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    // What others have written is looked at when all have ended.
    if (writer_ == nullptr && set_.size() <= sink_.options_.few_groups) return Step::kDone;
    absl::Status status = WriteTable(context);
    if (status.ok()) status = writer_->Finish(context);
    if (!status.ok()) return context.Fail(status);
    sink_.output_.Add(*writer_);
    writer_.reset();
    return Step::kDone;
  }

 private:
  absl::Status Group(TaskContext& context, const Chunk& in) {
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    NAM_RETURN_IF_ERROR(set_.Consume(in));
    rows_ += in.selection().count;
    const uint32_t sample = std::min(sink_.options_.sample_groups, sink_.table_groups_);
    const bool sampled = !pays_ && set_.size() >= sample;
    if (sampled) pays_ = set_.size() * uint64_t{32} < rows_ * kGroupsOf32Rows;
    if (sampled && !pays_) {
      without_table_ = sink_.options_.rows_without_table;
      return WriteTable(context);
    }
    return set_.size() >= sink_.table_groups_ ? WriteTable(context) : absl::OkStatus();
  }

  absl::Status WriteTable(TaskContext& context) {
    if (writer_ == nullptr) writer_ = sink_.NewWriter(context);
    rows_ = 0;
    pays_ = false;
    return sink_.Write(context, set_, *writer_);
  }

  /// Without a look at the table, which is empty.
  absl::Status WriteRows(TaskContext& context, const Chunk& in) {
    const uint32_t rows = in.selection().count;
    context.Charge(rows, plan::work_cost::kSinkRowPs);
    NAM_RETURN_IF_ERROR(set_.ReadRows(in, memory_, states_));
    NAM_RETURN_IF_ERROR(writer_->Append(context, states_, states_.selection()));
    without_table_ -= std::min<uint64_t>(rows, without_table_);
    if (without_table_ == 0) set_.Reset();
    return absl::OkStatus();
  }

  PartedGroups& sink_;
  GroupSet& set_;
  std::unique_ptr<PartitionWriter> writer_;
  GroupSet::Memory memory_;
  Chunk states_;
  uint64_t rows_ = 0;           // that the table has taken in
  bool pays_ = false;           // the table makes them fewer
  uint64_t without_table_ = 0;  // rows that are written as they come
};

PartedGroups::PartedGroups(const AggregatePlan& plan, const Options& options, storage::ScratchSpace& space,
                           MemoryBudget& budget)
    : plan_(plan),
      options_(options),
      rows_{plan.partial_layout(), FirstFields(plan.keys().size()), options.parts, options.attempt,
            OpenPages(options, plan.partial_layout(), budget)},
      table_groups_(TableGroups(options, plan.partial_layout(), budget)),
      space_(space),
      budget_(budget),
      groups_(plan, budget) {
  NAM_CHECK(!plan.has_distinct() && plan.keys().size() > 0 && plan.input() == AggregateInput::kRows,
            "states that do not go by parts");
}

std::unique_ptr<SinkTask> PartedGroups::NewTask(TaskContext& context) {
  NAM_CHECK(context.channels().scratch != nullptr, "parts are written over a channel of their own");
  GroupSet& set = groups_.NewSet();
  const std::lock_guard lock(mutex_);
  sets_.push_back(&set);
  return std::make_unique<Task>(*this, set);
}

std::unique_ptr<PartitionWriter> PartedGroups::NewWriter(TaskContext& context) {
  parted_ = true;
  return std::make_unique<PartitionWriter>(rows_, plan_.partial_slots(), space_, *context.channels().scratch,
                                           budget_, context.cancel());
}

absl::Status PartedGroups::Write(TaskContext& context, GroupSet& set, PartitionWriter& writer) {
  Chunk states(plan_.partial_schema().size(), 0);
  GroupSet::Memory memory;
  for (uint32_t first = 0; first < set.size(); first += kChunkRows) {
    if (context.cancelled()) return absl::CancelledError("the query was cancelled");
    set.ReadPartial(first, std::min(kChunkRows, set.size() - first), memory, states);
    NAM_RETURN_IF_ERROR(writer.Append(context, states, states.selection()));
  }
  set.Reset();
  return absl::OkStatus();
}

uint32_t PartedGroups::CombineParts() {
  if (!parted_) return groups_.CombineParts();
  // Tasks that had few groups when they ended.
  std::erase_if(sets_, [](const GroupSet* set) { return set->size() == 0; });
  return static_cast<uint32_t>(sets_.size());
}

absl::Status PartedGroups::Combine(TaskContext& context, uint32_t part) {
  if (!parted_) return groups_.Combine(context, part);
  const std::unique_ptr<PartitionWriter> writer = NewWriter(context);
  NAM_RETURN_IF_ERROR(Write(context, *sets_[part], *writer));
  NAM_RETURN_IF_ERROR(writer->Finish(context));
  output_.Add(*writer);
  return absl::OkStatus();
}

}  // namespace nam::execution
