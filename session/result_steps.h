#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/expression/program.h"
#include "execution/memory_budget.h"
#include "execution/rows/row_layout.h"
#include "execution/task.h"
#include "plan/expression.h"
#include "plan/schema.h"
#include "types/value.h"

/// What the coordinator runs beside the engine's own operators to end a query. One thread.
namespace nam::session {

/// A slot of a schema as an expression.
plan::Expr SlotExpr(const plan::Schema& schema, uint32_t slot);
std::vector<plan::Expr> SlotExprs(const plan::Schema& schema);

/// Rows that arrive as the pages of other servers' sinks. A task is fed with the pages of one attempt at a
/// time and copies nothing.
class StoredRows final : public execution::SourceTask {
 public:
  /// `layout` outlives the task.
  explicit StoredRows(const execution::RowLayout& layout) : layout_(layout), places_(execution::kChunkRows) {}

  /// Takes in the pages of an attempt, one behind the other. They stay where they are until Next returns
  /// kNeedInput. DATA_LOSS if they are no whole number of pages.
  absl::Status Feed(std::span<const std::byte> pages, uint64_t attempt);
  /// No attempt follows.
  void End() { ended_ = true; }

  /// Checks each page before it reads the first row: DATA_LOSS if it is not of this layout and attempt.
  execution::Step Next(execution::TaskContext& context, execution::Chunk& out) override;

 private:
  const execution::RowLayout& layout_;
  std::span<const std::byte> pages_;  // that were not opened yet
  std::span<const std::byte> page_;
  uint64_t attempt_ = 0;
  uint32_t rows_ = 0, done_ = 0;  // of page_
  bool ended_ = false;
  std::vector<uint32_t> places_;
};

/// HAVING and a select list: the tuples for which a condition is true, as the values of expressions, and if
/// wished with their number behind, so that a sort keeps the order of equal rows. One task.
class Projection final : public execution::StepOperator {
 public:
  struct Options {
    const plan::Schema& input;
    std::span<const plan::Expr> outputs;       // over the slots of `input`
    std::optional<plan::Expr> condition = {};  // likewise
    bool numbered = false;
  };
  static absl::StatusOr<std::unique_ptr<Projection>> Make(const Options& options);

  /// The outputs, then the number.
  const plan::Schema& schema() const { return schema_; }
  std::unique_ptr<execution::StepTask> NewTask(execution::TaskContext& context) override;

 private:
  class Task;
  Projection() = default;

  std::unique_ptr<const execution::Program> condition_;
  std::unique_ptr<const execution::Program> outputs_;
  plan::Schema schema_;
  bool numbered_ = false;
};

/// The rows of a result as the client gets them: the first columns of what comes, without the first `offset`
/// tuples and those behind `limit` others. One task; values are made here and nowhere else.
class ResultRows final : public execution::Sink {
 public:
  struct Options {
    const plan::Schema& input;
    std::span<const Type> types;  // of the first columns, as the values say
    uint64_t offset = 0;
    std::optional<uint64_t> limit;
  };
  /// The budget outlives the sink, which holds what the rows take until its end.
  static absl::StatusOr<std::unique_ptr<ResultRows>> Make(const Options& options,
                                                          execution::MemoryBudget& budget);
  ~ResultRows() override { budget_.Give(charged_); }

  std::unique_ptr<execution::SinkTask> NewTask(execution::TaskContext& context) override;
  bool Satisfied() const override { return left_ == 0; }

  std::vector<std::vector<Value>>& rows() { return rows_; }

 private:
  class Task;
  ResultRows(const Options& options, std::unique_ptr<const execution::Program> columns,
             execution::MemoryBudget& budget);
  absl::Status Add(const std::vector<const execution::Vector*>& columns, execution::Selection rows);

  execution::MemoryBudget& budget_;
  const std::unique_ptr<const execution::Program> columns_;
  const std::vector<Type> types_;
  uint64_t skip_;
  uint64_t left_;
  uint64_t charged_ = 0;
  std::vector<std::vector<Value>> rows_;
};

}  // namespace nam::session
