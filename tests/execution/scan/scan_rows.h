#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "execution/chunk.h"
#include "execution/scan/block_feed.h"
#include "execution/scan/block_scan.h"
#include "execution/task.h"
#include "partitioner/pieces.h"
#include "plan/expression.h"
#include "tests/execution/scan/scan_table.h"
#include "types/value.h"

/// Rows of a ScanTable and filters on them, at random; and the rows in chunks as text.
namespace nam::execution {

using TextRow = std::vector<std::string>;

plan::Expr Read(uint32_t slot, uint32_t column);
plan::Expr Literal(Value value);
plan::Expr Node(plan::Op op, Type type, std::vector<plan::Expr> children);
plan::Expr Compare(plan::Op op, plan::Expr left, int64_t right);

std::vector<ScanRow> RandomRows(RandomStream& random, size_t count, const ScanTable::Shape& shape);
/// A filter on one or two of the columns that are read; about half of them are no tests of codes.
plan::Expr RandomFilter(RandomStream& random, const std::vector<uint32_t>& columns);
/// Rows of a table of one partition, all different.
std::vector<ScanRow> Numbered(size_t count);
/// A piece for each partition.
std::vector<partitioner::Piece> Whole(const proto::Table& table);

std::string TextOf(const Column& column, uint32_t position);
std::string TextOf(const Value& value);
/// Takes the rows of a chunk, which is valid.
void Take(const Chunk& chunk, std::vector<TextRow>& rows);

/// The rows that one task yields which reads the scan's pieces on a thread of its own, sorted.
absl::StatusOr<std::vector<TextRow>> StreamedRows(fabric::Kind kind, ScanTable& table, BlockScan& scan);

/// Keeps the rows that arrive. Blocks at random before a chunk; the gate is open when it is asked again.
class TextSink final : public SinkTask {
 public:
  struct Result {
    std::vector<TextRow> rows;
    bool finished = false;
  };
  /// The sink has finished once it has `most` rows.
  TextSink(uint64_t seed, Result& result, size_t most = SIZE_MAX)
      : random_(seed), result_(result), most_(most) {}
  Step Consume(TaskContext& context, const Chunk& in) override;
  Step Finish(TaskContext& context) override;

 private:
  RandomStream random_;
  Result& result_;
  const size_t most_;
  Gate gate_;
  bool waited_ = false;
};

/// A fed scan and its sink as one thread's pipeline.
struct FedTask {
  FedTask(BlockScan& scan, TaskContext& context, uint64_t seed, size_t most = SIZE_MAX);
  BlockFeed feed;
  TextSink::Result result;
  PipelineTask task;
};

}  // namespace nam::execution
