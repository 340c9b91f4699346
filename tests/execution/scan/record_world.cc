#include "tests/execution/scan/record_world.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "execution/column.h"
#include "plan/table_schema.h"
#include "tests/sql/arbitrary_record.h"
#include "txn/snapshot_scan.h"
#include "types/wire.h"

namespace nam::execution {
namespace {

/// Small ones often, and the extremes.
Value RandomValue(std::mt19937_64& random, const proto::Column& column) {
  const Type type = ColumnTypeOf(column.type());
  Value value = Value::Null(type);
  if (column.nullable() && random() % 4 == 0) return value;
  value.null = false;
  const auto small = static_cast<int64_t>(random() % 2'000) - 1'000;
  const uint64_t pick = random() % 16;
  switch (type.kind) {
    case TypeKind::kBool:
      value.number = static_cast<int64_t>(random() % 2);
      return value;
    case TypeKind::kString:
      for (uint64_t i = random() % (column.type().length() + 1); i > 0; --i)
        value.text.push_back("abc\xc3"[random() % 3]);
      return value;
    case TypeKind::kDate:
      value.number = pick == 0 ? -719162 : pick == 1 ? 2932896 : 9000 + small;
      return value;
    case TypeKind::kTime:
      value.number = pick == 0 ? 0 : pick == 1 ? 86'400'000'000 : small + 1'000;
      return value;
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampTz:
      value.number = pick == 0 ? -62135596800000000 : pick == 1 ? 253402300799999999 : small;
      return value;
    case TypeKind::kNumeric:
      return Value::OfNumeric({small, static_cast<uint8_t>(pick)});
    default:
      break;
  }
  const __int128 most = type.kind == TypeKind::kInteger
                            ? (__int128{1} << (8 * column.type().precision() - 1)) - 1
                            : PowerOfTen(static_cast<int>(column.type().precision())) - 1;
  const __int128 least = type.kind == TypeKind::kInteger ? -most - 1 : -most;
  const bool key = column.name() == "id" || column.name() == "k";  // many
  value.number = pick == 0   ? most
                 : pick == 1 ? least
                 : key       ? 100 * small + static_cast<int64_t>(pick)
                             : small;
  return value;
}

/// The value of an array at a position.
std::string ArrayText(const Column& column, const plan::Slot& slot, uint32_t position) {
  NAM_CHECK(column.kind == Column::Kind::kValues && column.rows == nullptr);
  Value value = Value::Null(slot.type);
  value.null = column.nulls != nullptr && column.nulls[position] != 0;
  const std::byte* const at = column.base + uint64_t{position} * column.width;
  switch (column.physical) {
    case Physical::kTruth:
      value.null = static_cast<uint8_t>(*at) == kUnknown;
      value.number = static_cast<uint8_t>(*at);
      break;
    case Physical::kText: {
      std::string_view text;
      std::memcpy(&text, at, sizeof(text));
      if (!value.null) value.text = std::string(text);
      break;
    }
    case Physical::kInt64: {
      int64_t number = 0;
      std::memcpy(&number, at, sizeof(number));
      value.number = number;
      break;
    }
    default:
      std::memcpy(&value.number, at, sizeof(value.number));
  }
  NAM_CHECK(!value.null || slot.nullable);
  return TextOf(value);
}

}  // namespace

RecordTable::RecordTable(txn::RecordCluster& cluster, const std::string& create, uint32_t versions)
    : meta_(std::make_shared<proto::Table>(sql::RecordTable(create))), layout_(*meta_) {
  cluster.AddTable(
      meta_->name(),
      {.row_bytes = layout_.row_bytes(), .key_bytes = layout_.key_bytes(), .versions = versions});
  txn::RecordCluster::Member member(cluster, cluster.client(), 99);
  auto meta = std::make_shared<proto::Table>(*meta_);
  meta->set_allocation(member.Find(meta->name())->allocation.value());
  meta_ = std::move(meta);
}

std::string RecordTable::RandomRow(std::mt19937_64& random) const {
  std::vector<Value> values;
  for (const proto::Column& column : meta_->columns()) values.push_back(RandomValue(random, column));
  return layout_.Encode(values);
}

void RecordTable::Fill(txn::Session& session, std::mt19937_64& random, size_t count) {
  const txn::TableHandle table = *session.OpenTable(meta_->name());
  while (rows_.size() < count) {
    NAM_CHECK(session.Begin().ok());
    for (int i = 0; i < 100 && rows_.size() < count; ++i) {
      const std::string row = RandomRow(random);
      if (!rows_.emplace(row.substr(0, layout_.key_bytes()), row).second) continue;
      NAM_CHECK(session.Insert(table, Bytes(row)).ok());
    }
    NAM_CHECK(session.Commit().ok());
  }
}

void RecordTable::Change(txn::Session& session, std::mt19937_64& random, size_t count, Rows& rows) const {
  const txn::TableHandle table = *session.OpenTable(meta_->name());
  const uint32_t key_bytes = layout_.key_bytes();
  for (size_t i = 0; i < count; ++i) {
    std::string row = RandomRow(random);
    const auto some = rows.lower_bound(row.substr(0, key_bytes));
    if (some != rows.end() && random() % 3 != 0) row.replace(0, key_bytes, some->first);
    const std::string key = row.substr(0, key_bytes);
    std::string read(row.size(), '\0');
    txn::Lookup lookup{table, Bytes(key), std::as_writable_bytes(std::span(read))};
    NAM_CHECK(session.Read({&lookup, 1}).ok());
    NAM_CHECK(lookup.found == rows.contains(key));
    absl::Status status;
    if (!lookup.found) {
      status = session.Insert(table, Bytes(row));
      rows[key] = row;
    } else if (random() % 2 == 0) {
      status = session.Update(table, Bytes(row));
      rows[key] = row;
    } else {
      status = session.Delete(table, Bytes(key));
      rows.erase(key);
    }
    EXPECT_TRUE(status.ok()) << status;
    NAM_CHECK(status.ok(), "only this transaction writes");
  }
}

void RecordTable::ChangeAndCommit(txn::Session& session, std::mt19937_64& random, size_t count) {
  NAM_CHECK(session.Begin().ok());
  Change(session, random, count, rows_);
  NAM_CHECK(session.Commit().ok());
}

void RecordTable::Replace(txn::Session& session, const std::string& row) const {
  const txn::TableHandle table = *session.OpenTable(meta_->name());
  const std::string key = row.substr(0, layout_.key_bytes());
  std::string read(row.size(), '\0');
  txn::Lookup lookup{table, Bytes(key), std::as_writable_bytes(std::span(read))};
  NAM_CHECK(session.Begin().ok() && session.Read({&lookup, 1}).ok() && lookup.found);
  NAM_CHECK(session.Update(table, Bytes(row)).ok());
  NAM_CHECK(session.Commit().ok());
}

RecordScan::Options RecordTable::ScanOf(txn::RecordCluster::Member& member, uint64_t snapshot,
                                        std::vector<uint32_t> columns) const {
  RecordScan::Options options{.table = meta_,
                              .records = *member.Find(meta_->name()),
                              .state = *member.State(),
                              .snapshot = snapshot,
                              .select = {.columns = std::move(columns)}};
  for (uint32_t i = 0; i < options.select.columns.size(); ++i) {
    options.select.schema.push_back(*plan::SlotOfColumn(*meta_, options.select.columns[i]));
    options.select.outputs.push_back(i);
  }
  return options;
}

std::vector<partitioner::Piece> RecordTable::Pieces(txn::RecordCluster::Member& member, uint32_t chunks_max,
                                                    size_t own_rows) const {
  const txn::TableDescription records = *member.Find(meta_->name());
  return partitioner::RecordPieces(static_cast<uint32_t>(records.records->Extents()->size()),
                                   static_cast<uint32_t>(txn::LayoutOf(records).chunks), chunks_max,
                                   static_cast<uint32_t>(own_rows));
}

void AddWrites(txn::Session& session, const std::string& table, RecordScan::Options& options) {
  NAM_CHECK(session
                .VisitWrites(*session.OpenTable(table),
                             [&](std::span<const std::byte> key, std::span<const std::byte> row) {
                               const auto text = [](std::span<const std::byte> bytes) {
                                 return std::string(reinterpret_cast<const char*>(bytes.data()),
                                                    bytes.size());
                               };
                               options.hidden_keys.push_back(text(key));
                               if (!row.empty()) options.own_rows.push_back(text(row));
                               return true;
                             })
                .ok());
}

RecordScanner::RecordScanner(txn::RecordCluster& cluster, txn::RecordCluster::Member& member, int threads,
                             uint64_t buffer_bytes, uint64_t budget_bytes)
    : fabric_(cluster.client()), budget_(budget_bytes) {
  for (int t = 0; t < threads; ++t)
    channels_.push_back(*storage::Channel::Open(fabric_, member.directory(), {.buffer_bytes = buffer_bytes}));
}

absl::StatusOr<std::vector<TextRow>> RecordScanner::Run(RecordScan& scan,
                                                        const std::function<bool(const Chunk&)>& each) {
  std::vector<std::vector<TextRow>> rows(channels_.size());
  std::vector<absl::Status> errors(channels_.size());
  {
    std::vector<std::unique_ptr<fabric::Thread>> running;
    for (size_t t = 0; t < channels_.size(); ++t) {
      running.push_back(
          fabric_.StartThread("scan", [&, t] { errors[t] = RunThread(scan, *channels_[t], each, rows[t]); }));
    }
  }
  std::vector<TextRow> all;
  for (size_t t = 0; t < channels_.size(); ++t) {
    if (!errors[t].ok()) return errors[t];
    all.insert(all.end(), rows[t].begin(), rows[t].end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

absl::Status RecordScanner::RunThread(RecordScan& scan, storage::Channel& channel,
                                      const std::function<bool(const Chunk&)>& each,
                                      std::vector<TextRow>& rows) {
  TaskContext context(fabric_.clock(), budget_, cancel_, {&channel, nullptr});
  const auto chunk = scan.select().NewChunk();
  const auto task = scan.NewTask(context);
  const RecordSelect::Options& options = scan.select().options();
  while (true) {
    const Step step = task->Next(context, *chunk);
    context.Settle();
    if (step == Step::kDone) return absl::OkStatus();
    if (step == Step::kFailed) return context.error();
    const Selection selection = chunk->selection();
    NAM_CHECK(step == Step::kHaveMore && chunk->size() <= kChunkRows);
    NAM_CHECK(selection.count > 0 && selection.count <= chunk->size());
    for (uint32_t i = 0; i < selection.count; ++i) {
      NAM_CHECK(selection[i] < chunk->size() && (i == 0 || selection[i - 1] < selection[i]));
      TextRow& row = rows.emplace_back();
      for (uint32_t c = 0; c < options.outputs.size(); ++c)
        row.push_back(ArrayText(chunk->column(c), options.schema[options.outputs[c]], selection[i]));
    }
    if (each && !each(*chunk)) {
      task->Stop();
      return absl::OkStatus();
    }
  }
}

}  // namespace nam::execution
