#include "execution/table_sink.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/budget_array.h"
#include "execution/expression/value_vector.h"
#include "partitioner/appended_table.h"
#include "plan/slot_of.h"
#include "plan/work_cost.h"
#include "proto/compute.pb.h"
#include "types/sql_error.h"

namespace nam::execution {
namespace {

constexpr size_t kBatchRows = 16 << 10;
/// Smaller groups are not worth writing: with so little memory the attempt is repeated, with more.
constexpr uint64_t kGroupBytesMin = uint64_t{4} << 20;
/// Each thread stages at least so many batches per group, where memory is short.
constexpr uint64_t kBatchesOfGroup = 4;

/// The most memory that the batch's rows from `first` on take until they are written. Most columns take half
/// of it, which leaves room for what encoding needs (offsets of texts, blocks in flight).
uint64_t BytesOf(const partitioner::ColumnBatch& batch, size_t first) {
  const size_t rows = batch.rows() - first;
  uint64_t bytes = 0;
  for (size_t c = 0; c < batch.column_count(); ++c) {
    const partitioner::ColumnBatch::Column& column = batch.column(c);
    bytes += rows * (column.wide.empty() ? sizeof(int64_t) : sizeof(__int128));
    if (!column.nulls.empty()) bytes += rows;
    for (size_t row = first; row < column.strings.size(); ++row) bytes += column.strings[row].size();
  }
  return bytes;
}

/// An error of its own: more memory of the compute server would not help.
absl::Status TableError(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  absl::Status full = UserError(sqlstate::kOutOfMemory, std::string(status.message()), -1);
  full.SetPayload(kTableMemoryFull, absl::Cord());
  return full;
}

}  // namespace

/// Collects one task's rows until they are enough to be staged.
class TableSink::Task final : public SinkTask {
 public:
  explicit Task(TableSink& sink)
      : sink_(sink),
        frame_(sink.values_->NewFrame()),
        columns_(sink.values_->outputs()),
        batch_(sink.schema_.columns.size()) {}

  Step Consume(TaskContext& context, const Chunk& in) override {
    const Selection rows = in.selection();
    if (taken_ == 0) context.Charge(rows.count, plan::work_cost::kFinishRowPs);
    do {
      if (taken_ < rows.count && !IsEnough()) {
        const absl::Status added = Take(in, rows);
        if (!added.ok()) return context.Fail(added);
      }
      if (!IsEnough()) continue;
      const Step flushed = Flush(context);
      if (flushed != Step::kNeedInput) return flushed;
    } while (taken_ < rows.count);
    taken_ = 0;
    return Step::kNeedInput;
  }

  Step Finish(TaskContext& context) override {
    const Step step = batch_.rows() == 0 ? Step::kNeedInput : Flush(context);
    return step == Step::kNeedInput ? Step::kDone : step;
  }

 private:
  bool IsEnough() const { return batch_.rows() >= kBatchRows || bytes_ >= sink_.batch_bytes_; }

  /// Adds the chunk's next rows to the batch: all of them, unless their texts are too long for one.
  absl::Status Take(const Chunk& in, Selection all) {
    std::vector<const Vector*> texts;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Vector* const values = sink_.values_->Evaluate(i, frame_, in, all);
      if (values == nullptr) return frame_.error();
      columns_[i] = ValueColumnOf(*values, sink_.types_[i]);
      if (values->physical == Physical::kText) texts.push_back(values);
    }
    uint64_t text_bytes = 0;
    uint32_t end = texts.empty() ? all.count : taken_;
    for (; end < all.count && text_bytes < sink_.batch_bytes_; ++end) {
      for (const Vector* const values : texts) {
        const uint32_t position = all[end];
        text_bytes += values->null(position) ? 0 : values->text[position].size();
      }
    }
    const uint32_t* positions = all.positions == nullptr ? nullptr : all.positions + taken_;
    if (positions == nullptr && taken_ > 0) {
      positions_.resize(end - taken_);
      std::iota(positions_.begin(), positions_.end(), taken_);
      positions = positions_.data();
    }
    const size_t before = batch_.rows();
    NAM_RETURN_IF_ERROR(sink_.assigned_.Add(columns_, positions, end - taken_, batch_));
    bytes_ += BytesOf(batch_, before);
    taken_ = end;
    return absl::OkStatus();
  }

  Step Flush(TaskContext& context) {
    const Step step = sink_.Add(context, batch_, bytes_);
    if (step != Step::kNeedInput) return step;
    batch_.Clear();
    bytes_ = 0;
    return step;
  }

  TableSink& sink_;
  Frame frame_;
  std::vector<ValueColumn> columns_;
  partitioner::ColumnBatch batch_;
  uint64_t bytes_ = 0;  // of batch_
  uint32_t taken_ =
      0;  // rows of the current chunk that are in the batch already: a blocked task gets it again
  std::vector<uint32_t> positions_;
};

absl::StatusOr<std::unique_ptr<TableSink>> TableSink::Make(const plan::Schema& rows, TableTarget target,
                                                           int threads, MemoryBudget& budget) {
  NAM_ASSIGN_OR_RETURN(partitioner::TableSchema schema, partitioner::SchemaOf(target.table));
  NAM_RETURN_IF_ERROR(partitioner::CheckGroup(
      schema, {.block_bytes = target.table.block_bytes(), .pointer_group = target.table.pointer_group()}));
  if (target.given.size() != schema.columns.size())
    return absl::InvalidArgumentError("a table write must name a source for each column");
  for (const partitioner::GivenColumn& given : target.given) {
    if (given.slot >= static_cast<int>(rows.size()))
      return absl::InvalidArgumentError("a table write names a slot that the rows do not have");
  }
  NAM_ASSIGN_OR_RETURN(std::unique_ptr<const Program> values, Program::Compile(plan::SlotExprs(rows), rows));
  std::unique_ptr<TableSink> sink(
      new TableSink(std::move(target), std::move(schema), std::move(values), threads, budget));
  for (const plan::Slot& slot : rows) sink->types_.push_back(slot.type);
  return sink;
}

TableSink::TableSink(TableTarget target, partitioner::TableSchema schema,
                     std::unique_ptr<const Program> values, int threads, MemoryBudget& budget)
    : target_(std::move(target)),
      schema_(std::move(schema)),
      assigned_(target_.table, target_.given),
      values_(std::move(values)),
      threads_(threads),
      budget_(budget),
      group_bytes_(GroupBytes(budget.bytes())),
      batch_bytes_(group_bytes_ / kBatchesOfGroup / static_cast<uint64_t>(std::max(threads, 1))),
      gates_(1) {}

TableSink::~TableSink() {
  writer_.reset();
  budget_.Release(charged_);
}

std::unique_ptr<SinkTask> TableSink::NewTask(TaskContext&) {
  return std::make_unique<Task>(*this);
}

Step TableSink::Add(TaskContext& context, const partitioner::ColumnBatch& batch, uint64_t bytes) {
  while (true) {
    const Gate* gate = nullptr;
    const absl::StatusOr<Entry> entry = Enter(bytes, context.cancel(), gate);
    if (!entry.ok()) return context.Fail(entry.status());
    if (*entry == Entry::kEntered) break;
    if (*entry == Entry::kWait) return context.BlockOn(*gate);
    if (const absl::Status written = WriteGroup(context); !written.ok()) return context.Fail(written);
  }
  const absl::Status added = writer_->Append(batch);
  const bool writes = Leave();
  if (!added.ok()) return context.Fail(added);
  const absl::Status written = writes ? WriteGroup(context) : absl::OkStatus();
  return written.ok() ? Step::kNeedInput : context.Fail(written);
}

absl::StatusOr<TableSink::Entry> TableSink::Enter(uint64_t bytes, const std::atomic<bool>& cancel,
                                                  const Gate*& gate) {
  const MutexLock lock(mutex_);
  gate = &gates_.back();
  if (full_) return Entry::kWait;
  const bool enough = charged_ > 0 && charged_ + bytes > group_bytes_;
  const bool room = !enough && budget_.Reserve(bytes);
  if (!room) {
    if (!enough && charged_ < std::min(group_bytes_ / 2, kGroupBytesMin)) return OverBudget(budget_);
    full_ = true;
    return entered_ > 0 ? Entry::kWait : Entry::kWrite;
  }
  charged_ += bytes;
  ++entered_;
  if (writer_ == nullptr) {
    writer_ = std::make_unique<partitioner::GroupWriter>(
        *target_.attachment, schema_,
        partitioner::GroupOptions{.block_bytes = target_.table.block_bytes(),
                                  .pointer_group = target_.table.pointer_group(),
                                  .threads = threads_,
                                  .cancel = &cancel},
        target_.allocation);
  }
  return Entry::kEntered;
}

bool TableSink::Leave() {
  const MutexLock lock(mutex_);
  --entered_;
  return full_ && entered_ == 0;
}

absl::Status TableSink::WriteGroup(TaskContext& context) {
  context.Settle();
  absl::StatusOr<proto::Table> group = writer_->Write();
  NAM_RETURN_IF_ERROR(TableError(group.status()));
  const MutexLock lock(mutex_);
  groups_.push_back(*std::move(group));
  for (const auto& [member, bytes] : writer_->written_bytes()) written_bytes_[member] += bytes;
  writer_.reset();
  budget_.Release(std::exchange(charged_, 0));
  full_ = false;
  gates_.back().Open();
  gates_.emplace_back();
  return absl::OkStatus();
}

void TableSink::Report(uint64_t /*attempt*/, uint32_t /*pipeline*/, proto::AttemptReply& out) const {
  for (const proto::Table& group : groups_) *out.add_groups() = group;
  for (const auto& [member, bytes] : written_bytes_) {
    proto::ServerBytes& written = *out.add_written();
    written.set_server(member.value());
    written.set_bytes(bytes);
  }
}

absl::Status TableSink::Combine(TaskContext& context, uint32_t) {
  return writer_ == nullptr ? absl::OkStatus() : WriteGroup(context);
}

}  // namespace nam::execution
