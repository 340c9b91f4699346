#include "execution/local_stage.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/aggregate/stored_groups.h"
#include "execution/budget_array.h"
#include "execution/prepared_stage.h"
#include "execution/scan/record_feed.h"
#include "execution/scan/stored_rows.h"
#include "execution/stage_inputs.h"

namespace nam::execution {
namespace {

constexpr std::atomic<bool> kNotLeaving = false;
/// A thread that gets fewer rows costs more than it brings.
constexpr uint64_t kRowsOfThread = 32'768;
/// A portion of an attempt's pages, which one thread takes.
constexpr size_t kPortionBytes = 256 << 10;
/// About so many bytes of a group, with table, key and states, or of a row.
constexpr double kBytesOfKept = 256;

/// Pages of an attempt, for several threads.
struct Portions {
  std::vector<std::span<const std::byte>> pages;  // whole pages each
  uint64_t rows = 0;                              // as the pages say
};

/// DATA_LOSS if they are no pages.
absl::StatusOr<Portions> PortionsOf(std::span<const std::byte> pages, const RowLayout& layout) {
  Portions portions;
  while (!pages.empty()) {
    const std::span<const std::byte> rest = pages;
    size_t bytes = 0;
    while (!pages.empty() && bytes < kPortionBytes) {
      NAM_ASSIGN_OR_RETURN(const std::span<const std::byte> page, layout.TakePage(pages));
      bytes += page.size();
      portions.rows += PageHeaderOf(page.data()).rows;
    }
    portions.pages.push_back(rest.first(rest.size() - pages.size()));
  }
  return portions;
}

/// Accounts for pages while they are read.
class Held {
 public:
  Held(MemoryBudget& budget, uint64_t bytes) : budget_(budget), bytes_(budget.Reserve(bytes) ? bytes : 0) {}
  ~Held() { budget_.Release(bytes_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  uint64_t bytes() const { return bytes_; }

 private:
  MemoryBudget& budget_;
  const uint64_t bytes_;
};

}  // namespace

/// A pipeline whose rows come from outside.
struct LocalStage::Fed {
  /// One thread's.
  struct Share {
    std::unique_ptr<StoredGroups> groups;  // takes in groups; otherwise there is a task
    StoredRows* rows = nullptr;            // the task's source: one of these two
    RecordFeed* records = nullptr;
    std::unique_ptr<PipelineTask> task;
  };
  uint32_t number = 0;
  std::unique_ptr<const RowsPlan> rows_plan;
  std::deque<Share> shares;
  std::atomic<bool> done = false;  // wants no more
};

absl::StatusOr<std::unique_ptr<LocalStage>> LocalStage::Make(StageInputs inputs, fabric::Fabric& fabric,
                                                             const std::atomic<bool>& cancel) {
  NAM_CHECK(inputs.stage < inputs.plan.stages.size() &&
                inputs.plan.stages[inputs.stage].site == plan::Stage::Site::kSession,
            "a stage of the session");
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<PreparedStage> stage,
                       PreparedStage::Make(std::move(inputs), kNotLeaving));
  std::unique_ptr<LocalStage> made(new LocalStage(std::move(stage), fabric, cancel));
  for (const uint32_t number : made->stage_->numbers()) {
    if (made->stage_->pipeline(number).source != nullptr) continue;
    NAM_RETURN_IF_ERROR(made->stage_->Explained(number, made->PrepareFed(number)));
  }
  return made;
}

LocalStage::LocalStage(std::unique_ptr<PreparedStage> stage, fabric::Fabric& fabric,
                       const std::atomic<bool>& cancel)
    : stage_(std::move(stage)),
      team_(fabric, stage_->result_budget(), cancel, static_cast<size_t>(stage_->inputs().threads)),
      complete_(stage_->plan().pipelines.size()),
      rows_(stage_->plan().pipelines.size()),
      sunk_(stage_->plan().pipelines.size()),
      counters_(stage_->plan().pipelines.size()) {}

LocalStage::~LocalStage() = default;

bool LocalStage::Wants(uint32_t pipeline) const {
  return !fed_.at(pipeline)->done;
}

uint64_t LocalStage::bytes_most() const {
  return stage_->result_budget().most();
}

uint32_t LocalStage::KeyOf(uint32_t number) const {
  const auto* const pages = std::get_if<plan::PageSource>(&stage_->plan().pipelines[number].source);
  return pages == nullptr ? number : pages->pipeline;
}

absl::Status LocalStage::PrepareFed(uint32_t number) {
  PreparedPipeline& pipeline = stage_->pipeline(number);
  std::unique_ptr<Fed>& known = fed_[KeyOf(number)];
  if (known != nullptr) return absl::UnimplementedError("rows of another stage that two pipelines read");
  known = std::make_unique<Fed>();
  Fed& fed = *known;
  fed.number = number;
  if (pipeline.records != nullptr || pipeline.groups != nullptr) return absl::OkStatus();
  NAM_ASSIGN_OR_RETURN(fed.rows_plan, RowsPlan::Make(pipeline.absorbed.pipeline.schemas[0]));
  return absl::OkStatus();
}

absl::Status LocalStage::Start(Fed& fed, size_t threads) {
  PreparedPipeline& pipeline = stage_->pipeline(fed.number);
  if (fed.shares.empty() && pipeline.groups == nullptr) {
    for (const uint32_t before : stage_->plan().pipelines[fed.number].after)
      NAM_RETURN_IF_ERROR(Complete(before));
  }
  while (fed.shares.size() < threads) {
    const size_t thread = fed.shares.size();
    Fed::Share& share = fed.shares.emplace_back();
    if (pipeline.groups != nullptr) {
      share.groups = std::make_unique<StoredGroups>(*pipeline.groups, stage_->result_budget());
      continue;
    }
    std::unique_ptr<SourceTask> source;
    if (pipeline.records != nullptr) {
      auto records = std::make_unique<RecordFeed>(*pipeline.records, stage_->result_budget());
      share.records = records.get();
      source = std::move(records);
    } else {
      auto rows = std::make_unique<StoredRows>(fed.rows_plan->layout());
      share.rows = rows.get();
      source = std::move(rows);
    }
    share.task = NewTask(pipeline, thread, std::move(source));
  }
  return absl::OkStatus();
}

absl::Status LocalStage::End(Fed& fed) {
  NAM_RETURN_IF_ERROR(Start(fed, 1));
  if (stage_->pipeline(fed.number).groups != nullptr) {
    uint64_t groups = 0;
    for (const Fed::Share& share : fed.shares) groups += share.groups->groups();
    rows_[fed.number] = {groups};
    return absl::OkStatus();
  }
  // All at once: they may wait for each other.
  NAM_RETURN_IF_ERROR(team_.Together(fed.shares.size(), [&](size_t thread) -> absl::Status {
    Fed::Share& share = fed.shares[thread];
    if (share.rows != nullptr) share.rows->End();
    if (share.records != nullptr) share.records->Close();
    NAM_ASSIGN_OR_RETURN(const Step step, team_.Run(thread, *share.task));
    NAM_CHECK(step == Step::kDone, "rows have come to their end");
    return absl::OkStatus();
  }));
  for (const Fed::Share& share : fed.shares) AddRows(fed.number, *share.task);
  fed.shares.clear();
  return absl::OkStatus();
}

void LocalStage::AddRows(uint32_t number, const PipelineTask& task) {
  std::vector<uint64_t>& all = rows_[number];
  all.resize(task.rows().size());
  for (size_t i = 0; i < all.size(); ++i) all[i] += task.rows()[i];
}

absl::Status LocalStage::Add(uint32_t pipeline, std::span<const std::byte> pages, uint64_t attempt) {
  NAM_CHECK(!finished_, "pages come before the end");
  const auto fed = fed_.find(pipeline);
  NAM_CHECK(fed != fed_.end(), "a pipeline that this stage reads");
  if (error_.ok()) error_ = stage_->Explained(fed->second->number, Feed(*fed->second, pages, attempt));
  return error_;
}

absl::Status LocalStage::Feed(Fed& fed, std::span<const std::byte> pages, uint64_t attempt) {
  if (team_.context(0).cancelled()) return QueryCancelled();
  const Held held(stage_->result_budget(), pages.size());
  if (held.bytes() < pages.size()) return OverBudget(stage_->result_budget());
  const PreparedPipeline& pipeline = stage_->pipeline(fed.number);
  const RowLayout& layout =
      pipeline.groups != nullptr ? pipeline.groups->plan().partial_layout() : fed.rows_plan->layout();
  // Pairs of an attempt number its groups over all of its pages.
  const bool whole = pipeline.groups != nullptr && pipeline.groups->plan().has_distinct();
  Portions portions;
  if (!whole && pages.size() / layout.stride() >= kRowsOfThread) {
    NAM_ASSIGN_OR_RETURN(portions, PortionsOf(pages, layout));
  }
  const size_t threads = ThreadsFor(fed.number, portions.rows);
  NAM_RETURN_IF_ERROR(Start(fed, threads));
  if (fed.done) return absl::OkStatus();
  if (threads == 1) return FeedThread(fed, 0, pages, attempt);
  std::atomic<size_t> next = 0;
  return team_.Together(threads, [&](size_t thread) -> absl::Status {
    for (size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < portions.pages.size();) {
      if (fed.done) return absl::OkStatus();
      if (team_.stopped()) return QueryCancelled();
      NAM_RETURN_IF_ERROR(FeedThread(fed, thread, portions.pages[i], attempt));
    }
    return absl::OkStatus();
  });
}

absl::Status LocalStage::FeedThread(Fed& fed, size_t thread, std::span<const std::byte> pages,
                                    uint64_t attempt) {
  Fed::Share& share = fed.shares[thread];
  if (share.groups != nullptr) {
    const absl::Status added = share.groups->Add(team_.context(thread), pages, attempt);
    team_.context(thread).Settle();
    return added;
  }
  NAM_RETURN_IF_ERROR(share.rows->Feed(pages, attempt));
  return RunFed(fed, thread);
}

absl::Status LocalStage::AddRuns(uint32_t pipeline, const proto::Directory& runs) {
  NAM_CHECK(!finished_, "runs come before the end");
  const auto fed = fed_.find(pipeline);
  NAM_CHECK(fed != fed_.end(), "a pipeline that this stage reads");
  if (error_.ok()) {
    error_ = runs.pipeline() != pipeline
                 ? absl::InternalError("a compute server reports another pipeline's runs")
                 : stage_->pipeline(fed->second->number).last_sink().AddRuns(runs);
  }
  return error_;
}

absl::Status LocalStage::CheckRoom(uint64_t bytes) const {
  const MemoryBudget& budget = stage_->result_budget();
  if (bytes <= budget.bytes() - budget.used()) return absl::OkStatus();
  return stage_->Explained(stage_->claimed(), OverBudget(budget));
}

absl::Status LocalStage::RunFed(Fed& fed, size_t thread) {
  NAM_ASSIGN_OR_RETURN(const Step step, team_.Run(thread, *fed.shares[thread].task));
  if (step == Step::kDone) fed.done = true;
  return absl::OkStatus();
}

absl::StatusOr<bool> LocalStage::AddRecords(uint32_t pipeline, std::span<const std::byte* const> rows) {
  NAM_CHECK(!finished_, "rows come before the end");
  const auto found = fed_.find(pipeline);
  NAM_CHECK(found != fed_.end() && stage_->pipeline(pipeline).records != nullptr, "a scan of records");
  Fed& fed = *found->second;
  if (error_.ok()) error_ = stage_->Explained(fed.number, Start(fed, 1));
  if (error_.ok() && !fed.done && !rows.empty()) {
    fed.shares[0].records->Give(rows);
    error_ = stage_->Explained(fed.number, RunFed(fed, 0));
  }
  NAM_RETURN_IF_ERROR(error_);
  return !fed.done;
}

absl::Status LocalStage::Run() {
  NAM_CHECK(!std::exchange(finished_, true), "a query ends once");
  for (const uint32_t number : stage_->numbers()) {
    if (error_.ok()) error_ = Complete(number);
  }
  return error_;
}

absl::Status LocalStage::Complete(uint32_t number) {
  const bool here = stage_->plan().pipelines[number].stage == stage_->inputs().stage;
  if (!here || complete_[number]) return absl::OkStatus();
  const std::vector<uint32_t>& after = stage_->plan().pipelines[number].after;
  for (const uint32_t before : after) NAM_RETURN_IF_ERROR(Complete(before));
  NAM_RETURN_IF_ERROR(stage_->Explained(number, Run(number)));
  complete_[number] = true;
  // Memory goes back as soon as its contents have been read for the last time.
  for (const uint32_t before : after) stage_->ReleaseIfRead(before, complete_);
  return absl::OkStatus();
}

absl::Status LocalStage::Run(uint32_t number) {
  if (team_.context(0).cancelled()) return QueryCancelled();
  PreparedPipeline& pipeline = stage_->pipeline(number);
  if (pipeline.source == nullptr) {
    NAM_RETURN_IF_ERROR(End(*fed_.at(KeyOf(number))));
  } else {
    // All are made before one runs: they may share what is left of a build side.
    std::vector<std::unique_ptr<PipelineTask>> tasks;
    const size_t threads = ThreadsFor(number, RowsBefore(number));
    for (size_t t = 0; t < threads; ++t) {
      std::unique_ptr<SourceTask> source = pipeline.source->NewTask(team_.context(t));
      if (t == 0 && threads > 1) source = team_.Guarded(std::move(source));
      tasks.push_back(NewTask(pipeline, t, std::move(source)));
    }
    NAM_RETURN_IF_ERROR(team_.Together(threads, [&](size_t thread) -> absl::Status {
      NAM_ASSIGN_OR_RETURN(const Step step, team_.Run(thread, *tasks[thread]));
      NAM_CHECK(step == Step::kDone, "nothing here is fed");
      return absl::OkStatus();
    }));
    for (const auto& task : tasks) AddRows(number, *task);
  }
  sunk_[LastOf(number)] += rows_[number].back();
  if (pipeline.feeds != nullptr) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(Combine(*pipeline.sink));
  counters_[number] = pipeline.Counters();
  return absl::OkStatus();
}

uint32_t LocalStage::LastOf(uint32_t number) const {
  const auto* const feed = std::get_if<plan::FeedSink>(&stage_->plan().pipelines[number].sink);
  return feed == nullptr ? number : LastOf(feed->pipeline);
}

size_t LocalStage::ThreadsFor(uint32_t number, uint64_t rows) const {
  if (LastOf(number) == stage_->claimed()) return 1;
  const size_t threads = std::clamp<uint64_t>(rows / kRowsOfThread, 1, team_.size());
  return TablesFit(number, rows, threads) ? threads : 1;
}

uint64_t LocalStage::RowsBefore(uint32_t number) const {
  const plan::SourceNode& source = stage_->plan().pipelines[number].source;
  const auto* const window = std::get_if<plan::WindowSource>(&source);
  const auto* const pages = std::get_if<plan::PageSource>(&source);
  if (window == nullptr && (pages == nullptr || pages->in_order)) return 0;
  const uint32_t before = window != nullptr ? window->pipeline : pages->pipeline;
  const Sorter* const sorter = stage_->pipeline(before).sorter;
  // One task merges runs.
  return sorter != nullptr && sorter->in_runs() ? 0 : sunk_[before];
}

bool LocalStage::TablesFit(uint32_t number, uint64_t rows, size_t threads) const {
  if (threads == 1) return true;
  const uint32_t last = LastOf(number);
  const plan::SinkNode& sink = stage_->plan().pipelines[last].sink;
  auto kept = static_cast<double>(rows);  // by each thread, at most
  if (const auto* groups = std::get_if<plan::AggregateSink>(&sink); groups != nullptr) {
    if (groups->group_by.empty()) return true;
  } else {
    const auto* const sort = std::get_if<plan::SortSink>(&sink);
    if (sort == nullptr || sort->limit < 0) return true;
    kept = std::min(kept, 2 * (static_cast<double>(sort->limit) + static_cast<double>(sort->offset)));
  }
  const MemoryBudget& budget = stage_->result_budget();
  const uint64_t left = budget.bytes() - std::min(budget.used(), budget.bytes());
  return budget.used() < budget.bytes() / 4 &&
         kept * kBytesOfKept * static_cast<double>(threads) < static_cast<double>(left / 2);
}

void LocalStage::OnProgress(std::function<void(uint64_t rows)> report) {
  progress_.OnProgress(std::move(report), team_.context(0));
  for (const uint32_t number : stage_->numbers()) progress_.Watch(stage_->pipeline(number));
}

std::unique_ptr<PipelineTask> LocalStage::NewTask(PreparedPipeline& pipeline, size_t thread,
                                                  std::unique_ptr<SourceTask> source) {
  return pipeline.NewTask(team_.context(thread), progress_.Watched(std::move(source)));
}

absl::Status LocalStage::Combine(Sink& sink) {
  const uint32_t parts = sink.CombineParts();
  std::atomic<uint32_t> next = 0;
  return team_.Together(std::clamp<size_t>(parts, 1, team_.size()), [&](size_t thread) -> absl::Status {
    TaskContext& context = team_.context(thread);
    for (uint32_t part = 0; (part = next.fetch_add(1, std::memory_order_relaxed)) < parts;) {
      if (context.cancelled() || team_.stopped()) return QueryCancelled();
      NAM_RETURN_IF_ERROR(sink.Combine(context, part));
      progress_.Add(context, 0);
    }
    context.Settle();
    return absl::OkStatus();
  });
}

}  // namespace nam::execution
