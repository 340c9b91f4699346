#include "execution/scan/record_scan_task.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "partitioner/pieces.h"
#include "plan/work_cost.h"

namespace nam::execution {

namespace work_cost = plan::work_cost;

RecordScanTask::RecordScanTask(RecordScan& scan, TaskContext& context)
    : scan_(scan),
      claims_(scan.queue_, context.channels().claims, context.clock(), context.cancel()),
      clock_(context.clock()),
      select_(scan.select_, context.budget()) {}

RecordScanTask::~RecordScanTask() {
  End();
}

absl::Status RecordScanTask::Begin(TaskContext&) {
  begun_ = true;
  started_ns_ = clock_.NowNs();
  return select_.Begin(*out_);
}

void RecordScanTask::End() {
  if (std::exchange(ended_, true) || !begun_) return;
  if (reader_ != nullptr) totals_.stream.posts = reader_->requests();
  reader_.reset();
  totals_.total_ns = clock_.NowNs() - started_ns_;
  scan_.Add(totals_, claims_);
}

Step RecordScanTask::Next(TaskContext& context, Chunk& out) {
  if (ended_) return Step::kDone;
  if (!begun_) {
    out_ = &out;
    if (const absl::Status status = Begin(context); !status.ok()) return context.Fail(status);
  }
  NAM_CHECK(&out == out_, "a task fills one chunk");
  while (true) {
    Rows rows;
    Step step = NextRows(context, rows);
    if (step == Step::kHaveMore) step = select_.Run(context, rows, out);
    if (step == Step::kNeedInput) continue;
    if (step != Step::kHaveMore) End();
    return step;
  }
}

Step RecordScanTask::NextRows(TaskContext& context, Rows& rows) {
  while (true) {
    if (context.cancelled()) return context.Fail(absl::CancelledError("the query was cancelled"));
    if (source_ == RowSource::kNone) {
      const Step step = NextPiece(context);
      if (step != Step::kHaveMore) return step;
    }
    const bool stored = source_ == RowSource::kChunks;
    if (stored) {
      const absl::StatusOr<Rows> read = StoredRows(context);
      if (!read.ok()) return context.Fail(read.status());
      rows = *read;
    } else {
      rows = OwnRows(context);
    }
    if (rows.empty()) {
      source_ = RowSource::kNone;
      continue;
    }
    totals_.rows_in += rows.size();
    rows = Wanted(rows, stored);
    if (!rows.empty()) return Step::kHaveMore;
  }
}

Step RecordScanTask::NextPiece(TaskContext& context) {
  context.Settle();
  const std::optional<uint32_t> next = claims_.Next();
  if (!next) return claims_.error().ok() ? Step::kDone : context.Fail(claims_.error());
  const partitioner::Piece& piece = scan_.queue_[*next];
  if (piece.partition == partitioner::kOwnRows) {
    source_ = RowSource::kOwnRows;
    own_next_ = piece.first_block;
    own_end_ = uint64_t{piece.first_block} + piece.blocks;
    return Step::kHaveMore;
  }
  source_ = RowSource::kChunks;
  if (reader_ == nullptr) {
    NAM_CHECK(context.channels().blocks != nullptr, "a scan reads records over a channel");
    const RecordScan::Options& options = scan_.options_;
    auto reader = txn::RecordReader::Open(options.records, options.state, *context.channels().blocks,
                                          {.snapshot = options.snapshot,
                                           .cancel = &context.cancel(),
                                           .window_max = std::min<uint64_t>(options.window_max, kChunkRows)});
    if (!reader.ok()) return context.Fail(reader.status());
    reader_ = *std::move(reader);
  }
  const absl::Status started =
      reader_->Start({.extent = piece.partition, .first_chunk = piece.first_block, .chunks = piece.blocks});
  return started.ok() ? Step::kHaveMore : context.Fail(started);
}

absl::StatusOr<RecordScanTask::Rows> RecordScanTask::StoredRows(TaskContext& context) {
  context.Settle();
  const uint64_t before = reader_->blocks_read();
  const int64_t asked_ns = clock_.NowNs();
  NAM_ASSIGN_OR_RETURN(const Rows rows, reader_->Next());
  totals_.stream.waiting_ns += clock_.NowNs() - asked_ns;
  const uint64_t blocks = reader_->blocks_read() - before;
  totals_.stream.blocks += blocks;
  totals_.stream.rows += rows.size();
  context.Charge(blocks, work_cost::kRecordRowPs);
  NAM_CHECK(rows.size() <= kChunkRows);
  return rows;
}

RecordScanTask::Rows RecordScanTask::OwnRows(TaskContext& context) {
  const uint64_t end = std::min(own_end_, own_next_ + kChunkRows);
  wanted_.clear();
  for (; own_next_ < end; ++own_next_)
    wanted_.push_back(reinterpret_cast<const std::byte*>(scan_.options_.own_rows[own_next_].data()));
  context.Charge(wanted_.size(), work_cost::kRecordRowPs);
  return wanted_;
}

RecordScanTask::Rows RecordScanTask::Wanted(Rows rows, bool stored) {
  const bool hides = stored && !scan_.hidden_.empty();
  if (!hides && scan_.ranges_.empty()) return rows;
  const uint32_t key_bytes = scan_.select_.row().key_bytes();
  if (rows.data() != wanted_.data()) wanted_.assign(rows.begin(), rows.end());
  std::erase_if(wanted_, [&](const std::byte* row) {
    const std::string_view key(reinterpret_cast<const char*>(row), key_bytes);
    return (hides && scan_.hidden_.contains(key)) || !scan_.InRanges(key);
  });
  return wanted_;
}

}  // namespace nam::execution
