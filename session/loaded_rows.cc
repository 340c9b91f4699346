#include "session/loaded_rows.h"

#include <utility>

#include "base/status_macros.h"
#include "session/result_batch.h"
#include "sql/bound_query.h"
#include "types/wire.h"

namespace nam::session {
namespace {

std::vector<partitioner::GivenColumn> GivenTo(const proto::Table& table, const std::vector<int>& columns) {
  std::vector<partitioner::GivenColumn> given;
  for (const proto::Column& column : table.columns()) {
    const Type type = TypeOf(column.type()).value_or(Type::Null());
    given.push_back({.absent = sql::ConstantDefault(column).value_or(Value::Null(type))});
  }
  for (size_t i = 0; i < columns.size(); ++i)
    given[static_cast<size_t>(columns[i])].slot = static_cast<int>(i);
  return given;
}

}  // namespace

LoadedRows::LoadedRows(const proto::Table& table, const std::vector<int>& columns,
                       partitioner::TableLoader& loader, const partitioner::LoadOptions& options)
    : table_(table),
      loader_(loader),
      block_bytes_(options.block_bytes),
      pointer_group_(options.pointer_group),
      given_(GivenTo(table, columns)),
      assigned_(table, given_),
      batch_(static_cast<size_t>(table.columns_size())) {}

absl::Status LoadedRows::Begin(const std::vector<ResultSet::Column>&) {
  return absl::OkStatus();
}

absl::Status LoadedRows::Add(const ResultBatch& rows) {
  rows_ += rows.rows();
  if (rows.boxed() == nullptr) {
    NAM_RETURN_IF_ERROR(assigned_.Add(rows.vectors(), rows.positions(), rows.rows(), batch_));
    return FlushFull();
  }
  for (size_t row = 0; row < rows.rows(); ++row) {
    NAM_RETURN_IF_ERROR(assigned_.Add(rows.boxed()[row], batch_));
    NAM_RETURN_IF_ERROR(FlushFull());
  }
  return absl::OkStatus();
}

absl::Status LoadedRows::Add(const std::vector<Value>& row) {
  return Add(ResultBatch({&row, 1}));
}

absl::Status LoadedRows::FlushFull() {
  return batch_.rows() < kBatchRows ? absl::OkStatus() : Flush();
}

absl::Status LoadedRows::Flush() {
  if (batch_.rows() > 0) NAM_RETURN_IF_ERROR(loader_.Append(batch_));
  batch_.Clear();
  return absl::OkStatus();
}

absl::Status LoadedRows::End() {
  return Flush();
}

proto::TableWrite LoadedRows::ForServers() const {
  proto::TableWrite write;
  proto::Table& table = *write.mutable_table();
  table = table_;
  table.clear_partitions();
  table.clear_groups();
  table.clear_usage();
  table.set_block_bytes(block_bytes_);
  table.set_pointer_group(pointer_group_);
  for (proto::Column& column : *table.mutable_columns()) {
    column.clear_common();
    column.clear_histogram();
    column.clear_text_histogram();
  }
  for (const partitioner::GivenColumn& given : given_) {
    proto::GivenColumn& out = *write.add_given();
    out.set_slot(given.slot);
    if (given.slot < 0) *out.mutable_absent() = ToProto(given.absent);
  }
  return write;
}

absl::StatusOr<uint64_t> LoadedRows::BeginAttempt() {
  NAM_ASSIGN_OR_RETURN(const AllocationId allocation, loader_.BeginExtraAllocation());
  return allocation.value();
}

absl::Status LoadedRows::Take(uint64_t allocation, proto::AttemptReply& reply) {
  partitioner::WrittenGroups written;
  for (proto::Table& group : *reply.mutable_groups()) {
    if (group.allocation() != allocation)
      return absl::InternalError("a compute server has written into another allocation than it was told to");
    rows_of_servers_ += group.rows();
    written.groups.push_back(std::move(group));
  }
  for (const proto::ServerBytes& server : reply.written())
    written.bytes[MemoryServerId(static_cast<uint16_t>(server.server()))] = server.bytes();
  if (written.groups.empty()) {
    AbortAttempt(allocation);
  } else {
    loader_.Take(AllocationId(allocation), std::move(written));
  }
  return absl::OkStatus();
}

void LoadedRows::DropTaken() {
  rows_of_servers_ = 0;
  loader_.DropTaken();
}

}  // namespace nam::session
