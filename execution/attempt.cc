#include "execution/attempt.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "execution/exchange/exchange_layout.h"
#include "execution/exchange/streamed_tasks.h"
#include "execution/sort/page_window.h"

namespace nam::execution {
namespace {

constexpr int64_t kWhileWaitingUs = 5'000;
/// How often a waiting thread checks whether the query has failed elsewhere.
constexpr int64_t kBarrierCheckUs = 2'000;
/// Gates are opened by running tasks of this pipeline, or by a client that may be slow: the longer that
/// takes, the less often a thread checks.
constexpr int64_t kGateCheckUs = 100;
constexpr int64_t kGateCheckUsMax = 10'000;
/// All members of a streamed stage begin within this time.
constexpr int64_t kMeetUs = 10'000'000;

/// Rows after the source and each step as in the plan, whichever of the steps the source absorbed.
void AddRowsAfter(const plan::Pipeline& planned, const AbsorbedPipeline& absorbed, const ScanTotals& totals,
                  const std::vector<uint64_t>& rows, proto::PipelineCounters& out) {
  auto& after = *out.mutable_rows_after();
  if (absorbed.probe_steps.empty()) {
    after.Add(rows.begin(), rows.end());
    return;
  }
  const ConditionCounts& counts = totals.conditions;
  std::vector<uint64_t> looked_up(planned.steps.size());
  after.Add(totals.rows_in - std::min(totals.rows_in, counts.dropped));
  size_t probe = 0, stayed = 0;
  for (size_t s = 0; s < planned.steps.size(); ++s) {
    if (probe == absorbed.probe_steps.size() || absorbed.probe_steps[probe] != s) {
      after.Add(rows[++stayed]);
      continue;
    }
    const ConditionCounts::Lookup lookup =
        probe < counts.lookups.size() ? counts.lookups[probe] : ConditionCounts::Lookup();
    after.Add(lookup.found);
    looked_up[s] = lookup.rows;
    ++probe;
  }
  after.Add(looked_up.begin(), looked_up.end());
}

}  // namespace

/// One thread of an attempt, with its tasks' surroundings.
class Attempt::Worker {
 public:
  Worker(Attempt& attempt, const TaskChannels& channels)
      : attempt_(attempt),
        stage_(attempt.stage_),
        clock_(attempt.channels_.fabric().clock()),
        context_(clock_, stage_.result_budget(), attempt.cancel_, channels) {}

  absl::Status Run() {
    NAM_RETURN_IF_ERROR(ReceiveMulticast());
    std::vector<uint32_t> sending;
    for (const uint32_t p : stage_.numbers()) {
      for (const uint32_t before : stage_.plan().pipelines[p].after) {
        if (attempt_.progress_[before] != nullptr) NAM_RETURN_IF_ERROR(Complete(before));
      }
      const PreparedPipeline& pipeline = stage_.pipeline(p);
      const plan::Pipeline& planned = stage_.plan().pipelines[p];
      if (std::holds_alternative<plan::ExchangeSend>(planned.sink)) {
        if (pipeline.key_filters != nullptr) NAM_RETURN_IF_ERROR(ShipFilters(p));
        sending.push_back(p);  // runs when its receiver's turn has come
      } else if (std::holds_alternative<plan::ExchangeReceive>(planned.source)) {
        NAM_RETURN_IF_ERROR(stage_.Explained(p, RunStreamed(std::exchange(sending, {}), p)));
      } else {
        NAM_RETURN_IF_ERROR(stage_.Explained(p, RunTask(p)));
        EndTask(p);
      }
    }
    for (const uint32_t p : stage_.numbers()) NAM_RETURN_IF_ERROR(Complete(p));
    if (context_.channels().exchange == nullptr) return absl::OkStatus();
    return AwaitIdle(*context_.channels().exchange, context_.cancel());
  }

 private:
  /// Runs this thread's share of the pipeline. Its task is destroyed before this returns.
  absl::Status RunTask(size_t p) {
    PreparedPipeline& pipeline = stage_.pipeline(p);
    Progress& progress = *attempt_.progress_[p];
    if (attempt_.multicast_.Covers(p) && !attempt_.read_instead_) return absl::OkStatus();
    if (!pipeline.drains_build && pipeline.source->exhausted()) return absl::OkStatus();
    const std::unique_ptr<PipelineTask> task = NewTask(static_cast<uint32_t>(p));
    if (pipeline.drains_build) {
      if (progress.tasks_to_make.fetch_sub(1) == 1) progress.made->Set();
      NAM_RETURN_IF_ERROR(Await(*progress.made));
    }
    Step step;
    while ((step = task->Run(context_)) == Step::kBlocked) NAM_RETURN_IF_ERROR(Await(*context_.gate()));
    AddRows(p, task->rows());
    if (step == Step::kFailed) return context_.error();
    NAM_CHECK(step == Step::kDone, "a source that reads blocks itself is not fed");
    return absl::OkStatus();
  }

  /// Runs this thread's shares of the sending pipelines and of the receiving one, at the same time.
  absl::Status RunStreamed(const std::vector<uint32_t>& sending, uint32_t receiving) {
    StreamedTasks tasks(context_, *context_.channels().exchange);
    for (const uint32_t p : sending) tasks.Add(p, NewTask(p), ExchangeOf(p));
    tasks.Add(receiving, NewTask(receiving), ExchangeOf(receiving));
    if (stage_.pipeline(receiving).drains_build) {
      Progress& progress = *attempt_.progress_[receiving];
      if (progress.tasks_to_make.fetch_sub(1) == 1) progress.made->Set();
      NAM_RETURN_IF_ERROR(Await(*progress.made));
    }
    std::vector<uint32_t> ended;
    NAM_RETURN_IF_ERROR(tasks.Run([&](uint32_t p, const PipelineTask& task) {
      AddRows(p, task.rows());
      attempt_.progress_[p]->exchange_waiting_ns += tasks.waited_ns();
      ended.push_back(p);
    }));
    // Only after the tasks are destroyed.
    for (const uint32_t p : ended) EndTask(p);
    return absl::OkStatus();
  }
  /// Ships this thread's share of the Bloom filters that the sending pipeline asks. The last thread verifies
  /// that all are complete.
  absl::Status ShipFilters(uint32_t p) {
    const auto& send = std::get<plan::ExchangeSend>(stage_.plan().pipelines[p].sink);
    KeyFilters& filters = *stage_.pipeline(p).key_filters;
    Endpoint& endpoint = *context_.channels().exchange;
    filters.SetOwn(*stage_.pipeline(*send.filtered_by).build->filter());
    NAM_RETURN_IF_ERROR(stage_.Explained(*send.filtered_by, filters.Ship(context_, endpoint)));
    Progress& progress = *attempt_.progress_[p];
    if (progress.tasks_to_make.fetch_sub(1) == 1) {
      NAM_RETURN_IF_ERROR(filters.Complete(endpoint));
      progress.made->Set();
    }
    return Await(*progress.made);
  }

  /// The endpoint's exchange that the pipeline receives by.
  std::optional<uint32_t> ExchangeOf(uint32_t p) const {
    const auto* const receive = std::get_if<plan::ExchangeReceive>(&stage_.plan().pipelines[p].source);
    if (receive == nullptr) return std::nullopt;
    return ExchangeNumber(stage_.plan(), stage_.inputs().stage, receive->exchange);
  }

  std::unique_ptr<PipelineTask> NewTask(uint32_t p) {
    const PreparedPipeline& pipeline = stage_.pipeline(p);
    return pipeline.NewTask(context_, pipeline.source->NewTask(context_));
  }

  void AddRows(size_t p, std::span<const uint64_t> rows) {
    const MutexLock lock(attempt_.mutex_);
    std::vector<uint64_t>& all = attempt_.progress_[p]->rows;
    for (size_t i = 0; i < rows.size(); ++i) all[i] += rows[i];
  }

  void EndTask(size_t p) {
    Progress& progress = *attempt_.progress_[p];
    if (progress.tasks_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const uint32_t parts = stage_.pipeline(p).last_sink().CombineParts();
    progress.parts = parts;
    progress.parts_left = parts;
    if (parts == 0) progress.complete->Set();
    progress.combinable->Set();
  }

  /// Waits until the pipeline is complete, and helps.
  absl::Status Complete(size_t p) {
    Progress& progress = *attempt_.progress_[p];
    if (progress.complete->IsSet()) return absl::OkStatus();
    NAM_RETURN_IF_ERROR(Await(*progress.combinable));
    // Checked each time: in virtual time the other threads claim theirs meanwhile.
    while (!progress.complete->IsSet()) {
      const uint32_t part = progress.next_part.fetch_add(1, std::memory_order_relaxed);
      if (part >= progress.parts) break;
      NAM_RETURN_IF_ERROR(stage_.Explained(p, stage_.pipeline(p).last_sink().Combine(context_, part)));
      context_.Settle();
      if (context_.cancelled()) return QueryCancelled();
      if (progress.parts_left.fetch_sub(1, std::memory_order_acq_rel) == 1) progress.complete->Set();
    }
    return Await(*progress.complete);
  }

  /// Waits until all threads that matter have come as far.
  absl::Status Await(fabric::Event& event) {
    context_.Settle();
    while (!event.Wait(clock_.After(kBarrierCheckUs))) {
      if (context_.cancelled()) return QueryCancelled();
    }
    return absl::OkStatus();
  }
  absl::Status Await(const Gate& gate) {
    const std::unique_ptr<fabric::Event> never = attempt_.channels_.fabric().CreateEvent();
    const int64_t since_ns = clock_.NowNs();
    while (!gate.open()) {
      if (context_.cancelled()) return QueryCancelled();
      const int64_t waited_us = (clock_.NowNs() - since_ns) / 1000;
      never->Wait(clock_.After(std::clamp(waited_us / 4, kGateCheckUs, kGateCheckUsMax)));
    }
    return absl::OkStatus();
  }

  /// Receives all that comes by multicast from a part of the senders, for any join. Builds nothing before all
  /// parts have joined: if one cannot, all is READ.
  absl::Status ReceiveMulticast() {
    if (attempt_.multicast_parts_ == 0) return absl::OkStatus();
    const uint32_t part = attempt_.multicast_claimed_.fetch_add(1);
    if (part >= attempt_.multicast_parts_) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<MulticastReceiver>> receiver = MulticastReceiver::Open(
        context_, attempt_.multicast_,
        {.part = part, .parts = attempt_.multicast_parts_, .verify = stage_.inputs().settings.verify()});
    if (!receiver.ok()) {
      if (context_.channels().blocks->broken()) return receiver.status();
      attempt_.ReadInstead(receiver.status());
    }
    if (attempt_.opening_.fetch_sub(1) == 1) attempt_.opened_->Set();
    NAM_RETURN_IF_ERROR(Await(*attempt_.opened_));
    if (attempt_.read_instead_) return absl::OkStatus();
    return Receive(**receiver);
  }

  absl::Status Receive(MulticastReceiver& receiver) {
    const std::vector<uint32_t>& covered = attempt_.multicast_.pipelines;
    std::deque<BlockFeed> feeds(covered.size());
    std::vector<std::unique_ptr<PipelineTask>> tasks;
    std::vector<FedPipeline> fed;
    for (size_t i = 0; i < covered.size(); ++i) {
      BlockScan& scan = *stage_.pipeline(covered[i]).scan;
      tasks.push_back(stage_.pipeline(covered[i]).NewTask(context_, scan.NewFedTask(context_, feeds[i])));
      fed.push_back({covered[i], &scan, &feeds[i], tasks.back().get()});
    }
    Step step;
    while ((step = receiver.Run(context_, fed)) == Step::kBlocked)
      NAM_RETURN_IF_ERROR(Await(*context_.gate()));
    for (size_t i = 0; i < covered.size(); ++i) AddRows(covered[i], tasks[i]->rows());
    return step == Step::kFailed ? context_.error() : absl::OkStatus();
  }

  Attempt& attempt_;
  PreparedStage& stage_;
  Clock& clock_;
  TaskContext context_;
};

Attempt::Attempt(PreparedStage& stage, MulticastBuild multicast, ChannelPool& channels,
                 ChannelPool& claim_channels, std::atomic<bool>& cancel, ExchangeLanes lanes)
    : stage_(stage),
      multicast_(std::move(multicast)),
      channels_(channels),
      claim_channels_(claim_channels),
      threads_(stage.inputs().threads),
      cancel_(cancel),
      lanes_(std::move(lanes)),
      multicast_parts_(
          static_cast<uint32_t>(std::min(multicast_.senders.size(), static_cast<size_t>(threads_)))),
      opening_(multicast_parts_),
      opened_(channels.fabric().CreateEvent()),
      running_(threads_) {
  progress_.resize(stage.plan().pipelines.size());
  for (const uint32_t p : stage.numbers()) {
    auto progress = std::make_unique<Progress>();
    progress->tasks_to_make = threads_;
    progress->tasks_left = threads_;
    progress->made = channels.fabric().CreateEvent();
    progress->combinable = channels.fabric().CreateEvent();
    progress->complete = channels.fabric().CreateEvent();
    progress->rows.resize(stage.pipeline(p).steps.size() + 1);
    progress_[p] = std::move(progress);
  }
  if (PageWindow* const full = window(); full != nullptr) full->OnFull([this] { Tell(); });
}

Attempt::~Attempt() = default;

void Attempt::Fail(const absl::Status& status) {
  const MutexLock lock(mutex_);
  // Later cancellations follow from the first failure.
  if (first_error_.ok()) first_error_ = status;
  cancel_ = true;
}

void Attempt::ReadInstead(const absl::Status& why) {
  const MutexLock lock(mutex_);
  multicast_failure_ = std::string(why.message());
  read_instead_ = true;
}

absl::Status Attempt::RunThread(size_t number) {
  NAM_ASSIGN_OR_RETURN(const ChannelPool::Lease blocks, channels_.Acquire());
  std::optional<ChannelPool::Lease> claims;
  if (stage_.inputs().counter.has_value()) {
    NAM_ASSIGN_OR_RETURN(ChannelPool::Lease lease, claim_channels_.Acquire());
    claims.emplace(std::move(lease));
  }
  TaskChannels channels{.blocks = &*blocks, .claims = claims.has_value() ? &**claims : nullptr};
  if (!lanes_.endpoints.empty()) {
    channels.exchange = lanes_.endpoints[number].get();
    const Deadline deadline = channels_.fabric().clock().After(kMeetUs);
    NAM_RETURN_IF_ERROR(channels.exchange->Connect(lanes_.addresses[number], deadline, cancel_));
  }
  std::optional<ChannelPool::Lease> scratch;
  if (claimed().last_sink().writes_scratch()) {
    NAM_ASSIGN_OR_RETURN(ChannelPool::Lease lease, channels_.Acquire());
    scratch.emplace(std::move(lease));
    channels.scratch = &**scratch;
  }
  return Worker(*this, channels).Run();
}

void Attempt::Start() {
  for (int t = 0; t < threads_; ++t) {
    auto started = channels_.fabric().TryStartThread(absl::StrFormat("nam-query-%d", t), [this, t] {
      const absl::Status status = RunThread(static_cast<size_t>(t));
      if (!status.ok()) Fail(status);
      {
        const MutexLock lock(mutex_);
        --running_;
      }
      Tell();
    });
    if (!started.ok()) {
      Fail(started.status());
      const MutexLock lock(mutex_);
      running_ -= threads_ - t;
      return;
    }
    running_threads_.push_back(*std::move(started));
  }
}

void Attempt::Tell() {
  const MutexLock lock(mutex_);
  if (told_ != nullptr) told_->Set();
}

bool Attempt::Await(const std::function<void()>& while_waiting) {
  const PageWindow* const full = window();
  while (true) {
    std::shared_ptr<fabric::Event> told;
    {
      const MutexLock lock(mutex_);
      if (running_ == 0) break;
      if (full != nullptr && full->full()) return true;
      told = told_ = channels_.fabric().CreateEvent();
    }
    if (!told->Wait(channels_.fabric().clock().After(kWhileWaitingUs))) while_waiting();
  }
  running_threads_.clear();
  return false;
}

PageWindow* Attempt::window() const {
  return claimed().last_sink().window();
}

std::vector<uint32_t> Attempt::StoreWindow(uint64_t attempt, StoredPages& pages) {
  return window()->Store(attempt, pages);
}

void Attempt::GiveBack(std::span<const uint32_t> pages) {
  window()->GiveBack(pages);
}

absl::Status Attempt::status() const {
  if (!first_error_.ok()) return first_error_;
  return cancel_ ? QueryCancelled() : absl::OkStatus();
}

absl::Status Attempt::Store(uint64_t attempt, StoredPages& pages) {
  TaskContext context(channels_.fabric().clock(), stage_.result_budget(), cancel_);
  const absl::Status status = claimed().last_sink().Store(context, attempt, pages);
  context.Settle();
  return stage_.Explained(stage_.claimed(), status);
}

void Attempt::Report(proto::AttemptReply& reply) const {
  for (const uint32_t p : stage_.numbers()) *reply.add_pipelines() = CountersOf(p);
  claimed().source->Report(reply);
  while (reply.threads_size() < threads_) reply.add_threads();  // some may have found no pieces
  const Sink& sink = claimed().last_sink();
  sink.Report(stage_.inputs().attempt, stage_.claimed(), reply);
  reply.set_satisfied(sink.Satisfied());
}

proto::PipelineCounters Attempt::CountersOf(uint32_t p) const {
  const PreparedPipeline& pipeline = stage_.pipeline(p);
  const Progress& progress = *progress_[p];
  proto::PipelineCounters out = pipeline.Counters();
  out.set_rows_out(progress.rows.back());
  out.set_waiting_us(out.waiting_us() + progress.exchange_waiting_ns / 1000);
  if (multicast_.Covers(p)) out.set_multicast_failure(multicast_failure_);
  const ScanTotals scanned = pipeline.scan != nullptr ? pipeline.scan->totals() : ScanTotals();
  AddRowsAfter(stage_.plan().pipelines[p], pipeline.absorbed, scanned, progress.rows, out);
  return out;
}

}  // namespace nam::execution
