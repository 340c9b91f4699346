#include "storage/record_block.h"

namespace nam::storage {

namespace {

bool IsEmpty(VersionWords words) {
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    if (words[slot].word() != 0) return false;
  }
  return true;
}

}  // namespace

uint32_t VictimSlot(VersionWords words, uint64_t newest) {
  uint32_t victim = 0;
  uint64_t oldest = ~uint64_t{0};
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    const uint64_t timestamp = words[slot].timestamp();
    if (timestamp > newest) return slot;
    if (timestamp < oldest) {
      oldest = timestamp;
      victim = slot;
    }
  }
  return victim;
}

uint64_t VersionUnderLock(RecordHeader header, VersionWords words, uint64_t snapshot) {
  if (!header.locked()) return 0;
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    const uint64_t timestamp = words[slot].timestamp();
    if (timestamp > header.timestamp() && timestamp <= snapshot) return timestamp;
  }
  return 0;
}

VersionChoice ChooseVersion(RecordHeader before, VersionWords words, RecordHeader after, uint64_t snapshot,
                            LockHolder holder) {
  using Outcome = VersionChoice::Outcome;
  if (before.timestamp() != after.timestamp()) return {.outcome = Outcome::kMoved};
  const uint64_t newest = before.timestamp();
  if (const uint64_t locked = VersionUnderLock(before, words, snapshot); locked != 0) [[unlikely]] {
    if (holder.client != before.client()) return {.outcome = Outcome::kInDoubt};
    for (uint32_t slot = 0; locked == holder.committing && slot < words.size(); ++slot) {
      if (words[slot].timestamp() != locked) continue;
      if (before != after) return {.outcome = Outcome::kMoved};
      return {Outcome::kVersion, slot, words[slot]};
    }
  }
  if (newest == 0) return {.outcome = Outcome::kNone};
  // While the timestamp stays, only the victim can change, and only under a lock, unless the block is being
  // freed: then all words become empty.
  const bool quiet = before == after && !before.locked();
  if (quiet && newest <= snapshot) [[likely]] {
    for (uint32_t slot = 0; slot < words.size(); ++slot) {
      const VersionWord version = words[slot];
      if (version.timestamp() == newest) return {Outcome::kVersion, slot, version};
    }
  }
  const uint32_t victim = VictimSlot(words, newest);
  const uint64_t limit = snapshot < newest ? snapshot : newest;

  VersionChoice choice;
  bool complete = false;      // no version older than these was ever replaced
  bool newest_there = false;  // else the words are older than the header that was READ before them
  for (uint32_t slot = 0; slot < words.size(); ++slot) {
    const VersionWord version = words[slot];
    if (version.timestamp() == 0 || version.timestamp() > newest) continue;
    complete = complete || version.first();
    newest_there = newest_there || version.timestamp() == newest;
    if (version.timestamp() > limit || version.timestamp() <= choice.version.timestamp()) continue;
    choice = {Outcome::kVersion, slot, version};
  }
  if (!newest_there) {
    // A client that frees a block first empties its slots, under its lock.
    const bool emptied = before == after && before.locked() && IsEmpty(words);
    return {.outcome = emptied ? Outcome::kNone : Outcome::kMoved};
  }
  if (choice.outcome == Outcome::kVersion) {
    if (choice.slot == victim && !quiet) return {.outcome = Outcome::kMoved};
    return choice;
  }
  return {.outcome = complete ? Outcome::kNone : Outcome::kTooOld};
}

}  // namespace nam::storage
