#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "txn/rsi_transaction.h"

/// How entries go that lead to no version any more:
///
///     a commit gives a row another key ─▶ its session remembers the old key
///     a deleted row's block is made free ─▶ likewise
///     later, in a commit between the flips and the timestamp's end:
///         raise the horizon ─▶ entries of the key that lead to the record ─▶ the record's block
///             └ its newest version is seen by every snapshot and has another key ─▶ remove those entries
///
/// Then, since who drops an index waits for the timestamps of those who may know of it. The entries are READ
/// before the block: one that somebody adds meanwhile is not among them. A session remembers a bounded
/// number; what it forgets, or leaves behind when it ends, costs memory and one look of each scan that
/// passes.
namespace nam::txn {
namespace {

constexpr size_t kOutlivedMax = 4'096;
/// Of a commit. The horizon is raised when so many are new.
constexpr size_t kAtOnce = 16;
constexpr uint64_t kNewest = storage::kTimestampMask;
constexpr uint64_t kIndexScratchBytes = 32 * 1024;

}  // namespace

void RsiSession::NoteOutlived(uint32_t number, uint64_t record, const std::byte* before, const std::byte* row,
                              uint64_t since) {
  for (const std::unique_ptr<TableIndex>& index : table(number).indexes()) {
    const IndexKey key = index->KeyOf(before);
    if (row != nullptr && index->KeyOf(row) == key) continue;
    if (outlived_.size() == kOutlivedMax) outlived_.pop_front();
    outlived_.push_back({number, index->description().allocation, record, since, key});
    ++noted_;
  }
}

absl::Status RsiSession::CleanIndexes() {
  if (outlived_.empty()) return absl::OkStatus();
  if (outlived_.front().since > horizon_) {
    if (noted_ < kAtOnce) return absl::OkStatus();
    noted_ = 0;
    NAM_ASSIGN_OR_RETURN(const Timestamps::Horizon raised, timestamps_->RaiseHorizon(batch_));
    horizon_ = raised.value;
  }
  for (size_t left = kAtOnce; left > 0 && !outlived_.empty() && outlived_.front().since <= horizon_; --left) {
    const Outlived next = outlived_.front();
    outlived_.pop_front();
    const size_t kept = batch_.scratch_used();
    NAM_RETURN_IF_ERROR(CleanIndex(next));
    batch_.Reset(kept);
  }
  return absl::OkStatus();
}

absl::Status RsiSession::CleanIndex(const Outlived& outlived) {
  RecordTable& from = table(outlived.table);
  const auto index = std::find_if(from.indexes().begin(), from.indexes().end(), [&](const auto& open) {
    return open->description().allocation == outlived.index;
  });
  if (index == from.indexes().end()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(CheckScratch(from.geometry().block_bytes() + kIndexScratchBytes));
  OrderedIndex& entries = (*index)->entries();
  std::vector<uint64_t> values;
  NAM_RETURN_IF_ERROR(entries.Lookup(outlived.key.view(), values));
  std::erase_if(values, [&](uint64_t value) { return IndexEntry(value).record() != outlived.record; });
  if (values.empty()) return absl::OkStatus();
  BlockRead block{.record = outlived.record};
  NAM_RETURN_IF_ERROR(ReadBlocks(from, {&block, 1}, kNewest));
  const storage::RecordHeader header = block.header();
  if (header.locked() || header.timestamp() > horizon_) return absl::OkStatus();  // who commits remembers it
  const storage::VersionChoice choice = Choose(from, block, kNewest);
  if (choice.outcome == storage::VersionChoice::Outcome::kVersion &&
      (*index)->KeyOf(block.block + from.geometry().slot_offset(choice.slot)) == outlived.key) {
    return absl::OkStatus();
  }
  for (const uint64_t value : values) {
    NAM_RETURN_IF_ERROR(entries.Remove(outlived.key.view(), value).status());
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
