#include "computeserver/fragment.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "computeserver/fragment_worker.h"

namespace nam::computeserver {
namespace {

constexpr int64_t kWhileWaitingUs = 5'000;
/// A build side is cut into so many pieces for each thread, unless they would be small: it may be a single
/// partition that this server needs.
constexpr uint64_t kBuildPiecesOfAThread = 2;
constexpr uint64_t kBuildPieceRowsMin = 4'096;

}  // namespace

Fragment::Fragment(std::shared_ptr<const QueryShape> shape, MulticastBuild multicast,
                   std::optional<storage::WorkCounter> counter, ChannelPool& channels,
                   ChannelPool& claim_channels, int threads, std::atomic<bool>& cancel,
                   const std::atomic<bool>& leaving)
    : shape_(std::move(shape)),
      multicast_(std::move(multicast)),
      channels_(channels),
      claim_channels_(claim_channels),
      threads_(threads),
      cancel_(cancel),
      leaving_(leaving),
      counter_(counter),
      claimed_(new std::atomic<uint32_t>[shape_->joins.size() + 1]),
      multicast_parts_(
          static_cast<uint32_t>(std::min(multicast_.senders.size(), static_cast<size_t>(threads)))),
      opening_(multicast_parts_),
      opened_(channels.fabric().CreateEvent()),
      building_(threads),
      built_(channels.fabric().CreateEvent()),
      running_(threads),
      done_(channels.fabric().CreateEvent()),
      totals_(shape_->joins.size() + 1),
      finished_(static_cast<size_t>(threads)) {
  for (size_t i = 0; i <= shape_->joins.size(); ++i) claimed_[i] = 0;
  const uint64_t pieces = kBuildPiecesOfAThread * static_cast<uint64_t>(threads);
  for (size_t j = 0; j < shape_->joins.size(); ++j) {
    const QueryShape::Join& join = shape_->joins[j];
    const proto::Table& table = *shape_->tables[static_cast<size_t>(shape_->plan.joins[j].table)];
    join_tables_.push_back(std::make_unique<JoinTable>(join.table));
    builds_.push_back(partitioner::PiecesOf(
        table, join.partitions, std::max(kBuildPieceRowsMin, uint64_t{join.table.rows} / pieces)));
  }
}

Fragment::~Fragment() = default;

void Fragment::Fail(const absl::Status& status) {
  std::scoped_lock lock(mutex_);
  // What the first failure cancelled is not news.
  if (first_error_.ok()) first_error_ = status;
  cancel_ = true;
}

std::optional<uint32_t> Fragment::Claim(size_t pipeline) {
  if (multicast_.Covers(pipeline) && !read_instead_) return std::nullopt;
  const bool driving = pipeline == shape_->joins.size();
  const size_t all = driving ? shape_->pieces.size() : builds_[pipeline].size();
  const uint32_t next = claimed_[pipeline].fetch_add(1, std::memory_order_relaxed);
  return next < all ? std::optional(next) : std::nullopt;
}

void Fragment::Add(size_t pipeline, const PipelineTotals& totals) {
  std::scoped_lock lock(mutex_);
  PipelineTotals& into = totals_[pipeline];
  into.rows_in += totals.rows_in;
  into.rows_out += totals.rows_out;
  into.skipped_blocks += totals.skipped_blocks;
  into.total_ns += totals.total_ns;
  into.multicast_blocks += totals.multicast_blocks;
  into.repaired_blocks += totals.repaired_blocks;
  into.duplicate_datagrams += totals.duplicate_datagrams;
  into.stream.blocks += totals.stream.blocks;
  into.stream.waiting_ns += totals.stream.waiting_ns;
  for (const auto& [server, bytes] : totals.stream.bytes) into.stream.bytes[server] += bytes;
}

void Fragment::ReadInsteadOfMulticast(const absl::Status& why) {
  std::scoped_lock lock(mutex_);
  multicast_failure_ = std::string(why.message());
  read_instead_ = true;
}

absl::Status Fragment::Run(const std::function<void()>& while_waiting) {
  Clock& clock = channels_.fabric().clock();
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    for (int t = 0; t < threads_; ++t) {
      threads.push_back(channels_.fabric().StartThread(absl::StrFormat("nam-query-%d", t), [this, t] {
        auto worker = std::make_unique<FragmentWorker>(*this);
        const absl::Status status = worker->Run();
        if (!status.ok()) Fail(status);
        {
          std::scoped_lock lock(mutex_);
          finished_[static_cast<size_t>(t)] = std::move(worker);
        }
        if (running_.fetch_sub(1) == 1) done_->Set();
      }));
    }
    while (!done_->Wait(clock.After(kWhileWaitingUs))) while_waiting();
  }
  if (!first_error_.ok()) return first_error_;
  if (cancel_) return absl::CancelledError("cancelled");
  Sink& sink = finished_[0]->sink();
  for (size_t t = 1; t < finished_.size(); ++t) {
    NAM_RETURN_IF_ERROR(sink.Merge(finished_[t]->sink()));
    while_waiting();
    if (cancel_) return absl::CancelledError("cancelled");
  }
  satisfied_ = sink.Satisfied();
  return sink.Store(partial_);
}

std::vector<std::vector<uint32_t>> Fragment::Claimed() const {
  std::vector<std::vector<uint32_t>> claimed;
  for (const auto& worker : finished_) claimed.push_back(worker->claimed());
  return claimed;
}

uint32_t Fragment::Claims() const {
  return std::accumulate(finished_.begin(), finished_.end(), uint32_t{0},
                         [](uint32_t claims, const auto& worker) { return claims + worker->claims_made(); });
}

std::vector<proto::PipelineCounters> Fragment::Counters() const {
  std::vector<proto::PipelineCounters> all;
  for (size_t i = 0; i < totals_.size(); ++i) {
    const bool driving = i == shape_->joins.size();
    const int table = driving ? shape_->plan.driving : shape_->plan.joins[i].table;
    proto::PipelineCounters& out = all.emplace_back();
    out.set_table(shape_->tables[static_cast<size_t>(table)]->name());
    out.set_rows_in(totals_[i].rows_in);
    out.set_rows_out(totals_[i].rows_out);
    out.set_blocks(totals_[i].stream.blocks);
    out.set_skipped_blocks(totals_[i].skipped_blocks);
    out.set_waiting_us(totals_[i].stream.waiting_ns / 1000);
    out.set_total_us(totals_[i].total_ns / 1000);
    out.set_multicast_blocks(totals_[i].multicast_blocks);
    out.set_repaired_blocks(totals_[i].repaired_blocks);
    out.set_duplicate_datagrams(totals_[i].duplicate_datagrams);
    if (multicast_.Covers(i)) out.set_multicast_failure(multicast_failure_);
    for (const auto& [server, bytes] : totals_[i].stream.bytes) {
      proto::ServerBytes& b = *out.add_bytes();
      b.set_server(server.value());
      b.set_bytes(bytes);
    }
  }
  return all;
}

}  // namespace nam::computeserver
