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

/// What all members have sent by an exchange (plan::ExchangeReceive). Its tasks are fed: they have no input
/// until a message comes, and are done when all senders have ended.
///
/// A message is copied into the task's own page and released before anything looks at its rows: a peer waits
/// for no operator behind, and nobody else can change what has been checked.
class ExchangeSource final : public Source {
 public:
  struct Options {
    plan::Schema rows;
    uint32_t exchange = 0;  // of the endpoint
    uint64_t attempt = 0;   // that pages carry
  };
  /// The budget outlives the source.
  static absl::StatusOr<std::unique_ptr<ExchangeSource>> Make(const Options& options, MemoryBudget& budget);

  /// Tasks receive by the context's endpoint. DATA_LOSS, naming the sender, of a message that is no page of
  /// the layout with as many rows as it says.
  std::unique_ptr<SourceTask> NewTask(TaskContext& context) override;
  uint32_t exchange() const { return exchange_; }
  // Of the tasks that have ended:
  uint64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /// Of messages of other members, with headers.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  /// From their first calls to their ends, with what comes behind them.
  int64_t total_ns() const { return total_ns_.load(std::memory_order_relaxed); }

 private:
  class Task;
  ExchangeSource(const Options& options, RowLayout layout, MemoryBudget& budget)
      : exchange_(options.exchange), attempt_(options.attempt), layout_(std::move(layout)), budget_(budget) {}

  const uint32_t exchange_;
  const uint64_t attempt_;
  const RowLayout layout_;
  MemoryBudget& budget_;
  std::atomic<uint64_t> rows_ = 0, bytes_ = 0;
  std::atomic<int64_t> total_ns_ = 0;
};

}  // namespace nam::execution
