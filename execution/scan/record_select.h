#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execution/chunk.h"
#include "execution/expression/program.h"
#include "execution/scan/record_columns.h"
#include "execution/task.h"
#include "partitioner/record_row.h"
#include "plan/expression.h"
#include "plan/schema.h"
#include "proto/table.pb.h"

namespace nam::execution {

/// INVALID_ARGUMENT: no plan has such a scan for records.
absl::Status BadRecordScan(const char* what);

/// Turns stored rows of a record table into chunks of those that meet the conditions. Prepared once,
/// immutable, shared by tasks.
class RecordSelect {
 public:
  struct Options {
    std::vector<uint32_t> columns;    // of the table, to decode; ascending. Slots number them
    plan::Schema schema;              // of the columns, as plan::SlotOfColumn says
    std::vector<plan::Expr> filters;  // all true
    std::vector<uint32_t> outputs;    // slots: the columns of the chunks
  };
  /// INVALID_ARGUMENT if columns and slots do not fit the table.
  static absl::StatusOr<RecordSelect> Make(const proto::Table& table, Options options);

  const Options& options() const { return options_; }
  const partitioner::RecordLayout& row() const { return row_; }
  size_t by_row_nodes() const { return program_ == nullptr ? 0 : program_->by_row_nodes(); }
  /// A chunk of the shape that tasks fill.
  std::unique_ptr<Chunk> NewChunk() const { return std::make_unique<Chunk>(options_.outputs.size(), 0); }

  /// One thread's; always fills the same chunk. The select outlives it.
  class Task {
   public:
    Task(const RecordSelect& select, MemoryBudget& budget);
    /// Runs once, before the first rows. RESOURCE_EXHAUSTED: over budget.
    absl::Status Begin(Chunk& out);
    /// Takes at most kChunkRows rows, which stay until the chunk is used up. kHaveMore: `out` has those that
    /// meet the filters; kNeedInput: none does.
    Step Run(TaskContext& context, std::span<const std::byte* const> rows, Chunk& out);

   private:
    absl::Status Decode(const std::vector<uint32_t>& slots, std::span<const std::byte* const> rows,
                        Selection selection);

    const RecordSelect& select_;
    RecordColumns columns_;
    std::optional<Frame> frame_;  // for the filters
    Chunk read_;                  // all slots, for the filters
    Chunk* out_ = nullptr;
    uint32_t positions_[kChunkRows];  // those that filters passed
  };

 private:
  RecordSelect(const proto::Table& table, Options options) : options_(std::move(options)), row_(table) {}
  absl::Status CheckColumns(const proto::Table& table) const;
  absl::Status PrepareFilters();

  Options options_;
  partitioner::RecordLayout row_;
  std::shared_ptr<const Program> program_;   // all filters; null: none
  std::vector<uint32_t> filtered_, others_;  // slots that filters read; further ones that are emitted
};

}  // namespace nam::execution
