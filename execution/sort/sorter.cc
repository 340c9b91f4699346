#include "execution/sort/sorter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/rows/row_appender.h"
#include "execution/sort/row_slices.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"

namespace nam::execution {
namespace {

/// Fewer rows are merged by one thread.
constexpr uint64_t kSerialRows = 1 << 16;
constexpr uint32_t kMergeParts = 16;
/// Sampled rows of a run, to divide the order.
constexpr uint64_t kSamples = 64;

}  // namespace

class Sorter::Task final : public SinkTask {
 public:
  Task(Sorter& sink, Runs& runs)
      : sink_(sink),
        runs_(runs),
        appender_(*sink.table_, sink.plan_.slots()),
        frame_(sink.plan_.slots().NewFrame()),
        slices_(sink.plan_.layout()),
        in_memory_(sink.run_options_.runs == plan::Runs::kNever),
        prefixes_(kChunkRows),
        numbers_(kChunkRows) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    context.Charge(in.selection().count, plan::work_cost::kSinkRowPs);
    const absl::Status status = AddSlices(context, in);
    return status.ok() ? Step::kNeedInput : context.Fail(status);
  }

  Step Finish(TaskContext& context) override {
    const bool always = !in_memory_ && sink_.run_options_.runs == plan::Runs::kAlways;
    if (always && runs_.size > 0) {
      if (const absl::Status status = Spill(context); !status.ok()) return context.Fail(status);
    }
    Sort(context, runs_.size - sorted_);
    return Step::kDone;
  }

 private:
  absl::Status AddSlices(TaskContext& context, const Chunk& in) {
    if (in_memory_) return Add(context, in, in.selection());
    return slices_.ForEach(in.selection(), [&](Selection rows) { return Add(context, in, rows); });
  }

  void CountPages() {
    if (in_memory_) return;
    const std::vector<uint32_t> full = appender_.TakeFullPages();
    held_bytes_ += appender_.BytesOf(full);
    pages_.insert(pages_.end(), full.begin(), full.end());
  }

  /// Other sinks of the session take from the same budget.
  bool Full() const {
    const MemoryBudget& budget = sink_.budget_;
    const uint64_t held = held_bytes_ + runs_.size * sizeof(OrderedRow);
    const uint64_t share = RunShare(budget, sink_.run_options_.threads);
    const uint64_t left = budget.bytes() - std::min(budget.used(), budget.bytes());
    return held >= share || (held >= share / 4 && left < share);
  }

  /// Turns the task's rows into a run. Its writer ends with it: other sorts share the place, and their tasks
  /// may run before this one does.
  absl::Status Spill(TaskContext& context) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<RunWriter> writer, sink_.NewWriter(context));
    in_memory_ = writer == nullptr;
    if (in_memory_) return absl::OkStatus();
    Sort(context, runs_.size - sorted_);
    NAM_RETURN_IF_ERROR(sink_.WriteRun(context, runs_, *writer));
    NAM_RETURN_IF_ERROR(sink_.EndWriter(*writer));
    sorted_ = 0;
    for (const uint32_t page : appender_.TakePages()) pages_.push_back(page);
    appender_.Reuse(pages_);
    pages_.clear();
    held_bytes_ = 0;
    return absl::OkStatus();
  }

  absl::Status Add(TaskContext& context, const Chunk& in, Selection rows) {
    if (!sink_.order_.empty()) {
      const Vector* const first = sink_.plan_.slots().Evaluate(sink_.order_.first().slot, frame_, in, rows);
      if (first == nullptr) return frame_.error();
      sink_.order_.PrefixesOf(*first, rows, prefixes_.data());
    }
    for (uint32_t done = 0; done < rows.count;) {
      if (!in_memory_ && Full()) NAM_RETURN_IF_ERROR(Spill(context));
      NAM_RETURN_IF_ERROR(runs_.rows.Grow(runs_.size + rows.count - done));
      const uint32_t before = done;
      NAM_RETURN_IF_ERROR(appender_.AppendSome(in, rows, done, numbers_.data()));
      for (uint32_t j = before; j < done; ++j) runs_.rows[runs_.size++] = {prefixes_[j], numbers_[j]};
      CountPages();
      while (runs_.size - sorted_ >= kRunRows) Sort(context, kRunRows);
    }
    return absl::OkStatus();
  }

  /// Makes the next rows a run.
  void Sort(TaskContext& context, uint64_t count) {
    OrderedRow* const first = runs_.rows.data() + sorted_;
    std::sort(first, first + count,
              [this](const OrderedRow& a, const OrderedRow& b) { return sink_.order_.Before(a, b); });
    context.Charge(count, plan::work_cost::kSortRowPs);
    sorted_ += count;
  }

  Sorter& sink_;
  Runs& runs_;
  RowAppender appender_;
  Frame frame_;
  RowSlices slices_;
  bool in_memory_;               // rows do not become runs
  std::vector<uint32_t> pages_;  // full ones; counted if they may become runs
  uint64_t held_bytes_ = 0;      // of them
  uint64_t sorted_ = 0;
  std::vector<uint64_t> prefixes_;
  std::vector<uint32_t> numbers_;
};

absl::StatusOr<std::unique_ptr<Sorter>> Sorter::Make(const RowsPlan& plan, std::span<const OrderSlot> order,
                                                     MemoryBudget& budget, RunOptions runs, OpenChannel open,
                                                     uint64_t offset) {
  NAM_CHECK(runs.runs == plan::Runs::kNever || (runs.plan != nullptr && runs.place && !order.empty()));
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<RowTable> table,
                       RowTable::Make(plan.layout(), budget, PagesMax(plan.layout(), budget)));
  return std::unique_ptr<Sorter>(
      new Sorter(plan, order, budget, std::move(table), std::move(runs), std::move(open), offset));
}

Sorter::Sorter(const RowsPlan& plan, std::span<const OrderSlot> order, MemoryBudget& budget,
               std::unique_ptr<RowTable> table, RunOptions runs, OpenChannel open, uint64_t offset)
    : plan_(plan),
      budget_(budget),
      table_(std::move(table)),
      order_(*table_, order),
      keys_(order.begin(), order.end()),
      run_options_(std::move(runs)),
      open_(std::move(open)),
      offset_(offset),
      rows_(plan, *table_, budget) {}

Sorter::~Sorter() = default;

std::unique_ptr<SinkTask> Sorter::NewTask(TaskContext&) {
  auto runs = std::make_unique<Runs>(budget_);
  Runs& of_task = *runs;
  {
    const MutexLock lock(mutex_);
    runs_.push_back(std::move(runs));
  }
  return std::make_unique<Task>(*this, of_task);
}

std::vector<OrderedRow> Sorter::Splitters(std::span<const std::span<const OrderedRow>> runs,
                                          uint32_t parts) const {
  std::vector<OrderedRow> samples, splitters;
  for (const std::span<const OrderedRow> run : runs) {
    const uint64_t step = std::max<uint64_t>(run.size() / kSamples, 1);
    for (uint64_t i = step / 2; i < run.size(); i += step) samples.push_back(run[i]);
  }
  std::sort(samples.begin(), samples.end(),
            [this](const OrderedRow& a, const OrderedRow& b) { return order_.Before(a, b); });
  for (uint32_t p = 1; p < parts; ++p) splitters.push_back(samples[samples.size() * p / parts]);
  return splitters;
}

absl::Status Sorter::AddRuns(const proto::Directory& directory) {
  if (run_options_.runs == plan::Runs::kNever)
    return absl::InternalError("a compute server reports runs that were not requested");
  NAM_ASSIGN_OR_RETURN(std::vector<ScratchRun> runs, RunsOf(directory, run_options_.plan->layout()));
  const MutexLock lock(mutex_);
  for (ScratchRun& run : runs) scratch_.runs.push_back(std::move(run));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RunWriter>> Sorter::NewWriter(TaskContext& context) {
  NAM_ASSIGN_OR_RETURN(const RunPlace place, run_options_.place(context));
  if (place.space == nullptr) return nullptr;
  return std::make_unique<RunWriter>(*run_options_.plan, run_options_.attempt, place, budget_,
                                     context.cancel());
}

absl::Status Sorter::WriteRun(TaskContext& context, Runs& rows, RunWriter& writer) {
  if (rows.size == 0) return absl::OkStatus();
  std::vector<std::span<const OrderedRow>> spans;
  for (uint64_t first = 0; first < rows.size; first += kRunRows)
    spans.emplace_back(rows.rows.data() + first, std::min<uint64_t>(kRunRows, rows.size - first));
  NAM_RETURN_IF_ERROR(writer.AppendSorted(context, order_, *table_, std::move(spans)));
  rows.size = 0;
  NAM_ASSIGN_OR_RETURN(ScratchRun run, writer.EndRun(context));
  const MutexLock lock(mutex_);
  scratch_.runs.push_back(std::move(run));
  return absl::OkStatus();
}

absl::Status Sorter::EndWriter(RunWriter& writer) {
  NAM_RETURN_IF_ERROR(writer.Flush());
  const MutexLock lock(mutex_);
  pages_written_ += writer.pages();
  return absl::OkStatus();
}

absl::Status Sorter::CombineRuns(TaskContext& context) {
  if (HasRows()) {
    NAM_ASSIGN_OR_RETURN(const std::unique_ptr<RunWriter> writer, NewWriter(context));
    if (writer == nullptr) return absl::InternalError("sorted runs without scratch memory");
    for (const auto& of_task : runs_) NAM_RETURN_IF_ERROR(WriteRun(context, *of_task, *writer));
    NAM_RETURN_IF_ERROR(EndWriter(*writer));
  }
  runs_.clear();
  table_.reset();  // ends rows_ and order_, too
  runs_left_ = scratch_.runs.size();
  const uint32_t runs_max = RunMerge::RunsMax(*run_options_.plan, scratch_.runs, budget_);
  if (runs_max < 2) return OverBudget(budget_);
  NAM_ASSIGN_OR_RETURN(scratch_, MergeToFewer(context,
                                              {.plan = *run_options_.plan,
                                               .order = keys_,
                                               .open = open_,
                                               .place = run_options_.place,
                                               .attempt = run_options_.attempt,
                                               .runs_max = runs_max},
                                              std::move(scratch_.runs), budget_));
  pages_written_ += scratch_.pages_written;
  passes_ = scratch_.passes;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RunMerge>> Sorter::NewMerge(TaskContext& context) const {
  return RunMerge::Make(*run_options_.plan, keys_, scratch_.runs, open_, budget_, context.cancel());
}

std::unique_ptr<Source> Sorter::RowsAtRest(bool in_order) {
  return std::make_unique<SortedSource>(*this,
                                        OrderedSource::Options{.offset = offset_, .in_order = in_order});
}

void Sorter::Count(proto::PipelineCounters& out) const {
  out.set_scratch_runs_merged(runs_left_);
  out.set_scratch_pages_written(pages_written_);
  out.set_merge_passes(passes_);
}

bool Sorter::HasRows() const {
  return std::any_of(runs_.begin(), runs_.end(), [](const auto& of_task) { return of_task->size > 0; });
}

uint32_t Sorter::CombineParts() {
  by_runs_ = in_runs();
  if (by_runs_) return 1;
  std::vector<std::span<const OrderedRow>> runs;
  uint64_t size = 0;
  for (const auto& of_task : runs_) {
    for (uint64_t first = 0; first < of_task->size; first += kRunRows) {
      runs.emplace_back(of_task->rows.data() + first, std::min<uint64_t>(kRunRows, of_task->size - first));
    }
    size += of_task->size;
  }
  if (size == 0) return 0;
  combine_error_ = rows_.rows().Resize(size);
  rows_.set_size(size);
  parts_.resize(size < kSerialRows || !combine_error_.ok() ? 1 : kMergeParts);
  const std::vector<OrderedRow> splitters = Splitters(runs, static_cast<uint32_t>(parts_.size()));
  uint64_t first = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    parts_[p].first = first;
    for (std::span<const OrderedRow>& left : runs) {
      // Rows equal to a splitter all go to the part after it.
      const auto end = p + 1 == parts_.size()
                           ? left.end()
                           : std::lower_bound(left.begin(), left.end(), splitters[p],
                                              [this](const OrderedRow& a, const OrderedRow& b) {
                                                return order_.Before(a, b);
                                              });
      const auto count = static_cast<size_t>(end - left.begin());
      parts_[p].runs.push_back(left.first(count));
      left = left.subspan(count);
      parts_[p].rows += count;
    }
    first += parts_[p].rows;
  }
  parts_left_ = parts_.size();
  return static_cast<uint32_t>(parts_.size());
}

absl::Status Sorter::Combine(TaskContext& context, uint32_t part) {
  if (by_runs_) return CombineRuns(context);
  NAM_RETURN_IF_ERROR(combine_error_);
  Part& of = parts_[part];
  NAM_RETURN_IF_ERROR(MergeRuns(context, order_, std::move(of.runs), rows_.rows().data() + of.first));
  context.Charge(of.rows, plan::work_cost::kCombineGroupPs);
  if (parts_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) runs_.clear();
  return absl::OkStatus();
}

class SortedSource::Task final : public SourceTask {
 public:
  explicit Task(const Sorter& sorter) : sorter_(sorter) {}

  Step Next(TaskContext& context, Chunk& out) override {
    out.SelectAll(0);
    if (merge_ == nullptr) {
      absl::StatusOr<std::unique_ptr<RunMerge>> merge = sorter_.NewMerge(context);
      if (!merge.ok()) return context.Fail(merge.status());
      merge_ = *std::move(merge);
    }
    const absl::StatusOr<bool> more = merge_->Next(context, out);
    if (!more.ok()) return context.Fail(more.status());
    return *more ? Step::kHaveMore : Step::kDone;
  }

 private:
  const Sorter& sorter_;
  std::unique_ptr<RunMerge> merge_;
};

std::unique_ptr<SourceTask> SortedSource::NewTask(TaskContext& context) {
  if (sorter_.in_runs()) return std::make_unique<Task>(sorter_);
  return in_memory_.NewTask(context);
}

}  // namespace nam::execution
