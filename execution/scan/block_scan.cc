#include "execution/scan/block_scan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "execution/scan/block_scan_task.h"
#include "proto/compute.pb.h"

namespace nam::execution {

absl::StatusOr<std::unique_ptr<BlockScan>> BlockScan::Make(Options options, PieceQueue& queue) {
  auto scan = std::unique_ptr<BlockScan>(new BlockScan(std::move(options), queue));
  NAM_RETURN_IF_ERROR(scan->CheckColumns());
  NAM_RETURN_IF_ERROR(scan->CheckSlots());
  NAM_RETURN_IF_ERROR(scan->CheckPieces());
  const Options& made = scan->options_;
  for (const Group& group : made.groups) {
    std::vector<ScanColumn>& columns = scan->columns_.emplace_back();
    for (size_t slot = 0; slot < made.columns.size(); ++slot)
      columns.push_back({made.columns[slot], group.meanings[slot]});
  }
  scan->sort_column_ = scan->SortColumn();
  for (const Probe& probe : made.probes) scan->lookups_.push_back(probe.lookup);
  scan->row_set_of_.resize(made.probes.size());
  for (const ScanOutput& output : made.outputs) {
    if (output.probe == ScanOutput::kScanned) continue;
    uint32_t& row_set = scan->row_set_of_[static_cast<size_t>(output.probe)];
    if (row_set == 0) row_set = scan->row_sets_++;
  }
  NAM_RETURN_IF_ERROR(scan->SplitFilters());
  return scan;
}

BlockScan::BlockScan(Options options, PieceQueue& queue) : options_(std::move(options)), queue_(queue) {}
BlockScan::~BlockScan() = default;

absl::Status BlockScan::CheckColumns() const {
  NAM_CHECK(!options_.groups.empty() && options_.schema.size() == options_.columns.size());
  uint32_t before = 0;
  for (const uint32_t column : options_.columns) {
    if (column >= static_cast<uint32_t>(options_.table->columns_size()) || column < before)
      return absl::InvalidArgumentError("not a plan: it reads columns that do not exist");
    before = column + 1;
  }
  for (const Group& group : options_.groups) NAM_CHECK(group.meanings.size() == options_.columns.size());
  return absl::OkStatus();
}

absl::Status BlockScan::CheckSlots() const {
  const size_t slots = options_.columns.size();
  const auto unread = [] {
    return absl::InvalidArgumentError("not a plan: it uses a column that it does not read");
  };
  for (const Probe& probe : options_.probes) {
    const DirectTable& table = *probe.lookup.table;
    NAM_CHECK(table.unique(), "a row has one partner at most");
    if (probe.lookup.slot >= slots) return unread();
    if (!table.all_here() && probe.lookup.parts != uint32_t{1} << table.part_shift())
      return absl::InvalidArgumentError("not a plan: it needs parts of a build side that are not here");
  }
  for (const ScanOutput& output : options_.outputs) {
    const auto probe = static_cast<size_t>(output.probe);
    const bool there = output.probe == ScanOutput::kScanned
                           ? output.column < slots
                           : probe < options_.probes.size() &&
                                 output.column < options_.probes[probe].build->payload_columns();
    if (!there) return unread();
  }
  return absl::OkStatus();
}

absl::Status BlockScan::CheckPieces() const {
  const proto::Table& table = *options_.table;
  for (const partitioner::Piece& piece : queue_.pieces()) {
    if (piece.partition >= static_cast<uint32_t>(table.partitions_size()))
      return absl::InvalidArgumentError("no such partition");
    if (uint64_t{piece.first_block} + piece.blocks >
        table.partitions(static_cast<int>(piece.partition)).blocks())
      return absl::InvalidArgumentError("no such blocks");
  }
  NAM_CHECK(options_.group_of.empty() ||
            (options_.group_of.size() == static_cast<size_t>(table.partitions_size()) &&
             *std::max_element(options_.group_of.begin(), options_.group_of.end()) < options_.groups.size()));
  return absl::OkStatus();
}

/// A filter is a test of codes if it is one in all groups.
absl::Status BlockScan::SplitFilters() {
  conditions_.resize(options_.groups.size());
  filtered_.resize(options_.columns.size());
  for (const plan::Expr& filter : options_.filters) {
    const std::vector<plan::ColumnRef> refs = plan::ColumnsOf(filter);
    for (const plan::ColumnRef ref : refs) {
      if (static_cast<size_t>(ref.column) >= options_.columns.size())
        return absl::InvalidArgumentError("not a plan: it uses a column that it does not read");
    }
    std::vector<SlotCondition> tests;
    while (refs.size() == 1 && tests.size() < options_.groups.size()) {
      const auto slot = static_cast<uint32_t>(refs[0].column);
      auto codes = CodesOf(filter, *columns_[tests.size()][slot].meaning);
      if (!codes) break;
      tests.push_back({slot, *std::move(codes)});
    }
    if (tests.size() == options_.groups.size()) {
      for (size_t g = 0; g < tests.size(); ++g) conditions_[g].push_back(std::move(tests[g]));
      continue;
    }
    for (const plan::ColumnRef ref : refs) filtered_[static_cast<size_t>(ref.column)] = 1;
    NAM_ASSIGN_OR_RETURN(programs_.emplace_back(),
                         Program::Compile({&filter, 1}, options_.schema, options_.memos));
  }
  return absl::OkStatus();
}

int BlockScan::SortColumn() const {
  const proto::Table& table = *options_.table;
  for (int c = 0; c < table.columns_size(); ++c) {
    const proto::Column& column = table.columns(c);
    if (!table.sort_column().empty() && column.name() == table.sort_column())
      return column.encoding().plain() ? -1 : c;  // plain values are sorted, but not cut by codes
  }
  return -1;
}

std::unique_ptr<Chunk> BlockScan::NewChunk(size_t columns) const {
  return std::make_unique<Chunk>(columns, row_sets_);
}

void BlockScan::Count(proto::PipelineCounters& out) const {
  totals().Count(out);
  out.set_table(options_.table->name());
  out.set_by_row_nodes(out.by_row_nodes() + by_row_nodes());
}

std::unique_ptr<SourceTask> BlockScan::NewTask(TaskContext& context) {
  return std::make_unique<BlockScanTask>(*this, context, nullptr);
}

std::unique_ptr<SourceTask> BlockScan::NewFedTask(TaskContext& context, BlockFeed& feed) {
  return std::make_unique<BlockScanTask>(*this, context, &feed);
}

size_t BlockScan::by_row_nodes() const {
  size_t nodes = 0;
  for (const auto& program : programs_) nodes += program->by_row_nodes();
  return nodes;
}

ScanTotals BlockScan::totals() const {
  const MutexLock lock(mutex_);
  return totals_;
}

void BlockScan::Add(const ScanTotals& totals, const PieceClaims* claims) {
  const MutexLock lock(mutex_);
  totals_.Add(totals, claims);
}

void BlockScan::AddReceived(const storage::MulticastCounters& counters, int64_t receiving_ns) {
  const MutexLock lock(mutex_);
  totals_.AddStream(counters.stream);
  totals_.multicast_blocks += counters.multicast_blocks;
  totals_.repaired_blocks += counters.repaired_blocks;
  totals_.duplicate_datagrams += counters.duplicates;
  totals_.total_ns += receiving_ns;
}

}  // namespace nam::execution
