#include "partitioner/group_writer.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "absl/strings/str_format.h"
#include "base/interruption.h"
#include "base/mutex.h"
#include "base/status_macros.h"
#include "partitioner/column_statistics.h"
#include "storage/block.h"
#include "storage/block_sink.h"
#include "storage/checksum.h"
#include "storage/dictionary.h"
#include "storage/row_bytes.h"
#include "types/sql_error.h"
#include "types/wire.h"

namespace nam::partitioner {
namespace {

constexpr uint32_t kDictionarySegmentBytes = 1 << 20;
constexpr uint32_t kBlocksOfShare = 64;
constexpr uint64_t kRowsOfAThread = 16'384;
constexpr int kThreadsMax = 16;

}  // namespace

int LoadThreads(const fabric::Fabric& fabric) {
  return std::clamp(fabric.capabilities().processors, 1, kThreadsMax);
}

absl::Status CheckGroup(const TableSchema& schema, const GroupOptions& options) {
  if (schema.columns.empty())
    return absl::InvalidArgumentError(absl::StrFormat("table %s has no column", schema.name));
  if (schema.columns.size() > storage::kColumnsMax) {
    return UserError(sqlstate::kLimitExceeded,
                     absl::StrFormat("a columnar table has at most %d columns, not %d", storage::kColumnsMax,
                                     schema.columns.size()),
                     -1, "make several tables of it, with a key in each");
  }
  uint64_t partitions = 1;
  for (const PartitionSchema& key : schema.partitioning) {
    const bool known = std::any_of(schema.columns.begin(), schema.columns.end(), [&](const ColumnSchema& c) {
      return c.name == key.column && FormOf(c.type) != Form::kWide;
    });
    partitions *= key.parts;
    if (!known || key.parts == 0 || partitions > 1 << 16) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "table %s cannot be split by %s into %d parts: %s", schema.name, key.column, key.parts,
          known ? "it must have 1 to 65,536 partitions in all" : "it has no such column that could be"));
    }
  }
  const uint32_t bytes = options.block_bytes;
  if (bytes < storage::kMinBlockBytes || bytes > storage::kMaxBlockBytes) {
    return absl::InvalidArgumentError(absl::StrFormat("block size %d must be %d to %d bytes", bytes,
                                                      storage::kMinBlockBytes, storage::kMaxBlockBytes));
  }
  if (options.pointer_group < 2 || options.pointer_group > 1024) {
    return absl::InvalidArgumentError("a pointer group holds 2 to 1,024 pointers");
  }
  return absl::OkStatus();
}

GroupWriter::GroupWriter(catalog::Attachment& attachment, const TableSchema& schema,
                         const GroupOptions& options, AllocationId allocation)
    : attachment_(attachment),
      options_(options),
      allocation_(allocation),
      staged_(std::make_unique<StagedTable>(schema, options.staged_bytes_max)),
      placement_(attachment, allocation, options.block_bytes) {}

absl::Status GroupWriter::Append(const ColumnBatch& rows) {
  if (!estimated_.exchange(true)) NAM_RETURN_IF_ERROR(CheckRoom(rows));
  return staged_->Append(rows);
}

/// Checks before the first row is kept whether the table will fit, by the widths of its first batch.
absl::Status GroupWriter::CheckRoom(const ColumnBatch& rows) {
  if (options_.expected_rows == 0 || rows.rows() == 0) return absl::OkStatus();
  uint64_t row_bytes = 0;
  for (size_t c = 0; c < rows.column_count(); ++c) {
    const auto& numbers = rows.column(c).numbers;
    if (numbers.empty()) {
      row_bytes += rows.column(c).wide.empty() ? 1 : sizeof(__int128);
      continue;
    }
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    const uint64_t spread = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
    row_bytes += spread <= 0xFF ? 1 : spread <= 0xFFFF ? 2 : spread <= 0xFFFFFFFF ? 4 : 8;
  }
  return placement_.Prepare(row_bytes * options_.expected_rows);
}

absl::StatusOr<std::unique_ptr<storage::Channel>> GroupWriter::OpenChannel() {
  return storage::Channel::Open(attachment_.fabric(), attachment_, {});
}

/// Memory servers revoke a load's keys once its lease has ended: that is the cause then, not the refused
/// WRITE.
absl::Status GroupWriter::Explain(const absl::Status& failed) {
  if (!absl::IsPermissionDenied(failed)) return failed;
  const absl::Status lease = attachment_.ConfirmLease();
  return lease.ok() ? failed : lease;
}

absl::Status GroupWriter::PlanColumns() {
  for (size_t c = 0; c < staged_->schema().columns.size(); ++c) {
    if (cancelled()) return absl::CancelledError("cancelled");
    ColumnCode code = PlanColumn(*staged_, c);
    widths_.push_back(code.width);
    codes_.push_back(std::move(code));
  }
  return absl::OkStatus();
}

PartitionEncoder GroupWriter::NewEncoder() const {
  int sort_column = -1;
  for (size_t c = 0; c < staged_->schema().columns.size(); ++c) {
    if (staged_->schema().columns[c].name == staged_->schema().sort_column) sort_column = static_cast<int>(c);
  }
  return {*staged_, codes_, sort_column};
}

absl::Status GroupWriter::OnThreads(const Work& work) {
  std::atomic<uint32_t> next = 0;
  std::atomic<bool> stop = false;
  Mutex mutex;
  absl::Status first_error;
  const auto run = [&] {
    const absl::Status status = work(next, stop);
    if (status.ok()) return;
    stop = true;
    const MutexLock lock(mutex);
    first_error.Update(status);
  };
  {
    std::vector<std::unique_ptr<fabric::Thread>> threads;
    // A few rows are written sooner than another thread has its connections.
    const int wanted = options_.threads > 0 ? options_.threads : LoadThreads(attachment_.fabric());
    const int most = staged_->rows() < kRowsOfAThread ? 1 : wanted;
    for (int t = 0; t < most; ++t) {
      auto started = attachment_.fabric().TryStartThread(absl::StrFormat("nam-load-%d", t), run);
      if (!started.ok()) break;
      threads.push_back(*std::move(started));
    }
    if (threads.empty()) run();  // this thread is better than none
  }
  return first_error;
}

absl::Status GroupWriter::PlanOne(uint32_t partition, PartitionEncoder& encoder) {
  ChainContents contents{.rows = staged_->RowsOf(partition), .widths = widths_, .text_bytes = {}};
  contents.text_bytes.resize(codes_.size());
  if (std::any_of(codes_.begin(), codes_.end(), [](const ColumnCode& c) { return c.plain_text(); })) {
    encoder.Start(partition);
    for (size_t c = 0; c < codes_.size(); ++c) {
      if (codes_[c].plain_text()) contents.text_bytes[c] = encoder.TextBytes(c);
    }
  }
  NAM_ASSIGN_OR_RETURN(chains_[partition], PlanChain(contents, options_.block_bytes, options_.pointer_group));
  return absl::OkStatus();
}

absl::Status GroupWriter::PlanChains() {
  chains_.resize(staged_->partitions());
  return OnThreads([this](std::atomic<uint32_t>& next, std::atomic<bool>& stop) -> absl::Status {
    PartitionEncoder encoder = NewEncoder();
    while (!stop) {
      if (cancelled()) return absl::CancelledError("cancelled");
      const uint32_t partition = next++;
      if (partition >= chains_.size()) break;
      NAM_RETURN_IF_ERROR(PlanOne(partition, encoder));
    }
    return absl::OkStatus();
  });
}

absl::Status GroupWriter::WriteDictionaries(proto::Table& table) {
  std::unique_ptr<storage::Channel> channel;
  for (size_t c = 0; c < codes_.size(); ++c) {
    if (!HasDictionary(c)) continue;
    if (!channel) {
      NAM_ASSIGN_OR_RETURN(channel, OpenChannel());
    }
    const std::vector<std::byte> bytes = storage::Dictionary::Encode(codes_[c].sorted);
    proto::Dictionary& dictionary =
        *table.mutable_columns(static_cast<int>(c))->mutable_encoding()->mutable_dictionary();
    dictionary.set_entries(codes_[c].sorted.size());
    dictionary.set_bytes(bytes.size());
    dictionary.set_segment_bytes(kDictionarySegmentBytes);
    dictionary.set_checksum(storage::Checksum(bytes));
    for (size_t at = 0; at < bytes.size(); at += kDictionarySegmentBytes) {
      const auto n = static_cast<uint32_t>(std::min<size_t>(kDictionarySegmentBytes, bytes.size() - at));
      const storage::RemotePtr<void> pointer = placement_.Next(n);
      NAM_RETURN_IF_ERROR(
          Explain(channel->Write({bytes.data() + at, n}, placement_.ToWrite(pointer), placement_.grant())));
      dictionary.add_segments(pointer.raw());
    }
  }
  return absl::OkStatus();
}

absl::Status GroupWriter::WriteBlocks(const Share& share, PartitionEncoder& encoder,
                                      storage::BlockSink& sink) {
  const ChainPlan& chain = chains_[share.partition];
  const uint32_t group = options_.pointer_group;
  const storage::BlockLayout layout(widths_, chain.block_rows, chain.pointer_slots, chain.text_bytes);
  const bool is_long = layout.bytes() > sink.block_bytes_max();
  std::vector<std::byte> long_block(is_long ? layout.bytes() : 0);
  encoder.Start(share.partition);
  uint64_t first = share.first_block == 0 ? 0 : chain.ends[share.first_block - 1];
  for (uint32_t index = share.first_block; index < share.end_block; ++index) {
    if (cancelled()) return absl::CancelledError("cancelled");
    const auto rows = static_cast<uint32_t>(chain.ends[index] - first);
    std::span<const uint64_t> pointers;
    if (index % group == 0 && index + group < chain.blocks()) {
      pointers = std::span(chain.pointers).subspan(index + group);
      pointers = pointers.first(std::min<size_t>(group, pointers.size()));
    }
    std::byte* block = long_block.data();
    if (!is_long) {
      NAM_ASSIGN_OR_RETURN(block, sink.Acquire());
    }
    std::fill_n(block, layout.bytes(), std::byte{0});
    storage::BlockWriter writer(layout, block);
    encoder.Encode(first, rows, writer);
    first = chain.ends[index];
    writer.Seal(allocation_.value(), share.partition, index, rows, pointers);
    const auto pointer = storage::RemotePtr<void>::FromRaw(chain.pointers[index]);
    NAM_RETURN_IF_ERROR(is_long ? sink.WriteLong(placement_.ToWrite(pointer), long_block, placement_.grant())
                                : sink.Write(placement_.ToWrite(pointer), layout.bytes()));
  }
  return absl::OkStatus();
}

std::vector<GroupWriter::Share> GroupWriter::SharesOfWork() const {
  // Rows that are sorted are sorted once, by the thread that writes all of them.
  const uint32_t most = staged_->schema().sort_column.empty() ? kBlocksOfShare : UINT32_MAX;
  std::vector<Share> shares;
  for (uint32_t p = 0; p < chains_.size(); ++p) {
    const uint32_t blocks = chains_[p].blocks();
    for (uint32_t first = 0; first < blocks; first += std::min(most, blocks - first))
      shares.push_back({p, first, first + std::min(most, blocks - first)});
  }
  return shares;
}

absl::Status GroupWriter::WriteShares(const std::vector<Share>& shares, std::atomic<uint32_t>& next,
                                      std::atomic<bool>& stop) {
  PartitionEncoder encoder = NewEncoder();
  if (placement_.grant() == nullptr) return absl::OkStatus();  // no rows, so no memory
  NAM_ASSIGN_OR_RETURN(const std::unique_ptr<storage::Channel> channel, OpenChannel());
  NAM_ASSIGN_OR_RETURN(fabric::Grant::Use use, storage::UseOf(placement_.grant()));
  storage::BlockSink sink(*channel, std::move(use), options_.block_bytes);
  while (!stop) {
    if (cancelled()) return absl::CancelledError("cancelled");
    const uint32_t share = next++;
    if (share >= shares.size()) break;
    NAM_RETURN_IF_ERROR(WriteBlocks(shares[share], encoder, sink));
  }
  return sink.Flush();
}

absl::Status GroupWriter::WriteAllBlocks() {
  const std::vector<Share> shares = SharesOfWork();
  return Explain(OnThreads([&](auto& next, auto& stop) { return WriteShares(shares, next, stop); }));
}

uint32_t GroupWriter::AverageTextBytes(size_t column) const {
  uint64_t bytes = 0, rows = 0;
  for (const ChainPlan& chain : chains_) {
    rows += chain.rows();
    bytes += chain.blocks() == 0 ? 0 : uint64_t{chain.text_bytes[column]} * chain.blocks();
  }
  return static_cast<uint32_t>(rows == 0 ? 0 : bytes / rows);
}

void GroupWriter::DescribeColumn(size_t c, proto::Column& column) const {
  const ColumnSchema& schema = staged_->schema().columns[c];
  const StagedTable::ColumnRange range = staged_->RangeOf(c);
  const ColumnCode& code = codes_[c];
  column.set_name(schema.name);
  *column.mutable_type() = ToProto(schema.type);
  column.set_nullable(schema.nullable);
  column.set_default_expression(schema.default_expression);
  column.set_dropped(schema.dropped);
  column.set_hidden(schema.dropped);
  column.mutable_encoding()->set_width(code.width);
  column.mutable_encoding()->set_base(code.base);
  column.mutable_encoding()->set_plain(code.plain);
  if (code.plain_text()) column.mutable_encoding()->set_average_text_bytes(AverageTextBytes(c));
  column.set_nulls(range.nulls);
  DescribeValues(*staged_, c, code, column);
  if (code.plain) return;
  const bool text = HasDictionary(c);
  const uint64_t strings = code.sorted.size();
  column.set_min(text ? 0 : range.min);
  column.set_max(text ? static_cast<int64_t>(strings) - 1 : range.max);
  column.set_unique(text ? strings == staged_->rows() && range.nulls == 0 : staged_->Unique(c));
}

absl::Status GroupWriter::Describe(proto::Table& table) {
  const TableSchema& schema = staged_->schema();
  table.set_name(schema.name);
  table.set_allocation(allocation_.value());
  table.set_rows(staged_->rows());
  table.set_sort_column(schema.sort_column);
  table.set_block_bytes(options_.block_bytes);
  table.set_pointer_group(options_.pointer_group);
  for (size_t c = 0; c < schema.columns.size(); ++c) table.add_columns();
  NAM_RETURN_IF_ERROR(OnThreads([&](std::atomic<uint32_t>& next, std::atomic<bool>&) -> absl::Status {
    for (uint32_t c = next++; c < schema.columns.size(); c = next++)
      DescribeColumn(c, *table.mutable_columns(static_cast<int>(c)));
    return absl::OkStatus();
  }));
  for (const PartitionSchema& key : schema.partitioning) {
    proto::PartitionKey& out = *table.add_partitioning();
    out.set_column(key.column);
    out.set_parts(key.parts);
    for (const ColumnSchema& column : schema.columns) {
      if (column.name != key.column) continue;
      out.set_function(column.type.kind == TypeKind::kInteger ? proto::MODULO : proto::XXH3);
    }
  }
  return absl::OkStatus();
}

absl::Status GroupWriter::Reserve(const std::vector<uint32_t>& pieces, uint64_t bytes) {
  const Interruption interruption(options_.cancel != nullptr ? options_.cancel : Interruption::flag());
  NAM_RETURN_IF_ERROR(placement_.Prepare(bytes));
  return placement_.Reserve(pieces);
}

absl::StatusOr<proto::Table> GroupWriter::Write() {
  proto::Table table;
  NAM_RETURN_IF_ERROR(PlanColumns());
  NAM_RETURN_IF_ERROR(PlanChains());
  NAM_RETURN_IF_ERROR(Describe(table));
  // Everything that will be written, in the order in which it takes its place below.
  std::vector<uint32_t> pieces;
  uint64_t bytes = 0;
  for (size_t c = 0; c < codes_.size(); ++c) {
    if (!HasDictionary(c)) continue;
    uint64_t left = 8 + 4 * (codes_[c].sorted.size() + 1);
    for (std::string_view entry : codes_[c].sorted) left += entry.size();
    for (; left > 0; left -= pieces.back()) {
      pieces.push_back(static_cast<uint32_t>(std::min<uint64_t>(left, kDictionarySegmentBytes)));
    }
  }
  for (const ChainPlan& chain : chains_) pieces.insert(pieces.end(), chain.blocks(), chain.block_bytes);
  for (uint32_t piece : pieces) bytes += piece;
  NAM_RETURN_IF_ERROR(Reserve(pieces, bytes));
  NAM_RETURN_IF_ERROR(WriteDictionaries(table));
  for (ChainPlan& chain : chains_) {
    for (uint32_t i = 0; i < chain.blocks(); ++i)
      chain.pointers.push_back(placement_.Next(chain.block_bytes).raw());
    proto::Chain& out = *table.add_partitions();
    out.set_rows(chain.rows());
    out.set_blocks(chain.blocks());
    out.set_block_rows(chain.block_rows);
    for (const uint32_t bytes : chain.text_bytes) out.add_text_bytes(bytes);
    for (uint32_t i = 0; i < std::min(chain.blocks(), options_.pointer_group); ++i)
      out.add_head(chain.pointers[i]);
  }
  NAM_RETURN_IF_ERROR(WriteAllBlocks());
  std::map<MemoryServerId, uint64_t> blocks;
  for (const ChainPlan& chain : chains_) {
    for (uint64_t pointer : chain.pointers) ++blocks[storage::RemotePtr<void>::FromRaw(pointer).server()];
  }
  for (const auto& [server, used_bytes] : placement_.used_bytes()) {
    proto::ServerUsage& out = *table.add_usage();
    out.set_server(server.value());
    out.set_blocks(blocks[server]);
    out.set_bytes(used_bytes);
  }
  codes_.clear();  // they refer to staged rows
  staged_.reset();
  return table;
}

}  // namespace nam::partitioner
