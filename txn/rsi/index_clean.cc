#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "txn/rsi/index_keeper.h"

/// Removes dead entries:
///
///     a commit gives a row another key ─▶ its session remembers the old key
///     a deleted row's block is made free ─▶ likewise
///     later, in a commit that writes to the table, before it is decided:
///         raise the horizon ─▶ entries of the key that lead to the record ─▶ the record's block
///             └ its newest version is seen by every snapshot and has another key ─▶ remove those entries
///
/// The commit comes first, since a client that drops an index waits for the claims of commits that may use
/// it. DROP TABLE does not wait so: only commits that write to a table touch its memory. The entries are READ
/// before the block, so they exclude those added meanwhile. A session remembers a bounded number. Those that
/// it forgets, or leaves behind when it ends, cost memory and one look of each scan that passes.
namespace nam::txn {
namespace {

constexpr size_t kDeadMax = 4'096;  // per table
/// Entries that one commit cleans. So many new ones also raise the horizon.
constexpr size_t kAtOnce = 16;

}  // namespace

void IndexKeeper::NoteDead(uint32_t number, uint64_t record, const std::byte* before, const std::byte* row,
                           uint64_t since) {
  for (const std::unique_ptr<TableIndex>& index : table(number).indexes()) {
    const IndexKey old = index->KeyOf(before);
    if (row != nullptr && index->KeyOf(row) == old) continue;
    if (dead_.size() <= number) dead_.resize(number + 1);
    DeadEntries& dead = dead_[number];
    if (dead.entries.size() == kDeadMax) dead.entries.pop_front();
    std::string key(reinterpret_cast<const char*>(old.bytes.data()), old.size);
    dead.entries.push_back({index->description().allocation, record, since, std::move(key)});
    ++dead.noted;
  }
}

absl::Status IndexKeeper::Clean() {
  size_t left = kAtOnce;
  for (size_t i = 0; i < writes_.size() && left > 0; ++i) {
    const uint32_t number = writes_[i].table;
    if (number >= dead_.size() || dead_[number].entries.empty()) continue;
    // Skips a table that was cleaned already: its remainder stays until a later commit.
    const auto same = [&](const PendingWrite& before) { return before.table == number; };
    const auto here = writes_.begin() + static_cast<ptrdiff_t>(i);
    if (std::find_if(writes_.begin(), here, same) != here) continue;
    NAM_RETURN_IF_ERROR(CleanTable(number, left));
  }
  return absl::OkStatus();
}

absl::Status IndexKeeper::CleanTable(uint32_t number, size_t& left) {
  DeadEntries& dead = dead_[number];
  if (dead.entries.front().since > horizon_) {
    if (dead.noted < kAtOnce) return absl::OkStatus();
    dead.noted = 0;
    NAM_ASSIGN_OR_RETURN(const Timestamps::Horizon raised, timestamps_->RaiseHorizon(batch_));
    horizon_ = raised.value;
  }
  for (; left > 0 && !dead.entries.empty() && dead.entries.front().since <= horizon_; --left) {
    const DeadEntry next = dead.entries.front();
    dead.entries.pop_front();
    const size_t kept = batch_.scratch_used();
    NAM_RETURN_IF_ERROR(CleanEntry(number, next));
    batch_.Reset(kept);
  }
  return absl::OkStatus();
}

absl::Status IndexKeeper::CleanEntry(uint32_t number, const DeadEntry& dead) {
  RecordTable& from = table(number);
  const auto index = std::find_if(from.indexes().begin(), from.indexes().end(), [&](const auto& open) {
    return open->description().allocation == dead.index;
  });
  if (index == from.indexes().end()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(core_.CheckScratch(from.geometry().block_bytes() + SessionCore::kIndexScratchBytes));
  OrderedIndex& entries = (*index)->entries();
  std::vector<uint64_t> values;
  const std::span<const std::byte> key = std::as_bytes(std::span(dead.key));
  NAM_RETURN_IF_ERROR(entries.Lookup(key, values));
  std::erase_if(values, [&](uint64_t value) { return IndexEntry(value).record() != dead.record; });
  if (values.empty()) return absl::OkStatus();
  BlockRead block{.record = dead.record};
  NAM_RETURN_IF_ERROR(reader_.ReadBlocks(from, {&block, 1}, RowReader::kNewest));
  const storage::RecordHeader header = block.header();
  if (header.locked() || header.timestamp() > horizon_) return absl::OkStatus();  // its writer remembers it
  const storage::VersionChoice choice = reader_.Choose(from, block, RowReader::kNewest);
  if (choice.outcome == storage::VersionChoice::Outcome::kVersion &&
      std::ranges::equal((*index)->KeyOf(block.block + from.geometry().row_offset(choice.slot)).view(),
                         key)) {
    return absl::OkStatus();
  }
  for (const uint64_t value : values) {
    NAM_RETURN_IF_ERROR(entries.Remove(key, value).status());
  }
  return absl::OkStatus();
}

}  // namespace nam::txn
