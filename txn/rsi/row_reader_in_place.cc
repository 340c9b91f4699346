#include <algorithm>
#include <array>
#include <cstring>

#include "txn/rsi/row_reader.h"

/// The short path of reads by key, where the memory servers' bytes are in place. Each pass goes over all keys
/// and prefetches the lines for the next one:
///
///     the index's entries ─▶ header, version words, header ─▶ the row with its word, header
///
/// It takes rows that stand still: one record may have the key, its header is the same before and after all
/// copies, and the snapshot sees a row. Memory is reused only after the end of its grant. So the bytes are
/// the table's if the grant still holds after the loads, however long the thread, or the begin of its
/// transaction, has stalled. Otherwise the result does not count, and the rounds of row_reader.cc decide.
namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionWord;

/// More keys would evict the first ones' lines before the next pass.
constexpr size_t kKeysMax = 64;

bool GoesOn(const fabric::Grant* grant) {
  return grant == nullptr || !grant->over();
}

RecordHeader HeaderAt(const std::byte* block) {
  return RecordHeader(storage::VerbBatch::Load(block));
}

}  // namespace

bool RowReader::StartInPlace(std::span<const SoughtRow> sought) {
  if (!channel_->in_place() || sought.size() > kKeysMax || core_.options.broken.torn_reads) return false;
  looks_.resize(sought.size());
  for (size_t i = 0; i < sought.size(); ++i) {
    looks_[i].at = nullptr;
    if (sought[i].table == SoughtRow::kNoTable) continue;
    looks_[i].at = table(sought[i].table).index().InPlace(sought[i].hash, looks_[i].grant);
    if (looks_[i].at == nullptr) return false;
  }
  return true;
}

bool RowReader::ReadInPlace(std::span<SoughtRow> sought) {
  if (LookAtBlocks(sought) && CopyRows(sought)) [[likely]]
    return true;
  for (SoughtRow& row : sought) row.state = SoughtRow::State::kNone;
  return false;
}

bool RowReader::LookAtBlocks(std::span<SoughtRow> sought) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < sought.size(); ++i) {
    Look& look = looks_[i];
    if (look.at == nullptr) continue;
    HashIndex::Candidates candidates;
    if (!HashIndex::LookInPlace(look.at, sought[i].hash, candidates) || candidates.count > 1) return false;
    if (!GoesOn(look.grant)) return false;
    look.at = nullptr;
    if (candidates.count == 0) continue;
    RecordTable& from = table(sought[i].table);
    sought[i].record = candidates.records[0];
    const absl::StatusOr<storage::Channel::Target> block = from.Block(sought[i].record);
    if (!block.ok()) return false;
    look.at = batch_.InPlace(*block, from.geometry().block_bytes());
    look.grant = block->grant;
    if (look.at == nullptr) return false;
    bytes += from.geometry().slot_bytes() + 64;
  }
  for (size_t i = 0; i < sought.size(); ++i) {
    if (looks_[i].at != nullptr) table(sought[i].table).FetchWords(looks_[i].at);
  }
  return core_.CheckScratch(bytes).ok();
}

bool RowReader::CopyRows(std::span<SoughtRow> sought) {
  for (size_t i = 0; i < sought.size(); ++i) {
    Look& look = looks_[i];
    if (look.at == nullptr) continue;
    const storage::RecordGeometry& geometry = table(sought[i].table).geometry();
    std::array<uint64_t, storage::kVersionsMax> gathered;
    const RecordHeader header = HeaderAt(look.at);
    for (uint32_t slot = 0; slot < geometry.slots; ++slot)
      gathered[slot] = storage::VerbBatch::Load(look.at + geometry.word_offset(slot));
    const std::span<const uint64_t> all = gathered;
    const storage::VersionWords words(all.first(geometry.slots));
    const auto choice = storage::ChooseVersion(header, words, HeaderAt(look.at), transaction_.snapshot);
    if (choice.outcome != storage::VersionChoice::Outcome::kVersion || choice.version.deleted()) {
      return false;
    }
    sought[i].header = header;
    sought[i].version = choice.version;
    sought[i].victim = storage::VictimSlot(words, header.timestamp());
    look.slot = choice.slot;
  }
  for (size_t i = 0; i < sought.size(); ++i) {
    if (looks_[i].at != nullptr) table(sought[i].table).FetchSlot(looks_[i].at, looks_[i].slot);
  }
  for (size_t i = 0; i < sought.size(); ++i) {
    const Look& look = looks_[i];
    if (look.at == nullptr) continue;
    SoughtRow& row = sought[i];
    const storage::RecordGeometry& geometry = table(row.table).geometry();
    std::byte* const copy = batch_.Scratch(geometry.slot_bytes());
    storage::VerbBatch::Copy(look.at + geometry.word_offset(look.slot), copy, geometry.slot_bytes());
    uint64_t word = 0;
    std::memcpy(&word, copy, sizeof(word));
    if (HeaderAt(look.at) != row.header || word != row.version.word()) return false;
    if (!GoesOn(look.grant)) return false;
    row.row = copy + sizeof(word);
    if (std::memcmp(row.row, row.key.data(), row.key.size()) == 0) row.state = SoughtRow::State::kVisible;
  }
  return true;
}

}  // namespace nam::txn
