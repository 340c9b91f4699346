#include "txn/rsi/row_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionChoice;

constexpr int kRoundsAtOnce = 8;  // READs of a moving block before a pause
constexpr int kRoundsMax = 2'000;
constexpr int64_t kPauseUs = 10;
constexpr uint64_t kProbeScratchBytes = 1'024;  // buckets, and splits on the way

// The slot of the newest version. No client writes to it as long as it is the newest.
uint32_t NewestSlot(storage::VersionWords words, uint64_t newest) {
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    if (words[slot].timestamp() == newest) return slot;
  }
  return 0;
}

}  // namespace

absl::Status RowReader::Find(std::span<SoughtRow> sought) {
  if (StartInPlace(sought) && ReadInPlace(sought)) return absl::OkStatus();
  return FindInRounds(sought);
}

// Looks up records in the indexes, then reads the blocks of all of them at once.
absl::Status RowReader::FindInRounds(std::span<SoughtRow> sought) {
  NAM_RETURN_IF_ERROR(LookUp(sought));
  return ReadUntilStill(sought);
}

absl::Status RowReader::ReadLookedUp(std::span<SoughtRow> sought) {
  readings_.clear();
  AddReadings(sought, 0);
  return ReadUntilStill(sought);
}

// If it cannot be recovered now, the lock may still go: only a broken channel ends the wait.
absl::Status RowReader::RecoverHolder(uint32_t client) {
  const absl::Status tried = recovery_->TryRecover(client).status();
  return channel_->broken() ? tried : absl::OkStatus();
}

absl::StatusOr<bool> RowReader::ReadCandidates(std::span<SoughtRow> sought,
                                               std::span<const Candidate> candidates, int rounds_max) {
  readings_.clear();
  for (const Candidate& candidate : candidates)
    readings_.push_back({.sought = candidate.place, .block = {.record = candidate.record}});
  for (int round = 0; !readings_.empty(); ++round) {
    if (round == rounds_max) return false;
    NAM_RETURN_IF_ERROR(ReadRound(sought));
  }
  return true;
}

// Repeats READs of moving blocks.
absl::Status RowReader::ReadUntilStill(std::span<SoughtRow> sought) {
  Clock& clock = tables_.fabric().clock();
  for (int round = 0; !readings_.empty(); ++round) {
    if (round == kRoundsMax) return AbortStatus(AbortReason::kSnapshotTooOld, "a row that keeps changing");
    if (round >= kRoundsAtOnce) {
      clock.SleepUntil(clock.After(kPauseUs));
      const uint32_t holder = readings_[0].block.header().client();
      if (round % 100 == 0 && holder != 0) NAM_RETURN_IF_ERROR(recovery_->TryRecover(holder).status());
    }
    NAM_RETURN_IF_ERROR(ReadRound(sought));
  }
  return absl::OkStatus();
}

// Looks keys up in all tables' indexes in one round trip.
absl::Status RowReader::LookUp(std::span<const SoughtRow> sought) {
  readings_.clear();
  for (size_t first = 0; first < sought.size(); first += HashIndex::kClaimsMax) {
    const auto some = sought.subspan(first, std::min(HashIndex::kClaimsMax, sought.size() - first));
    const size_t kept = batch_.scratch_used();
    NAM_RETURN_IF_ERROR(AddLookUp(some));
    NAM_RETURN_IF_ERROR(batch_.Execute());
    for (uint32_t number = 0; number < probes_.size(); ++number) {
      if (probes_[number].empty() || table(number).index().LookedUp(probes_[number])) continue;
      NAM_RETURN_IF_ERROR(table(number).index().Lookup(probes_[number]));
    }
    batch_.Reset(kept);
    AddReadings(some, first);
  }
  return absl::OkStatus();
}

absl::Status RowReader::AddLookUp(std::span<const SoughtRow> sought) {
  probes_.resize(core_.open.size());
  for (std::vector<HashIndex::Probe>& probes : probes_) probes.clear();
  NAM_RETURN_IF_ERROR(core_.CheckScratch(sought.size() * kProbeScratchBytes));
  for (const SoughtRow& row : sought) {
    if (row.table != SoughtRow::kNoTable) probes_[row.table].push_back({.hash = row.hash});
  }
  for (uint32_t number = 0; number < probes_.size(); ++number) {
    if (!probes_[number].empty()) NAM_RETURN_IF_ERROR(table(number).index().AddLookup(probes_[number]));
  }
  return absl::OkStatus();
}

bool RowReader::LookedUp() {
  bool all = true;
  for (uint32_t number = 0; number < probes_.size(); ++number) {
    if (!probes_[number].empty()) all = table(number).index().LookedUp(probes_[number]) && all;
  }
  return all;
}

// Fills readings_ with the records that probes_ name; `sought` begins at `first` of all.
void RowReader::AddReadings(std::span<const SoughtRow> sought, size_t first) {
  probed_.assign(probes_.size(), 0);
  for (size_t i = 0; i < sought.size(); ++i) {
    if (sought[i].table == SoughtRow::kNoTable) continue;
    const HashIndex::Probe& probe = probes_[sought[i].table][probed_[sought[i].table]++];
    for (const uint64_t record : probe.candidates.view()) {
      readings_.push_back({.sought = static_cast<uint32_t>(first + i), .block = {.record = record}});
    }
  }
}

absl::Status RowReader::ReadRound(std::span<SoughtRow> sought) {
  uint64_t bytes = 0;
  for (const Reading& reading : readings_) {
    bytes += table(sought[reading.sought].table).geometry().block_bytes() + 320;
  }
  NAM_RETURN_IF_ERROR(core_.CheckScratch(bytes));
  for (Reading& reading : readings_) {
    RecordTable& from = table(sought[reading.sought].table);
    if (reading.block.block == nullptr) {
      NAM_RETURN_IF_ERROR(from.AddRead(reading.block));
    } else {
      NAM_RETURN_IF_ERROR(from.AddReadAgain(reading.block));
    }
  }
  for (const Reading& reading : readings_)
    table(sought[reading.sought].table).FetchWords(reading.block.in_place);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Reading& reading : readings_) table(sought[reading.sought].table).CopyWords(reading.block);
  NAM_RETURN_IF_ERROR(ReadSlots(sought));
  again_.clear();
  for (const Reading& reading : readings_) {
    if (!ResolveRow(sought[reading.sought], reading.block)) again_.push_back(reading);
  }
  std::swap(readings_, again_);
  return readings_.empty() ? absl::OkStatus() : HelpHolders(sought);
}

// Asks the lock holders of blocks that will be READ again, if the snapshot may hold their writes. Flips what
// a holder has committed, so that this transaction may change it, too; another flip may come first. The block
// cannot have been freed and reused meanwhile: this session's slot has a snapshot from before the lock was
// seen, and so from before any deletion of the row.
absl::Status RowReader::HelpHolders(std::span<const SoughtRow> sought) {
  std::vector<BlockRead*> in_doubt;
  for (Reading& reading : readings_) {
    const RecordTable& from = table(sought[reading.sought].table);
    if (Choose(from, reading.block).outcome == VersionChoice::Outcome::kInDoubt)
      in_doubt.push_back(&reading.block);
  }
  if (in_doubt.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(AskHolders(batch_, core_.state, in_doubt));
  for (Reading& reading : readings_) {
    BlockRead& block = reading.block;
    const RecordHeader locked(*block.before);
    if (std::find(in_doubt.begin(), in_doubt.end(), &block) == in_doubt.end()) continue;
    RecordTable& from = table(sought[reading.sought].table);
    const uint64_t version =
        storage::VersionUnderLock(locked, block.version_words(from.geometry()), transaction_.snapshot);
    if (block.holder.committing != version) continue;
    NAM_RETURN_IF_ERROR(from.AddLock(block.record, locked, RecordHeader::Unlocked(version), batch_.Word()));
  }
  return absl::OkStatus();
}

// Large blocks, and blocks in place, have only their words so far: brings the wanted slots.
absl::Status RowReader::ReadSlots(std::span<SoughtRow> sought) {
  bool any = false;
  for (Reading& reading : readings_) {
    RecordTable& from = table(sought[reading.sought].table);
    if (from.IsWhole(reading.block)) continue;
    const VersionChoice choice = Choose(from, reading.block);
    if (choice.outcome == VersionChoice::Outcome::kMoved ||
        choice.outcome == VersionChoice::Outcome::kInDoubt)
      continue;
    if (reading.block.header().timestamp() == 0) continue;
    const auto words = reading.block.version_words(from.geometry());
    const uint32_t slot = choice.outcome == VersionChoice::Outcome::kVersion
                              ? choice.slot
                              : NewestSlot(words, reading.block.header().timestamp());
    NAM_RETURN_IF_ERROR(from.AddReadSlot(reading.block, slot));
    any = true;
  }
  if (!any) return absl::OkStatus();
  for (const Reading& reading : readings_)
    table(sought[reading.sought].table).FetchSlot(reading.block.in_place, reading.block.slot);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Reading& reading : readings_) table(sought[reading.sought].table).CopySlot(reading.block);
  return absl::OkStatus();
}

// False: READ it again. A block whose row has another key, or none, says nothing of the sought key.
bool RowReader::ResolveRow(SoughtRow& sought, const BlockRead& block) {
  const RecordTable& from = table(sought.table);
  const VersionChoice choice = Choose(from, block);
  if (choice.outcome == VersionChoice::Outcome::kMoved || choice.outcome == VersionChoice::Outcome::kInDoubt)
    return false;
  const RecordHeader header = block.header();
  if (header.timestamp() == 0) {
    if (header.locked() && sought.state == SoughtRow::State::kNone) {
      sought.state = SoughtRow::State::kInFlight;
      sought.record = block.record;
      sought.header = header;
    }
    return true;
  }
  const auto words = block.version_words(from.geometry());
  const uint32_t slot = choice.outcome == VersionChoice::Outcome::kVersion
                            ? choice.slot
                            : NewestSlot(words, header.timestamp());
  if (!from.IsWhole(block) && slot != block.slot) return false;  // its row has not arrived
  const std::byte* const row = block.block + from.geometry().row_offset(slot);
  if (std::memcmp(row, sought.key.data(), sought.key.size()) != 0) return true;
  sought.record = block.record;
  sought.header = header;
  sought.version = choice.version;
  sought.victim = storage::VictimSlot(words, header.timestamp());
  sought.row = row;
  switch (choice.outcome) {
    case VersionChoice::Outcome::kVersion:
      sought.state = choice.version.deleted() ? SoughtRow::State::kDeleted : SoughtRow::State::kVisible;
      break;
    case VersionChoice::Outcome::kTooOld:
      sought.state = SoughtRow::State::kTooOld;
      break;
    default:
      sought.state = SoughtRow::State::kInvisible;
  }
  return true;
}

}  // namespace nam::txn
