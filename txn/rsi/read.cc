#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "txn/rsi/transaction.h"

namespace nam::txn {
namespace {

using storage::RecordHeader;
using storage::VersionChoice;
using Outcome = storage::VersionChoice::Outcome;

constexpr int kRoundsAtOnce = 8;  // of READs of a block that changes, before a pause
constexpr int kRoundsMax = 2'000;
constexpr int64_t kPauseUs = 10;
constexpr size_t kFewLookups = 64;
constexpr uint64_t kProbeScratchBytes = 1'024;  // buckets, and what following splits takes

// The slot of the newest version: never written to as long as it is the newest.
uint32_t NewestSlot(storage::VersionWords words, uint64_t newest) {
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    if (words[slot].timestamp() == newest) return slot;
  }
  return 0;
}

}  // namespace

absl::Status RsiSession::Read(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(CheckActive());
  const size_t kept = batch_.scratch_used(), rows_before = rows_.size();
  NAM_RETURN_IF_ERROR(Seek(lookups));
  if (absl::Status status = Find(sought_); !status.ok()) return End(status);
  NAM_RETURN_IF_ERROR(Deliver(lookups));
  // What a statement of many rows has READ is several times its rows.
  if (lookups.size() > kFewLookups)
    rows_.MoveToArena(rows_before, [this](uint32_t number) { return table(number).geometry().row_bytes; });
  // Nothing is left that was met and has to stay.
  if (lookups.size() > kFewLookups || rows_.size() == rows_before) batch_.Reset(kept);
  return absl::OkStatus();
}

// Where memory is in place, entries are only asked for before the snapshot is taken. Of keys that were looked
// up before the snapshot was known only those count whose rows it sees: a row says itself since when it is
// there, an index does not.
absl::Status RsiSession::BeginAndRead(std::span<Lookup> lookups) {
  NAM_RETURN_IF_ERROR(Seek(lookups));
  if (StartInPlace(sought_)) {
    NAM_RETURN_IF_ERROR(BeginWith({}));
    if (ReadInPlace(sought_)) return Deliver(lookups);
    NAM_RETURN_IF_ERROR(Seek(lookups));
    if (absl::Status status = FindInRounds(sought_); !status.ok()) return End(status);
    return Deliver(lookups);
  }
  NAM_RETURN_IF_ERROR(BeginWith(sought_));
  absl::Status status;
  if (looked_up_early_) {
    readings_.clear();
    TakeCandidates(sought_, 0);
    status = ReadCandidates(sought_);
  }
  const bool all_visible = std::all_of(sought_.begin(), sought_.end(), [](const SoughtRow& row) {
    return row.state == SoughtRow::State::kVisible;
  });
  if (status.ok() && !all_visible) {
    NAM_RETURN_IF_ERROR(Seek(lookups));
    status = Find(sought_);
  }
  if (!status.ok()) return End(status);
  return Deliver(lookups);
}

// sought_: of what this transaction has written itself nothing is sought.
absl::Status RsiSession::Seek(std::span<const Lookup> lookups) {
  sought_.clear();
  for (const Lookup& lookup : lookups) {
    NAM_RETURN_IF_ERROR(CheckTable(lookup.table, lookup.key.size(), false));
    NAM_RETURN_IF_ERROR(CheckTable(lookup.table, lookup.row.size(), true));
    const uint32_t number = lookup.table.value;
    const uint64_t hash = table(number).HashOf(lookup.key);
    const bool own = writes_.Find(number, hash, lookup.key) != nullptr;
    SoughtRow& sought = sought_.emplace_back();
    sought.table = own ? SoughtRow::kNoTable : number;
    sought.key = lookup.key;
    sought.hash = hash;
  }
  return absl::OkStatus();
}

absl::Status RsiSession::Deliver(std::span<Lookup> lookups) {
  for (size_t i = 0; i < lookups.size(); ++i) {
    const SoughtRow& row = sought_[i];
    if (row.table == SoughtRow::kNoTable) {
      const PendingWrite* const write = writes_.Find(lookups[i].table.value, row.hash, row.key);
      lookups[i].found = write->kind != PendingWrite::Kind::kDelete;
      if (lookups[i].found) std::memcpy(lookups[i].row.data(), write->row, lookups[i].row.size());
      continue;
    }
    lookups[i].found = row.state == SoughtRow::State::kVisible;
    if (row.state == SoughtRow::State::kTooOld) {
      return End(AbortStatus(AbortReason::kSnapshotTooOld,
                             absl::StrCat("a row of ", table(row.table).description().name)));
    }
    if (!lookups[i].found) continue;
    std::memcpy(lookups[i].row.data(), row.row, lookups[i].row.size());
    if (rows_.Find(row.table, row.hash, row.key) == nullptr) rows_.Add(row);
  }
  return absl::OkStatus();
}

absl::Status RsiSession::Find(std::span<SoughtRow> sought) {
  if (StartInPlace(sought) && ReadInPlace(sought)) return absl::OkStatus();
  return FindInRounds(sought);
}

// Keys to records by the indexes, then the blocks of all of them at once.
absl::Status RsiSession::FindInRounds(std::span<SoughtRow> sought) {
  NAM_RETURN_IF_ERROR(LookUp(sought));
  return ReadCandidates(sought);
}

// Again and again those that move.
absl::Status RsiSession::ReadCandidates(std::span<SoughtRow> sought) {
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

// All tables' indexes in one round trip.
absl::Status RsiSession::LookUp(std::span<const SoughtRow> sought) {
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
    TakeCandidates(some, first);
  }
  return absl::OkStatus();
}

absl::Status RsiSession::AddLookUp(std::span<const SoughtRow> sought) {
  probes_.resize(tables_open_.size());
  for (std::vector<HashIndex::Probe>& probes : probes_) probes.clear();
  NAM_RETURN_IF_ERROR(CheckScratch(sought.size() * kProbeScratchBytes));
  for (const SoughtRow& row : sought) {
    if (row.table != SoughtRow::kNoTable) probes_[row.table].push_back({.hash = row.hash});
  }
  for (uint32_t number = 0; number < probes_.size(); ++number) {
    if (!probes_[number].empty()) NAM_RETURN_IF_ERROR(table(number).index().AddLookup(probes_[number]));
  }
  return absl::OkStatus();
}

bool RsiSession::LookedUp() {
  bool all = true;
  for (uint32_t number = 0; number < probes_.size(); ++number) {
    if (!probes_[number].empty()) all = table(number).index().LookedUp(probes_[number]) && all;
  }
  return all;
}

// readings_: the records that probes_ name; `sought` begins at `first` of all.
void RsiSession::TakeCandidates(std::span<const SoughtRow> sought, size_t first) {
  probed_.assign(probes_.size(), 0);
  for (size_t i = 0; i < sought.size(); ++i) {
    if (sought[i].table == SoughtRow::kNoTable) continue;
    const HashIndex::Probe& probe = probes_[sought[i].table][probed_[sought[i].table]++];
    for (const uint64_t record : probe.candidates.view()) {
      readings_.push_back({.sought = static_cast<uint32_t>(first + i), .block = {.record = record}});
    }
  }
}

absl::Status RsiSession::ReadRound(std::span<SoughtRow> sought) {
  uint64_t bytes = 0;
  for (const Reading& reading : readings_) {
    bytes += table(sought[reading.sought].table).geometry().block_bytes() + 320;
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
  for (const Reading& reading : readings_)
    table(sought[reading.sought].table).FetchWords(reading.block.in_place);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Reading& reading : readings_) table(sought[reading.sought].table).Take(reading.block);
  NAM_RETURN_IF_ERROR(ReadSlots(sought));
  again_.clear();
  for (const Reading& reading : readings_) {
    if (!Settle(sought[reading.sought], reading.block)) again_.push_back(reading);
  }
  std::swap(readings_, again_);
  return readings_.empty() ? absl::OkStatus() : HelpHolders(sought);
}

// Of the blocks that are READ again those whose snapshot may hold what their lock's holder writes. What he
// has committed is flipped here, so that this transaction may change it, too: his flip, or another's, may
// come first. The block cannot be free and used anew meanwhile, since this session's slot has a snapshot that
// was there before the lock was seen, and so before any deletion of the row.
absl::Status RsiSession::HelpHolders(std::span<const SoughtRow> sought) {
  std::vector<BlockRead*> in_doubt;
  for (Reading& reading : readings_) {
    const RecordTable& from = *tables_open_[sought[reading.sought].table];
    if (Choose(from, reading.block).outcome == Outcome::kInDoubt) in_doubt.push_back(&reading.block);
  }
  if (in_doubt.empty()) return absl::OkStatus();
  NAM_RETURN_IF_ERROR(AskHolders(batch_, state_, in_doubt));
  for (Reading& reading : readings_) {
    BlockRead& block = reading.block;
    const RecordHeader locked(*block.before);
    if (std::find(in_doubt.begin(), in_doubt.end(), &block) == in_doubt.end()) continue;
    RecordTable& from = table(sought[reading.sought].table);
    const uint64_t version =
        storage::VersionUnderLock(locked, block.version_words(from.geometry()), snapshot_);
    if (block.holder.committing != version) continue;
    NAM_RETURN_IF_ERROR(from.AddLock(block.record, locked, RecordHeader::Unlocked(version), batch_.Word()));
  }
  return absl::OkStatus();
}

// Of large blocks, and in place, only the words have come: now the slot that is wanted.
absl::Status RsiSession::ReadSlots(std::span<SoughtRow> sought) {
  bool any = false;
  for (Reading& reading : readings_) {
    RecordTable& from = table(sought[reading.sought].table);
    if (from.IsWhole(reading.block)) continue;
    const VersionChoice choice = Choose(from, reading.block);
    if (choice.outcome == Outcome::kMoved || choice.outcome == Outcome::kInDoubt) continue;
    if (reading.block.header().timestamp() == 0) continue;
    const auto words = reading.block.version_words(from.geometry());
    const uint32_t slot = choice.outcome == Outcome::kVersion
                              ? choice.slot
                              : NewestSlot(words, reading.block.header().timestamp());
    NAM_RETURN_IF_ERROR(from.AddReadSlot(reading.block, slot));
    any = true;
  }
  if (!any) return absl::OkStatus();
  for (const Reading& reading : readings_)
    table(sought[reading.sought].table).FetchSlot(reading.block.in_place, reading.block.slot);
  NAM_RETURN_IF_ERROR(batch_.Execute());
  for (Reading& reading : readings_) table(sought[reading.sought].table).TakeSlot(reading.block);
  return absl::OkStatus();
}

// False: READ it again. A block whose row has another key, or none, says nothing of the key that is sought.
bool RsiSession::Settle(SoughtRow& sought, const BlockRead& block) {
  const RecordTable& from = *tables_open_[sought.table];
  const VersionChoice choice = Choose(from, block);
  if (choice.outcome == Outcome::kMoved || choice.outcome == Outcome::kInDoubt) return false;
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
  const uint32_t slot =
      choice.outcome == Outcome::kVersion ? choice.slot : NewestSlot(words, header.timestamp());
  if (!from.IsWhole(block) && slot != block.slot) return false;  // its row has not come
  const std::byte* const row = block.block + from.geometry().row_offset(slot);
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
