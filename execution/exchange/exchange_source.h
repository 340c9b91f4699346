#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "execution/memory_budget.h"
#include "execution/rows/row_layout.h"
#include "execution/task.h"
#include "plan/schema.h"

namespace nam::execution {

/// The rows that all members have sent by an exchange (plan::ExchangeReceive). Its tasks are fed: they have
/// no input until a message comes, and are done when all senders have ended.
///
/// A message is copied into the task's own page and released before its rows are read: a peer never waits for
/// downstream operators, and checked bytes cannot change.
class ExchangeSource final : public Source {
 public:
  struct Options {
    plan::Schema rows;
    uint32_t exchange = 0;  // the endpoint's
    uint64_t attempt = 0;   // carried by pages
  };
  /// The budget outlives the source.
  static absl::StatusOr<std::unique_ptr<ExchangeSource>> Make(const Options& options, MemoryBudget& budget);

  /// Tasks receive through the context's endpoint. DATA_LOSS, naming the sender, if a message is not a page
  /// of the layout with the stated number of rows.
  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  void Count(proto::PipelineCounters& out) const override;
  // Over tasks that have ended:
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /// The bytes of messages from other members, with headers.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  class Task;
  ExchangeSource(const Options& options, RowLayout layout, MemoryBudget& budget)
      : exchange_(options.exchange), attempt_(options.attempt), layout_(std::move(layout)), budget_(budget) {}

  const uint32_t exchange_;
  const uint64_t attempt_;
  const RowLayout layout_;
  MemoryBudget& budget_;
  std::atomic<uint64_t> rows_ = 0, bytes_ = 0;
  /// The sum over tasks of the time from the first call to the end, including downstream work.
  std::atomic<int64_t> total_ns_ = 0;
};

}  // namespace nam::execution
