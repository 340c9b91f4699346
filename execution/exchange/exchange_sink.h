#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "execution/exchange/key_filters.h"
#include "execution/expression/program.h"
#include "execution/memory_budget.h"
#include "execution/rows/row_layout.h"
#include "execution/task.h"
#include "plan/schema.h"

namespace nam::execution {

/// Sends rows to the members of an exchange (plan::ExchangeSend): each row to the member that its keys' hash
/// selects (ExchangePart), or all rows to all members.
///
///     chunk ── RowWriter ─▶ staging page ── HashRows ─▶ page in the message for each group ── full ─▶ Send
///
/// A task without a buffer or credit blocks in the middle of a chunk, and resumes there.
class ExchangeSink final : public Sink {
 public:
  struct Options {
    plan::Schema rows;
    std::vector<uint32_t> keys;  // slots; none: rows go to all
    uint32_t exchange = 0;       // the endpoint's
    uint64_t attempt = 0;        // carried by pages
    /// Drops rows that it does not keep. Complete before a task runs; outlives the sink. nullptr: sends all.
    const KeyFilters* filters = nullptr;
  };
  /// The budget outlives the sink.
  static absl::StatusOr<std::unique_ptr<ExchangeSink>> Make(const Options& options, MemoryBudget& budget);

  /// Tasks send through the context's endpoint.
  std::unique_ptr<SinkTask> NewTask(TaskContext& context) override;
  void Count(proto::PipelineCounters& out) const override;
  /// The bytes that ended tasks have sent to other members, with headers.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  class Task;
  ExchangeSink(Options options, RowLayout layout, std::unique_ptr<const Program> slots, MemoryBudget& budget)
      : options_(std::move(options)), layout_(std::move(layout)), slots_(std::move(slots)), budget_(budget) {}

  const Options options_;
  const RowLayout layout_;
  const std::unique_ptr<const Program> slots_;
  MemoryBudget& budget_;
  std::atomic<uint64_t> bytes_ = 0;
};

}  // namespace nam::execution
