#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "txn/rsi_transaction.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionChoice;
using Outcome = storage::VersionChoice::Outcome;

constexpr int kRoundsAtOnce = 8;  // of READs of a block that changes, before a pause
constexpr int kRoundsMax = 2'000;
constexpr int64_t kPauseUs = 10;

// The slot of the newest version: never written to as long as it is the newest.
uint32_t NewestSlot(std::span<const uint64_t> version_words, uint64_t newest) {
  for (uint32_t slot = 0; slot < version_words.size(); ++slot) {
    if (storage::VersionWord(version_words[slot]).timestamp() == newest) return slot;
  }
  return 0;
}

}  // namespace

// Keys to records by the indexes, then the blocks of all of them at once, again and again for those that
// move.
absl::Status RsiSession::Find(std::span<SoughtRow> sought) {
  NAM_RETURN_IF_ERROR(LookUp(sought));
  Clock& clock = tables_.fabric().clock();
  for (int round = 0; !readings_.empty(); ++round) {
    if (round == kRoundsMax)
      return AbortStatus(AbortReason::kSnapshotTooOld, "a row that never stands still");
    if (round >= kRoundsAtOnce) {
      clock.SleepUntil(clock.After(kPauseUs));
      const uint32_t holder = readings_[0].block.header().client();
      if (round % 100 == 0 && holder != 0) NAM_RETURN_IF_ERROR(recovery_->TryRecover(holder).status());
    }
    NAM_RETURN_IF_ERROR(ReadRound(sought));
  }
  return absl::OkStatus();
}

absl::Status RsiSession::LookUp(std::span<SoughtRow> sought) {
  readings_.clear();
  for (uint32_t number = 0; number < tables_open_.size(); ++number) {
    probes_.clear();
    probed_.clear();
    for (uint32_t i = 0; i < sought.size(); ++i) {
      if (sought[i].table != number) continue;
      probes_.push_back({.hash = sought[i].hash});
      probed_.push_back(i);
    }
    if (probes_.empty()) continue;
    NAM_RETURN_IF_ERROR(CheckScratch(probes_.size() * 1'024));
    NAM_RETURN_IF_ERROR(table(number).index().Lookup(probes_));
    for (size_t i = 0; i < probes_.size(); ++i) {
      for (const uint64_t record : probes_[i].candidates.view()) {
        readings_.push_back({.sought = probed_[i], .block = {.record = record}});
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RsiSession::ReadRound(std::span<SoughtRow> sought) {
  uint64_t bytes = 0;
  for (const Reading& reading : readings_) {
    bytes += table(sought[reading.sought].table).geometry().block_bytes() + 256;
  }
  NAM_RETURN_IF_ERROR(CheckScratch(bytes));
  for (Reading& reading : readings_) {
    RecordTable& from = table(sought[reading.sought].table);
    if (reading.block.block == nullptr) {
      NAM_RETURN_IF_ERROR(from.AddRead(reading.block));
    } else {
      NAM_RETURN_IF_ERROR(from.AddReadAgain(reading.block));
    }
  }
  for (const Reading& reading : readings_) table(sought[reading.sought].table).FetchBlock(reading.block);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Reading& reading : readings_) table(sought[reading.sought].table).Take(reading.block);
  NAM_RETURN_IF_ERROR(ReadSlots(sought));
  again_.clear();
  for (const Reading& reading : readings_) {
    if (!Settle(sought[reading.sought], reading.block)) again_.push_back(reading);
  }
  std::swap(readings_, again_);
  return absl::OkStatus();
}

// Of large blocks, and in place, only the words have come: now the slot that is wanted.
absl::Status RsiSession::ReadSlots(std::span<SoughtRow> sought) {
  bool any = false;
  for (Reading& reading : readings_) {
    RecordTable& from = table(sought[reading.sought].table);
    if (from.IsWhole(reading.block)) continue;
    const VersionChoice choice = Choose(from, reading.block);
    if (choice.outcome == Outcome::kMoved || reading.block.header().timestamp() == 0) continue;
    const auto words = reading.block.version_words(from.geometry());
    const uint32_t slot = choice.outcome == Outcome::kVersion
                              ? choice.slot
                              : NewestSlot(words, reading.block.header().timestamp());
    NAM_RETURN_IF_ERROR(from.AddReadSlot(reading.block, slot));
    any = true;
  }
  if (!any) return absl::OkStatus();
  for (const Reading& reading : readings_) table(sought[reading.sought].table).FetchSlot(reading.block);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Reading& reading : readings_) table(sought[reading.sought].table).TakeSlot(reading.block);
  return absl::OkStatus();
}

VersionChoice RsiSession::Choose(const RecordTable& from, const BlockRead& block, uint64_t snapshot) const {
  const auto words = block.version_words(from.geometry());
  if (!options_.broken.torn_reads) {
    return storage::ChooseVersion(RecordHeader(*block.before), words, block.header(), snapshot);
  }
  const RecordHeader trusted = RecordHeader::Unlocked(RecordHeader(*block.before).timestamp());
  return storage::ChooseVersion(trusted, words, trusted, snapshot);
}

// False: READ it again. A block whose row has another key, or none, says nothing of the key that is sought.
bool RsiSession::Settle(SoughtRow& sought, const BlockRead& block) const {
  const RecordTable& from = *tables_open_[sought.table];
  const VersionChoice choice = Choose(from, block);
  if (choice.outcome == Outcome::kMoved) return false;
  const RecordHeader header = block.header();
  if (header.timestamp() == 0) {
    if (header.locked() && sought.state == SoughtRow::State::kNone) {
      sought.state = SoughtRow::State::kInFlight;
      sought.header = header;
    }
    return true;
  }
  const auto words = block.version_words(from.geometry());
  const uint32_t slot =
      choice.outcome == Outcome::kVersion ? choice.slot : NewestSlot(words, header.timestamp());
  const std::byte* const row = block.block + from.geometry().slot_offset(slot);
  if (std::memcmp(row, sought.key.data(), sought.key.size()) != 0) return true;
  sought.record = block.record;
  sought.header = header;
  sought.version = choice.version;
  sought.victim = storage::VictimSlot(words, header.timestamp());
  sought.row = row;
  switch (choice.outcome) {
    case Outcome::kVersion:
      sought.state = choice.version.deleted() ? SoughtRow::State::kDeleted : SoughtRow::State::kVisible;
      break;
    case Outcome::kTooOld:
      sought.state = SoughtRow::State::kTooOld;
      break;
    default:
      sought.state = SoughtRow::State::kInvisible;
  }
  return true;
}

}  // namespace nam::txn
